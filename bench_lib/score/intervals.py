"""Intervals on arrays, and where none is given. Leading axes `[...]` are independent data sets.

All take whole clusters as the unit. Errors come from leaving each cluster out (jackknife, CR3).
A score between two ends gets Korn and Graubard's limits (Survey Methodology 24, 1998): exact
binomial ones at the number of independent items that would have the same error. They stay inside
the scale and hold near its ends, where value ± t · error covers as little as 65 %. Two changes come
from simulation (tests/bench_intervals.py): the error is never below that of independent items, and
the degrees of freedom are those of the clusters that hold the rarer outcome, for only they tell how
much it varies. Anything else, differences above all, gets value ± t · error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from bench_lib.score.cells import Floats, Statistic, means

ENOUGH = 8
"""Clusters that must tell something of a score; below, no interval keeps what it promises."""
NOTHING = 1e-9
"""What is smaller comes from rounding."""
TAIL = 0.975
"""The upper quantile of 95 % limits."""


def t_quantile(free: ArrayLike) -> Floats:
    """Of Student's t with `free` degrees of freedom."""
    return special.stdtrit(free, TAIL)


def jackknife(sums: Floats, counts: Floats, statistic: Statistic) -> tuple[Floats, Floats]:
    """Score and standard error `[...]` of sums and counts `[..., G, K]`; NaN error where G is 1."""
    size = sums.shape[-2]
    total, number = sums.sum(axis=-2), counts.sum(axis=-2)
    value = statistic(total, number)
    without = statistic(total[..., None, :] - sums, number[..., None, :] - counts)
    spread = np.sum((without - value[..., None]) ** 2, axis=-1)
    se = np.sqrt((size - 1) / size * spread) if size > 1 else np.full_like(value, np.nan)
    return value, np.where(se < NOTHING * np.maximum(1.0, np.abs(value)), 0.0, se)


def independent(total: Floats, number: Floats, squares: Floats, statistic: Statistic) -> Floats:
    """The error `[...]` that a mean of cell means would have if all items were independent.

    `total`, `number` and `squares` are sums, counts and sums of squares of the items `[..., K]`;
    `statistic` is linear in the cell means, as all scores between two ends are.
    """
    step = number[..., None, :] * np.eye(number.shape[-1])
    weights = statistic(total[..., None, :] + step, number[..., None, :] + 0 * step)
    weights = weights - statistic(total, number)[..., None]
    variance = squares / number - means(total, number) ** 2
    variance = np.where(variance < NOTHING, 0.0, variance)
    return np.sqrt((weights**2 * variance / number).sum(axis=-1))


def telling(sums: Floats, counts: Floats) -> Floats:
    """How many clusters `[...]` hold the rarer outcome of a cell; items lie between 0 and 1."""
    rate = means(sums.sum(axis=-2), counts.sum(axis=-2))
    rarer = np.where(rate[..., None, :] <= 0.5, sums, counts - sums)
    return (rarer > NOTHING).any(axis=-1).sum(axis=-1)


@dataclass(frozen=True)
class Limits:
    """Of scores `[...]`; NaN where fewer than `ENOUGH` clusters tell something of one (`told`).

    And where nothing varies.
    """

    low: Floats
    high: Floats
    se: Floats
    told: Floats


def of_share(sums: Floats, counts: Floats, squares: Floats | None, statistic: Statistic) -> Limits:
    """Limits of a mean of cell means of items between 0 and 1 (see the module).

    `sums` and `counts` are those of each cluster and cell `[..., G, K]`, G above 1, `squares` the
    sums of the items' squares `[..., K]`, None where all are 0 or 1; `statistic` goes from 0 to 1
    and is linear in the cell means.
    """
    value, se = jackknife(sums, counts, statistic)
    total, number = sums.sum(axis=-2), counts.sum(axis=-2)
    least = independent(total, number, total if squares is None else squares, statistic)
    se, told = np.maximum(se, least), telling(sums, counts)
    enough = (told >= ENOUGH) & (se > 0)
    inside = np.where(enough, value, 0.5), np.where(enough, se, 0.5)
    low, high = share_limits(*inside, number.sum(axis=-1), np.maximum(told, 2))
    return Limits(np.where(enough, low, np.nan), np.where(enough, high, np.nan), se, told)


def share_limits(
    rate: ArrayLike, se: ArrayLike, n: ArrayLike, clusters: ArrayLike
) -> tuple[Floats, Floats]:
    """Limits `[...]` of a rate strictly between 0 and 1.

    `n` counts its items, `clusters` those that tell something of it (`telling`), two or more.
    """
    rate, n = np.asarray(rate, dtype=float), np.asarray(n, dtype=float)
    ratio = t_quantile(n - 1) / t_quantile(np.asarray(clusters) - 1)
    free = rate * (1 - rate) / np.square(se) * ratio**2
    hits = rate * free
    low = special.betaincinv(hits, free - hits + 1, 1 - TAIL)
    return low, special.betaincinv(hits + 1, free - hits, TAIL)
