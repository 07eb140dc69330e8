"""08_streamarena as sections: in the notebook one by one, in the report one below the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bench_lib import paths
from bench_lib.arena.job import Arena
from bench_lib.benches.arena import acts, story_page
from bench_lib.benches.arena import figures as drawn
from bench_lib.benches.arena import tables as tables_of
from bench_lib.benches.arena.story import Story
from bench_lib.errors import BenchError
from bench_lib.readings import missing
from bench_lib.readings.material import MISSING
from bench_lib.report import exports
from bench_lib.report.caveats import Caveat, caveats
from bench_lib.report.sections import Listing, Page, Piece, Section, section
from bench_lib.report.tables import Cell, Row, Table
from bench_lib.report.text import plural


def runs(job: Arena) -> Section:
    """Which runs are shown, and what is still to be done."""
    title = "Runs"
    if job.absent and not job.jobs:
        return Section(title, absent=job.absent)
    rows = []
    for label, material in job.materials.items():
        done = sum(r.status not in MISSING for r in material.responses)
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


@section("Tools", acts.TOOLS)
def tools(job: Arena) -> Iterator[Piece]:
    """Tool accuracy and use."""
    yield acts.tools(job.materials)


@section("Proactive timing", acts.TIMING)
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


def memory(job: Arena) -> Section:
    """What the agent remembered."""
    return _told(job, story_page.memory)


def mission(job: Arena) -> Section:
    """What one question set off."""
    return _told(job, story_page.mission)


def workers(job: Arena) -> Section:
    """What each worker saw."""
    return _told(job, story_page.workers)


def _told(job: Arena, tell: Callable[[Story], Section]) -> Section:
    return tell(Story(absent=job.absent) if job.absent else job.story)


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
            *story_page.sections(job.story),
        ),
        told(job),
    )  # fmt: skip


def write(job: Arena) -> Section:
    """Write the report, and every table as CSV and LaTeX.

    Raises:
        BenchError: a run that was made here has something left undone.
    """
    undone = "; ".join(f"{one.run.folder.name}: {one.undone}" for one in job.jobs if one.undone)
    if job.absent and undone:
        raise BenchError(undone)
    if job.absent:
        return Section("Written", absent=f"Nothing. {job.absent}")
    home = paths.outputs() / f"08_streamarena-{job.params.name}"
    files = exports.save_page(of(job), home)
    if undone:
        raise BenchError(f"{undone}; report: {paths.short(files[0][0])}")
    return exports.written(files)
