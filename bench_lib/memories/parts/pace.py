"""Which of a growing series to keep, so that what stays is even over the whole of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def evenly(numbers: Sequence[int], keep: int) -> list[int]:
    """Indices of `keep` of the increasing `numbers`, the last one always among them.

    What goes is always the one whose neighbours lie closest together, the older of equals, so that
    what stays reaches back to the start at an even pace.
    """
    left = list(range(len(numbers)))
    while len(left) > max(1, keep):
        held = np.array([-1, *(numbers[i] for i in left)])
        left.pop(int(np.argmin(held[2:] - held[:-2])))
    return left


def thinned(count: int, keep: int) -> list[int]:
    """Indices of at most `keep` of `count`, evenly spaced, first and last among them."""
    if not keep or count <= keep:
        return list(range(count))
    return [int(i) for i in np.linspace(0, count - 1, keep).round()]
