"""StreamForest as a method: streams in, answers out, on the tiny models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import token_laws as laws
import torch
from synthetic import household
from token_laws import QUERY, SHORT, begun, film, logits, session

from bench_lib import methods
from bench_lib.backbones.base import Backbone
from bench_lib.errors import BenchError
from bench_lib.exchange import Note, Query
from bench_lib.measure import counting
from bench_lib.memories.method import Method
from bench_lib.memories.parts.sincos import codes
from bench_lib.opening import backbones
from bench_lib.schema import Caption
from bench_lib.video.stream import Clip, SessionInfo

NAME = "streamforest"
SMALL = {"short_frames": 6, "short_tokens": 8, "event_window": 4, "frame_tokens": 4, "quota": 48}
STREAMING = {**SMALL, "mode": "streaming"}


@pytest.fixture(scope="module", params=["tiny-untrained", "tiny-qwen3"])
def backbone(request: pytest.FixtureRequest) -> Backbone:
    return backbones.load(request.param, device="cpu")


@pytest.fixture(scope="module")
def tiny() -> Backbone:
    return backbones.load("tiny-untrained", device="cpu")


@pytest.mark.parametrize("args", [SMALL, STREAMING], ids=["batch", "streaming"])
class TestLaws:
    def test_a_branch_leaves_no_trace(self, backbone: Backbone, args: dict) -> None:
        laws.branches_leave_no_trace(lambda: begun(backbone, NAME, **args))

    def test_the_past_is_seen(self, backbone: Backbone, args: dict) -> None:
        laws.the_past_is_seen(lambda: begun(backbone, NAME, **args))

    def test_hardly_anything_seen_is_answered(self, tiny: Backbone, args: dict) -> None:
        laws.hardly_anything_is_answered(lambda: begun(tiny, NAME, **args))

    def test_a_loaded_state_goes_on(self, tiny: Backbone, args: dict, tmp_path: Path) -> None:
        laws.a_loaded_state_goes_on(lambda: begun(tiny, NAME, **args), NAME, tmp_path, **args)

    def test_the_future_never_matters(self, tiny: Backbone, args: dict, tmp_path: Path) -> None:
        laws.the_future_never_matters(
            household(tmp_path), tmp_path, NAME, tiny, **{**args, "clip_frames": 4}
        )

    @pytest.mark.parametrize("clip", [1, 3, 16])
    def test_memory_does_not_depend_on_clips(self, tiny: Backbone, args: dict, clip: int) -> None:
        as_given, cut = (begun(tiny, NAME, **args) for _ in range(2))
        for index, seconds in enumerate((31, 22)):
            session(as_given, index, film(seconds, seed=index))
            session(cut, index, film(seconds, seed=index), clip=clip)
        assert cut.tokens() == as_given.tokens()
        np.testing.assert_allclose(logits(cut), logits(as_given), atol=2e-4)

    def test_every_frame_is_encoded_once(self, tiny: Backbone, args: dict) -> None:
        method = begun(tiny, NAME, **args)
        with counting() as counts:
            session(method, 0, film(41))
        assert counts["frames_encoded"] == 41
        assert (counts["events_merged"] > 0) == (args is STREAMING)
        for _ in range(2):
            with counting() as counts:
                method.branch().respond(QUERY, SHORT)
            assert counts["frames_encoded"] == 0
            assert counts["model_calls"] == 1
            assert (counts["events_merged"] > 0) == (args is SMALL)


def test_a_ceiling_holds(tiny: Backbone) -> None:
    """The forest at rest: at most a quota of events, a full short memory, the newest frame."""
    laws.a_ceiling_holds(lambda: begun(tiny, NAME, **STREAMING))
    method = begun(tiny, NAME, **STREAMING)
    session(method, 0, film(120))
    assert method.tokens()[0] <= 48 + 9 * 8 + 16
    assert not begun(tiny, NAME).bounded


def test_short_streams_are_the_same_in_both_modes(backbone: Backbone) -> None:
    """Until an event is merged, it does not matter when the updates are run."""
    batch, streaming = (begun(backbone, NAME, **{**a, "quota": 999}) for a in (SMALL, STREAMING))
    for method in (batch, streaming):
        session(method, 0, film(60))
    np.testing.assert_allclose(logits(batch), logits(streaming), atol=2e-4)


def test_long_streams_are_not(tiny: Backbone) -> None:
    batch, streaming = (begun(tiny, NAME, **args) for args in (SMALL, STREAMING))
    for method in (batch, streaming):
        session(method, 0, film(120))
    assert not np.allclose(logits(batch), logits(streaming), atol=1e-3)


def test_a_batch_of_too_many_frames_is_thinned_evenly(tiny: Backbone) -> None:
    frames = film(90)
    thinned = begun(tiny, NAME, max_frames=30, time_message=False, **SMALL)
    session(thinned, 0, frames)
    even = [frames[i] for i in np.linspace(0, 89, 30).round().astype(int)]
    plain = begun(tiny, NAME, time_message=False, **SMALL)
    session(plain, 0, even)
    np.testing.assert_allclose(logits(thinned), logits(plain), atol=2e-4)


def test_codes_are_added_to_what_is_kept(backbone: Backbone) -> None:
    frames = film(5)
    method = begun(backbone, NAME, **STREAMING)
    bare = begun(backbone, NAME, add_codes=False, **STREAMING)
    for m in (method, bare):
        session(m, 0, frames)
    newest, plain = (m.state.memory.forest.newest[0].tokens for m in (method, bare))
    hidden = method._hidden(bare.state.memory.forest.newest[0])
    expected = plain[:, :hidden] + codes(4, method.state.lattice, hidden)
    torch.testing.assert_close(newest[:, :hidden], expected)
    torch.testing.assert_close(newest[:, hidden:], plain[:, hidden:])  # DeepStack has none
    assert newest.shape[1] == hidden * (1 + backbone.deep)


def test_a_lone_frame_reads_as_the_models_own_tokens(backbone: Backbone) -> None:
    """Without codes, one whole frame is projected as the model would project it."""
    method = begun(backbone, NAME, add_codes=False)
    (frame,) = film(1)
    session(method, 0, [frame])
    pixels = frame.pixels(method.frame_size((laws.SIDE, laws.SIDE)))
    built = method.prompt(method.state, QUERY)
    mine = backbone.encode([pixels], as_images=True)[0]
    start = next(i for i in range(len(built.x)) if torch.allclose(built.x[i], mine[0], atol=1e-5))
    torch.testing.assert_close(built.x[start : start + 16], mine, atol=1e-5, rtol=1e-4)
    assert (built.positions[:, start : start + 16].diff() == 1).all()


def test_what_a_question_is_told(backbone: Backbone) -> None:
    method = begun(backbone, NAME, **STREAMING)
    session(method, 0, film(20))
    session(method, 1, film(11, seed=1))
    text = backbone.tokenizer.decode(method.prompt(method.state, QUERY).text_ids.tolist())
    parts = [
        "Session 1, from DAY1 10:00:00:",
        "Session 2, from DAY1 11:00:00:",
        "<|vision_end|>",
        "31 frames of 30.0 seconds of video up to now, second 10.0 of this session.",
        QUERY.text,
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def siglip() -> SimpleNamespace:
    """The released vision tower's shape, its features drawn."""
    random = torch.Generator().manual_seed(0)

    def vision(pictures, as_images):
        shape = (len(pictures), 1, 729, 1, 1_152)
        if len(pictures) > 8:
            return torch.empty(shape, dtype=torch.float16, device="meta")
        return torch.randn(shape, generator=random).half()

    return SimpleNamespace(
        id="tiny",
        vision=vision,
        lattice=lambda size: (27, 27),
        preparation=SimpleNamespace(merge=1, factor=14),
        deep=0,
    )


def observed(method, frames: int, step: int):
    method.begin_session(SimpleNamespace(index=0, wall_start_s=None, frame_size=(384, 384)))
    blank = SimpleNamespace(t_s=0.0, pixels=lambda size: np.zeros((*size, 3), np.uint8))
    for start in range(0, frames, step):
        method.observe(Clip(0, (blank,) * min(step, frames - start)))
    return method


def test_captions_stand_before_the_question_where_they_are_taken(tiny: Backbone) -> None:
    """Those of this session, with what was said; a branch's are not the trunk's."""
    read = {}
    for speech in ("captions", "none"):
        method = begun(tiny, NAME, speech=speech, **SMALL)
        session(method, 0, film(4))
        size = method.frame_size((laws.SIDE, laws.SIDE))
        method.begin_session(SessionInfo("S2", 1, laws.WALL_S, size))
        said = (Caption(start_s=1.0, end_s=2.0, text="hello"),)
        method.observe(Clip(1, tuple(film(4, seed=1)), said))
        branch = method.branch()
        branch.observe(Clip(1, (), (Caption(start_s=4.0, end_s=5.0, text="later"),)))
        query = replace(QUERY, notes=(Note(1, 3.0, "asked", laws.WALL_S + 3),))
        read[speech] = [told(tiny, one, query) for one in (method, branch)]
    heard = "\n[DAY1 10:00:02] Speech: hello\n[DAY1 10:00:03] asked"
    question = f"\n{QUERY.text}"
    trunk, branch = read["captions"]
    assert trunk.endswith(f"{heard}{question}")
    assert branch.endswith(f"{heard}\n[DAY1 10:00:05] Speech: later{question}")
    assert all("Speech" not in text for text in read["none"])


def told(backbone: Backbone, method: Method, query: Query) -> str:
    """The words of a question's turn."""
    text = backbone.tokenizer.decode(method.prompt(method.state, query).text_ids.tolist())
    return text.rpartition("<|im_end|>\n<|im_start|>assistant")[0]


def test_bytes_at_the_papers_settings() -> None:
    """Batch: 1,679,616 bytes a frame, 2,048 of them. Streaming: the forest and one whole frame."""
    batch = observed(begun(siglip(), NAME), 2_048, 64)
    assert batch.state_bytes()["features"] == 2_048 * 1_679_616
    streaming = observed(begun(siglip(), NAME, mode="streaming"), 34, 8)
    forest = streaming.state.memory.forest
    events = sum(event.frames for event in forest.events)
    assert events + len(forest.short) + 1 == 34
    expected = (64 * events + 128 * len(forest.short)) * 2_304 + 1_679_616
    assert streaming.state_bytes()["features"] == expected
    # At rest: (5,120 + 25 * 128) * 2,304 + 1,679,616 = 20.9 MB, the 21 MB of the docstring.
    assert streaming.tokens()[0] == 64 * events + 128 * len(forest.short) + 729


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"mode": "stream"}, "did you mean 'streaming'"),
        ({"quota": 0}, "quota is 0"),
        ({"newest_frames": 0}, "newest_frames is 0"),
        ({"weights": "none"}, "weights is 'none'"),
        ({"event_windows": 4}, "did you mean 'event_window'"),
    ],
)
def test_wrong_settings_are_refused(args: dict, says: str) -> None:
    with pytest.raises(BenchError, match=says):
        methods.load(NAME, **args)


def test_heads_that_do_not_divide_are_refused(tiny: Backbone) -> None:
    method = begun(tiny, NAME, heads=7, mode="streaming")
    with pytest.raises(BenchError, match="heads must divide them, 7 does not"):
        session(method, 0, film(2))


def test_weights(tiny: Backbone) -> None:
    stock = SimpleNamespace(id="Qwen/Qwen2.5-VL-7B-Instruct@main")
    with pytest.raises(BenchError, match="give backbone MCG-NJU/StreamForest-Qwen2-7B"):
        methods.load(NAME).attach(stock)
    assert "was not trained for it" in methods.load(NAME, weights="stock").attach(stock).caveat
