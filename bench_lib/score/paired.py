"""Two systems on the same probes: differences, tests, and the smallest difference one could see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats as sps

from bench_lib.score import stats
from bench_lib.score.cells import Cells, Floats, Statistic, difference, macro, side_by_side

FEW = 30
"""Below this many clusters the p value comes from flipping signs, not from a t distribution."""
EXACT = 13
FLIPS = 9999


@dataclass(frozen=True)
class Difference:
    """Second system less first. `detectable` is what 80 % power would need, given this spread."""

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
    joint, paired = side_by_side(first, second), difference(statistic)
    found = stats.estimate(joint, paired, linear=True, bounds=(-np.inf, np.inf))
    p, test, note = _test(first, second, joint, statistic, found)
    size = found.clusters
    seen = float("nan")
    if size > 1 and found.se > 0:
        factor = sps.t.ppf(0.975, size - 1) + sps.t.ppf(0.8, size - 1)
        seen = float(factor) * found.se
    return Difference(
        found.value, found.low, found.high, p, test, first.n, size, seen, found.note or note
    )


def _test(
    first: Cells, second: Cells, joint: Cells, statistic: Statistic, found: stats.Estimate
) -> tuple[float, str, str]:
    if np.isnan(found.value) or found.clusters < 2:
        return float("nan"), "", ""
    single = first.binary == second.binary == (True,)
    if single and (first.counts == 1).all():
        gained = int((second.sums > first.sums).sum())
        lost = int((second.sums < first.sums).sum())
        return mcnemar(gained, lost), "exact McNemar", ""
    if found.clusters < FEW:
        p = sign_flip(first, second, statistic)
        least = 2 / 2**found.clusters
        few = f"{found.clusters} clusters cannot give p below {least:.3g}"
        return p, "sign flips over clusters", few if least > 0.05 else ""
    if found.se < 1e-9:
        return (1.0 if abs(found.value) < 1e-9 else float("nan")), "jackknife t", ""
    p = float(2 * sps.t.sf(abs(found.value) / found.se, found.clusters - 1))
    return p, f"jackknife t({found.clusters - 1})", ""


def mcnemar(gained: int, lost: int) -> float:
    """Exact two-sided McNemar test on the items that changed; 1 when none did."""
    changed = gained + lost
    return float(sps.binomtest(gained, changed).pvalue) if changed else 1.0


def sign_flip(first: Cells, second: Cells, statistic: Statistic, seed: int = 0) -> float:
    """Two-sided p value when the names of the two systems are swapped within whole clusters.

    All swaps are tried up to 13 clusters, 9,999 random ones beyond.
    """
    size = len(first.clusters)
    if size <= EXACT:
        flips = ((np.arange(2**size)[:, None] >> np.arange(size)) & 1).astype(float)
    else:
        flips = np.random.default_rng(seed).integers(0, 2, (FLIPS, size)).astype(float)
    seen = abs(_swapped(first, second, statistic, np.zeros((1, size)))[0])
    under = np.abs(_swapped(first, second, statistic, flips))
    reached = int(np.sum(under >= seen - 1e-9))
    return reached / len(flips) if size <= EXACT else (reached + 1) / (len(flips) + 1)


def _swapped(first: Cells, second: Cells, statistic: Statistic, flips: Floats) -> Floats:
    def mixed(a: Cells, b: Cells) -> Floats:
        sums = (1 - flips) @ a.sums + flips @ b.sums
        return statistic(sums, (1 - flips) @ a.counts + flips @ b.counts)

    return mixed(second, first) - mixed(first, second)
