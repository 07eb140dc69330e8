"""06_ablations as sections, with its figure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bench_lib import paths
from bench_lib.ablate import single, tables
from bench_lib.ablate.job import Ablation
from bench_lib.ablate.tables import value
from bench_lib.opening import chat
from bench_lib.readings import missing
from bench_lib.readings.origins import codes
from bench_lib.report import exports
from bench_lib.report.caveats import Caveat
from bench_lib.report.sections import Listing, Page, Piece, Section, section
from bench_lib.report.text import plural
from bench_lib.report.theme import Figure, sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas
from bench_lib.report.cells import SHADES, SIGNS


def runs(job: Ablation) -> Section:
    """Which runs are there, and the commands of those that are not."""
    pieces: list[Piece] = [tables.found(job)]
    if job.missing:
        heading = f"{len(job.missing)} of {plural(len(job.wanted), 'run')} missing or not complete"
        note = "Nothing is run from this notebook. Run these, then this notebook again."
        pieces.append(Listing(heading, "\n".join(job.missing), note))
    waiting = missing.unjudged(
        {f"{system} {condition}": m for (system, condition), m in job.found.items()}
    )
    if waiting:
        pieces.append(Listing("Runs that wait for a judge", "\n".join(waiting)))
    return Section("Runs", "", tuple(pieces))


@section("Scores by condition", "The conditions share their questions; only what is fed differs.")
def scores(job: Ablation) -> Iterator[Piece]:
    """Figure and table."""
    if len(job.params.conditions) == 1:
        yield single.figure(job)
        yield single.table(job)
        return
    yield figure(job)
    yield tables.scores(job)


@section("Differences", "Paired on the same probes; Oracle less standard is the Oracle gain.")
def gains(job: Ablation) -> Iterator[Piece]:
    """Differences from the standard condition."""
    yield tables.gains(job)


@section("Misses", "What the first system got wrong, and which of the others get it right.")
def misses(job: Ablation) -> Iterator[Piece]:
    """Ask by ask."""
    yield single.misses(job)
    yield single.limits(job)


@section("Evidence availability", "Does a system know what it cannot know?")
def evidence(job: Ablation) -> Iterator[Piece]:
    """The availability table."""
    yield tables.evidence(job)


@section("What these numbers depend on")
def notes(job: Ablation) -> Iterator[Piece]:
    """Marks by run."""
    yield tables.notes(job)


def figure(job: Ablation) -> Figure:
    """One panel a score: a mark per system at each condition, 0 to 100."""
    title = "Every score at every condition"
    conditions = job.params.conditions
    data: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for group in tables.groups(job):
        for system in job.systems:
            lines = [value(job, system, c, group) for c in conditions]
            data[group, system] = [
                (math.nan,) * 3 if one is None else (one["value"], one["low"], one["high"])
                for one in lines
            ]
    shown = [g for g in tables.groups(job) if any(
        not math.isnan(v) for s in job.systems for v, _, _ in data[g, s])]  # fmt: skip
    if not shown:
        return Figure(title, absent="no run of these conditions has a score yet")

    def paint(canvas: Canvas) -> None:
        for at, group in enumerate(shown):
            axes = canvas.add_subplot(1, len(shown), at + 1)
            width = 0.5 / max(1, len(job.systems) - 1)
            for number, system in enumerate(job.systems):
                shift = (number - (len(job.systems) - 1) / 2) * width
                shade = SHADES[number % len(SHADES)]
                for place, (middle, low, high) in enumerate(data[group, system]):
                    if not math.isnan(low):
                        axes.plot([place + shift] * 2, [low, high], color=shade, linewidth=1)
                    axes.plot([place + shift], [middle], SIGNS[number % len(SIGNS)], color=shade,
                              markersize=5.5, clip_on=False, zorder=4,
                              label=system if not place else None)  # fmt: skip
            axes.set_title(group.replace(" ", "\n", 1), fontsize=9, loc="left", fontweight="bold")
            names = [c.replace("_", " ").replace(" sessions", "") for c in conditions]
            axes.set_xticks(range(len(conditions)), names, rotation=35, ha="right", fontsize=8)
            axes.set_xlim(-0.5, len(conditions) - 0.5)
            axes.set_ylim(0, 100)
            axes.set_ylabel("" if at else "score [%]")
        handles, labels = canvas.axes[0].get_legend_handles_labels()
        canvas.legend(handles, labels, loc="outside upper center", ncols=min(5, len(labels)))

    told = "; ".join(
        f"{group}, {system}: "
        + ", ".join(
            f"{c} {v:.0f}" if not math.isnan(v) else f"{c} none"
            for c, (v, _, _) in zip(conditions, data[group, system], strict=True)
        )
        for group in shown
        for system in job.systems
    )
    note = "Lines are 95 % intervals over trajectories, where there is one."
    return sheet(title, paint, f"Marks by condition. {told}.", note, (2.0 * len(shown) + 0.6, 3.4))


def of(job: Ablation) -> Page:
    """The whole report."""
    made = [scores(job), misses(job)]
    if len(job.params.conditions) > 1:
        made.insert(1, gains(job))
    if job.params.availability:
        made.append(evidence(job))
    there = f"{len(job.found)} of {plural(len(job.wanted), 'run')} there"
    return Page(
        "Ablations",
        f"Ablations: {job.params.name}",
        f"{plural(len(job.systems), 'system')} on {job.params.source}, {there}",
        (*made, runs(job), notes(job)),
        caveats(job),
    )


def caveats(job: Ablation) -> tuple[Caveat, ...]:
    """What a reader must know first."""
    made = []
    if chat.program(job.params.backbone):
        text = "The ideal observer sees perfectly what it is shown and nothing else: these scores "
        made.append(Caveat(text + "say what a protocol lets through, not what a model can do."))
    if job.left_out:
        text = f"{plural(len(job.left_out), 'run')} could not be read: left out."
        made.append(Caveat(text, job.left_out, grave=True))
    known = {code for material in job.found.values() for code in codes(material)}
    if len(known) > 1:
        text = f"The answers were given by {len(known)} versions of the code"
        made.append(Caveat(f"{text}: {', '.join(sorted(known))}.", grave=True))
    return tuple(made)


def write(job: Ablation) -> Section:
    """Write the report, and every table as CSV and LaTeX."""
    if job.absent:
        return Section("Written", absent=f"Nothing. {job.absent}")
    home = paths.outputs() / f"06_ablations-{job.params.name}"
    return exports.written(exports.save_page(of(job), home))
