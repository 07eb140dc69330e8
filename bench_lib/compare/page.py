"""09_compare as sections: in the notebook one by one, in the report one below the other."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from bench_lib import paths
from bench_lib.compare import figures, repeats, tables
from bench_lib.compare.job import Comparison
from bench_lib.files import write_whole
from bench_lib.readings import missing
from bench_lib.report import exports
from bench_lib.report.caveats import Caveat
from bench_lib.report.sections import Listing, Page, Piece, Section, section
from bench_lib.report.tables import Cell, Row, Table
from bench_lib.report.text import plural
from bench_lib.score import compare


@section("What is compared", "Every run with what sets its numbers apart from published ones.")
def systems(job: Comparison) -> Iterator[Piece]:
    """The runs."""
    yield tables.systems(job)


@section("Main scores")
def main(job: Comparison) -> Iterator[Piece]:
    """Capabilities and overall."""
    yield tables.main(job)


@section("Tasks", "In the papers' fixed order, on fixed axes.")
def tasks(job: Comparison) -> Iterator[Piece]:
    """Bars, radars and the table of the twelve tasks."""
    yield figures.bars(job)
    yield figures.radar(job)
    yield tables.tasks(job)


@section("Differences", "Runs share probes, so they are compared as pairs.")
def differences(job: Comparison) -> Iterator[Piece]:
    """Paired differences from the reference; what another seed changes."""
    yield tables.differences(job)
    yield repeats.repeats(job)


@section("Score, wait and storage")
def costs(job: Comparison) -> Iterator[Piece]:
    """The bubble chart and its numbers."""
    yield figures.bubbles(job)
    yield tables.costs(job)


@section("Failures by kind")
def failed(job: Comparison) -> Iterator[Piece]:
    """Replies that could not be used."""
    yield tables.failed(job)


@section("Settings that differ")
def settings(job: Comparison) -> Iterator[Piece]:
    """Parameters and versions."""
    yield tables.settings(job)


def commands(job: Comparison) -> Section:
    """What is still missing for the papers' tables, as commands."""
    title = "Commands that are still missing"
    rows = missing.wanted(job.materials)
    needed = [one for one in rows if one.command and not one.run]
    text = "\n\n".join(f"# {one.row}\n{one.command}" for one in needed)
    note = "SOURCE, FOLDER and URL are yours: the data and the server. Models are named as in "
    note += "table 5 of the paper; give the id or the folder that you have."
    heading = f"{len(needed)} of {plural(len(rows), 'row')} of APM-Bench's main tables"
    pieces: list[Piece] = [Listing(heading, text or "none", note)]
    cannot = tuple(Row((Cell(one.row), Cell(one.cannot))) for one in rows if one.cannot)
    if cannot:
        pieces.append(Table("Rows without a method here", ("row", "why"), cannot, texts=2))
    judges = missing.unjudged(job.materials)
    if judges:
        pieces.append(Listing("Runs that wait for a judge", "\n".join(judges)))
    if job.absent:
        pieces.insert(0, Listing("A first comparison on a laptop", missing.demo()))
    return Section(title, "", tuple(pieces))


def caveats(job: Comparison) -> tuple[Caveat, ...]:
    """What a reader must know first: mixed code, mixed data, what was left out, alarms."""
    found = []
    codes = {code for own in job.revisions.values() for code in own}
    if len(codes) > 1:
        text = (
            f"The answers were given by {len(codes)} versions of the code: "
            f"{', '.join(sorted(codes))}."
        )
        found.append(Caveat(text, grave=True))
    marked = [label for label in job.materials if job.marks(label)]
    if marked:
        which = f"{len(marked)} of {plural(len(job.materials), 'run')}"
        found.append(Caveat(f"{which} cannot be held against published numbers (marked †)."))
    sources = {m.params.source for m in job.materials.values()}
    if len(sources) > 1:
        found.append(Caveat(f"The runs are about different data: {', '.join(sorted(sources))}."))
    judges = {m.judged.judge for m in job.materials.values() if m.judged.judge}
    if len(judges) > 1:
        found.append(Caveat(f"The runs had different judges: {', '.join(sorted(judges))}."))
    if job.left_out:
        text = f"{plural(len(job.left_out), 'run')} could not be read: left out."
        found.append(Caveat(text, job.left_out, grave=True))
    for label, data in job.runs.items():
        told = compare.alarms(data)
        if told:
            found.append(Caveat(f"{label}:", tuple(told)))
    return tuple(found)


def warnings(job: Comparison) -> Section:
    """The caveats for the notebook."""
    title = "Before reading the numbers"
    if job.absent:
        return Section(title, absent=job.absent)
    rows = tuple(Row((Cell(one.text), Cell("; ".join(one.details)))) for one in caveats(job))
    if not rows:
        return Section(title, absent="Nothing sets these runs apart.")
    return Section(title, "", (Table(title, ("", "details"), rows, texts=2),))


def of(job: Comparison) -> Page:
    """The whole report."""
    return Page(
        "Comparison",
        f"Comparison: {job.params.name}",
        tables.told(job),
        (
            systems(job), main(job), tasks(job), differences(job), costs(job), failed(job),
            settings(job), commands(job),
        ),
        caveats(job),
    )  # fmt: skip


def write(job: Comparison) -> Section:
    """Write the report, and every table as CSV and LaTeX."""
    if job.absent:
        return Section("Written", absent=f"Nothing. {job.absent}")
    home = paths.outputs() / f"09_compare-{job.params.name}"
    files = exports.save_page(of(job), home)
    return exports.written([*files, (_long(job, home / "all-scores.csv"), "every score")])


def _long(job: Comparison, path: Path) -> Path:
    """Every score at full precision, with its system, its marks, n, G and interval."""
    frame = job.scores.copy()
    frame.insert(2, "not_comparable", [
        "; ".join(job.marks(system)) if origin == "run" else ""
        for system, origin in zip(frame["system"], frame["origin"], strict=True)
    ])  # fmt: skip
    text = frame.to_csv(index=False, quoting=csv.QUOTE_MINIMAL, lineterminator="\n")
    return write_whole(path, text)
