"""FluxMem as a method: streams in, answers out, on the tiny model."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench_lib import methods
from bench_lib.backbones.base import Backbone
from bench_lib.errors import BenchError
from bench_lib.exchange import Generation, Note, Query
from bench_lib.measure import counting
from bench_lib.methods.fluxmem import Fluxmem
from bench_lib.opening import backbones
from bench_lib.video.stream import ArrayFrame, Clip, SessionInfo

SIDE = 112
WALL_S = 10 * 3600.0
SHORT = Generation(max_new_tokens=5, keep_logits=True)
QUERY = Query("Where is the red cup?", session=0, cutoff_s=60.0, system="You see.")


@pytest.fixture(scope="module", params=["tiny-untrained", "tiny-qwen3"])
def backbone(request: pytest.FixtureRequest) -> Backbone:
    return backbones.load(request.param, device="cpu")


@pytest.fixture(scope="module")
def tiny() -> Backbone:
    return backbones.load("tiny-untrained", device="cpu")


def film(seconds: int, seed: int = 0) -> list[ArrayFrame]:
    """A picture that changes in part every five seconds, and a little always."""
    random = np.random.default_rng(seed)
    picture = random.integers(0, 256, (SIDE, SIDE, 3)).astype(float)
    frames = []
    for t in range(seconds):
        if t % 5 == 0:
            row, col = random.integers(0, 3, 2) * 28
            picture[row : row + 56, col : col + 56] = random.integers(0, 256, (56, 56, 3))
        noisy = picture + random.normal(0, 3, picture.shape)
        frames.append(ArrayFrame(float(t), np.clip(noisy, 0, 255).astype(np.uint8)))
    return frames


def begun(backbone: Backbone, **args: object) -> Fluxmem:
    method = methods.load("fluxmem", **args).attach(backbone)
    method.reset("T001", 42)
    return method


def session(
    method: Fluxmem, index: int, frames: Sequence[ArrayFrame], clip: int = 8, end: bool = True
) -> None:
    size = method.frame_size((SIDE, SIDE))
    wall_s = WALL_S + 3600 * index
    method.begin_session(SessionInfo(f"S{index + 1:03d}", index, wall_s, size))
    for start in range(0, len(frames), clip):
        method.observe(Clip(index, tuple(frames[start : start + clip])))
    if end:
        method.end_session(1_000)


def logits(method: Fluxmem, query: Query = QUERY) -> np.ndarray:
    answer = method.branch().respond(query, SHORT).logits
    assert answer is not None
    return answer


@pytest.mark.parametrize("clip", [1, 3, 5, 16])
def test_memory_does_not_depend_on_clips(backbone: Backbone, clip: int) -> None:
    args = {"mid_frames": 8}
    as_given, cut = begun(backbone, **args), begun(backbone, **args)
    for index, seconds in enumerate((31, 22)):
        frames = film(seconds, seed=index)
        session(as_given, index, frames)
        session(cut, index, frames, clip=clip)
    assert cut.tokens() == as_given.tokens()
    np.testing.assert_allclose(logits(cut), logits(as_given), atol=2e-4)


def test_an_odd_frame_is_doubled_only_for_its_question(backbone: Backbone) -> None:
    frames = film(24)
    asked, spared = begun(backbone), begun(backbone)
    session(asked, 0, frames[:16], end=False)
    session(spared, 0, frames[:16], end=False)
    branch = asked.branch()
    branch.observe(Clip(0, tuple(frames[16:19])))  # the tail: a grid and an odd frame
    with counting() as counts:
        first = branch.respond(QUERY, SHORT).logits
    assert counts["frames_encoded"] == 1
    assert not np.array_equal(first, logits(asked))
    assert np.array_equal(branch.respond(QUERY, SHORT).logits, first)
    for trunk in (asked, spared):
        trunk.observe(Clip(0, tuple(frames[16:])))
    assert np.array_equal(logits(asked), logits(spared))


def test_a_branch_leaves_no_trace_and_many_may_live(backbone: Backbone) -> None:
    method = begun(backbone, mid_frames=8)
    session(method, 0, film(40), end=False)
    before, kept = logits(method), dict(method.state_bytes())
    branches = [method.branch() for _ in range(3)]
    for i, branch in enumerate(branches):
        branch.observe(Clip(0, tuple(film(49 + 8 * i, seed=i))[40:]))
        branch.respond(QUERY, SHORT)
    assert np.array_equal(logits(method), before)
    assert method.state_bytes() == kept
    answers = [branch.respond(QUERY, SHORT).logits for branch in branches]
    assert not np.array_equal(answers[0], answers[1])


def test_the_past_is_seen_and_other_memories_differ(backbone: Backbone) -> None:
    frames = film(40)
    method, changed, empty = (begun(backbone, mid_frames=8) for _ in range(3))
    session(method, 0, frames)
    past = [*frames[:3], replace(frames[3], array=255 - frames[3].array), *frames[4:]]
    session(changed, 0, past)
    assert not np.array_equal(logits(method), logits(changed))
    assert not np.array_equal(logits(method), logits(empty))


def test_work_of_each_form(tiny: Backbone) -> None:
    """Incremental: each frame once. Window and thinned: frames per question, none before."""
    per_question = {"incremental": 0, "window": 20, "thinned": 16}
    for form, frames in per_question.items():
        args = {"form": form, "window_s": 20.0}
        method = begun(tiny, **args, **({"max_frames": 16} if form == "thinned" else {}))
        with counting() as counts:
            session(method, 0, film(41))
        assert counts["frames_encoded"] == (41 if form == "incremental" else 0)
        assert counts["tokens_prefilled"] == 0
        for _ in range(2):
            with counting() as counts:
                said = method.branch().respond(QUERY, SHORT)
            assert counts["frames_encoded"] == frames
            assert counts["model_calls"] == 1
            assert counts["decode_steps"] == SHORT.max_new_tokens - 1
            assert said.ready_at < said.first_token_at <= said.done_at
        assert method.input_class == form


def test_forms_have_their_published_settings() -> None:
    found = {
        form: (m.short_frames, m.mid_frames, m.max_frames, m.max_pixels, m.bounded)
        for form in ("incremental", "window", "thinned")
        for m in [methods.load("fluxmem", form=form)]
    }
    assert found == {
        "incremental": (8, 64, 0, 401_408, True),
        "window": (8, 64, 256, 401_408, True),
        "thinned": (8, 512, 1_024, 100_352, False),
    }
    assert methods.load("fluxmem").form == "incremental"
    assert methods.load("fluxmem", form="thinned", mid_frames=4).mid_frames == 4


def test_a_window_is_the_incremental_memory_of_its_frames(backbone: Backbone) -> None:
    frames = film(60)
    window = begun(backbone, form="window", window_s=40.0, mid_frames=8)
    session(window, 0, frames, end=False)
    fresh = begun(backbone, mid_frames=8)
    session(fresh, 0, frames[20:], clip=32, end=False)
    np.testing.assert_allclose(logits(window), logits(fresh), atol=2e-4)
    longer = begun(backbone, mid_frames=8)
    session(longer, 0, frames, end=False)  # a control: what lies before the window is seen
    assert np.abs(logits(longer) - logits(fresh)).max() > 1e-3


def test_a_window_lets_older_frames_go_over_sessions_too(tiny: Backbone) -> None:
    method = begun(tiny, form="window", window_s=20.0)
    session(method, 0, film(30))
    assert [frame.t_s for _, frame in method.state.held] == [*range(10, 30)]
    session(method, 1, film(15, seed=1))
    assert [s for s, _ in method.state.held] == [0] * 5 + [1] * 15
    session(method, 2, film(64, seed=2))
    assert method.state_bytes()["frames"] == 20 * SIDE * SIDE * 3
    session(method, 3, film(1, seed=3))  # sessions of which nothing is left are forgotten
    assert {s.position for s in method.state.sessions} == {2, 3}


def test_thinning_takes_first_and_last_and_steps_evenly(tiny: Backbone) -> None:
    method = begun(tiny, form="thinned", max_frames=10)
    for index in range(2):
        session(method, index, film(50, seed=index), end=index == 0)
    chosen = method.chosen(method.state.held)
    at = [50 * s + frame.t_s for s, frame in chosen]
    assert (at[0], at[-1], len(at)) == (0, 99, 10)
    assert set(np.diff(at)) <= {11.0}


def test_what_never_changes_is_kept_once(tiny: Backbone) -> None:
    still = [replace(film(1)[0], t_s=float(t)) for t in range(200)]
    method = begun(tiny)
    session(method, 0, still)
    kept, seen = method.tokens()
    # The short tier is whole; every grid that left it was the same as the next.
    assert (kept, seen) == (4 * 16, 100 * 16)


def test_the_ceiling_holds_and_the_first_session_stays_in_reach(tiny: Backbone) -> None:
    method = begun(tiny, max_tokens=200, mid_frames=16)
    bytes_after: list[int] = []
    for index in range(4):
        with counting() as counts:
            session(method, index, film(160, seed=index))
        bytes_after.append(sum(method.state_bytes().values()))
        assert method.tokens()[0] <= 200
        assert method.tokens()[1] == (index + 1) * 80 * 16
    assert counts["tokens_dropped"] > 0
    assert counts["tokens_pruned"] > 0
    assert counts["tokens_merged"] > 0
    numbers = [g.number for g in method.recall(method.state.memory)]
    assert numbers == sorted(numbers)
    assert {g.session for g in method.recall(method.state.memory)} == {0, 1, 2, 3}
    assert max(bytes_after[1:]) < 1.1 * min(bytes_after[1:])
    assert method.bounded


def test_below_the_ceiling_nothing_is_dropped(tiny: Backbone) -> None:
    methods_ = [begun(tiny, max_tokens=limit, mid_frames=16) for limit in (10_000, 1_000)]
    for method in methods_:
        with counting() as counts:
            session(method, 0, film(160))
        assert counts["tokens_dropped"] == 0
    assert np.array_equal(*map(logits, methods_))


def test_bytes_are_the_closed_form(backbone: Backbone) -> None:
    method = begun(backbone, mid_frames=8)
    session(method, 0, film(60))
    kept, _ = method.tokens()
    size = method.state_bytes()
    assert size["embeddings"] == kept * backbone.width * 4
    memory = method.state.memory
    whole = sum(len(f.group.cells) for f in memory.short if f.change is not None)
    groups = len(memory.short) + len(memory.mid) + len(memory.long)
    # Cells are int32, distances of the short tier float32; every number of a record counts eight:
    # four of a group, four of a session, the frame's and the lattice's two, the count of grids.
    numbers = 4 * groups + 4 * len(method.state.sessions) + 5
    assert size["index"] == 4 * kept + 4 * whole + 8 * numbers
    assert set(size) == {"embeddings", "index"}


def test_sessions_and_notes_reach_the_prompt_in_time_order(backbone: Backbone) -> None:
    method = begun(backbone)
    for index in range(2):
        session(method, index, film(10, seed=index))
    said = (Note(0, 4.0, "The wearer says: remind me.", WALL_S + 4), Note(1, 70.0, "An interval."))
    query = replace(QUERY, notes=said)
    text = backbone.tokenizer.decode(method.prompt(method.state, query).text_ids.tolist())
    expected = [
        "You see.",
        "Session 1, from DAY1 10:00:00:",
        "Session 2, from DAY1 11:00:00:",
        "[DAY1 10:00:04] The wearer says: remind me.",
        "[session 2, 70 s] An interval.",
        QUERY.text,
    ]
    places = [text.index(part) for part in expected]
    assert places == sorted(places)
    assert text.endswith("<|im_end|>\n<|im_start|>assistant\n")
    plain = begun(backbone, session_marker=False)
    session(plain, 0, film(10))
    assert "Session" not in backbone.tokenizer.decode(
        plain.prompt(plain.state, QUERY).text_ids.tolist()
    )


def test_sessions_do_not_touch_each_others_pictures(tiny: Backbone) -> None:
    """A session's first grid has no predecessor and its last no successor."""
    first, second = film(8, seed=0), film(16, seed=1)
    method = begun(tiny, short_frames=2, session_marker=False)
    session(method, 0, first)
    session(method, 1, second)
    same = begun(tiny, short_frames=2, session_marker=False)
    session(same, 0, [*first, *second[:0]])
    session(same, 1, [replace(f, t_s=f.t_s) for f in second])
    joined = begun(tiny, short_frames=2, session_marker=False)
    session(joined, 0, [*first, *(replace(f, t_s=f.t_s + 8) for f in second)])
    kept = [
        [(g.number, *g.cells.tolist()) for g in m.recall(m.state.memory)]
        for m in (method, same, joined)
    ]
    assert kept[0] == kept[1] != kept[2]


@pytest.mark.parametrize("seconds", [0, 1])
def test_hardly_anything_seen_is_answered(backbone: Backbone, seconds: int) -> None:
    for form in ("incremental", "window", "thinned"):
        method = begun(backbone, form=form)
        session(method, 0, film(seconds), end=False)
        assert method.branch().respond(QUERY, SHORT).stop in ("end", "length")
        method.end_session(0)
        session(method, 1, film(9), end=False)
        assert np.isfinite(logits(method)).all()


LOAD = """
import json, sys, numpy as np
from pathlib import Path
from bench_lib import methods
from bench_lib.opening import backbones
from bench_lib.exchange import Generation, Query
query = Query("Where is the red cup?", session=0, cutoff_s=60.0, system="You see.")
for folder, spec, args in json.load(sys.stdin):
    method = methods.load("fluxmem", **args).attach(backbones.load(spec, device="cpu"))
    method.load(Path(folder))
    reply = method.respond(query, Generation(max_new_tokens=5, keep_logits=True))
    np.save(Path(folder, "logits.npy"), reply.logits)
    print(json.dumps({"text": reply.text, "bytes": dict(method.state_bytes())}))
"""


def test_a_new_process_answers_from_saved_states(tmp_path: Path) -> None:
    saved, here = [], []
    for spec, form in (
        ("tiny-untrained", "incremental"),
        ("tiny-untrained", "thinned"),
        ("tiny-qwen3", "window"),
    ):
        args = {"form": form, "mid_frames": 8, "window_s": 30.0}
        method = begun(backbones.load(spec, device="cpu"), **args)
        for index in range(2):
            session(method, index, film(37, seed=index))
        folder = tmp_path / f"{spec}-{form}"
        method.save(folder)
        saved.append([str(folder), spec, args])
        here.append((method.respond(QUERY, SHORT), dict(method.state_bytes())))
    call = [sys.executable, "-c", LOAD]
    done = subprocess.run(call, input=json.dumps(saved), capture_output=True, text=True, check=True)
    for (folder, *_), (reply, size), line in zip(
        saved, here, done.stdout.splitlines(), strict=True
    ):
        assert json.loads(line) == {"text": reply.text, "bytes": size}
        assert np.array_equal(np.load(Path(folder, "logits.npy")), reply.logits)


def test_a_loaded_state_goes_on_as_if_never_saved(tiny: Backbone, tmp_path: Path) -> None:
    straight = begun(tiny, mid_frames=8)
    session(straight, 0, film(37))
    straight.save(tmp_path)
    resumed = methods.load("fluxmem", mid_frames=8).attach(tiny)
    resumed.load(tmp_path)
    for method in (straight, resumed):
        session(method, 1, film(30, seed=1))
    assert np.array_equal(logits(straight), logits(resumed))


def test_a_state_of_other_settings_is_refused(tiny: Backbone, tmp_path: Path) -> None:
    method = begun(tiny)
    session(method, 0, film(10))
    method.save(tmp_path)
    with pytest.raises(BenchError, match="was saved by"):
        methods.load("fluxmem", short_frames=4).attach(tiny).load(tmp_path)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"form": "windows"}, "did you mean 'window'"),
        ({"short_frames": 3}, "short_frames is 3"),
        ({"short_frames": 0}, "short_frames is 0"),
        ({"mid_frames": -2}, "mid_frames is -2"),
        ({"form": "window", "window_s": 0.5}, "holds no frame"),
        ({"shortframes": 4}, "did you mean 'short_frames'"),
    ],
)
def test_wrong_settings_are_refused(args: dict, says: str) -> None:
    with pytest.raises(BenchError, match=says):
        methods.load("fluxmem", **args)


def test_a_ceiling_below_the_short_tier_is_refused(tiny: Backbone) -> None:
    method = begun(tiny, max_tokens=63)
    with pytest.raises(BenchError, match="short tier's 64 tokens"):
        session(method, 0, film(8))
