"""Tables of 06_ablations."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from bench_lib.ablate.job import AVAILABILITY, ORIGINAL, STANDARD, Ablation
from bench_lib.compare.job import marks
from bench_lib.readings.found import line
from bench_lib.report.cells import NO_RUN, score_cell
from bench_lib.report.tables import Cell, Row, Table, dash
from bench_lib.report.text import plural
from bench_lib.report.theme import colour
from bench_lib.schema import SCORABLE
from bench_lib.score import availability, compare, paired, stats
from bench_lib.score.adaptive import DECISIONS, POOLED
from bench_lib.score.aggregate import OVERALL
from bench_lib.score.instances import Instances
from bench_lib.tasks import AR, CSU, RTP


def groups(job: Ablation) -> tuple[str, ...]:
    """The scores that are shown: those of the benchmark that the runs are about."""
    return job.bench.groups


def found(job: Ablation) -> Table:
    """Which runs are there."""
    rows = []
    columns = list(dict.fromkeys(condition for _, condition in job.wanted))
    for system in job.systems:
        cells = []
        for condition in columns:
            material = job.found.get((system, condition))
            if material is None:
                cells.append(dash(NO_RUN))
                continue
            done = sum(r.status in SCORABLE for r in material.responses)
            digest = material.run.folder.name.rpartition("-")[2]
            cells.append(Cell(digest, f"{done:,} / {len(material.responses):,}"))
        rows.append(Row((Cell(system), *cells)))
    note = "Digest of the run's folder, replies and asks. A run counts when every parameter that "
    note += "identifies it is as asked; library versions may differ."
    shown = tuple(name.replace("_", " ") for name in columns)
    return Table("Runs by condition", ("system", *shown), tuple(rows), note)


def value(job: Ablation, system: str, condition: str, group: str) -> pd.Series | None:
    """The line of a score; None without a run."""
    material = job.found.get((system, condition))
    if material is None:
        return None
    if group == DECISIONS:
        return line(material.found.decisions, POOLED, "balanced accuracy")
    return line(material.found.capabilities, group)


def scores(job: Ablation) -> Table:
    """Every score by condition, and the spread over systems below it."""
    rows = []
    for group in groups(job):
        shade = colour(AR if group == DECISIONS else group)
        rows.append(Row((Cell(group),), "group", shade))
        for system in job.systems:
            cells = [score_cell(value(job, system, c, group)) for c in job.params.conditions]
            rows.append(Row((Cell(system), *cells), colour=shade))
        spread = [_spread(job, condition, group) for condition in job.params.conditions]
        rows.append(Row((Cell("spread over systems"), *spread), "mean", shade))
    note = (
        "Percent; small: the 95 % interval over trajectories, n of what was asked, G trajectories. "
        "The spread is the population standard deviation, in points, of the systems that have a "
        "score. Adaptive Response and Overall need a judge (04_judge)."
    )
    columns = ("system", *(c.replace("_", " ") for c in job.params.conditions))
    return Table("Scores by condition", columns, tuple(rows), note)


def _spread(job: Ablation, condition: str, group: str) -> Cell:
    lines = [value(job, system, condition, group) for system in job.systems]
    known = [float(one["value"]) for one in lines if one is not None]
    known = [number for number in known if not math.isnan(number)]
    if len(known) < 2:
        return dash(f"needs two systems with a score, has {len(known)}")
    return Cell(f"{stats.population_sd(known):.2f}", f"{len(known)} systems")


def gains(job: Ablation) -> Table:
    """Each condition less the standard one, per system, on shared probes."""
    title = "Differences from the standard condition"
    others = [c for c in job.params.conditions if c != STANDARD]
    if STANDARD not in job.params.conditions or not others:
        absent = "Needs the standard condition and another one."
        return Table(title, (), (), absent=absent)
    parts, lacking = [], []
    for system in job.systems:
        base = job.scored(system, STANDARD)
        for condition in others:
            own = job.scored(system, condition)
            if base is None or own is None:
                lacking.append(f"{system}, {condition.replace('_', ' ')}")
                continue
            made = compare.differences(
                {STANDARD: base, condition: own}, STANDARD, [CSU, RTP, AR, OVERALL]
            )
            parts.append(made.assign(owner=system))
    if not parts:
        return Table(title, (), (), absent="No system has both a standard run and another one.")
    frame = pd.concat(parts, ignore_index=True)
    frame["p_holm"] = stats.holm(frame["p"].astype(float))
    rows = tuple(_gain(one) for _, one in frame.iterrows())
    columns = ("system", "condition", "score", "difference [points]", "95 % interval", "p",
               "p, Holm", "items", "G", "left out")  # fmt: skip
    note = "Oracle less standard is the Oracle gain. Pairs of the same probes; Holm adjusts over "
    note += "all rows of this table."
    if lacking:
        note += f" No run yet for: {'; '.join(lacking)}."
    return Table(title, columns, rows, note, texts=3)


def _gain(one: pd.Series) -> Row:
    why = str(one["note"]) or "n = 0: no item is scored in both"
    between = dash(why)
    if not math.isnan(one["low"]):
        between = Cell(f"{one['low']:+.1f} to {one['high']:+.1f}")

    def number(name: str, form: str) -> Cell:
        return dash(why) if math.isnan(one[name]) else Cell(form.format(one[name]))

    cells = (
        Cell(str(one["owner"])),
        Cell(str(one["system"]).replace("_", " ")),
        Cell(str(one["group"])),
        number("value", "{:+.2f}"),
        between,
        number("p", "{:.3f}"),
        number("p_holm", "{:.3f}"),
        Cell(f"{one['n']:,}"),
        Cell(f"{one['clusters']:,}"),
        Cell(f"{one['left_out']:,}", why=str(one["note"])),
    )
    return Row(cells, colour=colour(str(one["group"])))


MEASURES = ("original accuracy", "available accuracy", "unavailable detection", "balanced accuracy")


def evidence(job: Ablation) -> Table:
    """Does a system know when its evidence is out of reach?"""
    title = "Evidence availability"
    if not job.params.availability:
        return Table(title, (), (), absent="Not asked for: parameter availability is empty.")
    rows = []
    for system in job.systems:
        data, original = job.scored(system, AVAILABILITY), job.scored(system, ORIGINAL)
        if data is None:
            rows.append(Row((Cell(system), *[dash(NO_RUN)] * 5)))
            continue
        frame = availability.availability_scores(data, original)
        lines: Mapping[str, pd.Series] = {str(one["measure"]): one for _, one in frame.iterrows()}
        cells = [score_cell(lines.get(measure)) for measure in MEASURES]
        rows.append(Row((Cell(system), *cells, _loss(data, original))))
    k = job.params.recent
    note = (
        f"Only the {plural(k, 'newest completed session')} may be used, and a fifth option says "
        "that the evidence is out of reach: half of the questions have all theirs within, half "
        "none. Original: the same questions with all sessions and four options. The difference is "
        "paired on the questions whose evidence is available. Guessing the fifth option always "
        "gives 50 balanced."
    )
    columns = ("system", *MEASURES, "available less original [points]")
    return Table(title, columns, tuple(rows), note)


def _loss(data: Instances, original: Instances | None) -> Cell:
    if original is None:
        return dash("no run of the original questions yet")
    first = original.choice.assign(question=original.choice["candidate"], part="all")
    rows = data.rows[data.rows["availability"] == "available"]
    second = rows.assign(question=rows["source_candidate"], part="all")
    seen = paired.compare(first, second, "correct", "part", ["question"])
    if math.isnan(seen.value):
        return dash(seen.note)
    between = ""
    if not math.isnan(seen.low):
        between = f"[{100 * seen.low:+.1f}, {100 * seen.high:+.1f}] "
    return Cell(f"{100 * seen.value:+.2f}", f"{between}n {seen.n}, G {seen.clusters}")


def notes(job: Ablation) -> Table:
    """What sets the runs apart from the papers'."""
    rows = []
    for (system, condition), material in job.found.items():
        told = "; ".join(marks(material)) or "nothing"
        rows.append(Row((Cell(system), Cell(condition.replace("_", " ")), Cell(told))))
    return Table("What sets these numbers apart from published ones",
                 ("system", "condition", "marks"), tuple(rows), texts=3)  # fmt: skip
