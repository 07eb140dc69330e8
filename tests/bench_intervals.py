"""What intervals cover: `python tests/bench_intervals.py [runs]`. Prints tables, asserts nothing.

4,000 made-up data sets in each place (or `runs`), by the functions that reports use. Outcomes of a
cluster share a rate drawn from a beta distribution, so that two of them correlate by `icc`; even
clusters hold 20 items, uneven ones 1 to 40. What is covered is counted among the data sets in which
an interval is shown; where those are under 1 % it stands in brackets and outside the summary, for
there the data are an odd choice.
"""

from __future__ import annotations

import itertools
import sys
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from bench_lib.score import intervals, paired, stats
from bench_lib.score.cells import Cells, Floats, macro

RUNS = 4000
CLUSTERS = (8, 12, 30, 76, 104, 243)
SOME = (8, 12, 30, 104)
RATES = (0.01, 0.03, 0.1, 0.5, 0.9, 0.97)
EVEN, MOST = 20, 40
FLIPS = 1999


@dataclass(frozen=True)
class Coverage:
    """How often an interval was shown, and how often one that was shown covers, in percent."""

    shown: float
    covered: float

    @property
    def usual(self) -> bool:
        """Whether it is shown often enough to count."""
        return self.shown >= 1

    def __str__(self) -> str:
        if not self.shown:
            return "–"
        text = f"{self.covered:.1f} of {self.shown:.0f}"
        return text if self.usual else f"({self.covered:.0f} of {self.shown:.1f})"


def counts(rng: np.random.Generator, runs: int, clusters: int, even: bool) -> Floats:
    """Items of each cluster `[runs, G]`."""
    shape = (runs, clusters)
    return np.full(shape, float(EVEN)) if even else rng.integers(1, MOST + 1, shape).astype(float)


def rates(rng: np.random.Generator, shape: tuple[int, ...], rate: float, icc: float) -> Floats:
    """A rate for each cluster."""
    if not icc:
        return np.full(shape, rate)
    scale = (1 - icc) / icc
    return rng.beta(rate * scale, (1 - rate) * scale, shape)


def covered(shown: NDArray[np.bool_], low: Floats, high: Floats, truth: float) -> Coverage:
    """Of the data sets in one place."""
    hits = shown & (low <= truth) & (truth <= high)
    return Coverage(100 * shown.mean(), 100 * hits.sum() / max(1, shown.sum()))


def of_rates(
    rng: np.random.Generator,
    runs: int,
    cells: tuple[float, ...],
    clusters: int,
    even: bool,
    icc: float,
) -> Coverage:
    """The mean of the rates of some cells, each a cell of every cluster."""
    number = np.stack([counts(rng, runs, clusters, even) for _ in cells], axis=-1)
    wins = [
        rng.binomial(number[..., k].astype(int), rates(rng, (runs, clusters), rate, icc))
        for k, rate in enumerate(cells)
    ]
    limits = intervals.of_share(np.stack(wins, axis=-1).astype(float), number, None, macro)
    return covered(limits.told >= intervals.ENOUGH, limits.low, limits.high, float(np.mean(cells)))


def of_quantiles(
    rng: np.random.Generator, runs: int, q: float, clusters: int, even: bool, icc: float
) -> Coverage:
    """A quantile of waits that are log-normal, within and between clusters."""
    low, high = np.full(runs, np.nan), np.full(runs, np.nan)
    for run in range(runs):
        owner = np.repeat(np.arange(clusters), counts(rng, 1, clusters, even)[0].astype(int))
        noise = np.sqrt(1 - icc) * rng.standard_normal(len(owner))
        values = np.exp(np.sqrt(icc) * rng.standard_normal(clusters)[owner] + noise)
        found = stats.quantile(values, owner, q)
        assert not found.interval or found.low <= found.value <= found.high
        low[run], high[run] = found.low, found.high
    return covered(~np.isnan(low), low, high, float(np.exp(special.ndtri(q))))


@dataclass(frozen=True)
class Tests:
    """Of paired differences, in percent of those with a test: false alarms, cover, true finds.

    `flips` are the false alarms of flipping the systems' names within clusters instead.
    """

    shown: float
    false_alarms: float
    covered: float
    power: float
    flips: float

    def __str__(self) -> str:
        if self.shown < 1:
            return "–"
        power = "–" if np.isnan(self.power) else f"{self.power:.0f}"
        told = f"{self.false_alarms:.1f} ({self.flips:.1f}), {self.covered:.1f}, {power}"
        return f"{told} of {self.shown:.0f}"


def of_differences(
    rng: np.random.Generator, runs: int, differ: float, clusters: int, even: bool, icc: float
) -> Tests:
    """Two systems that differ on a share of the items, without and with a true difference.

    The true difference is the one that `detectable` names in the mean (of squares) without one;
    where that would be most of what differs, half of it, and no power is told.
    """
    number = counts(rng, runs, clusters, even)
    changed = rng.binomial(number.astype(int), rates(rng, number.shape, differ, icc))

    def made(gain: float) -> tuple[list[paired.Difference], Floats]:
        up = rng.binomial(changed, rates(rng, number.shape, 0.5 + gain / (2 * differ), icc))
        sums = np.stack([changed - up, up], axis=1).astype(float)
        found = [_difference(s, n) for s, n in zip(sums, number, strict=True)]
        tested = [bool(one.test) for one in found]
        return [one for one in found if one.test], np.asarray(up - (changed - up))[tested]

    none, net = made(0.0)
    if not none:
        return Tests(0.0, np.nan, np.nan, np.nan, np.nan)
    signs = rng.choice((-1.0, 1.0), (clusters, FLIPS))
    flipped = np.abs(net @ signs) >= np.abs(net.sum(axis=1, keepdims=True))
    flips = (flipped.sum(axis=1) + 1) / (FLIPS + 1)
    needed = float(np.sqrt(np.mean([d.detectable**2 for d in none])))
    reached = needed < 0.7 * differ
    gain = needed if reached else differ / 2
    some, _ = made(gain)
    return Tests(
        100 * len(none) / runs,
        100 * float(np.mean([d.p <= 0.05 for d in none])),
        100 * float(np.mean([d.low <= gain <= d.high for d in some])),
        100 * float(np.mean([d.p <= 0.05 for d in some])) if reached else np.nan,
        100 * float(np.mean(flips <= 0.05)),
    )


def _difference(sums: Floats, number: Floats) -> paired.Difference:
    names = tuple(map(str, range(len(number))))
    one, two = (Cells(("all",), names, part[:, None], number[:, None]) for part in sums)
    return paired.of_cells(one, two)


SHAPES = [(even, icc) for even in (True, False) for icc in (0.0, 0.2)]
NAMES = [f"{'even' if even else 'uneven'}, icc {icc:g}" for even, icc in SHAPES]
HEADING = "".join(f"{name:>18}" for name in NAMES)


def _table(title: str, rows: dict[str, list[Coverage]]) -> None:
    print(f"\n{title:<36}{HEADING}")
    for name, row in rows.items():
        print(f"{name:<36}" + "".join(f"{one!s:>18}" for one in row))
    usual = [one.covered for row in rows.values() for one in row if one.usual]
    print(
        f"covered of shown, %; {len(usual)} places: lowest {min(usual):.1f}, "
        f"median {np.median(usual):.1f}, highest {max(usual):.1f}"
    )


def main(runs: int = RUNS) -> None:
    """All tables."""
    rng, begun = np.random.default_rng(0), time.process_time()
    few = max(1, runs // 4)
    _table("Rates", {
        f"{rate:g}, {size} clusters": [of_rates(rng, runs, (rate,), size, *one) for one in SHAPES]
        for rate in RATES for size in CLUSTERS
    })  # fmt: skip
    means = ((0.5, 0.5), (0.97, 0.5), (0.97, 0.97), (0.1, 0.9), (0.5, 0.6, 0.7, 0.8, 0.9))
    _table("Means of rates", {
        f"{' '.join(map(str, cells))}, {size} clusters":
            [of_rates(rng, runs, cells, size, *one) for one in SHAPES]
        for cells in means for size in SOME
    })  # fmt: skip
    _table(f"Quantiles, {few} data sets", {
        f"{q:g}, {size} clusters": [of_quantiles(rng, few, q, size, *one) for one in SHAPES]
        for q in (0.5, 0.95) for size in SOME
    })  # fmt: skip
    names = "  ".join(f"{name:>26}" for name in NAMES)
    print(f"\n{f'Paired differences, {few} data sets':<36}{names}")
    for differ, size in itertools.product((0.05, 0.3), SOME):
        row = [of_differences(rng, few, differ, size, *one) for one in SHAPES]
        print(f"{f'{differ:g} differ, {size} clusters':<36}" + "  ".join(f"{x!s:>26}" for x in row))
    print("false alarms (of sign flips), covered, power at `detectable`, of tested, %")
    print(f"\n{time.process_time() - begun:.0f} s CPU")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
