"""video-SALMONN S as a method: streams in, answers out, on the tiny models."""

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
from bench_lib.measure import counting
from bench_lib.memories.parts import unlike
from bench_lib.memories.token_memory import Group
from bench_lib.methods.video_salmonn_s import VideoSalmonnS
from bench_lib.opening import backbones

NAME = "video_salmonn_s"
SMALL = {"memory_tokens": 96, "step": 32, "chunk_grids": 4, "lag": 48, "mini_batch": 32}
BOUNDED = {**SMALL, "empty_units": False}
STOCK = {**SMALL, "weights": "stock"}


@pytest.fixture(scope="module", params=["tiny-untrained", "tiny-qwen3"])
def backbone(request: pytest.FixtureRequest) -> Backbone:
    return backbones.load(request.param, device="cpu")


@pytest.fixture(scope="module")
def tiny() -> Backbone:
    return backbones.load("tiny-untrained", device="cpu")


@pytest.fixture(scope="module")
def qwen3() -> Backbone:
    return backbones.load("tiny-qwen3", device="cpu")


def test_a_branch_leaves_no_trace(backbone: Backbone) -> None:
    laws.branches_leave_no_trace(lambda: begun(backbone, NAME, **SMALL))


@pytest.mark.parametrize("args", [SMALL, STOCK], ids=["learning", "stock"])
def test_the_past_is_seen(backbone: Backbone, args: dict) -> None:
    laws.the_past_is_seen(lambda: begun(backbone, NAME, **args))


@pytest.mark.parametrize("args", [SMALL, BOUNDED, STOCK], ids=["learning", "bounded", "stock"])
def test_hardly_anything_seen_is_answered(qwen3: Backbone, args: dict) -> None:
    laws.hardly_anything_is_answered(lambda: begun(qwen3, NAME, **args))


def test_a_loaded_state_goes_on(qwen3: Backbone, tmp_path: Path) -> None:
    laws.a_loaded_state_goes_on(lambda: begun(qwen3, NAME, **SMALL), NAME, tmp_path, **SMALL)


@pytest.mark.parametrize("args", [BOUNDED, {**BOUNDED, "weights": "stock"}])
def test_a_ceiling_holds(tiny: Backbone, args: dict) -> None:
    laws.a_ceiling_holds(lambda: begun(tiny, NAME, **args))
    assert not begun(tiny, NAME, **SMALL).bounded


def test_the_future_never_matters(qwen3: Backbone, tmp_path: Path) -> None:
    args = {**SMALL, "chunk_grids": 2, "clip_frames": 4}
    laws.the_future_never_matters(household(tmp_path), tmp_path, NAME, qwen3, **args)


@pytest.mark.parametrize("clip", [1, 3, 16])
def test_memory_does_not_depend_on_clips(qwen3: Backbone, clip: int) -> None:
    as_given, cut = (begun(qwen3, NAME, **SMALL) for _ in range(2))
    for index, seconds in enumerate((31, 22)):
        session(as_given, index, film(seconds, seed=index))
        session(cut, index, film(seconds, seed=index), clip=clip)
    assert cut.tokens() == as_given.tokens()
    np.testing.assert_allclose(logits(cut), logits(as_given), atol=2e-4)


def test_a_chunk_that_is_not_complete_is_taken_in_for_its_question(qwen3: Backbone) -> None:
    asked, spared = begun(qwen3, NAME, **SMALL), begun(qwen3, NAME, **SMALL)
    frames = film(30)
    for method in (asked, spared):
        session(method, 0, frames[:21], clip=21, end=False)
    assert len(asked.state.memory.pending) == 10 % 4
    with counting() as counts:
        asked.branch().respond(QUERY, SHORT)
    assert counts["frames_encoded"] == 1  # the odd one
    assert counts["gradient_steps"] == 2  # 3 grids of 16 tokens in mini-batches of 32
    for method in (asked, spared):
        method.observe(laws.Clip(0, tuple(frames[21:])))
        method.end_session(0)
        assert not method.state.memory.pending
    assert np.array_equal(logits(asked), logits(spared))


def test_what_is_kept(qwen3: Backbone) -> None:
    """The selection over the transformed tokens and their levels, at the places they had."""
    frames = film(60)
    method = begun(qwen3, NAME, **STOCK)
    with counting() as counts:
        session(method, 0, frames)
    assert counts["tokens_dropped"] == 30 * 16 - 96
    assert method.tokens() == (96, 30 * 16)
    size = method.frame_size((laws.SIDE, laws.SIDE))
    every = qwen3.encode([f.pixels(size) for f in frames]).flatten(0, 1)
    # By hand, with the same arrivals: chunks of four grids.
    held = torch.arange(0)
    for start in range(0, 480, 64):
        row = torch.cat((held, torch.arange(start, min(480, start + 64))))
        held = row[unlike.kept(every[row], 96, 32)]
    memory = method.state.memory
    assert (memory.grids.long() * 16 + memory.cells.long()).tolist() == held.tolist()
    torch.testing.assert_close(memory.tokens, every[held], atol=1e-5, rtol=1e-4)


def test_the_layer_learns_and_is_heard(backbone: Backbone) -> None:
    method, stock = begun(backbone, NAME, **SMALL), begun(backbone, NAME, **STOCK)
    before = method.state.memory.fast
    for m in (method, stock):
        session(m, 0, film(40))
    after = method.state.memory.fast
    assert not torch.equal(before.w1, after.w1)
    assert len(method.state.memory.history) == 48
    assert stock.state.memory.fast is None
    assert not np.allclose(logits(method), logits(stock), atol=1e-4)
    width = backbone.hidden
    assert method.state.memory.tokens.shape[1] == width * (1 + backbone.deep)


def test_parity_learns_from_the_padding(qwen3: Backbone) -> None:
    ours, theirs = (begun(qwen3, NAME, parity=p, **SMALL) for p in (False, True))
    for method in (ours, theirs):
        session(method, 0, film(16))  # whole mini-batches: no padding
    assert torch.equal(ours.state.memory.fast.w1, theirs.state.memory.fast.w1)
    for method in (ours, theirs):
        session(method, 1, film(6, seed=1))  # three grids: half a mini-batch of zeros
    assert not torch.equal(ours.state.memory.fast.b1, theirs.state.memory.fast.b1)
    assert torch.equal(theirs.state.memory.history[-16:], torch.zeros(16, qwen3.hidden))


def test_times_of_emptied_grids(qwen3: Backbone) -> None:
    """As in the release every grid's time is told; else only where tokens are left."""
    told = {}
    for keep in (True, False):
        method = begun(qwen3, NAME, **{**SMALL, "memory_tokens": 24, "empty_units": keep})
        session(method, 0, film(60))
        built = method.prompt(method.state, QUERY)
        text = qwen3.tokenizer.decode(built.text_ids.tolist())
        told[keep] = text.count("seconds>")
        assert built.visual_tokens == 24
    left = len(method.state.memory.grids.unique())
    assert told == {True: 30, False: left}
    assert left < 30


def test_positions_are_those_of_the_whole_video(qwen3: Backbone) -> None:
    """With every grid's time told, nothing moves when tokens go."""
    built = {}
    for limit in (10_000, 40):
        method = begun(qwen3, NAME, **{**STOCK, "memory_tokens": limit})
        session(method, 0, film(40))
        built[limit] = method.prompt(method.state, QUERY)
    places = {k: {tuple(p) for p in b.positions.T.tolist()} for k, b in built.items()}
    assert places[40] < places[10_000]
    assert built[40].positions[:, -1].tolist() == built[10_000].positions[:, -1].tolist()


def test_sessions_stay_apart(backbone: Backbone) -> None:
    method = begun(backbone, NAME, **SMALL)
    for index in range(3):
        session(method, index, film(10, seed=index))
    text = backbone.tokenizer.decode(method.prompt(method.state, QUERY).text_ids.tolist())
    places = [text.index(f"Session {i + 1}, from DAY1 1{i}:00:00:") for i in range(3)]
    assert places == sorted(places)


def test_bytes_at_the_papers_settings() -> None:
    """16,384 tokens of four levels; the fast weights are weights, counted apart."""
    served = backbones.load("rehearse:qwen3-vl-8b?layers=1", device="meta")
    method = begun(served, NAME)
    size = method.frame_size((360, 640))
    rows, cols = served.lattice(size)
    assert rows * cols * 1_024 <= 176_400
    cells = torch.zeros(rows * cols, dtype=torch.int32, device="meta")
    tokens = torch.empty(rows * cols, served.width, dtype=served.dtype, device="meta")
    groups = [Group(i, 0, 2.0 * i, 2.0 * i + 1, tokens, cells) for i in range(128)]
    memory = method.remember(method.state.memory, groups, (rows, cols))
    assert 128 * rows * cols > 16_384
    method.state = replace(memory, units=())
    assert method.state_bytes() == {
        "embeddings": 16_384 * 32_768 + 1_024 * 8_192,
        "index": 2 * 16_384 * 4,
        "weights": 8_404_992,
    }


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"chunk_grids": 0}, "chunk_grids is 0"),
        ({"mini_batch": 0}, "mini_batch is 0"),
        ({"weights": "stocks"}, "did you mean 'stock'"),
        ({"memory_token": 4}, "did you mean 'memory_tokens'"),
    ],
)
def test_wrong_settings_are_refused(args: dict, says: str) -> None:
    with pytest.raises(BenchError, match=says):
        methods.load(NAME, **args)


def test_weights(tiny: Backbone) -> None:
    stock = SimpleNamespace(id="Qwen/Qwen3-VL-8B-Instruct@main")
    with pytest.raises(BenchError, match="give backbone tsinghua-ee/video_SALMONN_S"):
        methods.load(NAME).attach(stock)
    asked = methods.load(NAME, weights="stock").attach(stock)
    assert "absent, selection alone remains" in asked.caveat
    assert "its learning layer is untrained" in methods.load(NAME).attach(tiny).caveat
    made = methods.load(NAME).attach(tiny).layer
    given = {name.replace("_weight", ".weight"): t for name, t in vars(made).items()}
    own = SimpleNamespace(id="x", tuned_for=NAME, extra=given)
    trained = methods.load(NAME).attach(own)
    assert isinstance(trained, VideoSalmonnS)
    assert trained.caveat == ""
    assert torch.equal(trained.layer.W1, made.W1)
    with pytest.raises(BenchError, match="lacks"):
        methods.load(NAME).attach(SimpleNamespace(id="x", tuned_for=NAME, extra={}))
