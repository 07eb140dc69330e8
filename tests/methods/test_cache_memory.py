"""What all memories of keys and values have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import token_laws as laws
import torch
import yaml
from engine_runs import answers, walk
from synthetic import household
from token_laws import QUERY, SHORT, begun, film, logits, session

from bench_lib import methods
from bench_lib.backbones.base import Backbone
from bench_lib.backbones.chunk import chunk
from bench_lib.backbones.generate import decode
from bench_lib.backbones.prompt import Built, Prompt, Visual
from bench_lib.errors import BenchError
from bench_lib.exchange import Note
from bench_lib.measure import counting
from bench_lib.memories import cache_memory
from bench_lib.memories.cache_memory import CacheMemory, best
from bench_lib.memories.method import Method
from bench_lib.opening import backbones
from bench_lib.params.evaluate import EvalParams
from bench_lib.schema import Trajectory
from bench_lib.state.walk import leaves
from bench_lib.tasks import MAX_NEW_TOKENS
from bench_lib.video.stream import Clip

SMALL: dict[str, dict[str, Any]] = {
    "hermes": {"kv_size": 100, "clip_frames": 8},
    "rekv": {"n_local": 250, "topk": 4, "clip_frames": 8},
    "infinipot_v": {"block_grids": 8, "keep_grids": 6, "clip_frames": 4},
    "streaming_vlm": {"window_s": 8.0},
    "streammem": {"kv_size": 100, "similarity": 2.0},
}
BOUNDED = [name for name in SMALL if name != "rekv"]
EVERYWHERE = [*((name, "tiny-untrained") for name in SMALL), ("hermes", "tiny-qwen3")]
"""Methods with models: what the families do differently is the same code for all methods."""
LAWS = [("hermes", "tiny-untrained"), ("rekv", "tiny-untrained"), ("hermes", "tiny-qwen3")]
"""The two that differ most; the contract's own suite holds all methods to the same laws."""
PARAMS = Path(__file__).parents[2] / "params"


@cache
def model(spec: str) -> Backbone:
    return backbones.load(spec, device="cpu")


@pytest.fixture
def tiny() -> Backbone:
    return model("tiny-untrained")


@pytest.fixture
def third() -> Backbone:
    return model("tiny-qwen3")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Trajectory:
    return household(tmp_path_factory.mktemp("home"))


def made(backbone: Backbone, name: str, **args: Any) -> CacheMemory:
    method = begun(backbone, name, **{"fps": 1.0, **SMALL[name], **args})
    assert isinstance(method, CacheMemory)
    return method


# Laws ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "spec"), LAWS)
def test_branches_leave_no_trace(name: str, spec: str) -> None:
    laws.branches_leave_no_trace(lambda: made(model(spec), name))


@pytest.mark.parametrize("name", ["hermes", "rekv"])
def test_the_past_is_seen(tiny: Backbone, name: str) -> None:
    laws.the_past_is_seen(lambda: made(tiny, name))


@pytest.mark.parametrize(("name", "spec"), LAWS)
def test_hardly_anything_is_answered(name: str, spec: str) -> None:
    laws.hardly_anything_is_answered(lambda: made(model(spec), name))


@pytest.mark.parametrize("name", ["hermes", "rekv"])
def test_a_loaded_state_goes_on(tiny: Backbone, tmp_path: Path, name: str) -> None:
    args = {"fps": 1.0, **SMALL[name]}
    laws.a_loaded_state_goes_on(lambda: made(tiny, name), name, tmp_path, **args)


@pytest.mark.parametrize("name", ["hermes", "rekv"])
def test_the_future_never_matters(
    home: Trajectory, tmp_path: Path, tiny: Backbone, name: str
) -> None:
    args = {"fps": 1.0, **SMALL[name], "clip_frames": 4}
    laws.the_future_never_matters(home, tmp_path, name, tiny, **args)


@pytest.mark.parametrize("name", ["hermes", "rekv"])
def test_replay_gives_the_answers_of_the_stream(
    home: Trajectory, tmp_path: Path, tiny: Backbone, name: str
) -> None:
    limits = dict.fromkeys(MAX_NEW_TOKENS, 3)

    def method() -> Method:
        args = {"fps": 1.0, **SMALL[name], "clip_frames": 4}
        return methods.load(name, **args).attach(tiny)

    stream, sessions = walk(home, tmp_path, method(), max_new_tokens=limits)
    replay, _ = walk(home, tmp_path, method(), replay=True, max_new_tokens=limits)
    assert answers(stream) == answers(replay)
    assert len(set(answers(stream).values())) > 2, "the replies tell nothing apart"
    assert sum(s["counters"]["frames_encoded"] for s in sessions) <= 30, "a frame was read twice"
    assert all(r.counters.get("frames_encoded", 0) < 4 for r in stream.values())
    assert all(r.counters["model_calls"] == 1 for r in stream.values())


@pytest.mark.parametrize("name", BOUNDED)
def test_a_stream_ten_times_as_long_takes_no_more(tiny: Backbone, name: str) -> None:
    sizes = laws.a_ceiling_holds(
        lambda: made(tiny, name, session_marker=False), seconds=24, times=10
    )
    assert sizes[0]["kv"] == sizes[-1]["kv"]


# Reading ------------------------------------------------------------------------------------------


def at_once(method: CacheMemory, frames: list, clip: int, question: Built) -> Built:
    """The prefix, a session's chunks and the question as one prompt."""
    served = method.served
    prompt = Prompt(served)
    if served.default_system:
        prompt.turn("system").text(served.default_system).end()
    parts = [prompt.turn("user").build()]
    size = method.frame_size((laws.SIDE, laws.SIDE))
    cuts = [*range(0, len(frames), clip), len(frames)]
    cuts[-1:] = [len(frames) - len(frames) % 2, len(frames)]  # an odd frame is read by itself
    for start, end in pairwise(sorted(set(cuts))):
        run = frames[start:end]
        tokens = served.encode([frame.pixels(size) for frame in run])
        visual = Visual.whole(tokens, [frame.t_s for frame in run], served.lattice(size))
        text = "\nSession 1, from DAY1 10:00:00:\n" if start == 0 else ""
        part = chunk(served, text, visual, method.bare)
        parts.append(Built(part.x, part.positions, question.text_ids, 0))
    parts.append(question)
    x, places, free = [], [], 0
    for part in parts:
        x.append(torch.nn.functional.pad(part.x, (0, served.width - part.x.shape[1])))
        places.append(part.positions + free)
        free = int(places[-1].max()) + 1
    return Built(torch.cat(x), torch.cat(places, dim=1), question.text_ids, 0)


@pytest.mark.parametrize(("name", "spec"), [(n, s) for n, s in EVERYWHERE if n != "rekv"])
def test_below_its_budget_a_memory_is_everything_at_once(name: str, spec: str) -> None:
    backbone = model(spec)
    large = {
        "hermes": {"kv_size": 6_000},
        "infinipot_v": {"block_grids": 32, "keep_grids": 24},
        "streaming_vlm": {"window_s": 100.0},
        "streammem": {"kv_size": 6_000},
    }
    method = made(backbone, name, **large[name])
    frames = film(19)
    with counting() as counts:
        session(method, 0, frames)
    assert counts["entries_evicted"] == 0
    whole = at_once(method, frames, method.clip_frames, method.question(QUERY))
    greedy = replace(SHORT, repetition_penalty=method.repetition_penalty)
    expected = decode(backbone, whole, greedy).logits
    np.testing.assert_allclose(logits(method), expected, atol=1e-4)
    small = made(backbone, name)
    session(small, 0, frames)
    assert np.abs(logits(small) - expected).max() > 1e-3, "a small budget changes nothing"


@pytest.mark.parametrize("name", SMALL)
def test_an_odd_frame_is_doubled_only_for_its_question(tiny: Backbone, name: str) -> None:
    frames = film(24)
    asked, spared = made(tiny, name), made(tiny, name)
    for method in (asked, spared):
        session(method, 0, frames[:16], end=False)
    branch = asked.branch()
    branch.observe(Clip(0, tuple(frames[16:19])))
    with counting() as counts:
        first = branch.respond(QUERY, SHORT)
    assert counts["frames_encoded"] == 1
    assert first.ready_at < first.first_token_at <= first.done_at
    assert np.array_equal(branch.respond(QUERY, SHORT).logits, first.logits)
    assert not np.array_equal(first.logits, logits(asked))
    for method in (asked, spared):
        method.observe(Clip(0, tuple(frames[16:])))
    assert np.array_equal(logits(asked), logits(spared))


def tensors(state: Any) -> Iterator[torch.Tensor]:
    for _, leaf in leaves(state):
        if isinstance(leaf, torch.Tensor):
            yield leaf


@pytest.mark.parametrize("name", SMALL)
def test_no_tensor_of_a_state_is_ever_written(tiny: Backbone, name: str) -> None:
    method = made(tiny, name)
    session(method, 0, film(22))
    before = method.state
    copies = [t.clone() for t in tensors(before)]
    method.branch().respond(QUERY, SHORT)
    session(method, 1, film(30, seed=1))
    assert all(map(torch.equal, tensors(before), copies))
    assert method.state_bytes()["kv"] > 0  # raises for a view of something larger


@pytest.mark.parametrize("name", SMALL)
def test_sessions_and_notes_reach_the_model(tiny: Backbone, name: str) -> None:
    """The clock of a session that is over is still seen, and so is what was said."""
    replies = {}
    for wall_s in (laws.WALL_S, laws.WALL_S + 86_400):
        for marker in (True, False):
            method = made(tiny, name, session_marker=marker)
            method.begin_session(replace(_info(method), wall_start_s=wall_s))
            method.observe(Clip(0, tuple(film(2))))
            method.end_session(0)
            session(method, 1, film(16, seed=1))
            replies[wall_s, marker] = logits(method)
    first, other = laws.WALL_S, laws.WALL_S + 86_400
    assert not np.array_equal(replies[first, True], replies[other, True])
    assert np.array_equal(replies[first, False], replies[other, False])
    said = replace(QUERY, notes=(Note(0, 4.0, "The wearer says: remind me.", laws.WALL_S + 4),))
    assert not np.array_equal(logits(method, said), logits(method))
    text = tiny.tokenizer.decode(method.question(said).text_ids.tolist() or [])
    if text:  # HERMES gives its words no place in the penalty
        parts = ("You see.", "[DAY1 10:00:04] The wearer says: remind me.", QUERY.text)
        places = [text.index(part) for part in parts]
        assert places == sorted(places)
        assert text.endswith("<|im_end|>\n<|im_start|>assistant\n")


def _info(method: CacheMemory):
    return laws.SessionInfo("S001", 0, laws.WALL_S, method.frame_size((laws.SIDE, laws.SIDE)))


def test_markers_stand_beside_the_budget_and_the_oldest_leave(
    tiny: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_memory, "MARKER_ENTRIES", 30)
    method = made(tiny, "hermes")
    found = []
    for index in range(4):
        session(method, index, film(8, seed=index))
        prefix, markers = method.state.prefix, method.state.markers
        last = slice(prefix + sum(markers[:-1]), prefix + sum(markers))
        found.append(method.state.cache.keys[3][:, last])
    assert method.state.markers == (12, 12)
    held = method.state.cache.keys[3][:, prefix : prefix + 24]
    assert torch.equal(held, torch.cat(found[-2:], dim=1))
    assert {method.state.visual(layer) for layer in range(tiny.layers)} == {100}


def test_an_empty_session_leaves_nothing(tiny: Backbone) -> None:
    method = made(tiny, "streammem")
    session(method, 0, film(8))
    before = dict(method.state_bytes())
    for index in (1, 2):
        session(method, index, film(0))
    assert method.state_bytes() == before


# Parts --------------------------------------------------------------------------------------------


def test_a_chunk_knows_whose_each_token_is(tiny: Backbone, third: Backbone) -> None:
    for served, bare in ((tiny, True), (tiny, False), (third, True), (third, False)):
        lattice = (3, 5)
        tokens = torch.zeros(3, 15, served.width)
        visual = Visual.whole(tokens, [0.0, 1.0, 2.0, 3.0, 9.0, 10.0], lattice)
        words = "\nSession 1:\n"
        found = chunk(served, words, visual, bare)
        assert found.words == len(served.tokenize(words))
        assert len(found.x) == found.words + len(found.units) == found.positions.shape[1]
        assert found.span == int(found.positions.max()) + 1
        sizes = found.units.bincount().tolist()
        assert found.units.tolist() == sorted(found.units.tolist())
        enclosing = 0 if bare else 1
        if served is tiny:
            assert sizes == [15 + enclosing, 15, 15 + enclosing]
        else:
            times = [len(served.tokenize(f"<{t} seconds>")) for t in ("0.5", "2.5", "9.5")]
            assert sizes == [15 + 2 + n for n in times]
        assert found.whole == (served is third and bare)


def test_the_best_stay_in_order() -> None:
    score = torch.tensor([0.1, 0.9, 0.3, 0.8, 0.2])
    assert best(score, 3).tolist() == [1, 2, 3]
    assert best(score, 9).tolist() == [0, 1, 2, 3, 4]
    units = torch.tensor([7, 7, 7, 2, 2])  # means 0.43 and 0.5
    assert best(score, 4, units).tolist() == [3, 4]
    assert best(score, 5, units).tolist() == [0, 1, 2, 3, 4]
    assert best(torch.tensor([0.9, 0.9, 0.9, 0.8, 0.2]), 4, units).tolist() == [0, 1, 2]
    with pytest.raises(BenchError, match="a budget of 1 entries holds no grid of 3"):
        best(score, 1, units)


# Parameter files ----------------------------------------------------------------------------------


def preset(kind: str, name: str) -> EvalParams:
    return EvalParams(**yaml.safe_load((PARAMS / f"03_eval.{kind}-{name}.yaml").read_text()))


@pytest.mark.parametrize("name", ["hermes", "rekv"])
def test_published_settings_are_the_defaults(name: str) -> None:
    params = preset("apm", name)
    method = methods.load(params.method, **params.method_args)
    usual = methods.load(name)
    differ = {
        f for f in methods.parameters(type(method)) if getattr(method, f) != getattr(usual, f)
    }
    assert differ == {"session_marker"}


@pytest.mark.parametrize("name", SMALL)
def test_the_scaled_preset_evicts_or_retrieves(tiny: Backbone, name: str) -> None:
    """On as many frames as the small household has."""
    params = preset("scaled", name)
    assert params.source == "dollhouse-small"
    method = begun(tiny, params.method, **params.method_args)
    assert method.fps == 1.0
    with counting() as counts:
        for index in range(3):
            session(method, index, film(33, seed=index, noise=0.0))
        method.branch().respond(QUERY, SHORT)
    kept, seen = method.tokens()
    if name == "rekv":
        assert counts["blocks_retrieved"] == 4 * tiny.layers
        assert len(method.state.memory.blocks) > 40
    else:
        assert counts["entries_evicted"] > 0
        assert kept < seen
