"""Tables of 04_judge: what the judge was asked, what it said, what follows, what went wrong."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pandas as pd

from bench_lib.readings.found import line
from bench_lib.readings.material import Material
from bench_lib.report.score_table import rate_cell, value_cells
from bench_lib.report.tables import Cell, Row, Table, dash
from bench_lib.report.text import plural, reach
from bench_lib.report.theme import colour
from bench_lib.schema import Verdict
from bench_lib.score import adaptive, failures
from bench_lib.score.aggregate import OVERALL
from bench_lib.tasks import AR, Task

NOT_ADAPTIVE = "No adaptive task was asked: there is nothing for a judge."
SIDES = (("positive", "+"), ("negative", "−"))


def tasks(material: Material) -> list[Task]:
    """The adaptive tasks of the benchmark."""
    return [task for task in material.bench.tasks if task.adaptive]


def asked(material: Material) -> bool:
    """Whether any adaptive task was asked."""
    rows = material.scored.rows
    return bool(len(rows) and rows["adaptive"].any())


def gate(material: Material) -> Table:
    """Scored replies, those that passed, and those that wait for a verdict, by task and side."""
    title = "Asks, replies and verdicts by task"
    if not asked(material):
        return Table(title, (), (), absent=NOT_ADAPTIVE)
    rows = []
    all_rows = material.scored.adaptive
    for task in tasks(material):
        for polarity, sign in SIDES:
            own = all_rows[(all_rows["task"] == task.code) & (all_rows["polarity"] == polarity)]
            rows.append(Row(_gate(f"{task.code} {sign}", own), colour=colour(AR)))
    rows.append(Row(_gate("all", all_rows), "mean", colour(AR)))
    columns = ("task", "asks", "scored", "passed", "of the scored [%]", "judged", "waiting")
    note = (
        "A positive probe (+) passes with INTERVENE (ERA: and the right option), a negative one "
        "(−) with SILENT. Refusals, errors and asks not run are not scored. Only what passed is "
        "sent to the judge; a failed gate is 0 in Eq. 1."
    )
    return Table(title, columns, tuple(rows), note)


def _gate(label: str, own: pd.DataFrame) -> tuple[Cell, ...]:
    scored = int((own["scored"] & own["passed"].notna()).sum())
    passed = int((own["passed"] == 1).sum())
    share = dash("no probe of it was scored")
    if scored:
        share = Cell(f"{100 * passed / scored:.1f}", bar=100 * passed / scored)
    counts = [len(own), scored, passed]
    waiting = int(own["unjudged"].sum())
    cells = [Cell(f"{count:,}") for count in counts]
    return (Cell(label), *cells, share, Cell(f"{passed - waiting:,}"), Cell(f"{waiting:,}"))


def scores(material: Material) -> Table:
    """Gated Judge by task, then the capabilities and the overall score."""
    title = "Scores (Eq. 1)"
    if not asked(material):
        return Table(title, (), (), absent=NOT_ADAPTIVE)
    found, shade = material.found, colour(AR)
    rows = [Row((Cell("Adaptive tasks"),), "group", shade)]
    for task in tasks(material):
        one = line(found.main, task.code)
        rows.append(Row((Cell(task.code), Cell(task.name), *_judged(one)), colour=shade))
    rows.append(Row((Cell("Capabilities and overall"),), "group", colour("")))
    for name in (*material.bench.capabilities, OVERALL):
        own = [t for t in material.bench.tasks if t.capability == name]
        what = f"mean of {plural(len(own), 'task')}" if own else "mean of the capabilities"
        kind = "mean" if name == OVERALL else "plain"
        cells = (Cell(name), Cell(what), *_judged(line(found.capabilities, name)))
        rows.append(Row(cells, kind, colour(name)))
    columns = (
        "", "", "score [%]", "95 % interval", "scored / asked", "trajectories",
        "bounds: unjudged given 1 or 5",
    )  # fmt: skip
    note = (
        "Mean over candidates of the mean of both polarities; a failed gate counts 0, a passed one "
        "its judge's score of 1 to 5, times 20. While probes are unjudged no score is given, only "
        "its bounds. Multiple-choice capabilities need no judge. A capability or the overall score "
        "is given only where every task of it has one. Trajectories are the unit of the intervals."
    )
    return Table(title, columns, tuple(rows), note, texts=2)


def _judged(one: pd.Series) -> tuple[Cell, ...]:
    low, high = float(one["bound_low"]), float(one["bound_high"])
    bounds = Cell("") if math.isnan(low) else Cell(reach(low, high))
    return (*value_cells(one), bounds)


def decisions(material: Material) -> Table:
    """Decision balanced accuracy by task and pooled."""
    title = "Balanced accuracy by task"
    if not asked(material):
        return Table(title, (), (), absent=NOT_ADAPTIVE)
    frame, rows = material.found.decisions, []
    for code in [*(t.code for t in tasks(material)), adaptive.POOLED]:
        sides = [
            rate_cell(line(frame, code, f"{side} rate"), f"no {side} probe scored")
            for side in adaptive.POLARITIES
        ]
        cells = (Cell(code), *value_cells(line(frame, code, "balanced accuracy")), *sides)
        rows.append(Row(cells, "mean" if code == adaptive.POOLED else "plain", colour(AR)))
    columns = (
        "task", "balanced accuracy [%]", "95 % interval", "scored / asked", "trajectories",
        "spoke when right [%]", "silent when right [%]",
    )  # fmt: skip
    note = (
        "The mean of the two rates beside it: 50 is what always speaking, never speaking or a coin "
        "reaches. The last row pools the probes of all tasks before the two rates are averaged."
    )
    return Table(title, columns, tuple(rows), note)


def quality(material: Material) -> Table:
    """Response quality after the gate (Eq. 3), with the pass rate that selects the replies."""
    title = "Judged replies only (Eq. 3)"
    if not asked(material):
        return Table(title, (), (), absent=NOT_ADAPTIVE)
    frame, rows = adaptive.quality_scores(material.scored), []
    for code in [*(t.code for t in tasks(material)), adaptive.AVERAGE]:
        one = line(frame, code)
        passed = Cell("")
        if code != adaptive.AVERAGE:
            passed = rate_cell(line(material.found.gates, code), "a polarity has no scored probe")
        left = Cell(str(one["note"])) if one["n"] else Cell("")
        cells = (Cell(code), *value_cells(one), passed, left)
        rows.append(Row(cells, "mean" if code == adaptive.AVERAGE else "plain", colour(AR)))
    columns = (
        "task", "quality [20 to 100]", "95 % interval", "candidates judged / asked", "trajectories",
        "gate passed [%]", "left out",
    )  # fmt: skip
    note = (
        "A system that rarely speaks is judged on the few replies it is surest of: read quality "
        "with the pass rate (mean of both polarities) beside it."
    )
    return Table(title, columns, tuple(rows), note)


def format_failures(material: Material) -> Table:
    """Unreadable replies by kind, by task."""
    title = "Replies that could not be used"
    found = failures.format_failures(material.scored)
    kinds = [name for name in failures.FAILURES if found[name].any()]
    kinds += ["other reason"] if found["other reason"].any() else []
    rows = []
    for _, one in found.iterrows():
        rate = dash("no reply to read") if math.isnan(one["rate_pct"]) else None
        cells = [
            Cell(str(one["group"])),
            Cell(f"{one['expected']:,}"),
            Cell(f"{one['scored']:,}"),
            rate or Cell(f"{one['rate_pct']:.2f}"),
            *(Cell(f"{one[name]:,}") for name in ("unparsed", *kinds, *OTHERS)),
        ]
        rows.append(Row(tuple(cells), "mean" if one["group"] == failures.ALL else "plain"))
    columns = ("task", "asks", "replies", "unparsed [%]", "unparsed", *kinds,
               *(name.replace("_", " ") for name in OTHERS))  # fmt: skip
    note = "Unparsed replies count as wrong, by reason; the last two columns are missing, not "
    note += "wrong; cut and repaired replies are among those read or unparsed."
    return Table(title, columns, tuple(rows), note)


OTHERS = ("repaired", "cut", "refused", "error", "not_run")


def judge_failures(material: Material) -> Table:
    """Passed probes without a verdict, by task and reason."""
    title = "Passed replies without a verdict"
    found = failures.judge_failures(material.scored)
    passed = int((material.scored.adaptive["passed"] == 1).sum())
    if found.empty:
        return Table(title, (), (), absent=f"None: all {passed:,} passed replies have a verdict.")
    rows = [
        Row((Cell(str(r["task"])), Cell(str(r["judge_error"])), Cell(f"{r['count']:,}")))
        for _, r in found.iterrows()
    ]
    note = f"Of {plural(passed, 'passed reply', 'passed replies')}. Missing, never 0; the same "
    note += "command asks for them again."
    return Table(title, ("task", "reason", "replies"), tuple(rows), note, texts=2)


def checks(verdicts: Sequence[Verdict]) -> Table:
    """What the judge marked in its criteria."""
    title = "What the judge marked"
    known = [v for v in verdicts if v.score is not None and v.checks]
    if not known:
        return Table(title, (), (), absent="No verdict with marks yet.")
    marks = ("pass", "partial", "fail", "not_applicable")
    names = list(dict.fromkeys(name for v in known for name in v.checks))
    rows = []
    for name in names:
        counts = Counter(v.checks.get(name, "") for v in known)
        cells = [Cell(name.replace("_", " ")), *(Cell(f"{counts[m]:,}") for m in marks)]
        rows.append(Row(tuple(cells)))
    columns = ("criterion", *(m.replace("_", " ") for m in marks))
    return Table(title, columns, tuple(rows), f"Over {plural(len(known), 'verdict')}.")
