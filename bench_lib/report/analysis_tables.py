"""What a run's scores hang on: distance, gap, history, and what needs no video at all."""

from __future__ import annotations

import math
from typing import cast

import pandas as pd

from bench_lib.readings.found import Found, line
from bench_lib.readings.material import Material
from bench_lib.report.cells import score_cell
from bench_lib.report.score_table import why_missing
from bench_lib.report.tables import Cell, Row, Table, dash
from bench_lib.report.text import percent
from bench_lib.report.theme import colour
from bench_lib.score import aggregate, shortcuts, stats
from bench_lib.score.adaptive import POOLED, decision_scores, pooled_decisions
from bench_lib.score.cells import Cells, macro, scaled
from bench_lib.score.instances import Instances, keys
from bench_lib.score.strata import BINS, STRATA, binned
from bench_lib.tasks import Task

DECISIONS = "Decisions"
STRATUM = {
    "distance": "Sessions back to the earliest evidence",
    "gap_h": "Time since the earliest evidence",
    "day": "Day of the earliest evidence",
    "evidence_items": "Pieces of evidence",
    "evidence_sessions": "Sessions with evidence",
    "source": "Source",
    "history_h": "Video before the question",
}
"""Names of the columns of `bench_lib.score.strata.STRATA`."""


def nothing(material: Material) -> str:
    """Why there is nothing to analyse; empty where there is something."""
    if material.unread:
        return "the source could not be read"
    return "what was asked has no key" if material.scored.rows.empty else ""


def baselines(material: Material) -> Table:
    """The run beside what is reached without any video: constant replies and learnt priors."""
    title = "Beside what needs no video"
    absent = nothing(material)
    if absent:
        return Table(title, (), (), absent=f"No baselines: {absent}.")
    data = material.scored
    asked = [task for task in data.bench.tasks if (data.rows["task"] == task.code).any()]
    owners = list(material.trajectories.values())
    made = shortcuts.shortcut_scores(owners, data.bench, keys(data.rows))
    found = cast("Found", material.found)
    own = pd.concat([found.main, found.decisions])
    rows = [Row((Cell("this run"), *_scores(own, asked)), "mean")]
    for name in shortcuts.NAMES:
        rows.append(Row((Cell(name), *_scores(made[made["shortcut"] == name], asked))))
    columns = ("", *(task.code for task in asked), DECISIONS.lower())
    note = (
        "Percent: accuracy, or decision balanced accuracy of adaptive tasks; the last column pools "
        "their probes. A run that does not pass its baseline shows nothing of memory. What a "
        "baseline learns, a letter, a length, a tree of three levels, a logistic model, it learns "
        "from the other trajectories. All of it: times, the newest frame's icons where the source "
        "names them, the captions so far, the words of question and options. The method blind, "
        "which a model answers from the question alone, is a run of its own."
    )
    return Table(title, columns, tuple(rows), note)


def _scores(frame: pd.DataFrame, tasks: list[Task]) -> list[Cell]:
    groups = [(t.code, "balanced accuracy" if t.adaptive else aggregate.ACCURACY) for t in tasks]
    cells = []
    for group, measure in [*groups, (POOLED, "balanced accuracy")]:
        found = frame[(frame["group"] == group) & (frame["measure"] == measure)]
        if found.empty or not found.iloc[0]["expected"]:
            cells.append(dash("it does not answer this task, or none was asked"))
        else:
            cells.append(_plain(found.iloc[0]))
    return cells


def _plain(one: pd.Series) -> Cell:
    if math.isnan(one["value"]):
        return dash(why_missing(one))
    return Cell(percent(one["value"]), f"n {one['n']:,}")


def splits(material: Material) -> Table:
    """Every capability by what makes a question hard to remember."""
    title = "Scores by stratum"
    absent = nothing(material)
    if absent:
        return Table(title, (), (), absent=f"No scores: {absent}.")
    data = material.scored
    shown = [
        name
        for name in data.bench.capabilities
        if data.rows["task"].isin([t.code for t in data.bench.tasks if t.capability == name]).any()
    ]
    adaptive = bool(data.rows["adaptive"].any())
    rows: list[Row] = []
    for by in STRATA:
        scores = aggregate.split(data, by, aggregate.pooled_scores)
        decided = aggregate.split(data, by, pooled_decisions)
        rows.append(Row((Cell(STRATUM[by]),), "group", colour("")))
        for stratum in dict.fromkeys(map(str, scores["stratum"])):
            part = scores[scores["stratum"] == stratum]
            cells = [score_cell(line(part, name)) for name in shown]
            if adaptive:
                part = decided[decided["stratum"] == stratum]
                cells.append(score_cell(line(part, POOLED, "balanced accuracy")))
            rows.append(Row((Cell(stratum), *cells)))
    columns = ("", *shown, *([DECISIONS.lower()] if adaptive else []))
    note = (
        "Percent, over all items of the capability whatever their task (adaptive: Eq. 1, bounds "
        "while unjudged); decisions pool their probes. Small: 95 % interval over trajectories, "
        "scored of asked, G trajectories. Strata differ in their tasks too. `scores_by_stratum.csv`"
        " beside the tables of 04_judge splits each task."
    )
    return Table(title, columns, tuple(rows), note)


def long(material: Material) -> pd.DataFrame:
    """Every score of every task and capability in every stratum, at full precision."""
    if nothing(material):
        return pd.DataFrame()
    parts = [
        aggregate.split(material.scored, by, score).assign(by=by)
        for by in STRATA
        for score in (aggregate.task_scores, aggregate.pooled_scores, decision_scores)
    ]
    found = pd.concat(parts, ignore_index=True)
    return found[["by", "stratum", *(c for c in found.columns if c not in ("by", "stratum"))]]


def unreadable(data: Instances) -> pd.DataFrame:
    """Unparsed replies by length of history: stratum, rate in percent, n, interval, clusters."""
    rows = data.rows[data.rows["scored"]]
    rows = rows.assign(
        unparsed=(rows["status"] == "unparsed").astype(float),
        bin=binned(rows["probe_history_h"], "probe_history_h").astype(object),
    )
    names = BINS["probe_history_h"][1]
    cells = Cells.of(rows, "unparsed", "bin", names=names)
    out = []
    for name in names:
        one = stats.estimate(cells.only(name), scaled(macro, 100))
        out.append((name, one.value, one.low, one.high, one.n, one.clusters))
    return pd.DataFrame(out, columns=["history", "rate", "low", "high", "n", "clusters"])
