"""InfiniPot-V: selection against loops and the release, its memory on the tiny models."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import decoder_by_loops as loops
import numpy as np
import pytest
import torch
from token_laws import QUERY, begun, film, logits, session

from bench_lib.backbones.base import Backbone
from bench_lib.backbones.cache import Cache
from bench_lib.errors import BenchError
from bench_lib.memories.cache_memory import CacheState
from bench_lib.methods.infinipot_v import InfinipotV, likeness, pooled
from bench_lib.opening import backbones

RELEASE = json.loads(Path(__file__).with_name("vectors").joinpath("infinipot_v.json").read_text())
SMALL = {"fps": 1.0, "clip_frames": 4, "block_grids": 8, "keep_grids": 6}


@pytest.fixture(scope="module")
def tiny() -> Backbone:
    return backbones.load("tiny-untrained", device="cpu")


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.mark.parametrize("parity", [True, False])
def test_likeness_is_that_of_loops(parity: bool) -> None:
    """The release reads a cell off the place in line; else each entry brings its own."""
    random = np.random.default_rng(3)
    keys = random.normal(size=(2, 7 + 2 * 4, 5))  # seven left of older grids, two whole ones
    cells = np.concatenate([random.integers(0, 4, (2, 7)), np.tile(np.arange(4), (2, 2))], axis=1)
    expected = np.zeros((2, 7))
    for head in range(2):
        for i in range(7):
            cell = i % 4 if parity else cells[head, i]
            recent = [keys[head, 7 + 4 * grid + cell] for grid in range(2)]
            expected[head, i] = np.mean([cosine(keys[head, i], r) for r in recent])
    where = None if parity else torch.from_numpy(cells)
    np.testing.assert_allclose(likeness(torch.tensor(keys), 8, 4, where), expected, atol=1e-6)


def test_pooling_is_that_of_loops() -> None:
    random = np.random.default_rng(4)
    norms = random.random((1, 5 * 3 * 4)).astype(np.float32)
    block = norms.reshape(5, 3, 4)

    def mean(at: tuple[int, ...], axes: tuple[int, ...]) -> float:
        total, side = 0.0, 1
        steps = [range(-side, side + 1) if axis in axes else (0,) for axis in range(3)]
        for t in steps[0]:
            for r in steps[1]:
                for c in steps[2]:
                    where = (at[0] + t, at[1] + r, at[2] + c)
                    if all(0 <= w < n for w, n in zip(where, block.shape, strict=True)):
                        total += block[where]
        return total / 3 ** len(axes)

    for count, axes in ((3, (0, 1, 2)), (2, (1, 2))):
        got = pooled(torch.from_numpy(norms), count, 7, (3, 4))[0].reshape(5, 3, 4)
        expected = [[[mean((t, r, c), axes) for c in range(4)] for r in range(3)] for t in range(5)]
        np.testing.assert_allclose(got, expected, atol=1e-6)
    padded = np.pad(norms[0], 1)
    line = [padded[i : i + 3].mean() for i in range(60)]
    np.testing.assert_allclose(pooled(torch.from_numpy(norms), 1, 3, (3, 4))[0], line, atol=1e-6)
    assert torch.equal(pooled(torch.from_numpy(norms), 0, 1, (3, 4))[0], torch.from_numpy(norms[0]))


@pytest.mark.parametrize("form", ["plain", "pooled"])
def test_the_release_keeps_the_same_entries(form: str) -> None:
    layers, heads, d, fixed, lattice, grids = 8, 2, 6, 4, (3, 4), 16
    cells = lattice[0] * lattice[1]
    method = InfinipotV(block_grids=16, keep_grids=12, pooling=form == "pooled")
    method.attach(
        SimpleNamespace(
            frames_per_grid=2, layers=layers, kv_heads=heads, device=torch.device("cpu")
        )
    )
    random = np.random.default_rng(13)
    for pooling in ("plain", "pooled"):

        def drawn(entries: int, shape=(layers, heads), source=random) -> torch.Tensor:
            return torch.from_numpy(source.normal(size=(*shape, entries, d)).astype(np.float32))

        keys, values = drawn(fixed + grids * cells), drawn(fixed + grids * cells)
        new_keys, new_values = drawn(4 * cells), drawn(4 * cells)
        if pooling != form:
            continue
        for step, expected in enumerate(RELEASE[form]):
            if step:
                keys = torch.cat((keys, new_keys), dim=2)
                values = torch.cat((values, new_values), dim=2)
            places = (torch.zeros(3, keys.shape[2], dtype=torch.int32),) * layers
            state = CacheState(Cache(tuple(keys), tuple(values), places), fixed, 0, lattice=lattice)
            left = method.evict(state, None).cache
            for layer, indices in expected.items():
                index = torch.tensor(indices)[..., None].expand(-1, -1, d)
                for held, was in ((left.keys, keys), (left.values, values)):
                    assert torch.equal(
                        held[int(layer)][:, fixed:], was[int(layer)].gather(1, index)
                    )
            keys, values = torch.stack(left.keys), torch.stack(left.values)


def test_what_stays_is_the_newest_the_different_and_the_large(tiny: Backbone) -> None:
    method = begun(tiny, "infinipot_v", session_marker=False, **SMALL)
    session(method, 0, film(12), end=False)
    seen: list[CacheState] = []
    original = method.evict
    method.evict = lambda state, chunk: seen.append(state) or original(state, chunk)
    session(method, 0, film(4), end=False)
    before, after = seen[-1], method.state
    assert (before.visual(), after.visual()) == (128, 96)
    fixed = before.fixed
    keys, values = before.cache.keys[2][:, fixed:], before.cache.values[2][:, fixed:]
    for head in range(2):
        left = set(map(bytes, after.cache.keys[2][head, fixed:].numpy()))
        kept = [i for i, row in enumerate(keys[head].numpy()) if bytes(row) in left]
        assert len(kept) == 96
        assert set(range(96, 128)) <= set(kept), "the newest two grids are not whole"
        alike = [
            np.mean(
                [
                    cosine(keys[head, i].numpy(), keys[head, 96 + 16 * g + i % 16].numpy())
                    for g in (0, 1)
                ]
            )
            for i in range(96)
        ]
        different = set(np.argsort(alike, kind="stable")[:16].tolist())
        assert different <= set(kept)
        rest = [i for i in range(96) if i not in different]
        large = sorted(rest, key=lambda i: -float(values[head, i].norm()))[: 96 - 32 - 16]
        assert set(kept) == set(range(96, 128)) | different | set(large)
    heads = [set(map(bytes, after.cache.values[2][head, fixed:].numpy())) for head in (0, 1)]
    assert len(heads[0]) == len(heads[1]) == 96


def test_an_answer_reads_what_is_kept(tiny: Backbone) -> None:
    method = begun(tiny, "infinipot_v", **SMALL)
    for index in range(2):
        session(method, index, film(22, seed=index))
    np.testing.assert_allclose(loops.answered(tiny, method, QUERY), logits(method), atol=2e-5)
    assert not any(places.any() for places in method.state.cache.positions)


@pytest.mark.parametrize("parity", [True, False])
def test_true_cells_are_kept_with_their_entries(tiny: Backbone, parity: bool) -> None:
    method = begun(tiny, "infinipot_v", parity=parity, **SMALL)
    for index in range(2):
        session(method, index, film(25, seed=index))
    assert (method.state.memory is None) == parity
    if not parity:
        cells = method.state.memory
        assert [c.shape for c in cells] == [(2, method.state.visual())] * tiny.layers
        assert len({c.numpy().tobytes() for c in cells}) > 1
        # The chunk read since the last compression is whole.
        assert cells[3][0, -16:].tolist() == [*range(16)]


def test_parity_matters_after_the_first_compression(tiny: Backbone) -> None:
    release, mended = (begun(tiny, "infinipot_v", parity=p, **SMALL) for p in (True, False))
    for method in (release, mended):
        session(method, 0, film(16), end=False)
    assert np.array_equal(logits(release), logits(mended))
    for method in (release, mended):
        session(method, 0, film(40)[16:], end=False)
    assert not np.array_equal(logits(release), logits(mended))


def test_pooling_changes_what_stays(tiny: Backbone) -> None:
    plain, smooth = (begun(tiny, "infinipot_v", pooling=p, **SMALL) for p in (False, True))
    for method in (plain, smooth):
        session(method, 0, film(24))
    assert not np.array_equal(logits(plain), logits(smooth))


def test_whole_grids_stay_or_go_with_their_times() -> None:
    third = backbones.load("tiny-qwen3", device="cpu")
    method = begun(third, "infinipot_v", **SMALL)
    session(method, 0, film(41))
    for layer in range(third.layers):
        names, sizes = method.state.units[layer].unique(return_counts=True)
        assert 6 <= len(names) < 8
        assert sizes.min() > 16
        assert set(names.tolist()) >= {19, 20}, "the newest are gone"
    assert len({tuple(u.tolist()) for u in method.state.units}) > 1


@pytest.mark.parametrize(
    "args",
    [{"keep_grids": 32}, {"recent_share": 0.0}, {"tar_share": 0.1}, {"tar_share": 1.5}],
)
def test_wrong_settings_are_refused(args: dict) -> None:
    with pytest.raises(BenchError, match="each must hold the next"):
        InfinipotV(**args)


def test_state_has_the_size_of_its_budget(tiny: Backbone) -> None:
    method = begun(tiny, "infinipot_v", session_marker=False, **SMALL)
    session(method, 0, film(16))
    entries = method.state.prefix + 6 * 16
    size = method.state_bytes()
    assert size["kv"] == entries * tiny.kv_bytes_per_token
    assert 0 <= size["index"] - entries * 3 * 4 < 120  # one tensor of positions for all layers
