"""Agreement of two lists of replies to the same requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Agreement:
    """Of `n` requests, `equal` had the same reply twice; the first replies had `distinct` values.

    With few distinct values agreement means little: a model that always says A agrees with itself.
    """

    n: int
    equal: int
    distinct: int

    @property
    def share(self) -> float:
        """The share of equal pairs; NaN where nothing was asked."""
        return self.equal / self.n if self.n else float("nan")


def agreement(first: Sequence[str], second: Sequence[str]) -> Agreement:
    """Compare two lists of replies to the same requests, in the same order."""
    pairs = list(zip(first, second, strict=True))
    return Agreement(len(pairs), sum(a == b for a, b in pairs), len(set(first)))
