"""Sums per cluster and cell: the form in which every score can be taken again without a cluster.

A score is a function of K cell sums and K cell counts, for instance the mean over tasks of the
accuracy of each. Kept per cluster (a trajectory or a video), `[G, K]`, leaving cluster g out is
`total - row g`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Statistic = Callable[[Floats, Floats], Floats]
"""Maps sums and counts `[..., K]` to the score `[...]`; NaN where it is not defined."""


@dataclass(frozen=True)
class Cells:
    """Sums and counts `[G, K]` of G clusters and K named cells.

    `squares` `[K]` are the sums of the items' squares; without them all items are 0 or 1.
    """

    names: tuple[str, ...]
    clusters: tuple[str, ...]
    sums: Floats
    counts: Floats
    squares: Floats | None = None

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        value: str,
        cell: str,
        names: Sequence[str] | None = None,
        cluster: str = "trajectory",
        clusters: Sequence[str] | None = None,
    ) -> Cells:
        """Cells of a frame with one row per item; rows whose value is missing do not count.

        `names` and `clusters` fix the order, and keep those that hold nothing.
        """
        rows = frame[frame[value].notna()]
        names = tuple(names if names is not None else dict.fromkeys(rows[cell]))
        rows = rows[rows[cell].isin(names)]
        if clusters is None:
            clusters = sorted(rows[cluster].astype(str).unique())
        shape, size = (len(clusters), len(names)), len(clusters) * len(names)
        column = _places(names, rows[cell])
        row = _places(clusters, rows[cluster].astype(str))
        flat = row * len(names) + column
        values = rows[value].to_numpy(dtype=float)
        return cls(
            names,
            tuple(clusters),
            np.bincount(flat, values, minlength=size).reshape(shape).astype(float),
            np.bincount(flat, minlength=size).reshape(shape).astype(float),
            np.bincount(column, values**2, minlength=len(names)).astype(float),
        )

    def only(self, *names: str) -> Cells:
        """The cells of these names, in this order."""
        places = [self.names.index(name) for name in names]
        squares = None if self.squares is None else self.squares[places]
        return Cells(names, self.clusters, self.sums[:, places], self.counts[:, places], squares)

    @cached_property
    def total(self) -> tuple[Floats, Floats]:
        """Sums and counts `[K]` over all clusters."""
        return self.sums.sum(axis=0), self.counts.sum(axis=0)

    @property
    def n(self) -> int:
        """Number of items."""
        return int(self.counts.sum())

    @property
    def G(self) -> int:
        """Number of clusters that hold at least one item."""
        return int((self.counts.sum(axis=1) > 0).sum())

    def filled(self) -> Cells:
        """The same without clusters that hold nothing."""
        keep = self.counts.sum(axis=1) > 0
        names = tuple(np.array(self.clusters, dtype=object)[keep])
        return Cells(self.names, names, self.sums[keep], self.counts[keep], self.squares)

    def value(self, statistic: Statistic) -> float:
        """The score on all clusters."""
        return float(statistic(*self.total))


def _places(names: Sequence[str], column: pd.Series) -> NDArray[np.intp]:
    """Position of each value among the names."""
    place = {name: number for number, name in enumerate(names)}
    return np.asarray(column.map(place), dtype=np.intp)


def means(sums: Floats, counts: Floats) -> Floats:
    """Mean of each cell `[..., K]`; NaN where it holds nothing."""
    # Sums with a cluster taken out again can leave 1e-17 where nothing is left.
    empty = counts < 0.5
    return np.where(empty, np.nan, sums / np.where(empty, 1.0, counts))


def pooled(sums: Floats, counts: Floats) -> Floats:
    """One mean over all items of all cells."""
    return means(sums.sum(axis=-1), counts.sum(axis=-1))


def macro(sums: Floats, counts: Floats) -> Floats:
    """Plain mean of the cell means; NaN when a cell holds nothing."""
    return means(sums, counts).mean(axis=-1)


def scaled(statistic: Statistic, factor: float) -> Statistic:
    """The same score on another scale."""
    return lambda sums, counts: factor * statistic(sums, counts)


def grouped(groups: Sequence[Sequence[int]]) -> Statistic:
    """Mean over groups of the mean over each group's cells: capability and overall scores."""

    def statistic(sums: Floats, counts: Floats) -> Floats:
        cell = means(sums, counts)
        return np.stack([cell[..., list(g)].mean(axis=-1) for g in groups], axis=-1).mean(axis=-1)

    return statistic


def side_by_side(first: Cells, second: Cells) -> Cells:
    """Cells of two systems on the same clusters, for paired statistics `[G, 2K]`."""
    return Cells(
        (*first.names, *second.names),
        first.clusters,
        np.concatenate([first.sums, second.sums], axis=1),
        np.concatenate([first.counts, second.counts], axis=1),
    )


def difference(statistic: Statistic) -> Statistic:
    """The statistic of the second half of the cells less that of the first half."""

    def paired(sums: Floats, counts: Floats) -> Floats:
        half = sums.shape[-1] // 2
        return statistic(sums[..., half:], counts[..., half:]) - statistic(
            sums[..., :half], counts[..., :half]
        )

    return paired
