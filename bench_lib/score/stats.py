"""Scores with intervals that know which probes share a trajectory.

The unit of analysis is the cluster: a trajectory of APM-Bench, a video of StreamArena. Probes of
one cluster resemble each other, and an interval that ignores it is far too narrow (with 104
clusters of 31 probes and a correlation of 0.2 a nominal 95 % interval covers 47 %). Where too few
clusters tell something there is no interval, and `note` says so (`bench_lib.score.intervals`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats as sps

from bench_lib.score import intervals
from bench_lib.score.cells import Cells, Floats, Statistic, macro, scaled
from bench_lib.score.intervals import ENOUGH

PERCENT = (0.0, 100.0)
SAME = "no variation between items: no interval"


@dataclass(frozen=True)
class Estimate:
    """A score with its interval. `note` says why there is no value or no interval.

    `n` counts items, `clusters` the trajectories or videos they lie in; `interval` names how `low`
    and `high` were made. Missing numbers are NaN, never zero.
    """

    value: float
    low: float = float("nan")
    high: float = float("nan")
    se: float = float("nan")
    n: int = 0
    clusters: int = 0
    interval: str = ""
    note: str = ""


def estimate(
    cells: Cells, statistic: Statistic = macro, *, bounds: tuple[float, float] = PERCENT
) -> Estimate:
    """The score on all clusters with its 95 % interval.

    With `bounds` from zero to a finite end the score is that end times a mean of cell means of
    items between 0 and 1; with any others, any number, and its limits are clipped to them.
    """
    cells = cells.filled()
    found = point(cells, statistic)
    if np.isnan(found.se):
        return found
    if bounds[0] == 0 and np.isfinite(bounds[1]):
        return _share(cells, statistic, found, bounds[1])
    if not found.se:
        return replace(found, note=SAME)
    half = float(intervals.t_quantile(found.clusters - 1)) * found.se
    low, high = (float(np.clip(found.value + x, *bounds)) for x in (-half, half))
    return replace(found, low=low, high=high, interval=f"jackknife, t({found.clusters - 1})")


def point(cells: Cells, statistic: Statistic) -> Estimate:
    """The score with its jackknife error, NaN where it has none: too few clusters, or no value."""
    n, size = cells.n, cells.G
    if not n:
        return Estimate(float("nan"), note="n = 0")
    value, se = map(float, intervals.jackknife(cells.sums, cells.counts, statistic))
    if np.isnan(value):
        empty = [name for name, count in zip(cells.names, cells.total[1], strict=True) if not count]
        what = f"nothing scored for {', '.join(map(str, empty))}" if empty else "not defined"
        return Estimate(float("nan"), n=n, clusters=size, note=what)
    if size < ENOUGH:
        few = "one cluster" if size == 1 else f"{size} clusters"
        return Estimate(value, n=n, clusters=size, note=f"{few}, fewer than {ENOUGH}: no interval")
    if np.isnan(se):
        note = "a part lies in one cluster only: no interval"
        return Estimate(value, n=n, clusters=size, note=note)
    return Estimate(value, se=se, n=n, clusters=size)


def _share(cells: Cells, statistic: Statistic, found: Estimate, end: float) -> Estimate:
    limits = intervals.of_share(cells.sums, cells.counts, cells.squares, scaled(statistic, 1 / end))
    told, se = int(limits.told), end * float(limits.se)
    if told < ENOUGH:
        note = f"{told} of {found.clusters} clusters hold the rarer outcome, fewer than {ENOUGH}: "
        return replace(found, se=se, note=note + "no interval")
    if not se:
        return replace(found, note=SAME)
    low, high = end * float(limits.low), end * float(limits.high)
    return replace(found, low=low, high=high, se=se, interval=f"Korn-Graubard, t({told - 1})")


def exact(successes: int, n: int) -> tuple[float, float]:
    """Clopper-Pearson 95 % limits of a share."""
    limits = sps.binomtest(successes, n).proportion_ci(0.95, method="exact")
    return float(limits.low), float(limits.high)


def quantile(values: ArrayLike, clusters: ArrayLike, q: float) -> Estimate:
    """A quantile (latency: 0.5, 0.95), linear between items, with Woodruff's 95 % interval.

    The limits of the share `q` of items at or below the value, taken back to values by the same
    quantile, so the value always lies between them (Woodruff, JASA 47, 1952).
    """
    numbers, groups = np.asarray(values, dtype=float), np.asarray(clusters)
    keep = ~np.isnan(numbers)
    numbers, groups = numbers[keep], groups[keep]
    if not len(numbers):
        return Estimate(float("nan"), note="n = 0")
    value = float(np.quantile(numbers, q))
    below = Cells.of(
        pd.DataFrame({"trajectory": groups, "part": "all", "value": numbers <= value}),
        "value",
        "part",
    )
    found = replace(point(below, macro), value=value)
    if found.note:
        return found
    beyond = below.counts - below.sums if q >= 0.5 else below.sums
    told = int((beyond > 0).sum())
    if told < 2:
        note = "fewer than two clusters lie beyond it: no interval"
        return replace(found, se=float("nan"), note=note)
    se = max(found.se, float(intervals.independent(*below.total, below.total[0], macro)))
    limits = intervals.share_limits(q, se, found.n, told)
    low, high = map(float, np.quantile(numbers, limits))
    return replace(found, low=low, high=high, se=float("nan"), interval=f"Woodruff, t({told - 1})")


def population_sd(values: ArrayLike) -> float:
    """Spread of a few systems taken as all there are: divided by their number, not one less."""
    numbers = np.asarray(values, dtype=float)
    return float(numbers.std(ddof=0)) if len(numbers) else float("nan")


def holm(p: ArrayLike) -> Floats:
    """Holm-adjusted p values of a declared family; missing ones stay missing and do not count."""
    values = np.asarray(p, dtype=float)
    adjusted = np.full(values.shape, np.nan)
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(values[known], kind="stable")]
    factors = len(order) - np.arange(len(order))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * factors))
    return adjusted


@dataclass(frozen=True)
class Repeats:
    """k runs of the same items. Standard deviations of a single run's 0/1 (or other) score.

    `sampling_sd` is what repeating a run changes, `item_sd` what other items would change;
    `consistent` is the share of items on which all runs agree, `consensus` the majority's score.
    """

    k: int
    n: int
    mean: float
    item_sd: float
    sampling_sd: float
    consistent: float
    consensus: float
    runs: tuple[float, ...]


def repeats(scores: NDArray[np.float64]) -> Repeats:
    """Item and sampling variance of scores `[items, k]`, k >= 2, without missing values.

    One-way random effects: sampling variance is the mean variance within items; the variance of
    item means less its sampling part is the item variance.
    """
    if scores.ndim != 2 or scores.shape[1] < 2 or len(scores) < 2 or np.isnan(scores).any():
        raise ValueError("repeats needs scores [items >= 2, k >= 2] without missing values")
    k = scores.shape[1]
    within = float(scores.var(axis=1, ddof=1).mean())
    between = max(0.0, float(scores.mean(axis=1).var(ddof=1)) - within / k)
    return Repeats(
        k=k,
        n=len(scores),
        mean=float(scores.mean()),
        item_sd=between**0.5,
        sampling_sd=within**0.5,
        consistent=float((scores == scores[:, :1]).all(axis=1).mean()),
        consensus=float(np.median(scores, axis=1).mean()),
        runs=tuple(float(mean) for mean in scores.mean(axis=0)),
    )
