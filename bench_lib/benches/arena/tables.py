"""Tables of StreamArena's runs: accuracy, what it hangs on, what became of each question."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from bench_lib.benches.arena.scores import arena_scores
from bench_lib.readings.found import line
from bench_lib.readings.material import Material
from bench_lib.report.cells import score_cell
from bench_lib.report.score_table import value_cells
from bench_lib.report.tables import Cell, Row, Table, dash
from bench_lib.report.text import reach
from bench_lib.report.theme import colour
from bench_lib.schema import Verdict
from bench_lib.score import aggregate, compare, published
from bench_lib.tasks import REACTIVE

Runs = Mapping[str, Material]
INTAKE = {
    "incremental": "continuous ingestion",
    "window": "recent window",
    "thinned": "query-triggered replay",
}
N_A = "N/A: the method does not support it"
SMALL = "Small: 95 % interval over videos where there is one, scored of asked, G videos."


def codes(material: Material) -> list[str]:
    """Codes of the capabilities, then the pooled reactive ones."""
    return [*(task.code for task in material.bench.tasks), REACTIVE]


def capabilities(material: Material) -> Table:
    """The scores of one run, a row per capability."""
    title = "Accuracy by capability"
    if material.unread:
        return Table(title, (), (), absent=f"No scores: {material.unread}.")
    found, rows = material.found.capabilities, []
    names = {task.code: task.name for task in material.bench.tasks}
    for code in codes(material):
        one = line(found, code)
        kind = "mean" if code == REACTIVE else "plain"
        low, high = float(one["bound_low"]), float(one["bound_high"])
        bounds = Cell("") if math.isnan(low) else Cell(reach(low, high))
        label = "RTP, HR and Tool together" if code == REACTIVE else names[code]
        shown = "pooled" if code == REACTIVE else code
        cells = (Cell(shown), Cell(label), *value_cells(one), bounds)
        rows.append(Row(cells, kind, colour(code)))
    columns = ("", "", "accuracy [%]", "95 % interval", "scored / asked", "videos",
               "bounds while unjudged")  # fmt: skip
    note = (
        "The share of questions whose answer the judge accepts (Eq. 1). A proactive case counts "
        f"only if its first alert comes in time too (Eq. 2 and 9), by its {material.stamp} stamp. "
        "What a method does not support is N/A; refusals count as wrong; errors and asks not run "
        "are missing. "
        "While answers are unjudged no score is given: bounds as if all were wrong, or right."
    )
    return Table(title, columns, tuple(rows), note, texts=2)


def systems(runs: Runs, paper: Sequence[str] = ()) -> Table:
    """All runs beside each other and beside rows of the paper."""
    rows = []
    for label, material in runs.items():
        cells = [_line(material, code) for code in codes(material)]
        rows.append(Row((Cell(label, _how(material)), *cells)))
    for (name, variant), own in _paper(paper).items():
        cells = [Cell(f"{own[c]:.1f}") if c in own else dash("not printed") for c in _ALL]
        shown = Cell(
            published.method_name(name, "streamarena"),
            "as printed" + (f", {variant}" if variant else ""),
        )
        rows.append(Row((shown, *cells), "mean"))
    note = (
        f"Percent. {SMALL} How the stream is taken in and whether frames are read with later ones "
    )
    note += "stand below each name. A printed row is about the paper's data, not about these."
    columns = ("", "RTP", "HR", "Tool", "Pro", "reactive, pooled")
    return Table("Accuracy by capability", columns, tuple(rows), note, stacked=True)


_ALL = ("RTP", "HR", "Tool", "Pro", REACTIVE)


def _paper(wanted: Sequence[str]) -> dict[tuple[str, str], dict[str, float]]:
    found: dict[tuple[str, str], dict[str, float]] = {}
    for _, one in compare.beside({}, wanted, "streamarena").iterrows():
        name, _, variant = str(one["system"]).partition("/")
        found.setdefault((name, variant), {})[str(one["group"])] = float(one["value"])
    return found


def _how(material: Material) -> str:
    facts = material.facts
    attention = "causal" if facts.get("causal", True) else "not causal"
    return f"{INTAKE.get(str(facts.get('input_class')), 'not recorded')}, {attention}"


def _line(material: Material, code: str) -> Cell:
    one = line(material.found.capabilities, code)
    if code in material.unsupported:
        return Cell("N/A", why=N_A)
    return score_cell(one)


STRATA = (
    ("HR by gap", "gap", ("HR",)),
    ("Pro by waiting time", "wait", ("Pro",)),
    ("HR by reasoning pattern", "pattern", ("HR",)),
    ("HR by pieces of evidence", "segments", ("HR",)),
    ("By domain", "domain", ("RTP", "HR", "Tool", "Pro")),
    ("By subdomain", "subdomain", ("RTP", "HR", "Tool", "Pro")),
    ("By language", "language", ("RTP", "HR", "Tool", "Pro")),
)


def strata(runs: Runs) -> Table:
    """Every run by what makes a question hard; a column per run."""
    rows: list[Row] = []
    for title, by, tasks in STRATA:
        parts = {label: _split(material, by, tasks) for label, material in runs.items()}
        names = list(dict.fromkeys(key for part in parts.values() for key in part))
        if not names:
            continue
        rows.append(Row((Cell(title),), "group", colour(tasks[0] if len(tasks) == 1 else "")))
        for name in names:
            stratum, code = name
            cells = [_stratum(runs[x], code, parts[x].get(name)) for x in runs]
            label = stratum.replace("_", " ") + (f" · {code}" if len(tasks) > 1 else "")
            rows.append(Row((Cell(label), *cells), colour=colour(code)))
    note = f"Percent. {SMALL} The gap is from the end of the latest evidence to the question, the "
    note += "wait from the instruction to the due time."
    return Table("Accuracy by stratum", ("", *runs), tuple(rows), note, stacked=len(runs) > 3)


def _stratum(material: Material, code: str, one: pd.Series | None) -> Cell:
    if code in material.unsupported:
        return Cell("N/A", why=N_A)
    return dash("nothing was asked") if one is None else score_cell(one)


def _split(material: Material, by: str, tasks: Sequence[str]) -> dict[tuple[str, str], pd.Series]:
    """The line of each stratum and task in which anything was asked."""
    data = material.scored
    data = data.where(data.rows["task"].isin(tasks) & ~data.rows["task"].isin(material.unsupported))
    if data.rows.empty:
        return {}
    frame = aggregate.split(data, by, arena_scores)
    frame = frame[frame["group"].isin(tasks) & (frame["expected"] > 0)]
    return {(str(one["stratum"]), str(one["group"])): one for _, one in frame.iterrows()}


OUTCOMES: tuple[tuple[str, Callable[[pd.DataFrame], pd.Series]], ...] = (
    ("right", lambda r: r["scored"] & (r["value"] == 1)),
    ("wrong", lambda r: _read(r) & (r["value"] == 0) & r["timing"].isin(["", "on time"])),
    ("not in time", lambda r: r["scored"] & r["timing"].isin(["premature", "late", "none"])),
    ("unparsed", lambda r: (r["status"] == "unparsed") & r["timing"].isin(["", "on time"])),
    ("unjudged", lambda r: r["unjudged"].astype(bool)),
    ("refused", lambda r: r["status"] == "refused"),
    ("error", lambda r: r["status"] == "error"),
    ("not run", lambda r: r["status"] == "not_run"),
)
"""What became of a question; each belongs to one."""


def _read(rows: pd.DataFrame) -> pd.Series:
    return rows["scored"] & ~rows["status"].isin(["unparsed", "refused"])


def outcomes(material: Material) -> Table:
    """What became of each question, by capability."""
    rows = []
    for task in material.bench.tasks:
        own = material.scored.rows[material.scored.rows["task"] == task.code]
        own = own.assign(scored=own["scored"].astype(bool))
        counts = [Cell(f"{int(is_it(own).sum()):,}") for _, is_it in OUTCOMES]
        rows.append(
            Row((Cell(task.code), Cell(f"{len(own):,}"), *counts), colour=colour(task.code))
        )
    columns = ("", "asked", *(name for name, _ in OUTCOMES))
    note = "A refusal counts as wrong; error and not run are missing. What a method does not "
    note += "support is among the refused, and N/A above."
    return Table("What became of each question", columns, tuple(rows), note)


def verdicts(material: Material, given: Sequence[Verdict]) -> Table:
    """What the judge said, by capability."""
    title = "Verdicts by capability"
    task = {r.key: r.task for r in material.responses}
    own = [(task[v.key], v.score) for v in given if v.key in task]
    if not own:
        return Table(title, (), (), absent="No verdict yet.")
    rows = []
    for one in material.bench.tasks:
        scores = [score for code, score in own if code == one.code]
        counts = [len(scores), *(sum(s == wanted for s in scores) for wanted in (1, 0, None))]
        cells = (Cell(one.code), *(Cell(f"{n:,}") for n in counts))
        rows.append(Row(cells, colour=colour(one.code)))
    note = "A proactive case is judged where its alert is on time by one of its two stamps."
    return Table(title, ("", "verdicts", "correct", "incorrect", "failed"), tuple(rows), note)


def unjudged(material: Material) -> Table:
    """Answers without a verdict, by reason."""
    rows = material.scored.rows
    rows = rows[rows["unjudged"].astype(bool)]
    title = "Answers without a verdict"
    if rows.empty:
        return Table(title, (), (), absent="None: every answer that needs a verdict has one.")
    counts = Counter(zip(rows["task"].astype(str), rows["judge_error"].astype(str), strict=True))
    made = tuple(
        Row((Cell(code), Cell(why), Cell(f"{n:,}")), colour=colour(code))
        for (code, why), n in counts.items()
    )
    note = "Missing, never 0; the same command asks for them again."
    return Table(title, ("", "reason", "answers"), made, note, texts=2)
