"""The score table: every task in the fixed order, asked or not, with its n and its interval.

Multiple choice is scored by accuracy. Without a judge an adaptive task has its decision balanced
accuracy; its Gated Judge score is shown as what it could be, between all 1 and all 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from bench_lib.report.data import Material
from bench_lib.report.tables import Cell, Row, Table, dash
from bench_lib.report.text import plural
from bench_lib.report.theme import colour
from bench_lib.score import adaptive, aggregate
from bench_lib.tasks import Task

NONE = Cell("N/A")
COLUMNS = (
    "task", "", "accuracy or balanced [%]", "95 % interval", "scored / asked", "trajectories",
    "spoke when right [%]", "silent when right [%]", "gate passed [%]", "gated judge",
)  # fmt: skip
NOTE = (
    "Multiple choice: accuracy. Adaptive: decision balanced accuracy, the mean of the two rates "
    "beside it; the last row pools the probes of all tasks. Unparsed replies count as wrong; "
    "refusals, errors and asks not run are missing. Intervals take whole trajectories as the unit. "
    "Gated judge scores of unjudged replies are bounds: were all of them given 1, or 5."
)


@dataclass(frozen=True)
class Found:
    """The score frames of `bench_lib.score`, each with a row per group and measure."""

    main: pd.DataFrame
    capabilities: pd.DataFrame
    decisions: pd.DataFrame
    gates: pd.DataFrame

    @classmethod
    def of(cls, material: Material) -> Found:
        """All first scores of a run."""
        data = material.scored
        return cls(
            aggregate.task_scores(data),
            aggregate.capability_scores(data),
            adaptive.decision_scores(data),
            adaptive.gate_rates(data),
        )

    def headline(self, material: Material, capability: str) -> pd.Series:
        """The one line that stands for a capability: its mean accuracy, or the pooled decisions."""
        if _adaptive(material, capability):
            return _line(self.decisions, adaptive.POOLED, "balanced accuracy")
        return _line(self.capabilities, capability)


def scores(material: Material) -> Table:
    """All scores of a run that need no judge."""
    title = "Scores by task"
    if material.unread:
        return Table(title, COLUMNS, (), absent="No scores: the source could not be read.")
    if material.scored.rows.empty:
        return Table(title, COLUMNS, (), absent="No scores: what was asked has no key.")
    found = Found.of(material)
    rows: list[Row] = []
    for capability in material.bench.capabilities:
        shade = colour(capability)
        rows.append(Row((Cell(capability),), "group", shade))
        own = [task for task in material.bench.tasks if task.capability == capability]
        rows += [Row(_task(task, found), colour=shade) for task in own]
        rows.append(Row(_capability(material, capability, found, len(own)), "mean", shade))
    return Table(title, COLUMNS, tuple(rows), NOTE, texts=2)


def _task(task: Task, found: Found) -> tuple[Cell, ...]:
    main = _line(found.main, task.code)
    head = Cell(task.code), Cell(task.name)
    if not task.adaptive:
        return (*head, *_value(main), *[NONE] * 4)
    balanced = _line(found.decisions, task.code, "balanced accuracy")
    gate = _rate(_line(found.gates, task.code), why_missing(balanced))
    return (*head, *_value(balanced), *_sides(found, task.code), gate, _judge(main))


def _capability(material: Material, capability: str, found: Found, count: int) -> tuple[Cell, ...]:
    main, headline = _line(found.capabilities, capability), found.headline(material, capability)
    if not _adaptive(material, capability):
        head = Cell("mean"), Cell(f"of {plural(count, 'task')}, equal weight")
        return (*head, *_value(headline), *[NONE] * 4)
    head = Cell("pooled"), Cell(f"probes of {plural(count, 'task')}")
    return (*head, *_value(headline), *_sides(found, adaptive.POOLED), NONE, _judge(main))


def _sides(found: Found, group: str) -> list[Cell]:
    return [
        _rate(_line(found.decisions, group, f"{side} rate"), f"no {side} probe scored")
        for side in adaptive.POLARITIES
    ]


def _adaptive(material: Material, capability: str) -> bool:
    return any(t.adaptive for t in material.bench.tasks if t.capability == capability)


def _line(frame: pd.DataFrame, group: str, measure: str = "") -> pd.Series:
    rows = frame[frame["group"] == group]
    return (rows[rows["measure"] == measure] if measure else rows).iloc[0]


def _value(line: pd.Series) -> tuple[Cell, ...]:
    """A value, its interval, its n and its trajectories; a dash with its reason for what lacks."""
    value, low, high = (float(line[name]) for name in ("value", "low", "high"))
    why = why_missing(line)
    shown = dash(why)
    if not math.isnan(value):
        shown = Cell(f"{value:.2f}", bar=value, low=_edge(low), high=_edge(high))
    return (
        shown,
        dash(why) if math.isnan(low) else Cell(f"{low:.1f} to {high:.1f}"),
        Cell(f"{line['n']:,}", f"/ {line['expected']:,}"),
        Cell(f"{line['clusters']:,}"),
    )


def _edge(value: float) -> float | None:
    return None if math.isnan(value) else value


def _rate(line: pd.Series, why: str) -> Cell:
    value = float(line["value"])
    return dash(why) if math.isnan(value) else Cell(f"{value:.2f}", f"n {line['n']:,}")


def _judge(line: pd.Series) -> Cell:
    value, low, high = (float(line[name]) for name in ("value", "bound_low", "bound_high"))
    if not math.isnan(value):
        return Cell(f"{value:.2f}")
    return dash(why_missing(line)) if math.isnan(low) else Cell(f"{low:.1f} to {high:.1f}")


def why_missing(line: pd.Series) -> str:
    """In words why a score or its interval is not there."""
    if not line["expected"]:
        return "nothing of this was asked"
    parts = [part for part in str(line["note"]).split("; ") if part not in ("", "n = 0")]
    return "; ".join(parts) or "no ask of it has an answer"
