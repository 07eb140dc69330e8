"""A forest of events in text and keyframes: pure functions on immutable records.

Leaves are stretches of the stream. When there are too many roots, the two neighbours that are most
alike become children of a new root, which has their texts in one and half of their frames. Texts
and their vectors come from outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bench_lib.state.walk import part
from bench_lib.video.stream import Frame


@dataclass(frozen=True)
class At:
    """An instant of the stream: the position of a session, and seconds in it."""

    session: int
    t_s: float


@dataclass(frozen=True)
class Keyframe:
    """A frame that stays, and the position of its session."""

    session: int
    frame: Frame


@dataclass(frozen=True)
class Node:
    """An event.

    Attributes:
        first: Instant of its first frame.
        last: Instant of its last frame.
        level: 0 for a leaf, else one more than the higher of its children's.
        text: Its summary.
        vector: The summary's unit vector `[d]` float32.
        frames: Numbers of its keyframes in `Forest.frames`.
        children: Numbers of its two children in `Forest.nodes`; none for a leaf.
    """

    first: At
    last: At
    level: int
    text: str = part("text")
    vector: NDArray[np.float32] = part("embeddings")
    frames: tuple[int, ...] = ()
    children: tuple[int, ...] = ()


@dataclass(frozen=True)
class Forest:
    """All nodes ever made, the numbers of the roots in time order, and the leaves' keyframes."""

    nodes: tuple[Node, ...] = ()
    roots: tuple[int, ...] = ()
    frames: tuple[Keyframe, ...] = ()


def evenly(count: int, limit: int, parity: bool = False) -> list[int]:
    """At most `limit` of `count` indices at one pace from the first.

    With `parity` the pace is a whole number of frames, so that of 31 frames the first 16 are taken.
    """
    if count <= limit:
        return list(range(count))
    if parity:
        return list(range(0, count, max(1, count // max(1, limit))))[:limit]
    return [i * count // limit for i in range(limit)]


def with_leaf(forest: Forest, leaf: Node, frames: Sequence[Keyframe]) -> Forest:
    """The forest with one more root, made of these keyframes."""
    start = len(forest.frames)
    numbered = replace(leaf, frames=tuple(range(start, start + len(frames))))
    return Forest(
        (*forest.nodes, numbered),
        (*forest.roots, len(forest.nodes)),
        (*forest.frames, *frames),
    )


def closest(forest: Forest, penalty: float) -> int:
    """Which two neighbouring roots to merge: the place of the left one among the roots.

    The pair with the largest cosine of vectors, less `penalty` for each level of both; the earliest
    of equals.
    """
    roots = [forest.nodes[number] for number in forest.roots]
    scores = [
        float(a.vector @ b.vector) - penalty * (a.level + b.level) for a, b in pairwise(roots)
    ]
    return int(np.argmax(scores))


def merged(
    forest: Forest, place: int, text: str, vector: NDArray[np.float32], parity: bool = False
) -> Forest:
    """The forest with the roots at `place` and after it under one new root of that text."""
    pair = forest.roots[place : place + 2]
    left, right = (forest.nodes[number] for number in pair)
    frames = (*left.frames, *right.frames)
    kept = evenly(len(frames), len(frames) // 2, parity)
    parent = Node(
        left.first,
        right.last,
        max(left.level, right.level) + 1,
        text,
        vector,
        tuple(frames[i] for i in kept),
        pair,
    )
    roots = (*forest.roots[:place], len(forest.nodes), *forest.roots[place + 2 :])
    return replace(forest, nodes=(*forest.nodes, parent), roots=roots)


def lineage(forest: Forest, number: int, ancestors: bool = True) -> set[int]:
    """A node, all below it and, unless told otherwise, all above it."""
    found, below = {number}, [number]
    while below:
        children = forest.nodes[below.pop()].children
        found.update(children)
        below.extend(children)
    parents = {child: n for n, node in enumerate(forest.nodes) for child in node.children}
    above = parents.get(number) if ancestors else None
    while above is not None:
        found.add(above)
        above = parents.get(above)
    return found


def search(
    forest: Forest, vector: NDArray[np.float32], limit: int, ancestors: bool = True
) -> list[int]:
    """Numbers of at most `limit` nodes of any level, most alike first, none related to another."""
    scores = [-float(node.vector @ vector) for node in forest.nodes]
    chosen: list[int] = []
    masked: set[int] = set()
    for number in np.argsort(scores, kind="stable").tolist():
        if len(chosen) == limit:
            break
        if number not in masked:
            chosen.append(number)
            masked |= lineage(forest, number, ancestors)
    return chosen
