"""Agreement of two raters, and of a judge with itself; intervals take clusters as the unit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from bench_lib.schema import KEY, Verdict
from bench_lib.score import stats
from bench_lib.score.cells import Cells, Floats, Statistic
from bench_lib.score.stats import Estimate

LIKERT = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Agreement:
    """Two raters on the same items. `confusion` has the first rater's categories as rows."""

    raw: Estimate
    kappa: Estimate
    weighted: Estimate
    confusion: pd.DataFrame
    mean_difference: float

    @property
    def table(self) -> pd.DataFrame:
        """One row per measure."""
        parts = {"agreement": self.raw, "kappa": self.kappa, "weighted kappa": self.weighted}
        return pd.DataFrame([{"measure": name, **vars(found)} for name, found in parts.items()])


def agreement(
    frame: pd.DataFrame,
    first: str,
    second: str,
    cluster: str = "trajectory",
    categories: Sequence[int] = LIKERT,
) -> Agreement:
    """Raw agreement, Cohen's kappa, and kappa with quadratic weights, on rows where both rated.

    Raises:
        ValueError: a rating is none of the categories.
    """
    both = frame[frame[first].notna() & frame[second].notna()]
    place = {category: number for number, category in enumerate(categories)}
    codes = [both[column].astype(float).map(place) for column in (first, second)]
    if any(code.isna().any() for code in codes):
        raise ValueError(f"ratings must be among {list(categories)}")
    size = len(categories)
    pairs = (codes[0] * size + codes[1]).astype(int)
    names = [str(pair) for pair in range(size * size)]
    cells = Cells.of(
        both.assign(pair=pairs.astype(str), one=1.0),
        "one",
        "pair",
        names=names,
        cluster=cluster,
    )
    equal = both.assign(equal=(codes[0] == codes[1]).astype(float), part="all")
    exact = 1.0 - np.eye(size)
    distance = np.subtract.outer(np.arange(size), np.arange(size)) ** 2.0
    confusion = cells.total[0].reshape(size, size) if len(both) else np.zeros((size, size))
    return Agreement(
        raw=stats.estimate(Cells.of(equal, "equal", "part", cluster=cluster), bounds=(0, 1)),
        kappa=_over(cells, _kappa(exact)),
        weighted=_over(cells, _kappa(distance)),
        confusion=pd.DataFrame(confusion.astype(int), list(categories), list(categories)),
        mean_difference=float((both[second].astype(float) - both[first].astype(float)).mean()),
    )


def _over(cells: Cells, statistic: Statistic) -> Estimate:
    found = stats.estimate(cells, statistic, bounds=(-1, 1))
    if found.n and math.isnan(found.value):
        return replace(found, note="not defined: one category only")
    return found


def _kappa(weights: Floats) -> Statistic:
    size = len(weights)

    def statistic(sums: Floats, counts: Floats) -> Floats:
        table = sums.reshape(*sums.shape[:-1], size, size)
        table = table / table.sum(axis=(-1, -2), keepdims=True)
        chance = table.sum(axis=-1)[..., :, None] * table.sum(axis=-2)[..., None, :]
        seen, expected = ((t * weights).sum(axis=(-1, -2)) for t in (table, chance))
        empty = expected <= 0
        return np.where(empty, np.nan, 1 - seen / np.where(empty, 1.0, expected))

    return statistic


def scores_of(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Verdicts with a score as rows: trajectory, candidate, probe, judge, repeat, score."""
    rows = [(*v.key, v.judge, v.repeat, v.score) for v in verdicts if v.score is not None]
    return pd.DataFrame(rows, columns=[*KEY, "judge", "repeat", "score"])


@dataclass(frozen=True)
class SelfAgreement:
    """k verdicts on the same replies.

    `identical` is the share of replies on which all agree, `pairwise` the mean share of equal
    pairs, `spread` the mean standard deviation within a reply, in points.
    """

    replies: int
    repeats: float
    identical: float
    pairwise: float
    spread: float


def self_agreement(verdicts: Iterable[Verdict]) -> SelfAgreement:
    """Over the replies with two verdicts or more of one judge."""
    rows = scores_of(verdicts)
    groups = rows.groupby([*KEY, "judge"], observed=True)["score"]
    found = groups.agg(["size", "nunique", "std"])
    found = found[found["size"] > 1]
    if found.empty:
        nan = math.nan
        return SelfAgreement(0, nan, nan, nan, nan)
    same = groups.value_counts()
    pairs = (same * (same - 1)).groupby(level=[0, 1, 2, 3]).sum().reindex(found.index)
    return SelfAgreement(
        replies=len(found),
        repeats=float(found["size"].mean()),
        identical=float((found["nunique"] == 1).mean()),
        pairwise=float((pairs / (found["size"] * (found["size"] - 1))).mean()),
        spread=float(found["std"].mean()),
    )
