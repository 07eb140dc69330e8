"""Two systems on the same probes: differences, their test, and the smallest one it would see.

Interval, p and power are those of one test: the jackknife error over clusters against Student's t,
with the degrees of freedom of the clusters in which the two differ. Flipping the systems' names
within clusters rejects more rarely than the 5 % that are meant where few clusters differ, down to
0.6 %, and gives no interval (tests/bench_intervals.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy import optimize, special

from bench_lib.score import stats
from bench_lib.score.cells import Cells, Statistic, difference, macro, side_by_side
from bench_lib.score.intervals import ENOUGH, NOTHING, t_quantile

POWER = 0.8


@dataclass(frozen=True)
class Difference:
    """Second system less first. `detectable` would be found with 80 % power, given this spread."""

    value: float
    low: float
    high: float
    p: float
    test: str
    n: int
    clusters: int
    detectable: float
    note: str = ""


def compare(
    first: pd.DataFrame,
    second: pd.DataFrame,
    value: str,
    cell: str,
    keys: list[str],
    statistic: Statistic = macro,
    names: list[str] | None = None,
    cluster: str = "trajectory",
) -> Difference:
    """Compare two frames with one row per item on the items that both have scored.

    `keys` identify an item; a repeated key is an error of the caller (ValueError).
    """
    own = [*keys, cell, cluster, value]
    left, right = (f.loc[f[value].notna(), list(dict.fromkeys(own))] for f in (first, second))
    both = left.merge(right[[*keys, value]], on=keys, suffixes=("", "_2"), validate="one_to_one")
    if both.empty:
        nan = float("nan")
        return Difference(nan, nan, nan, nan, "", 0, 0, nan, "no shared probe is scored in both")
    order = names if names is not None else list(dict.fromkeys(both[cell]))
    clusters = sorted(both[cluster].astype(str).unique())
    made = [Cells.of(both, v, cell, order, cluster, clusters) for v in (value, f"{value}_2")]
    return of_cells(made[0], made[1], statistic)


def of_cells(first: Cells, second: Cells, statistic: Statistic = macro) -> Difference:
    """The paired difference of two systems whose cells share clusters and names."""
    found = stats.point(side_by_side(first, second).filled(), difference(statistic))
    differ = int((np.abs(first.sums - second.sums) > NOTHING).any(axis=1).sum())
    why = found.note
    if not why and differ < ENOUGH:
        why = (
            f"the two differ in {differ} of {found.clusters} clusters, fewer than {ENOUGH}: no test"
        )
    elif not why and not found.se:
        why = "they differ by the same in every cluster: no test"
    if why:
        nan = float("nan")
        return Difference(found.value, nan, nan, nan, "", first.n, found.clusters, nan, why)
    free = differ - 1
    half = float(t_quantile(free)) * found.se
    return Difference(
        value=found.value,
        low=found.value - half,
        high=found.value + half,
        p=float(2 * special.stdtr(free, -abs(found.value) / found.se)),
        test=f"jackknife t({free})",
        n=first.n,
        clusters=found.clusters,
        detectable=errors_needed(free) * found.se,
    )


@lru_cache
def errors_needed(free: int) -> float:
    """The true difference, in standard errors, that a two-sided 5 % t test finds in 80 % of cases.

    `free` are its degrees of freedom.
    """
    edge = float(t_quantile(free))

    def power(shift: float) -> float:
        above = 1 - special.nctdtr(free, shift, edge)
        return float(above + special.nctdtr(free, shift, -edge))

    return float(optimize.brentq(lambda shift: power(shift) - POWER, 0, 2 * edge + 2))
