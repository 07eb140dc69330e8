"""08_streamarena as sections; and the report that 03_eval writes about a StreamArena run."""

from __future__ import annotations

from collections.abc import Iterator

from bench_lib import paths
from bench_lib.arena import trace_page
from bench_lib.arena.job import Arena, alone
from bench_lib.benches.arena import acts
from bench_lib.benches.arena import figures as drawn
from bench_lib.benches.arena import tables as tables_of
from bench_lib.readings import missing
from bench_lib.readings.material import MISSING, Material
from bench_lib.report import cards as cards_of
from bench_lib.report import exports, header, tables
from bench_lib.report import figures as common
from bench_lib.report.caveats import Caveat, caveats
from bench_lib.report.command import command, record_files
from bench_lib.report.sections import Cards, Listing, Page, Piece, Section, section
from bench_lib.report.tables import Cell, Row, Table
from bench_lib.report.text import plural


def runs(job: Arena) -> Section:
    """Which runs are shown, and what is still to be done."""
    title = "Runs"
    if job.absent and not job.jobs:
        return Section(title, absent=job.absent)
    rows = []
    for label, material in job.materials.items():
        done = sum(r.status not in MISSING or r.status == "refused" for r in material.responses)
        judge = material.judged.judge or "nobody yet"
        cells = (
            Cell(label),
            Cell(material.params.source),
            Cell(str(material.facts.get("model", ""))),
            Cell(judge),
            Cell(f"{done:,}", f"/ {len(material.responses):,}"),
            Cell(material.run.folder.name),
        )
        rows.append(Row(cells))
    columns = ("run", "source", "model", "judge", "done", "folder")
    pieces: list[Piece] = [Table("Runs shown", columns, tuple(rows), texts=4)]
    waiting = missing.unjudged(job.materials)
    if waiting:
        pieces.append(Listing("Runs that wait for a judge", "\n".join(waiting)))
    if job.left_out:
        pieces.append(Listing("Left out", "\n".join(job.left_out)))
    return Section(title, "", tuple(pieces))


@section("Accuracy", "Each answer is right or wrong; a proactive one must also come in time.")
def accuracy(job: Arena) -> Iterator[Piece]:
    """Figure and table."""
    yield drawn.accuracy(job.materials)
    yield tables_of.systems(job.materials, job.params.published)


@section("What the scores hang on", "The gap to the evidence, the wait, and what is asked.")
def strata(job: Arena) -> Iterator[Piece]:
    """Every stratum."""
    yield tables_of.strata(job.materials)


@section("Tools", "A right answer without a search was known, or guessed.")
def tools(job: Arena) -> Iterator[Piece]:
    """Tool accuracy and use."""
    yield acts.tools(job.materials)


@section("Proactive timing", "The first alert decides, whatever follows it.")
def timing(job: Arena) -> Iterator[Piece]:
    """Counts, then each run's cases."""
    yield acts.timings(job.materials)
    for material in job.materials.values():
        if "Pro" not in material.unsupported:
            yield drawn.timeline(material)
            yield acts.cases(material)


@section("Latency", "How long an answer takes, with the clock standing still.")
def latency(job: Arena) -> Iterator[Piece]:
    """Waits by run and capability."""
    yield acts.latency(job.materials)


def told(job: Arena) -> tuple[Caveat, ...]:
    """What applies to the runs, each once, with the runs it is about."""
    found: dict[Caveat, list[str]] = {}
    for label, material in job.materials.items():
        for one in caveats(material):
            found.setdefault(one, []).append(label)
    made = []
    for one, labels in found.items():
        everywhere = len(labels) == len(job.materials)
        text = one.text if everywhere else f"{', '.join(labels)}: {one.text}"
        made.append(Caveat(text, one.details, one.grave))
    return tuple(sorted(made, key=lambda one: not one.grave))


def of(job: Arena) -> Page:
    """The whole report of 08."""
    count = plural(len(job.materials), "run")
    sources = dict.fromkeys(m.params.source for m in job.materials.values())
    return Page(
        "StreamArena report",
        f"StreamArena: {job.params.name}",
        f"{count} on {', '.join(sources)}; alerts are scored by their {job.params.stamp} stamp",
        (
            runs(job), accuracy(job), strata(job), tools(job), timing(job), latency(job),
            *trace_page.sections(job),
        ),
        told(job),
    )  # fmt: skip


def write(job: Arena) -> Section:
    """Write the report, and every table as CSV and LaTeX."""
    if job.absent:
        return Section("Written", absent=f"Nothing. {job.absent}")
    home = paths.outputs() / f"08_streamarena-{job.params.name}"
    return exports.written(exports.save_page(of(job), home))


def report(material: Material) -> str:
    """The page of one run, as 03_eval writes it."""
    job = alone(material)
    head = header.header(material)
    changed = tuple((name, value) for name, value in head.changed)
    parts = [
        _scores(material),
        strata(job),
        tools(job),
        timing(job),
        Section(
            "What remembering takes", "", ([drawn.state(material), common.clip_times(material)],)
        ),
        Section(
            "What answering takes",
            "",
            (common.first_token(material), acts.latency(job.materials), tables.work(material)),
        ),
        *trace_page.sections(job),
        Section("A few questions up close", "", (Cards(tuple(cards_of.replies(material))),)),
        _again(material),
    ]
    if material.unread:
        parts = [_scores(material), _again(material)]
    return Page(
        "Evaluation report",
        head.title,
        head.line,
        tuple(parts),
        tuple(caveats(material)),
        tuple(header.tiles(material)),
        (*head.facts, ("Parameters that differ from their defaults", changed or (("none", ""),))),
    ).html


def _scores(material: Material) -> Section:
    if material.unread:
        return Section("Scores", absent=f"No scores: {material.unread}.")
    name = material.params.name or material.params.method
    pieces: list[Piece] = [
        drawn.accuracy({name: material}),
        tables_of.capabilities(material),
        tables_of.outcomes(material),
    ]
    waiting = missing.unjudged({name: material})
    if waiting:
        pieces.append(Listing("What judges these answers", "\n".join(waiting)))
    return Section("Scores", "", tuple(pieces))


def _again(material: Material) -> Section:
    notebook = material.manifest.get("notebook", "03_eval")
    name = material.params.name or material.params.method
    made = command(notebook, material.params, f"outputs/{notebook}-{name}.ipynb")
    kept = tuple(Row((Cell(a), Cell(b))) for a, b in record_files(material))
    note = "The same command goes on where this run stopped. Its records lie in "
    note += paths.short(material.run.folder)
    files = Table("Records", ("file", "what it holds"), kept, texts=2)
    return Section("Run it again", note, (Listing("Command", made), files))
