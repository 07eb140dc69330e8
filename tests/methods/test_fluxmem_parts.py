"""FluxMem's pure functions against plain loops."""

from __future__ import annotations

from types import SimpleNamespace

import fluxmem_by_loops as loops
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bench_lib.memories.token_memory import Group
from bench_lib.methods import fluxmem
from bench_lib.methods.fluxmem import Fluxmem


def moving(grids: int, lattice: tuple[int, int], width: int, seed: int, pace: float) -> np.ndarray:
    """Tokens `[grids, cells, width]` that drift in time and resemble their neighbours in space."""
    random = np.random.default_rng(seed)
    here = random.normal(size=(*lattice, width))
    out = []
    for g in range(grids):
        here = here + pace * random.normal(size=here.shape) * random.random((*lattice, 1))
        if g % 7 == 3:
            here = np.roll(here, 1, axis=0)
        out.append(here + 0.7 * np.roll(here, 1, axis=0) + 0.7 * np.roll(here, 1, axis=1))
    return np.stack(out).reshape(grids, -1, width).astype(np.float32)


def groups_of(video: np.ndarray, sessions: list[int]) -> list[Group]:
    cells = torch.arange(video.shape[1], dtype=torch.int32)
    return [
        Group(i, session, 2.0 * i, 2.0 * i + 1, torch.from_numpy(tokens).clone(), cells.clone())
        for i, (tokens, session) in enumerate(zip(video, sessions, strict=True))
    ]


def served(method: Fluxmem, width: int) -> Fluxmem:
    return method.attach(
        SimpleNamespace(hidden=width, frames_per_grid=2, device=torch.device("cpu"))
    )


def assert_left(group: Group, expected: loops.Left) -> None:
    """The group holds these vectors, each in one of the cells that may hold it."""
    left = dict(expected)
    assert len(group.cells) == len(left)
    assert group.cells.tolist() == sorted(group.cells.tolist())
    for cell, vector in zip(group.cells.tolist(), group.tokens.numpy(), strict=True):
        (holders,) = [cells for cells in left if cell in cells]
        np.testing.assert_allclose(vector, left.pop(holders), atol=1e-5)


@pytest.mark.parametrize("seed", range(12))
def test_otsu(seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes = [0, 1, 2, 40, 200, 33]
    sets = [random.beta(2, 5, size) * random.uniform(0.1, 2) for size in sizes]
    sets += [np.full(9, 0.37), np.array([0.0, 2.0]), np.concatenate([sets[3] / 9, 1.5 + sets[5]])]
    owner = torch.cat([torch.full((len(s),), i) for i, s in enumerate(sets)])
    values = torch.from_numpy(np.concatenate(sets)).clamp(0, 2)
    got = fluxmem.otsu(values, owner, len(sets))
    for found, each in zip(got.tolist(), sets, strict=True):
        expected = loops.otsu(list(np.clip(each, 0, 2))) if len(each) else None
        assert (np.isnan(found) and expected is None) or found == pytest.approx(expected)


@pytest.mark.parametrize("lattice", [(1, 1), (1, 5), (3, 4), (5, 2)])
def test_likeness(lattice: tuple[int, int]) -> None:
    video = moving(4, lattice, 9, seed=1, pace=0.8)
    # Cosines below zero: a cell outside the picture must not count as one of zero.
    video[1] = -video[0]
    unit = F.normalize(torch.from_numpy(video), dim=-1).view(4, *lattice, 9)
    got = fluxmem.likeness(unit[1:], unit[:-1])
    for g in range(3):
        expected = loops.likeness(video[g + 1], video[g], *lattice)
        np.testing.assert_allclose(got[g].numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("seed", range(10))
def test_selection(seed: int) -> None:
    random = np.random.default_rng(seed)
    change, alike = random.uniform(0, 1.2, 30), random.uniform(-0.2, 1, 30)
    for before, after in ((change, alike), (change, None), (None, alike)):
        got = fluxmem.selected(
            None if before is None else torch.from_numpy(before),
            None if after is None else torch.from_numpy(after),
            0.8,
        )
        expected = loops.selected(
            None if before is None else before.tolist(),
            None if after is None else after.tolist(),
            0.8,
        )
        assert got.tolist() == expected
        assert 0 < sum(expected) < 30


def test_selection_at_its_edges() -> None:
    assert fluxmem.selected(None, None, 0.8) is None
    same = torch.full((6,), 0.3)  # nothing separates: the median, which all reach
    assert fluxmem.selected(same, None, 0.8).all()
    assert not fluxmem.selected(None, torch.ones(6), 0.8).any()  # seen again: dropped outright
    assert fluxmem.selected(None, torch.ones(6), 1.1).all()
    some = torch.tensor([0.1, 0.5, 0.9])
    assert fluxmem.selected(some, None, 0.8, fixed=0.5).tolist() == [False, True, True]


@pytest.mark.parametrize("seed", range(10))
def test_consolidation(seed: int) -> None:
    random = np.random.default_rng(seed)
    lattice = (4, 5)
    video = moving(5, lattice, 12, seed, pace=0.5)
    groups = groups_of(video, [0] * 5)
    keeps = [torch.from_numpy(random.random(20) < share) for share in (1.0, 0.7, 0.3, 0.05, 0.5)]
    keeps[3][7] = True
    groups = [
        Group(g.number, 0, g.start_s, g.end_s, g.tokens[k], g.cells[k])
        for g, k in zip(groups, keeps, strict=True)
    ]
    merged = 0
    for got, group in zip(fluxmem.consolidated(groups, lattice, 12), groups, strict=True):
        tokens = dict(zip(group.cells.tolist(), group.tokens.numpy(), strict=True))
        assert_left(got, loops.consolidated(tokens, cols=5))
        merged += len(group.cells) - len(got.cells)
    assert merged > 5


def test_levels_below_the_first_are_averaged_but_not_compared() -> None:
    """DeepStack travels with its token: the first level decides, all levels are merged."""
    lattice = (4, 5)
    (flat,) = groups_of(moving(1, lattice, 12, seed=3, pace=0.5), [0])
    noise = torch.randn(20, 24, generator=torch.Generator().manual_seed(0))
    deep = Group(0, 0, 0.0, 1.0, torch.cat((flat.tokens, noise), dim=1), flat.cells)
    (one,) = fluxmem.consolidated([flat], lattice, 12)
    (two,) = fluxmem.consolidated([deep], lattice, 12)
    lost = set(flat.cells.tolist()) - set(one.cells.tolist())
    assert lost
    # The anchor is the member nearest to the mean of all it carries, so it may be another cell.
    assert len(one.cells) == len(two.cells)
    by_mean = {tuple(np.round(v[:12].numpy(), 4)) for v in two.tokens}
    assert by_mean == {tuple(np.round(v.numpy(), 4)) for v in one.tokens}


SETTINGS = [(8, 64, 60, (4, 5), 1.5), (2, 0, 20, (3, 3), 0.6), (4, 6, 40, (3, 4), 0.3)]


@pytest.mark.parametrize(("short", "mid", "grids", "lattice", "pace"), SETTINGS)
@pytest.mark.parametrize("boundaries", [(), (17,), (3, 4, 11)])
def test_incremental_equals_the_batch_algorithm(
    short: int, mid: int, grids: int, lattice: tuple[int, int], pace: float, boundaries: tuple
) -> None:
    """Fed in clips of every size, over sessions, it keeps what the algorithm over all keeps."""
    width = 16
    video = moving(grids, lattice, width, seed=grids, pace=pace)
    sessions = [sum(g >= b for b in boundaries) for g in range(grids)]
    expected = loops.batch(video, sessions, lattice, short // 2, mid // 2)
    assert sum(map(len, expected)) < video.shape[0] * video.shape[1]
    method = served(Fluxmem(short_frames=short, mid_frames=mid), width)
    memory, groups, sizes = method.blank(), groups_of(video, sessions), iter([1, 4, 2, 8, 3] * 20)
    while groups:
        same = [g for g in groups[: next(sizes)] if g.session == groups[0].session]
        memory = method.remember(memory, same, lattice)
        groups = groups[len(same) :]
    got = method.recall(memory)
    assert [g.number for g in got] == [g for g, left in enumerate(expected) if left]
    for group in got:
        assert_left(group, expected[group.number])


def test_thinning_is_even_and_no_more_than_needed() -> None:
    cells = torch.arange(3, dtype=torch.int32)
    groups = [Group(i, 0, 0.0, 1.0, torch.zeros(3, 1), cells) for i in range(40)]
    for excess in (0, 1, 3, 30, 75, 110):
        left = fluxmem.thinned_evenly(groups, excess, following=40)
        dropped = 3 * (len(groups) - len(left))
        assert excess <= dropped < excess + 3
        gaps = np.diff([-1, *(g.number for g in left), 40])
        if 3 <= excess <= 75:
            assert gaps.max() <= 2 * np.ceil(41 / (len(left) + 1))
    assert fluxmem.thinned_evenly(groups, 10_000, following=40) == ()
