"""The forest of events: against the release, against plain loops, and its laws."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from by_hand import frame
from hypothesis import given, settings
from hypothesis import strategies as st
from oasis_by_hand import Joining, vector

from bench_lib.memories.event_forest import (
    At,
    Forest,
    Keyframe,
    Node,
    closest,
    evenly,
    lineage,
    merged,
    search,
    with_leaf,
)
from bench_lib.methods.oasis import Oasis
from bench_lib.video.stream import ArrayFrame, Clip, SessionInfo

RELEASE = json.loads((Path(__file__).parent / "releases" / "oasis.json").read_text())


@pytest.mark.parametrize("run", RELEASE["runs"], ids=lambda r: f"{r['seconds']}s")
def test_windows_events_and_merges_are_those_of_the_release(run: dict) -> None:
    names = ("fps", "buffer_frames", "now_frames", "frames_per_node", "buffer_fps")
    method = Oasis(**{name: run[name] for name in names}, parity=True).attach(Joining())
    method.reset("t", 7)
    method.begin_session(SessionInfo("S001", 0, None, (1, 1)))
    windows = {window["frame"]: window for window in run["windows"]}
    for k in range(round(run["seconds"] * run["fps"])):
        method.observe(Clip(0, (ArrayFrame(k / run["fps"], np.zeros((1, 1, 3), np.uint8)),)))
        if k in windows:
            state, window = method.state, windows[k]
            assert [f.t_s for f in state.now] == pytest.approx(window["now"])
            assert [f.t_s for f in state.buffer] == pytest.approx(window["buffer"])
            assert len(state.pending) == window["pending"]
    forest = method.state.forest
    assert len(forest.nodes) == len(run["nodes"])
    for node, theirs in zip(forest.nodes, run["nodes"], strict=True):
        assert (node.text, node.level) == (theirs["text"], theirs["level"])
        times = [forest.frames[i].frame.t_s for i in node.frames]
        assert times == pytest.approx(theirs["frames"])
        assert (node.first.t_s, node.last.t_s) == pytest.approx((theirs["first"], theirs["last"]))
        assert [forest.nodes[c].text for c in node.children] == theirs["children"]
    assert [forest.nodes[n].text for n in forest.roots] == run["roots"]
    for wanted, theirs in run["searches"].items():
        found = search(forest, vector(wanted), 2, ancestors=False)
        assert [forest.nodes[n].text for n in found] == theirs


@pytest.mark.parametrize(("counts", "theirs"), RELEASE["keyframes"].items())
def test_keyframes_are_those_of_the_release_less_its_lost_ends(counts: str, theirs: list[int]):
    count_, limit = map(int, counts.split("/"))
    assert evenly(count_, limit, parity=True) == theirs
    if count_ <= limit or count_ % limit == 0:
        assert evenly(count_, limit) == theirs


@given(st.integers(1, 300), st.integers(1, 60))
def test_keyframes_are_spread_over_the_whole_stretch(count_, limit):
    chosen = evenly(count_, limit)
    assert len(chosen) == min(count_, limit)
    assert chosen == sorted(set(chosen))
    assert chosen[0] == 0
    assert count_ - chosen[-1] <= max(1, -(-count_ // limit))


def grown(vectors: list[np.ndarray], roots: int = 4, penalty: float = 0.1) -> Forest:
    """A forest of one leaf per vector, four keyframes each; a parent's vector is the mean."""
    forest = Forest()
    for number, own in enumerate(vectors):
        at = At(0, float(number))
        kept = [Keyframe(0, frame(0, number + i / 4)) for i in range(4)]
        forest = with_leaf(forest, Node(at, at, 0, str(number), own), kept)
        while len(forest.roots) > roots:
            place = closest(forest, penalty)
            left, right = (forest.nodes[n] for n in forest.roots[place : place + 2])
            mean = left.vector + right.vector
            unit = mean / np.linalg.norm(mean)
            forest = merged(forest, place, f"({left.text} {right.text})", unit)
    return forest


def by_loops(vectors: list[np.ndarray], limit: int, penalty: float) -> list[str]:
    """The roots' names by the rule as the paper says it, without any of our records."""
    roots: list[tuple[str, int, np.ndarray]] = []
    for number, own in enumerate(vectors):
        roots.append((str(number), 0, own))
        while len(roots) > limit:
            best, at = -np.inf, 0
            for i in range(len(roots) - 1):
                (_, la, va), (_, lb, vb) = roots[i], roots[i + 1]
                cosine = sum(float(x) * float(y) for x, y in zip(va, vb, strict=True))
                if cosine - penalty * (la + lb) > best:
                    best, at = cosine - penalty * (la + lb), i
            (na, la, va), (nb, lb, vb) = roots[at], roots[at + 1]
            unit = (va + vb) / np.linalg.norm(va + vb)
            roots[at : at + 2] = [(f"({na} {nb})", max(la, lb) + 1, unit)]
    return [name for name, _, _ in roots]


def drawn(seed: int, number: int) -> list[np.ndarray]:
    found = np.random.default_rng(seed).normal(size=(number, 5)).astype(np.float32)
    return list(found / np.linalg.norm(found, axis=1, keepdims=True))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 6), st.sampled_from([0.0, 0.1]))
def test_roots_are_merged_by_the_rule(seed, number, limit, penalty):
    vectors = drawn(seed, number)
    forest = grown(vectors, limit, penalty)
    assert [forest.nodes[n].text for n in forest.roots] == by_loops(vectors, limit, penalty)


def test_the_penalty_matters():
    vectors = drawn(3, 30)
    assert by_loops(vectors, 4, 0.0) != by_loops(vectors, 4, 0.1)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_a_forest_keeps_four_roots_all_nodes_and_each_leafs_frames_once(seed, number):
    forest = grown(drawn(seed, number))
    assert len(forest.roots) == min(number, 4)
    assert len(forest.nodes) == (number if number <= 4 else 2 * number - 4)
    assert len(forest.frames) == 4 * number
    spans = [(forest.nodes[n].first.t_s, forest.nodes[n].last.t_s) for n in forest.roots]
    assert spans == sorted(spans)
    assert (spans[0][0], spans[-1][1]) == (0, number - 1)
    for node in forest.nodes:
        if node.children:
            below = [forest.nodes[n] for n in node.children]
            assert node.level == 1 + max(n.level for n in below)
            frames = {i for n in below for i in n.frames}
            assert set(node.frames) < frames
            assert len(node.frames) == len(frames) // 2
            assert list(node.frames) == sorted(node.frames)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 5))
def test_a_search_finds_the_best_nodes_of_which_none_holds_another(seed, number, limit):
    forest = grown(drawn(seed, number))
    wanted = drawn(seed + 1, 1)[0]
    found = search(forest, wanted, limit)
    scores = [float(forest.nodes[n].vector @ wanted) for n in found]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == max(float(n.vector @ wanted) for n in forest.nodes)
    for n in found:
        assert not (lineage(forest, n) & set(found)) - {n}
    left = set(range(len(forest.nodes))) - set().union(*(lineage(forest, n) for n in found))
    assert len(found) == limit or not left


def test_the_release_may_find_a_node_and_one_above_it():
    """The control: with its mask some search brings a node and its ancestor."""
    both = 0
    for seed in range(60):
        forest = grown(drawn(seed, 20))
        first, second = search(forest, drawn(seed + 1, 1)[0], 2, ancestors=False)
        both += second in lineage(forest, first)
    assert both > 5
