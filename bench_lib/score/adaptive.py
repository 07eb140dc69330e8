"""Adaptive tasks in parts: right decisions, passed gates, quality after the gate (Eq. 3).

Balanced accuracy per task is the mean of P (positive probes answered INTERVENE; ERA's option does
not matter) and N (negative probes answered SILENT). The overall rates pool the probes of all tasks
before the two polarities are averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from bench_lib.score.cells import Cells, macro, scaled
from bench_lib.score.instances import Instances
from bench_lib.score.stats import estimate
from bench_lib.score.table import line, table

POLARITIES = ("positive", "negative")
POOLED = "All tasks, pooled"
DECISIONS = "Decisions, pooled"
"""The group of the pooled decisions where scores of several kinds stand side by side."""
AVERAGE = "Mean of tasks"
PERCENT = scaled(macro, 100)


def pooled_decisions(data: Instances) -> pd.DataFrame:
    """The pooled rows of `decision_scores` alone."""
    return decision_scores(data, by_task=False)


def decision_scores(data: Instances, by_task: bool = True) -> pd.DataFrame:
    """Positive rate, negative rate and balanced accuracy per task, then pooled; percent."""
    rows = data.adaptive
    rows = rows[rows["polarity"].notna()]
    codes, lines = _codes(data), []
    sided = Cells.of(_sided(rows), "decided", "side", names=_sides(codes))
    pooled = Cells.of(rows, "decided", "polarity", names=POLARITIES)
    expected = _sided(rows)["side"].value_counts()
    for name in [*(codes if by_task else ()), POOLED]:
        cells = pooled if name == POOLED else _named(sided, name)
        how = "pooled over tasks, " if name == POOLED else ""
        number = [
            int(
                sum(
                    expected.get(side, 0) for side in _sides(codes if name == POOLED else [name], p)
                )
            )
            for p in POLARITIES
        ]
        for polarity, count in zip(POLARITIES, number, strict=True):
            found = estimate(cells.only(polarity), PERCENT)
            lines.append(line(name, f"{polarity} rate", found, count, f"{how}mean of probes"))
        found, how = estimate(cells, PERCENT), f"{how}mean of two polarity rates"
        lines.append(line(name, "balanced accuracy", found, sum(number), how))
    return table(lines)


def gate_rates(data: Instances) -> pd.DataFrame:
    """Balanced gate pass rate per task: equals decision balanced accuracy but for ERA; percent."""
    rows = data.adaptive
    rows = rows[rows["polarity"].notna()]
    codes, lines = _codes(data), []
    cells = Cells.of(_sided(rows), "passed", "side", names=_sides(codes))
    for code in codes:
        found, count = estimate(_named(cells, code), PERCENT), int((rows["task"] == code).sum())
        lines.append(line(code, "gate pass rate", found, count, "mean of two polarity rates"))
    return table(lines)


def _sided(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(side=rows["task"].astype(str) + " " + rows["polarity"].astype(str))


def _sides(codes: Sequence[str], *polarities: str) -> list[str]:
    return [f"{code} {polarity}" for code in codes for polarity in polarities or POLARITIES]


def _named(cells: Cells, code: str) -> Cells:
    """The two cells of a task, named by polarity."""
    return replace(cells.only(*_sides([code])), names=POLARITIES)


def quality_items(data: Instances) -> pd.DataFrame:
    """Candidates with a judged probe; their `value` of 0.2 to 1 is the mean of polarity means."""
    rows = data.adaptive
    rows = rows[rows["judged"].notna() & rows["polarity"].notna()]
    keys = ["trajectory", "task", "candidate"]
    sides = rows.groupby([*keys, "polarity"], sort=False, observed=True)["judged"].mean()
    means = sides.groupby(keys, sort=False, observed=True).mean() / 5
    return means.rename("value").reset_index()


def quality_scores(data: Instances) -> pd.DataFrame:
    """Response quality after the gate (Eq. 3) per task and their plain mean, 20 to 100."""
    items = quality_items(data)
    rows, codes = data.adaptive, _codes(data)
    cells, lines = Cells.of(items, "value", "task", names=codes), []
    for code in codes:
        own = rows[rows["task"] == code]
        found = estimate(cells.only(code), PERCENT)
        parts = [_left(own, found.n), _unjudged(own)]
        note = "; ".join(part for part in parts if part)
        how = "mean over candidates with a judged probe (Eq. 3)"
        lines.append(line(code, "response quality", found, _candidates(own), how, note=note))
    found = estimate(cells, PERCENT)
    lines.append(
        line(AVERAGE, "response quality", found, _candidates(rows), "mean over tasks",
             note=_unjudged(rows))
    )  # fmt: skip
    return table(lines)


def _codes(data: Instances) -> list[str]:
    return [task.code for task in data.bench.tasks if task.adaptive]


def _candidates(rows: pd.DataFrame) -> int:
    return len(rows[["trajectory", "candidate"]].drop_duplicates())


def _left(rows: pd.DataFrame, kept: int) -> str:
    count = _candidates(rows)
    return f"{count - kept} of {count} candidates have no judged probe" if count > kept else ""


def _unjudged(rows: pd.DataFrame) -> str:
    count = int(rows["unjudged"].sum())
    return f"{count} passed probes unjudged" if count else ""
