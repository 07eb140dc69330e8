"""Intervals that know which probes share a trajectory.

The unit of analysis is the cluster: a trajectory of APM-Bench, a video of StreamArena. Probes of
one cluster resemble each other, and an interval that ignores it is far too narrow (with 104
clusters of 31 probes and a correlation of 0.2 a nominal 95 % interval covers 47 %). Default: the
delete-one-cluster jackknife with t(G-1), which also holds for few clusters; with 76 clusters or
more a percentile bootstrap over clusters for scores that are not plain means.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats as sps

from bench_lib.score.cells import Cells, Floats, Statistic, macro

MANY = 76
"""From this many clusters on, scores that are not plain means are bootstrapped."""
BOOTSTRAPS = 2000
PERCENT = (0.0, 100.0)


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
    cells: Cells,
    statistic: Statistic = macro,
    *,
    linear: bool = False,
    level: float = 0.95,
    bounds: tuple[float, float] = PERCENT,
    seed: int = 0,
) -> Estimate:
    """The score on all clusters with its interval, clipped to `bounds`.

    `linear` marks a plain mean of items, for which the jackknife is used whatever G is.
    """
    cells = cells.filled()
    n, size = cells.n, cells.G
    if not n:
        return Estimate(float("nan"), note="n = 0")
    value = cells.value(statistic)
    if np.isnan(value):
        empty = [name for name, count in zip(cells.names, cells.total[1], strict=True) if not count]
        what = f"nothing scored for {', '.join(map(str, empty))}" if empty else "not defined"
        return Estimate(float("nan"), n=n, clusters=size, note=what)
    if size == 1:
        return Estimate(value, n=n, clusters=1, note="one cluster: no interval")
    low, high, se, how = jackknife(cells, statistic, level)
    if np.isnan(se):
        note = "a part lies in one cluster only: no interval"
        return Estimate(value, n=n, clusters=size, note=note)
    if se < 1e-9:
        return _constant(cells, value, bounds, level)
    if not linear and size >= MANY:
        low, high, how = bootstrap(cells, statistic, level, seed)
    low, high = (float(np.clip(edge, *bounds)) for edge in (low, high))
    return Estimate(value, low, high, se, n, size, how)


def jackknife(
    cells: Cells, statistic: Statistic, level: float = 0.95
) -> tuple[float, float, float, str]:
    """Low, high, standard error and name: delete-one-cluster jackknife (CR3) with t(G-1)."""
    size = len(cells.clusters)
    value = cells.value(statistic)
    spread = cells.without_each(statistic) - value
    se = float(np.sqrt((size - 1) / size * np.sum(spread**2)))
    half = float(sps.t.ppf((1 + level) / 2, size - 1)) * se
    return value - half, value + half, se, f"jackknife, t({size - 1})"


def bootstrap(
    cells: Cells, statistic: Statistic, level: float = 0.95, seed: int = 0
) -> tuple[float, float, str]:
    """Low, high and name: percentiles over resampled clusters."""
    values = cells.resampled(statistic, BOOTSTRAPS, seed)
    low, high = np.nanquantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high), f"cluster bootstrap, {BOOTSTRAPS}"


def _constant(cells: Cells, value: float, bounds: tuple[float, float], level: float) -> Estimate:
    """All clusters agree: for one 0/1 rate each cluster is one trial of an exact interval."""
    size, n = cells.G, cells.n
    if cells.binary != (True,) or bounds[0] < 0 or np.isinf(bounds[1]):
        note = "no variation between clusters: no interval"
        return Estimate(value, se=0.0, n=n, clusters=size, note=note)
    share = cells.total[0][0] / cells.total[1][0]
    limits = exact(round(share * size), size, level)
    width = bounds[1] - bounds[0]
    low, high = (bounds[0] + width * limit for limit in limits)
    return Estimate(value, low, high, 0.0, n, size, "exact over clusters")


def exact(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Clopper-Pearson limits of a share."""
    limits = sps.binomtest(successes, n).proportion_ci(level, method="exact")
    return float(limits.low), float(limits.high)


def design_effect(cells: Cells, statistic: Statistic) -> float:
    """Variance of a single rate over clusters, relative to independent items; NaN if undefined."""
    sums, counts = cells.total
    share, n = float(sums.sum() / counts.sum()), float(counts.sum())
    naive = share * (1 - share) / n
    se = jackknife(cells.filled(), statistic)[2] if cells.G > 1 else float("nan")
    return se**2 / naive if all(cells.binary) and naive else float("nan")


def quantile(
    values: ArrayLike, clusters: ArrayLike, q: float, level: float = 0.95, seed: int = 0
) -> Estimate:
    """A quantile (latency: 0.5, 0.95) with a percentile bootstrap over clusters."""
    numbers, groups = np.asarray(values, dtype=float), np.asarray(clusters)
    keep = ~np.isnan(numbers)
    numbers, groups = numbers[keep], groups[keep]
    if not len(numbers):
        return Estimate(float("nan"), note="n = 0")
    names, codes = np.unique(groups, return_inverse=True)
    value, size = float(np.quantile(numbers, q)), len(names)
    if size == 1:
        return Estimate(value, n=len(numbers), clusters=1, note="one cluster: no interval")
    order = np.argsort(numbers)
    numbers, codes = numbers[order], codes[order]
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(size, np.full(size, 1 / size), size=BOOTSTRAPS // 2)
    found = np.empty(len(drawn))
    for index, weights in enumerate(drawn):
        mass = np.cumsum(weights[codes])
        found[index] = numbers[np.searchsorted(mass, q * mass[-1])]
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    how = f"cluster bootstrap, {len(drawn)}"
    return Estimate(value, float(low), float(high), float(found.std()), len(numbers), size, how)


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


def detectable(
    n: int, discordance: float, effect: float = 1.0, power: float = 0.8, level: float = 0.95
) -> float:
    """Smallest paired difference of two rates (a share) found with that power.

    `discordance` is the share of items on which the two systems differ, `effect` the design effect
    of clustering. Normal approximation.
    """
    z = float(sps.norm.ppf((1 + level) / 2) + sps.norm.ppf(power))
    return z * float(np.sqrt(effect * discordance / n))


def power_of(
    delta: float, n: int, discordance: float, effect: float = 1.0, level: float = 0.95
) -> float:
    """Probability of finding a paired difference `delta` of two rates (a share)."""
    se = np.sqrt(effect * discordance / n)
    return float(sps.norm.cdf(abs(delta) / se - sps.norm.ppf((1 + level) / 2)))


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
