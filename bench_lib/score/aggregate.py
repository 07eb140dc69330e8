"""Main scores of APM-Bench: accuracy, Gated Judge (Eq. 1), capability means, overall.

Multiple choice: accuracy per task. Adaptive: mean over candidates of s_c, the mean of the two
polarity means of g (a failed gate is 0, a passed one the judge's 1 to 5), times 20. A capability is
the plain mean of its tasks and the overall score the plain mean of the capabilities; both are
given only when every task of them has a score.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from bench_lib.score.cells import Cells, Statistic, grouped, macro, pooled, scaled
from bench_lib.score.instances import Instances
from bench_lib.score.stats import Estimate, estimate
from bench_lib.score.strata import BINS, NAMES, binned, check
from bench_lib.score.table import line, refusals_pct, table
from bench_lib.tasks import Task

OVERALL = "Overall"
GATED = "gated judge"
ACCURACY = "accuracy"
LOWEST, HIGHEST = 1.0, 5.0


def task_scores(data: Instances) -> pd.DataFrame:
    """A row per task of the benchmark in its order; percent."""
    cells, bounds = _all_cells(data)
    rows = []
    for task in _scored_tasks(data):
        own = _rows(data, task)
        found = estimate(cells.only(task.code), scaled(macro, 100))
        rows.append(
            line(
                task.code,
                GATED if task.adaptive else ACCURACY,
                found,
                len(own),
                "mean over candidates (Eq. 1)" if task.adaptive else "mean over questions",
                n=_scored(own),
                clusters=_clusters(own),
                refused_pct=refusals_pct(own),
                bounds=_bounds(own, bounds, [task.code], scaled(macro, 100)),
                note=_note(own, task, found),
            )
        )
    return table(rows)


def capability_scores(data: Instances) -> pd.DataFrame:
    """A row per capability and one for the overall score; percent."""
    cells, bounds = _all_cells(data)
    tasks = _scored_tasks(data)
    groups = [[t for t in tasks if t.capability == name] for name in data.bench.capabilities]
    groups = [group for group in groups if group]
    rows = []
    for name, group in [*((g[0].capability, g) for g in groups), (OVERALL, tasks)]:
        codes = [task.code for task in group]
        if name == OVERALL:
            places = [[codes.index(t.code) for t in part] for part in groups]
            statistic, how = scaled(grouped(places), 100), "mean over capabilities"
        else:
            statistic, how = scaled(macro, 100), "mean over tasks"
        own = pd.concat([_rows(data, task) for task in group])
        found = estimate(cells.only(*codes), statistic)
        rows.append(
            line(
                name,
                "score",
                found,
                len(own),
                how,
                n=_scored(own),
                clusters=_clusters(own),
                refused_pct=refusals_pct(own),
                bounds=_bounds(own, bounds, codes, statistic),
                note=_missing(own),
            )
        )
    return table(rows)


def pooled_scores(data: Instances) -> pd.DataFrame:
    """A row per capability: the plain mean over its items, whatever their task; percent.

    For strata, in which few tasks have items in every cell. Not the capability score of a report.
    """
    names = {task.code: task.capability for task in _scored_tasks(data)}
    guesses = (None, LOWEST, HIGHEST) if data.rows["unjudged"].any() else (None,)
    cells = []
    for guess in guesses:
        items = main_items(data, guess)
        items = items.assign(capability=items["task"].map(names))
        cells.append(Cells.of(items, "value", "capability", names=data.bench.capabilities))
    eligible = pd.concat([data.choice, data.adaptive])
    percent, rows = scaled(pooled, 100), []
    for name in data.bench.capabilities:
        own = eligible[eligible["capability"] == name]
        found = estimate(cells[0].only(name), percent)
        rows.append(
            line(
                name,
                "score",
                found,
                len(own),
                "mean over questions and candidates",
                n=_scored(own),
                clusters=_clusters(own),
                refused_pct=refusals_pct(own),
                bounds=_bounds(own, (cells[1], cells[2]) if cells[1:] else None, [name], percent),
                note=_missing(own),
            )
        )
    return table(rows)


def main_items(data: Instances, unjudged: float | None = None) -> pd.DataFrame:
    """Items of the main scores with a `value` of 0 to 1: questions, and candidates with s_c / 5.

    `unjudged` stands in for the judge where it gave no score. A candidate is left out when one of
    its polarities has no scored probe at all: the mean of the other alone would be another score.
    """
    choice = data.choice[["trajectory", "task", "candidate", "correct"]]
    choice = choice[choice["correct"].notna()].rename(columns={"correct": "value"})
    rows = data.adaptive
    rows = rows[rows["polarity"].notna()]
    g = rows["g"] if unjudged is None else rows["g"].mask(rows["unjudged"], unjudged)
    keys = ["trajectory", "task", "candidate"]
    sides = rows.assign(g=g).groupby([*keys, "polarity"], sort=False, observed=True)["g"].mean()
    means = sides.groupby(keys, sort=False, observed=True).agg(["mean", "count", "size"])
    whole = means[means["count"] == means["size"]]
    gated = (whole["mean"] / 5).rename("value").reset_index()
    return pd.concat([choice, gated], ignore_index=True)


def split(
    data: Instances, by: str, score: Callable[[Instances], pd.DataFrame] = task_scores
) -> pd.DataFrame:
    """Any score table in each stratum (`bench_lib.score.strata.STRATA`), empty ones included."""
    strata = binned(data.rows[check(by)], by)
    names = list(BINS[by][1]) if by in BINS else list(NAMES.get(by, ()))
    names = names or sorted(map(str, strata.dropna().unique()))
    parts = [(name, data.where(strata == name)) for name in names]
    unknown = data.where(strata.isna())
    if len(unknown.rows):
        parts.append(("unknown", unknown))
    if not parts:
        return score(data).iloc[:0].assign(stratum=[])
    tables = [score(part).assign(stratum=name) for name, part in parts]
    return pd.concat(tables, ignore_index=True)


def _scored_tasks(data: Instances) -> list[Task]:
    return [task for task in data.bench.tasks if task.reply != "free"]


def _all_cells(data: Instances) -> tuple[Cells, tuple[Cells, Cells] | None]:
    """Cells of the tasks and, where probes are unjudged, those of both bounds."""
    names = [task.code for task in _scored_tasks(data)]

    def cells(unjudged: float | None = None) -> Cells:
        return Cells.of(main_items(data, unjudged), "value", "task", names=names)

    if not data.rows["unjudged"].any():
        return cells(), None
    return cells(), (cells(LOWEST), cells(HIGHEST))


def _rows(data: Instances, task: Task) -> pd.DataFrame:
    source = data.adaptive if task.adaptive else data.choice
    return source[source["task"] == task.code]


def _scored(rows: pd.DataFrame) -> int:
    return int((rows["scored"] & rows["passed"].notna() & ~rows["unjudged"]).sum())


def _clusters(rows: pd.DataFrame) -> int:
    return int(rows.loc[rows["scored"] & rows["passed"].notna(), "trajectory"].nunique())


def _bounds(
    rows: pd.DataFrame,
    cells: tuple[Cells, Cells] | None,
    codes: list[str],
    statistic: Statistic,
) -> tuple[float, float] | None:
    if cells is None or not rows["unjudged"].any():
        return None
    low, high = (part.only(*codes).value(statistic) for part in cells)
    return low, high


def _missing(rows: pd.DataFrame) -> str:
    """What is not in a score, by reason."""
    counts = rows.loc[~rows["scored"], "status"].value_counts()
    parts = [f"{count} {str(name).replace('_', ' ')}" for name, count in counts.items()]
    unjudged = int(rows["unjudged"].sum())
    if unjudged:
        parts.append(f"{unjudged} unjudged: bounds for 1 and 5")
    return ", ".join(parts)


def _note(rows: pd.DataFrame, task: Task, found: Estimate) -> str:
    parts = [_missing(rows)]
    if rows.empty:
        parts.append("not asked")
    elif task.adaptive:
        polarities = rows.groupby(["trajectory", "candidate"], observed=True)["polarity"].nunique()
        single = int((polarities == 1).sum())
        if single:
            parts.append(f"{single} of {len(polarities)} candidates have one polarity")
        unknown = int(rows["polarity"].isna().sum())
        if unknown:
            parts.append(f"{unknown} probes without polarity left out")
        left = len(polarities) - found.n - int((polarities == 0).sum())
        if left and not rows["unjudged"].any():
            parts.append(f"{left} candidates left out: a polarity without a scored probe")
    return "; ".join(part for part in parts if part)
