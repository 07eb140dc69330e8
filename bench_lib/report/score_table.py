"""The score table: every task in the fixed order, asked or not, with its n and its interval.

Multiple choice is scored by accuracy. Without a judge an adaptive task has its decision balanced
accuracy; its Gated Judge score is shown as what it could be, between all 1 and all 5.
"""

from __future__ import annotations

import math

import pandas as pd

from bench_lib.readings.found import Found, line
from bench_lib.readings.material import Material
from bench_lib.report.tables import Cell, Row, Table, dash
from bench_lib.report.text import percent, plural, reach
from bench_lib.report.theme import colour
from bench_lib.score import adaptive
from bench_lib.tasks import Task

NONE = Cell("N/A")
COLUMNS = (
    "task", "", "accuracy or balanced [%]", "95 % interval", "scored / asked", "trajectories",
    "spoke when right [%]", "silent when right [%]", "gate passed [%]", "gated judge",
)  # fmt: skip
NOTE = (
    "Multiple choice: accuracy. Adaptive: decision balanced accuracy, the mean of the two rates "
    "beside it; the last row pools the probes of all tasks. Unparsed replies count as wrong, "
    "as do refusals, whose share stands by n; errors and asks not run are missing. Intervals take "
    "whole trajectories as the unit. "
    "Gated judge: its n are probes with a failed gate or a verdict, of those asked; while replies "
    "are unjudged it is given by its bounds: were all of them given 1, or 5."
)


def scores(material: Material) -> Table:
    """All scores of a run that need no judge."""
    title = "Scores by task"
    if material.unread:
        return Table(title, COLUMNS, (), absent="No scores: the source could not be read.")
    if material.scored.rows.empty:
        return Table(title, COLUMNS, (), absent="No scores: what was asked has no key.")
    found = material.found
    rows: list[Row] = []
    for capability in material.bench.capabilities:
        shade = colour(capability)
        rows.append(Row((Cell(capability),), "group", shade))
        own = [task for task in material.bench.tasks if task.capability == capability]
        rows += [Row(_task(task, found), colour=shade) for task in own]
        rows.append(Row(_capability(material, capability, found, len(own)), "mean", shade))
    return Table(title, COLUMNS, tuple(rows), NOTE, texts=2)


def _task(task: Task, found: Found) -> tuple[Cell, ...]:
    main = line(found.main, task.code)
    head = Cell(task.code), Cell(task.name)
    if not task.adaptive:
        return (*head, *value_cells(main), *[NONE] * 4)
    balanced = line(found.decisions, task.code, "balanced accuracy")
    gate = rate_cell(line(found.gates, task.code), why_missing(balanced))
    return (*head, *value_cells(balanced), *_sides(found, task.code), gate, _judge(main))


def _capability(material: Material, capability: str, found: Found, count: int) -> tuple[Cell, ...]:
    main, headline = line(found.capabilities, capability), found.headline(capability)
    if not found.adaptive(capability):
        head = Cell("mean"), Cell(f"of {plural(count, 'task')}, equal weight")
        return (*head, *value_cells(headline), *[NONE] * 4)
    head = Cell("pooled"), Cell(f"probes of {plural(count, 'task')}")
    return (*head, *value_cells(headline), *_sides(found, adaptive.POOLED), NONE, _judge(main))


def _sides(found: Found, group: str) -> list[Cell]:
    return [
        rate_cell(line(found.decisions, group, f"{side} rate"), f"no {side} probe scored")
        for side in adaptive.POLARITIES
    ]


def value_cells(one: pd.Series) -> tuple[Cell, ...]:
    """A value, its interval, its n and its trajectories; a dash with its reason for what lacks."""
    value, low, high = (float(one[name]) for name in ("value", "low", "high"))
    why = why_missing(one)
    shown = dash(why)
    if not math.isnan(value):
        shown = Cell(percent(value), bar=value, low=_edge(low), high=_edge(high))
    return (
        shown,
        dash(_no_interval(one)) if math.isnan(low) else Cell(reach(low, high)),
        Cell(f"{one['n']:,}", f"/ {one['expected']:,}{refused(one)}"),
        Cell(f"{one['clusters']:,}"),
    )


def refused(one: pd.Series) -> str:
    """The share of refusals among what was scored, where there are any."""
    share = float(one.get("refused_pct", 0.0))
    return f", {share:.1f} % refused" if share > 0 else ""


def _no_interval(one: pd.Series) -> str:
    """The score's own note, its last part, says why it has no interval."""
    return why_missing(one) if math.isnan(one["value"]) else why_missing(one).rpartition("; ")[2]


def _edge(value: float) -> float | None:
    return None if math.isnan(value) else value


def rate_cell(one: pd.Series, why: str) -> Cell:
    value = float(one["value"])
    return dash(why) if math.isnan(value) else Cell(percent(value), f"n {one['n']:,}")


def _judge(one: pd.Series) -> Cell:
    value, low, high = (float(one[name]) for name in ("value", "bound_low", "bound_high"))
    n = f"n {one['n']:,} / {one['expected']:,}"
    if not math.isnan(value):
        return Cell(percent(value), n)
    return dash(why_missing(one)) if math.isnan(low) else Cell(reach(low, high), n)


def why_missing(one: pd.Series) -> str:
    """In words why a score or its interval is not there."""
    if not one["expected"]:
        return "nothing of this was asked"
    parts = [part for part in str(one["note"]).split("; ") if part not in ("", "n = 0")]
    return "; ".join(parts) or "no ask of it has an answer"
