"""StreamingVLM's window on the tiny models."""

from __future__ import annotations

import decoder_by_loops as loops
import numpy as np
import pytest
import torch
from token_laws import QUERY, begun, film, logits, session

from bench_lib.backbones.base import Backbone
from bench_lib.errors import BenchError
from bench_lib.methods.streaming_vlm import StreamingVlm
from bench_lib.opening import backbones
from bench_lib.video.stream import Clip

SMALL = {"fps": 1.0, "window_s": 8.0}


@pytest.fixture(scope="module")
def tiny() -> Backbone:
    return backbones.load("tiny-untrained", device="cpu")


@pytest.fixture(scope="module", params=["tiny-untrained", "tiny-qwen3"])
def backbone(request: pytest.FixtureRequest) -> Backbone:
    return backbones.load(request.param, device="cpu")


def test_the_newest_seconds_stay_and_positions_close_up(backbone: Backbone) -> None:
    method = begun(backbone, "streaming_vlm", **SMALL)
    for index, seconds in enumerate((5, 40, 13)):
        session(method, index, film(seconds, seed=index))
        state = method.state
        chunks = [s for s in state.memory if s.grids]
        assert len(chunks) == min(4, (seconds + 1) // 2 + (0 if index == 0 else 4))
        # The stretches follow one another without a gap, and so do their positions.
        start = state.prefix
        for stretch in state.memory:
            assert stretch.start == start
            start += stretch.span
        assert state.next == start
        places = state.cache.positions[0]
        assert set(places.flatten().tolist()) == set(range(start))
        assert state.cache.length() == state.prefix + sum(s.entries for s in state.memory)
        assert len({id(p) for p in state.cache.positions}) == 1


def test_each_stretch_keeps_its_layout(tiny: Backbone) -> None:
    method = begun(tiny, "streaming_vlm", **SMALL)
    for index in range(2):
        session(method, index, film(11, seed=index))
    state = method.state
    at = state.prefix
    for stretch in sorted(state.memory, key=lambda s: s.grids > 0):  # markers stand first
        places = state.cache.positions[0][:, at : at + stretch.entries] - stretch.start
        at += stretch.entries
        if not stretch.grids:
            assert torch.equal(places, torch.arange(stretch.entries).int().expand(3, -1))
            continue
        # vision start, sixteen cells of a grid, vision end
        grid = places[:, 1:-1].unflatten(1, (4, 4))
        assert grid[0].unique().tolist() == [1]
        assert grid[1, :, 0].tolist() == grid[2, 0].tolist() == [1, 2, 3, 4]
        assert places[:, 0].tolist() == [0] * 3
        assert places[:, -1].tolist() == [5] * 3
    assert at == state.cache.length()


def test_keys_never_change(tiny: Backbone) -> None:
    method = begun(tiny, "streaming_vlm", **SMALL)
    session(method, 0, film(8), end=False)
    before = method.state.cache
    oldest = next(s for s in method.state.memory if s.grids).entries
    fixed = method.state.fixed
    method.observe(Clip(0, tuple(film(10)[8:])))
    after = method.state.cache
    for layer in range(tiny.layers):
        kept = before.keys[layer][:, fixed + oldest :]
        assert torch.equal(after.keys[layer][:, fixed : fixed + kept.shape[1]], kept)


def test_an_answer_reads_what_is_kept(tiny: Backbone) -> None:
    method = begun(tiny, "streaming_vlm", **SMALL)
    for index in range(2):
        session(method, index, film(21, seed=index))
    np.testing.assert_allclose(loops.answered(tiny, method, QUERY), logits(method), atol=2e-5)


def test_positions_never_grow(tiny: Backbone) -> None:
    method = begun(tiny, "streaming_vlm", session_marker=False, **SMALL)
    ends = []
    for index in range(4):
        session(method, index, film(30, seed=index))
        ends.append(method.state.next)
    assert len(set(ends)) == 1


def test_text_stays_in_the_sink_and_in_the_window(tiny: Backbone) -> None:
    method = begun(tiny, "streaming_vlm", text_sink=45, text_window=30, **SMALL)
    words = []
    for index in range(6):
        session(method, index, film(2, seed=index))
        words.append(method.state.markers[-1])
    assert set(words) == {12}
    # The prefix of 19 and two markers fit the sink, two more the window; the one between is gone.
    assert method.state.prefix == 19
    assert method.state.markers == (12,) * 4
    texts = [s for s in method.state.memory if not s.grids]
    assert len(texts) == 4
    assert [s.entries for s in method.state.memory if s.grids] == [18] * 4


def test_a_window_below_one_grid_is_refused() -> None:
    with pytest.raises(BenchError, match="holds no two frames"):
        StreamingVlm(window_s=0.5)
