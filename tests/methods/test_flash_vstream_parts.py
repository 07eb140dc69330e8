"""Flash-VStream's pure functions against plain loops and against the released code."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bench_lib.memories.parts import kmeans, pace
from bench_lib.methods import flash_vstream as fv
from bench_lib.methods.flash_vstream import Context, Flash, FlashVstream, View

OFFICIAL = json.loads((Path(__file__).parent / "vectors" / "flash_vstream.json").read_text())


class Drawn:
    """A generator that gives back recorded permutations."""

    def __init__(self, *permutations: list[int]) -> None:
        self.left = list(permutations)

    def permutation(self, n: int) -> np.ndarray:
        drawn = self.left.pop(0)
        assert len(drawn) == n
        return np.array(drawn)


def film(grids: int, patches: int, dim: int, seed: int, repeats: int = 0) -> np.ndarray:
    """The seeded tensors that the released code was run on."""
    random = np.random.default_rng(seed)
    scenes = random.normal(size=(5, patches, dim))
    x = np.stack(
        [scenes[(g // 4) % 5] + 0.2 * random.normal(size=(patches, dim)) for g in range(grids)]
    )
    if repeats:
        x = x[np.arange(grids) % repeats]
    return np.round(x, 3)


def views(grids: int, seed: int, repeats: int = 0) -> list[View]:
    full = torch.from_numpy(film(grids, 64, 3, seed, repeats)).float()
    pooled = torch.from_numpy(film(grids, 16, 3, seed + 100, repeats)).float()
    return [
        View(i, 0, 2.0 * i, full[i].view(1, 16, 4, 3), pooled[i].view(1, 4, 4, 3))
        for i in range(grids)
    ]


def method(clusters: int, **args: object) -> FlashVstream:
    flash = FlashVstream(temporal_length=2 * clusters, spatial_length=6, **args)
    # Embeddings that let a token's features be told: their sum and their first number.
    served = SimpleNamespace(
        id="tiny",
        one_size=False,
        project=lambda f: torch.stack((f[:, 0].sum((-1, -2)), f[:, 0, :, 0, 0]), -1),
    )
    return flash.attach(served)


@pytest.mark.parametrize("case", OFFICIAL["batch"], ids=lambda c: f"seed{c['seed']}")
def test_the_release_agrees(case: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = views(case["grids"], case["seed"], case["repeats"])
    flash = method(case["clusters"], form="thinned", parity=True)
    monkeypatch.setattr(fv.np.random, "default_rng", lambda _: Drawn(case["permutation"]))
    memory = flash._gathered(Flash(bank=tuple(seen)), seen)
    assert memory.context is not None
    assert memory.detail is not None
    np.testing.assert_allclose(memory.context.index, case["times"], atol=1e-3)
    np.testing.assert_allclose(memory.context.weights, case["weights"])
    centres = memory.context.features.flatten(1)
    if case["repeats"]:
        # The centres of one and the same grid: order among equal times is the sort's.
        np.testing.assert_allclose(sorted(centres.tolist()), sorted(case["centres"]), atol=2e-3)
    else:
        np.testing.assert_allclose(centres, case["centres"], atol=2e-3)
        heavy = torch.argsort(memory.context.weights, descending=True, stable=True)
        pooled = {view.number: view.pooled[0].flatten() for view in seen}
        for one, own, theirs in zip(heavy, memory.detail.numbers, case["detail"], strict=False):
            # A centre of two grids lies midway: which of them is nearer is rounding's to say.
            apart = [(centres[one] - pooled[number]).norm() for number in (own, theirs)]
            np.testing.assert_allclose(*apart, atol=1e-3)
        assert len(memory.detail.numbers) == len(case["detail"])
    if "positions" in case:
        where = fv.am_rope(memory.detail.numbers, memory.context.index.round().tolist(), (4, 4))
        assert where.tolist() == case["positions"]


def test_the_release_agrees_on_the_next_clip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Centres with their weights are clustered together with new grids."""
    case = OFFICIAL["stream"]
    flash = method(6, time_mode="official")
    clips = [("first", film(12, 16, 3, 5)), ("second", film(3, 16, 3, 6))]
    drawn = Drawn(*case["permutations"])
    monkeypatch.setattr(fv.np.random, "default_rng", lambda _: drawn)
    memory, number = Flash(), 0
    for name, clip in clips:
        pooled = torch.from_numpy(clip).float()
        new = [
            View(number + i, 0, 2.0 * (number + i), torch.zeros(1, 16, 4, 3), p.view(1, 4, 4, 3))
            for i, p in enumerate(pooled)
        ]
        memory = flash.remember(memory, new, (4, 4))
        number += len(clip)
        assert memory.context is not None
        np.testing.assert_allclose(memory.context.weights, case[name]["weights"])
        np.testing.assert_allclose(memory.context.index, case[name]["times"], atol=1e-3)
        got = memory.context.features.flatten(1)
        np.testing.assert_allclose(got, case[name]["centres"], atol=2e-3)
    assert memory.draws == 2
    assert float(memory.context.weights.sum()) == 15


def by_loops(points: np.ndarray, weights: np.ndarray, seeds: list[int], steps: int) -> list[int]:
    """Weighted k-means over numbers."""
    centres = [np.unique(points, axis=0)[s] for s in seeds]
    for _ in range(steps):
        labels = [
            min(range(len(centres)), key=lambda k: float(((p - centres[k]) ** 2).sum()))
            for p in points
        ]
        moved = []
        for k in range(len(centres)):
            own = [i for i, label in enumerate(labels) if label == k]
            moved.append(sum(weights[i] * points[i] for i in own) / sum(weights[i] for i in own))
        shift = sum(float(np.linalg.norm(a - b)) for a, b in zip(centres, moved, strict=True))
        if shift < 1e-4:
            break
        centres = moved
    return labels


@pytest.mark.parametrize("seed", range(6))
def test_kmeans_by_loops(seed: int) -> None:
    random = np.random.default_rng(seed)
    points = random.normal(size=(30, 5)) + random.integers(0, 3, (30, 1)) * 3
    weights = random.integers(1, 6, 30).astype(float)
    order = random.permutation(30)
    expected = by_loops(points, weights, order[:4].tolist(), 10)
    got = kmeans.clustered(
        torch.from_numpy(points), torch.from_numpy(weights), 4, Drawn(order.tolist())
    )
    assert got.tolist() == expected


def test_fewer_distinct_points_than_clusters() -> None:
    points = torch.tensor([[0.0, 1], [2, 3], [0, 1], [2, 3], [9, 9]])
    labels = kmeans.clustered(points, torch.ones(5), 4, np.random.default_rng(0))
    assert labels.tolist() == [0, 1, 0, 1, 2]


def test_a_cluster_that_loses_its_points_is_given_one_or_left_out() -> None:
    # Weightless points cannot hold a centre.
    points = torch.tensor([[0.0], [1.0], [10.0], [11.0], [20.0]])
    weights = torch.tensor([1.0, 1, 1, 1, 0])
    for seed in range(20):
        labels = kmeans.clustered(points, weights, 3, np.random.default_rng(seed))
        assert sorted(set(labels.tolist())) == list(range(int(labels.max()) + 1))


@given(st.lists(st.integers(0, 6), min_size=8, max_size=30), st.integers(2, 7), st.integers(0, 9))
def test_weights_and_times_are_kept_in_sum(steps: list[int], clusters: int, seed: int) -> None:
    """The weight of all centres is the number of grids, and their weighted mean time is theirs."""
    values = torch.tensor(steps, dtype=torch.float32).view(-1, 1, 1, 1, 1)
    n = len(steps)
    times = torch.arange(n, dtype=torch.float64) * 2
    buffer = Context(values, torch.ones(n), times, torch.arange(n, dtype=torch.float64))
    labels = kmeans.clustered(
        values.flatten(1), buffer.weights, clusters, np.random.default_rng(seed)
    )
    found = fv.centred(buffer, labels)
    assert float(found.weights.sum()) == n
    assert float((found.weights * found.at_s).sum()) == pytest.approx(float(times.sum()))
    assert found.index.tolist() == sorted(found.index.tolist())
    total = float((found.weights * found.features.flatten()).sum())
    assert total == pytest.approx(sum(steps), abs=1e-3)


def test_halved_pixels_are_exact_means() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (8, 12, 3)).astype(np.uint8)
    small = fv.halved(picture)
    assert small.shape == (4, 6, 3)
    for row in range(4):
        for col in range(6):
            block = picture[2 * row : 2 * row + 2, 2 * col : 2 * col + 2].astype(float)
            np.testing.assert_allclose(small[row, col], block.mean((0, 1)))


def test_positions_by_hand() -> None:
    where = fv.am_rope([0, 5], [1.0, 7.0], (2, 4)).tolist()
    t, row, col = where
    assert t[:16] == [0] * 8 + [5] * 8
    assert row[:8] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert col[:8] == [0, 1, 2, 3] * 2
    assert t[16:] == [16 + 1] * 2 + [16 + 7] * 2
    assert row[16:] == [16] * 4
    assert col[16:] == [16, 17, 16, 17]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), st.integers(1, 12))
def test_an_even_pace(gaps: list[int], keep: int) -> None:
    numbers = np.cumsum(gaps).tolist()
    kept = pace.evenly(numbers, keep)
    assert kept == sorted(set(kept))
    assert len(kept) == min(keep, len(numbers))
    assert kept[-1] == len(numbers) - 1
    assert pace.evenly(numbers, len(numbers)) == list(range(len(numbers)))


def test_an_even_pace_over_a_growing_series() -> None:
    held: list[int] = []
    for number in range(1_000):
        held.append(number)
        held = [held[i] for i in pace.evenly(held, 10)]
    assert held[-1] == 999
    assert held[0] < 250
    assert max(np.diff(held)) <= 4 * np.median(np.diff(held))
