"""How far a judge can be trusted: corrected rates, and what length, order or another judge changes.

A judged rate is corrected by the judge's sensitivity and specificity on labelled replies (Rogan and
Gladen 1978; for language models as judges Lee et al., arXiv 2511.21140), and the interval carries
the uncertainty of all three.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats as sps

from bench_lib.schema import KEY, Verdict
from bench_lib.score import stats
from bench_lib.score.agreement import scores_of
from bench_lib.score.cells import Cells, macro
from bench_lib.score.intervals import ENOUGH, t_quantile
from bench_lib.score.stats import Estimate


@dataclass(frozen=True)
class Corrected:
    """A judged rate and what it is after correction; shares of 0 to 1."""

    judged: float
    sensitivity: float
    specificity: float
    rate: Estimate


def corrected_rate(
    judged: pd.DataFrame, labelled: pd.DataFrame, cluster: str = "trajectory"
) -> Corrected:
    """The true share of good replies behind the judged share.

    `judged` has a 0/1 column `judge`; `labelled` has `judge` and `human`, both 0/1. Sensitivity is
    the share of the replies people accept that the judge accepts too, specificity the share of the
    rejected ones that it rejects. Not defined where the judge is no better than chance.
    """
    calls = judged.assign(part="all")
    known = labelled.assign(part=labelled["human"].map({1: "good", 0: "bad"}))
    rate, good, bad = (
        stats.estimate(
            Cells.of(frame, "judge", "part", names=[part], cluster=cluster), bounds=(0, 1)
        )
        for frame, part in ((calls, "all"), (known, "good"), (known, "bad"))
    )
    sensitivity, specificity = good.value, 1 - bad.value
    gain = sensitivity + specificity - 1
    n, size = rate.n, rate.clusters
    if math.isnan(rate.value) or math.isnan(gain):
        missing = Estimate(
            math.nan, n=n, clusters=size, note="needs judged replies and labels of both kinds"
        )
        return Corrected(rate.value, sensitivity, specificity, missing)
    if gain <= 0:
        note = "the judge is no better than chance on the labels: no correction"
        return Corrected(
            rate.value, sensitivity, specificity, Estimate(math.nan, n=n, clusters=size, note=note)
        )
    value = (rate.value + specificity - 1) / gain
    inside = float(np.clip(value, 0, 1))
    parts = (_se(rate) ** 2, (1 - inside) ** 2 * _se(bad) ** 2, inside**2 * _se(good) ** 2)
    se = math.sqrt(sum(parts)) / gain
    few = min(rate.clusters, good.clusters, bad.clusters)
    half = float(t_quantile(few - 1)) * se
    low, high = (float(np.clip(edge, 0, 1)) for edge in (value - half, value + half))
    how = "delta method over rate, sensitivity and specificity"
    note = "" if 0 <= value <= 1 else f"clipped from {value:.3f}"
    found = Estimate(inside, low, high, se, n, size, how, note)
    if few < ENOUGH:
        short = f"replies or labels of one kind lie in {few} clusters, fewer than {ENOUGH}: "
        nan = math.nan
        found = Estimate(inside, nan, nan, se, n, size, "", short + "no interval")
    return Corrected(rate.value, sensitivity, specificity, found)


def _se(found: Estimate) -> float:
    """Standard error of a share, never below that of independent items with one half added."""
    share = (found.value * found.n + 0.5) / (found.n + 1)
    least = math.sqrt(share * (1 - share) / found.n)
    return least if math.isnan(found.se) else max(found.se, least)


def shift(first: Iterable[Verdict], second: Iterable[Verdict]) -> tuple[Estimate, float]:
    """Mean change of score from the first to the second verdicts, and the share that changed.

    For two judges this is their drift, for a padded or reversed variant the effect of length or
    order.
    """
    means = [
        scores_of(v).groupby(KEY, observed=True)["score"].mean().reset_index()
        for v in (first, second)
    ]
    both = means[0].merge(means[1], on=KEY, suffixes=("", "_2"))
    both = both.assign(
        change=both["score_2"] - both["score"],
        part="all",
    )
    cells = Cells.of(both, "change", "part", names=["all"])
    found = stats.estimate(cells, macro, bounds=(-4, 4))
    return found, float((both["change"] != 0).mean()) if len(both) else math.nan


def verbosity(frame: pd.DataFrame, length: str = "words", score: str = "score") -> pd.DataFrame:
    """Spearman correlation of length and score, per `task` and over all, with n.

    A correlation alone does not show a bias, long replies can be better; the padded variant does.
    """
    rows = []
    for name, group in [*frame.groupby("task", sort=False, observed=True), ("all", frame)]:
        known = group[group[length].notna() & group[score].notna()]
        varied = len(known) > 2 and known[length].nunique() > 1 and known[score].nunique() > 1
        rho = float(sps.spearmanr(known[length], known[score]).statistic) if varied else math.nan
        rows.append(
            {"group": name, "rho": rho, "n": len(known), "note": "" if varied else "no variation"}
        )
    return pd.DataFrame(rows)
