"""06_ablations with one condition: systems as rows, scores as columns; the first one's misses."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import pandas as pd

from bench_lib.ablate.job import Ablation
from bench_lib.ablate.tables import groups, value
from bench_lib.readings.material import Material
from bench_lib.report.cells import NO_RUN, score_cell
from bench_lib.report.tables import Cell, Row, Table, dash
from bench_lib.report.text import plural
from bench_lib.report.theme import INK, MUTED, Figure, colour, sheet
from bench_lib.schema import Key
from bench_lib.score.instances import keys
from bench_lib.streammind import trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

SOON_S = 1.0
"""An agent's answer to an instruction comes within so many seconds of the video."""
TURNED_DOWN = "; the agent's record: it turned the instruction down, all its monitors were taken"


def table(job: Ablation) -> Table:
    """A row per system."""
    [condition] = job.params.conditions
    shown = groups(job)
    rows = [
        Row((Cell(system), *(score_cell(value(job, system, condition, g)) for g in shown)))
        for system in job.systems
    ]
    note = "Percent; small: the 95 % interval over trajectories, n of what was asked, G."
    return Table("Scores by system", ("system", *shown), tuple(rows), note, stacked=True)


def figure(job: Ablation) -> Figure:
    """One panel a score, a bar per system, 0 to 100."""
    title = "Every score of every system"
    [condition] = job.params.conditions
    found = {g: [value(job, s, condition, g) for s in job.systems] for g in groups(job)}
    shown = [g for g, lines in found.items() if any(_known(one) for one in lines)]
    if not shown:
        return Figure(title, absent="no run has a score yet")

    def paint(canvas: Canvas) -> None:
        first: Axes | None = None
        for at, group in enumerate(shown):
            axes = canvas.add_subplot(1, len(shown), at + 1, sharey=first)
            first = first or axes
            for place, one in enumerate(found[group]):
                _bar(axes, place, one, colour(group))
            axes.set_title(group.replace(", ", ",\n"), fontsize=9, loc="left", fontweight="bold")
            axes.set_xlim(0, 100)
            axes.set_ylim(len(job.systems) - 0.4, -0.6)
            axes.set_yticks(range(len(job.systems)), job.systems, fontsize=8)
            axes.tick_params(axis="y", length=0, labelleft=not at)
            axes.grid(axis="y", visible=False)
            axes.set_xlabel("score [%]", fontsize=8)

    told = "; ".join(
        f"{group}: "
        + ", ".join(
            f"{s} {one['value']:.0f}" if one is not None and _known(one) else f"{s} none"
            for s, one in zip(job.systems, found[group], strict=True)
        )
        for group in shown
    )
    return sheet(
        title, paint, f"Bars by system. {told}.", "", (11.0, 1.1 + 0.24 * len(job.systems))
    )


def _known(one: pd.Series | None) -> bool:
    return one is not None and not math.isnan(one["value"])


def _bar(axes: Axes, place: int, one: pd.Series | None, shade: str) -> None:
    if one is None or math.isnan(one["value"]):
        low = math.nan if one is None else float(one["bound_low"])
        if one is not None and not math.isnan(low):
            axes.barh(place, one["bound_high"] - low, 0.62, low, facecolor="none",
                      edgecolor=shade, hatch="////", linewidth=0.6)  # fmt: skip
        else:
            axes.text(1, place, "–", va="center", fontsize=8, color=MUTED)
        return
    axes.barh(place, one["value"], 0.62, color=shade, linewidth=0)
    inside = one["value"] > 80
    axes.text(one["value"] + (-2 if inside else 2), place, f"{one['value']:.0f}", va="center",
              ha="right" if inside else "left", fontsize=7.5,
              color="white" if inside else INK)  # fmt: skip


LIMITS = {
    "frames_gone": "frames that were wanted and gone",
    "monitor_skipped": "checks skipped, the one before under way",
    "memory_writer_skipped": "writer ticks skipped",
    "router_out_of_rounds": "missions out of rounds",
    "recall_out_of_rounds": "recalls out of rounds",
    "search_out_of_rounds": "searches out of rounds",
}
"""Counters that say that a limit was met, whether or not it cost an answer."""


def limits(job: Ablation) -> Table:
    """How often each system met a limit, by its counters."""
    title = "Limits that were met"
    counts: dict[str, Counter[str]] = {}
    for system in job.systems:
        material = job.found.get((system, job.params.conditions[0]))
        if material is not None:
            counts[system] = Counter()
            for own in (*(r["counters"] for r in material.sessions),
                        *(r.counters for r in material.responses)):  # fmt: skip
                counts[system].update({name: own[name] for name in LIMITS if name in own})
    shown = [name for name in LIMITS if any(found[name] for found in counts.values())]
    if not shown:
        return Table(title, (), (), absent="No counter says that a limit was met.")
    rows = tuple(
        Row((Cell(system), *(Cell(f"{found[name]:,}") for name in shown)))
        for system, found in counts.items()
    )
    note = (
        "A limit that is met need not cost an answer: what is gone as a frame may stand in words."
    )
    return Table(title, ("system", *(LIMITS[name] for name in shown)), rows, note)


def misses(job: Ablation) -> Table:
    """What the first system got wrong, and which of the others get it right."""
    first, others = job.systems[0], job.systems[1:]
    condition = job.params.conditions[0]
    title = f"Each miss of {first}, and who gets it right"
    base = job.found.get((first, condition))
    if base is None:
        return Table(title, (), (), absent=f"{title}: {NO_RUN}.")
    own = right(base)
    wrong = [key for key, value in own.items() if value == 0]
    lacking = sum(math.isnan(value) for value in own.values())
    rest = f" {plural(lacking, 'ask has', 'asks have')} no score." if lacking else ""
    if not wrong:
        done = len(own) - lacking
        return Table(title, (), (), absent=f"{first} missed none of {done:,} scored asks.{rest}")
    known = {s: right(m) for s in others if (m := job.found.get((s, condition))) is not None}
    tasks = {r.key: r.task for r in base.responses}
    turned_down = _turned_down(base)
    rows = []
    for key in wrong:
        good = [s for s, values in known.items() if values.get(key) == 1]
        cells = (
            Cell(key[1] if key[2] == "q" else f"{key[1]}, {key[2]}"),
            Cell(tasks[key]),
            Cell(_why(base, key) + (TURNED_DOWN if key[:2] in turned_down else "")),
            Cell(", ".join(good)) if good else dash("none of the systems that have run"),
        )
        rows.append(Row(cells, colour=colour(base.bench.task(tasks[key]).capability)))
    note = (
        f"{len(wrong):,} of {len(own) - lacking:,} scored asks.{rest} A system that differs in one"
    )
    note += " limit and is right lays the miss to that limit."
    columns = ("ask", "task", "what happened", f"right with ({condition.replace('_', ' ')})")
    return Table(title, columns, tuple(rows), note, texts=4)


def _turned_down(material: Material) -> set[tuple[str, str]]:
    """Trajectory and candidate of instructions turned down because all monitors were taken."""
    found = set()
    for name in trace.traced(material.run):
        entries, _ = trace.memory(material.run, name)
        refused = [e for e in entries if e.kind == "monitor" and e.body["what"] == "refused"]
        for (_, candidate, _), (trajectory, ask) in material.asks.items():
            watches = trajectory.id == name and material.bench.task(ask.candidate.task).watches
            if watches and any(abs(e.recorded_s - ask.probe.t_s) < SOON_S for e in refused):
                found.add((name, candidate))
    return found


def right(material: Material) -> dict[Key, float]:
    """1, 0 or NaN of each ask: the answer, or the decision of an adaptive one."""
    rows = material.scored.rows
    values = material.bench.right(rows)
    return dict(zip(keys(rows), values.astype(float), strict=True))


def _why(material: Material, key: Key) -> str:
    response = next(r for r in material.responses if r.key == key)
    rows = material.scored.rows
    if "timing" in rows:
        one = rows[[own == key for own in keys(rows)]].iloc[0]
        if one["timing"] not in ("", "on time"):
            return "no alert" if one["timing"] == "none" else f"the alert was {one['timing']}"
    said = response.text or response.option or response.decision or response.error
    return f"said: {said}" if said else response.status
