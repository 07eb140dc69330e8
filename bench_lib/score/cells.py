"""Sums per cluster and cell: the form in which every score can be taken again without a cluster.

A score is a function of K cell sums and K cell counts, for instance the mean over tasks of the
accuracy of each. Kept per cluster (a trajectory or a video), `[G, K]`, both resampling schemes are
matrix products: leaving cluster g out is `total - row g`, a bootstrap sample is `weights @ rows`.
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

    `binary` says of each cell whether all its items are 0 or 1.
    """

    names: tuple[str, ...]
    clusters: tuple[str, ...]
    sums: Floats
    counts: Floats
    binary: tuple[bool, ...] = ()

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
        other = np.bincount(column, ~np.isin(values, (0.0, 1.0)), minlength=len(names))
        return cls(
            names,
            tuple(clusters),
            np.bincount(flat, values, minlength=size).reshape(shape).astype(float),
            np.bincount(flat, minlength=size).reshape(shape).astype(float),
            tuple(bool(count == 0) for count in other),
        )

    def only(self, *names: str) -> Cells:
        """The cells of these names, in this order."""
        places = [self.names.index(name) for name in names]
        binary = tuple(self.binary[place] for place in places) if self.binary else ()
        return Cells(names, self.clusters, self.sums[:, places], self.counts[:, places], binary)

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
        return Cells(self.names, names, self.sums[keep], self.counts[keep], self.binary)

    def value(self, statistic: Statistic) -> float:
        """The score on all clusters."""
        return float(statistic(*self.total))

    def without_each(self, statistic: Statistic) -> Floats:
        """The score `[G]` with each cluster left out in turn."""
        sums, counts = self.total
        return statistic(sums - self.sums, counts - self.counts)

    def resampled(self, statistic: Statistic, repeats: int, seed: int = 0) -> Floats:
        """The score `[repeats]` on clusters drawn with replacement."""
        rng = np.random.default_rng(seed)
        size = len(self.clusters)
        weights = rng.multinomial(size, np.full(size, 1 / size), size=repeats).astype(float)
        return statistic(weights @ self.sums, weights @ self.counts)


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
        (*first.binary, *second.binary),
    )


def difference(statistic: Statistic) -> Statistic:
    """The statistic of the second half of the cells less that of the first half."""

    def paired(sums: Floats, counts: Floats) -> Floats:
        half = sums.shape[-1] // 2
        return statistic(sums[..., half:], counts[..., half:]) - statistic(
            sums[..., :half], counts[..., :half]
        )

    return paired
