"""StreamForest's pure functions against plain loops and against the released code."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from bench_lib.memories.parts import forest as trees
from bench_lib.memories.parts import tome
from bench_lib.memories.parts.forest import Event, Forest, Look, Plan
from bench_lib.memories.parts.sincos import codes

OFFICIAL = json.loads((Path(__file__).parent / "vectors" / "streamforest.json").read_text())
DIM, SIDE, HEADS, PERIOD = 32, 4, 4, 8


def film(frames: int, tokens: int, seed: int) -> np.ndarray:
    """The seeded features that the released code was run on."""
    random = np.random.default_rng(seed)
    scenes = random.normal(size=(9, tokens, DIM))
    noise = [0.3 * random.normal(size=(tokens, DIM)) for _ in range(frames)]
    return np.round(np.stack([scenes[(f // 5) % 9] + n for f, n in enumerate(noise)]), 3)


def looks(frames: int, seed: int) -> list[Look]:
    video = torch.from_numpy(film(frames, SIDE**2, seed)).float()
    return [
        Look(i, 0, tokens + codes(i, (SIDE, SIDE), DIM, PERIOD)) for i, tokens in enumerate(video)
    ]


def plan(quota: int) -> Plan:
    return Plan(1, 6, 16, 6, 4, 3, quota, (0.4, 0.2, 0.4), HEADS, DIM)


def test_codes_are_the_releases() -> None:
    spatial, temporal = (np.array(OFFICIAL["codes"][key]) for key in ("spatial", "temporal"))
    for frame in (0, 3, 7, 8, 19):
        expected = spatial + temporal[frame % PERIOD]
        np.testing.assert_allclose(codes(frame, (SIDE, SIDE), DIM, PERIOD), expected, atol=1e-4)


def test_codes_of_a_lattice_that_is_not_square() -> None:
    wide = codes(0, (2, 5), DIM)
    assert wide.shape == (10, DIM)
    assert torch.equal(wide[0, 8:20], wide[5, 8:20])  # the same column
    assert torch.equal(wide[0, 20:], wide[4, 20:])  # the same row
    assert not torch.equal(wide[0, 8:20], wide[1, 8:20])


@pytest.mark.parametrize("target", [16, 13, 8, 5, 2])
def test_merging_is_the_releases(target: int) -> None:
    x = torch.from_numpy(film(3, 16, 1)).float()
    got = tome.merged(x, target, HEADS, DIM)
    assert got.shape == (3, target, DIM)
    np.testing.assert_allclose(got.sum(-1), OFFICIAL["merge"][str(target)], atol=2e-3)


def merged_by_loops(x: np.ndarray, target: int) -> list[np.ndarray]:
    """ToMe over lists of (sum, how many)."""
    left = [(token, 1) for token in x]
    while len(left) > target:
        gone = min(len(left) - target, len(left) // 2)

        def unit(item: tuple[np.ndarray, int]) -> np.ndarray:
            mean = (item[0] / item[1]).reshape(HEADS, -1).mean(0)
            return mean / np.linalg.norm(mean)

        even, odd = left[::2], left[1::2]
        best = []
        for token in even:
            scores = [float(unit(token) @ unit(other)) for other in odd]
            best.append((max(scores), int(np.argmax(scores))))
        order = sorted(range(len(even)), key=lambda i: -best[i][0])
        joined = list(odd)
        for i in order[:gone]:
            total, many = joined[best[i][1]]
            joined[best[i][1]] = (total + even[i][0], many + even[i][1])
        left = [even[i] for i in order[gone:]] + joined
    return [total / many for total, many in left]


@pytest.mark.parametrize("target", [11, 6, 3, 1])
@pytest.mark.parametrize("tokens", [12, 17])
def test_merging_by_loops(tokens: int, target: int) -> None:
    x = np.random.default_rng(tokens).normal(size=(tokens, DIM))
    got = tome.merged(torch.from_numpy(x)[None].double(), target, HEADS, DIM)[0]
    np.testing.assert_allclose(got, merged_by_loops(x, target), atol=1e-5)


def test_what_is_not_compared_is_averaged_alike() -> None:
    x = torch.from_numpy(film(1, 16, 1)).float()
    both = tome.merged(torch.cat((x, 2 * x), -1), 5, HEADS, DIM)
    np.testing.assert_allclose(both[..., DIM:], 2 * both[..., :DIM], atol=1e-5)


def assert_forest(forest: Forest, case: dict, quota: int) -> None:
    assert [event.frames for event in forest.events] == case["events"]
    assert len(forest.short) == case["short"]
    np.testing.assert_allclose([e.time for e in forest.events], case["times"], atol=1e-3)
    assert [event.merges for event in forest.events] == case["merges"]
    flat = torch.cat(trees.tokens(forest, plan(quota)))
    np.testing.assert_allclose(flat.sum(-1), case["sums"], atol=5e-3)


@pytest.mark.parametrize("case", OFFICIAL["batch"], ids=lambda c: f"{c['frames']}frames")
def test_a_batch_is_the_releases(case: dict) -> None:
    forest = Forest()
    for look in looks(case["frames"], case["seed"]):
        forest = trees.added(forest, look, plan(case["quota"]))
    forest = trees.settled(forest, plan(case["quota"]))
    assert_forest(forest, case, case["quota"])
    np.testing.assert_allclose(forest.alike, case["similarity"], atol=1e-3)


def test_updates_after_every_frame_are_the_releases() -> None:
    case, forest = OFFICIAL["stream"], Forest()
    for look in looks(case["frames"], case["seed"]):
        forest = trees.settled(trees.added(forest, look, plan(40)), plan(40))
    assert_forest(forest, case, 40)
    batch = next(c for c in OFFICIAL["batch"] if c["seed"] == case["seed"])
    assert batch["events"] != case["events"], "batch and streaming should differ here"


def test_penalties_by_hand() -> None:
    events = [
        Event(torch.zeros(6, DIM), 2, 1.0, 1),
        Event(torch.zeros(6, DIM), 2, 5.0, 3),
        Event(torch.zeros(6, DIM), 2, 9.0, 1),
    ]
    got = trees.penalties(events, [0.5, 0.9], 20, (0.4, 0.2, 0.4))
    # times (1+5)/2 and (5+9)/2 of 20; merges (1+3)/2 and (3+1)/2 of their largest
    expected = [
        0.4 * 0.5 + 0.2 * 3 / 20 + 0.4 * (2 / 2 + 1e-6),
        0.4 * 0.1 + 0.2 * 7 / 20 + 0.4 * (2 / 2 + 1e-6),
    ]
    assert got == pytest.approx(expected)


def test_the_cheapest_pair_is_merged() -> None:
    """Alike neighbours first; of two equally alike pairs the older one."""
    random = np.random.default_rng(0)
    a, b, c = (torch.from_numpy(random.normal(size=(3, DIM))).float() for _ in range(3))
    events = tuple(
        Event(tokens.clone(), 1, float(i), 1) for i, tokens in enumerate((a, a, b, c, c))
    )
    alike = tuple(tome.likeness(x.tokens, y.tokens, 3, HEADS, DIM) for x, y in pairwise(events))
    forest = Forest(events, alike, passed=5)
    once = trees._within_quota(forest, plan(12))
    assert [e.merges for e in once.events] == [2, 1, 1, 1]
    assert once.events[0].time == 0.5
    assert len(once.alike) == 3
    twice = trees._within_quota(forest, plan(9))
    assert [e.merges for e in twice.events] == [2, 1, 2]


@pytest.mark.parametrize("frames", [1, 2, 26, 27, 40])
def test_every_frame_is_somewhere_once(frames: int) -> None:
    forest = Forest()
    for look in looks(frames, 7):
        forest = trees.added(forest, look, plan(10_000))
    forest = trees.settled(forest, plan(10_000))
    in_events = sum(e.frames for e in forest.events)
    assert in_events == forest.passed
    assert in_events + len(forest.short) + len(forest.newest) == frames
    assert len(forest.steps) == frames - in_events - 1
    sizes = [len(t) for t in trees.tokens(forest, plan(10_000))]
    assert sum(sizes) == 3 * in_events + 6 * len(forest.short) + 16


def test_the_published_sizes_hold_at_most_9049_tokens() -> None:
    published = Plan(1, 18, 729, 128, 8, 64, 5_120, (0.4, 0.2, 0.4), 16, 64)
    random = np.random.default_rng(3)
    forest = Forest()
    for i in range(110):
        tokens = torch.from_numpy(random.normal(size=(729, 64))).float()
        forest = trees.added(forest, Look(i, 0, tokens), published)
    forest = trees.settled(forest, published)
    events = sum(len(e.tokens) for e in forest.events)
    total = sum(len(t) for t in trees.tokens(forest, published))
    assert events <= 5_120
    assert total == events + 128 * len(forest.short) + 729 <= 5_120 + 25 * 128 + 729 == 9_049
