"""StreamMem on the tiny models, its parts against loops."""

from __future__ import annotations

import decoder_by_loops as loops
import numpy as np
import pytest
import torch
from token_laws import QUERY, begun, film, logits, session

from bench_lib.backbones.base import Backbone
from bench_lib.backbones.cache import Cache
from bench_lib.errors import BenchError
from bench_lib.measure import counting
from bench_lib.memories.cache_memory import CacheState
from bench_lib.methods.streammem import Streammem, prototypes
from bench_lib.opening import backbones

SMALL = {"fps": 1.0, "kv_size": 100, "similarity": 2.0}


@pytest.fixture(scope="module")
def tiny() -> Backbone:
    return backbones.load("tiny-untrained", device="cpu")


def test_prototypes_are_those_of_loops() -> None:
    random = np.random.default_rng(5)
    keys, values = random.normal(size=(2, 2, 2, 11, 4)).astype(np.float32)  # two layers, 11 entries
    places = torch.arange(33).reshape(3, 11)
    attention = random.random((2, 11)).astype(np.float32)
    units = torch.tensor([0, 0, 0, 1, 1, 1, 1])  # the newest seven entries
    cache = Cache(
        tuple(map(torch.from_numpy, keys)), tuple(map(torch.from_numpy, values)), (places,) * 2
    )
    made = prototypes(cache, tuple(map(torch.from_numpy, attention)), units, 2)
    for layer in range(2):
        for grid, rows in enumerate(([4, 5, 6], [7, 8, 9, 10])):
            weight = attention[layer, rows] / attention[layer, rows].sum()
            for held, got in ((keys, made.keys), (values, made.values)):
                expected = sum(w * held[layer][:, i] for w, i in zip(weight, rows, strict=True))
                np.testing.assert_allclose(got[layer][:, grid], expected, atol=1e-6)
        assert made.positions[layer].tolist() == places[:, [5, 8]].tolist()


def test_what_the_template_attends_to_stays(tiny: Backbone) -> None:
    method = begun(tiny, "streammem", session_marker=False, **SMALL)
    session(method, 0, film(8), end=False)
    seen: list[CacheState] = []
    original = method.evict
    method.evict = lambda state, chunk: seen.append(state) or original(state, chunk)
    session(method, 0, film(8), end=False)
    (before,), after = seen, method.state
    assert (before.visual(), after.visual()) == (128, 100)
    end, new_line, start, *opening = method._template()
    assert (end, start) == (tiny.token("<|im_end|>"), tiny.token("<|im_start|>"))
    x = tiny.embed([end, new_line, start, *opening]).numpy()
    where = [np.tile(np.arange(len(x)) + before.next, (3, 1))] * tiny.layers
    drawn: list[np.ndarray] = []
    loops.read(tiny, x, where, loops.of_cache(before.cache), drawn)
    for layer in range(tiny.layers):
        score = drawn[layer][before.fixed :]
        best = sorted(np.argsort(-score)[: 100 - 4].tolist())
        held = before.cache.keys[layer][:, before.fixed :][:, best]
        assert torch.equal(after.cache.keys[layer][:, after.fixed : -4], held)
    attention = tuple(torch.from_numpy(a).float() for a in drawn)
    made = prototypes(before.cache, attention, torch.arange(4).repeat_interleave(16), 4)
    torch.testing.assert_close(after.cache.values[5][:, -4:], made.values[5], atol=1e-5, rtol=0)


def test_an_answer_reads_what_is_kept(tiny: Backbone) -> None:
    method = begun(tiny, "streammem", **SMALL)
    for index in range(2):
        session(method, index, film(21, seed=index))
    assert {method.state.visual(i) for i in range(tiny.layers)} == {100}
    np.testing.assert_allclose(loops.answered(tiny, method, QUERY), logits(method), atol=2e-5)


def test_grids_alike_in_sequence_become_their_mean(tiny: Backbone) -> None:
    method = Streammem(similarity=0.9).attach(tiny)
    one, other = torch.eye(192)[:2]
    nearly = one + 0.1 * other
    tokens = torch.stack([g.expand(16, -1) for g in (one, nearly, other, one, one, one)])
    times = tuple((2.0 * i, 2.0 * i + 1) for i in range(6))
    with counting() as counts:
        kept, spans = method.sift(tokens, times)
    assert counts["grids_merged"] == 3
    assert spans == ((0.0, 3.0), (4.0, 5.0), (6.0, 11.0))
    torch.testing.assert_close(kept[0, 3], (one + nearly) / 2)
    torch.testing.assert_close(kept[1:, 7], torch.stack((other, one)))


@pytest.mark.parametrize("spec", ["tiny-untrained", "tiny-qwen3"])
def test_a_still_picture_is_read_once_a_chunk(spec: str) -> None:
    model = backbones.load(spec, device="cpu")
    method = begun(model, "streammem", fps=1.0)
    still = film(1)[0]
    session(method, 0, [type(still)(float(t), still.array) for t in range(24)])
    assert method.state.grids == 3
    kept, seen = method.tokens()
    assert seen >= 12 * 16
    assert kept <= 3 * (16 + 10)
    changing = begun(model, "streammem", **{**SMALL, "kv_size": 6_000})
    session(changing, 0, film(24))
    assert changing.state.grids == 12


def test_prototypes_are_a_choice(tiny: Backbone) -> None:
    with_them, without = (begun(tiny, "streammem", prototypes=p, **SMALL) for p in (True, False))
    for method in (with_them, without):
        session(method, 0, film(24))
        assert method.state.visual() == 100
    assert not np.array_equal(logits(with_them), logits(without))


def test_whole_grids_stay_or_go_with_their_times() -> None:
    third = backbones.load("tiny-qwen3", device="cpu")
    method = begun(third, "streammem", **SMALL)
    session(method, 0, film(60))
    for layer in range(third.layers):
        names, sizes = method.state.units[layer].unique(return_counts=True)
        assert method.state.visual(layer) <= 100
        for name, size in zip(names.tolist(), sizes.tolist(), strict=True):
            assert size == 1 if name < 0 else size > 16, "a grid lost its time, or its picture"


def test_a_budget_for_prototypes_alone_is_refused() -> None:
    with pytest.raises(BenchError, match="kv_size 5 holds little"):
        Streammem(kv_size=5)
