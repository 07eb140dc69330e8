"""03_eval as sections: in the notebook one by one, in the run's report one below the other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from bench_lib import paths
from bench_lib.errors import BenchError
from bench_lib.evaluate.job import Evaluation
from bench_lib.evaluate.reading import gather
from bench_lib.files import write_whole
from bench_lib.readings.judged import metrics
from bench_lib.readings.material import Material
from bench_lib.report import cards, header, tables
from bench_lib.report.caveats import caveats
from bench_lib.report.command import command, record_files
from bench_lib.report.sections import Cards, Listing, Page, Section
from bench_lib.report.tables import Cell, Row, Table

UP_CLOSE = (
    "One of each kind that occurs, the first in task order. Options and replies are shown as "
)
UP_CLOSE += "they are."


def scores(job: Evaluation) -> Section:
    """The main scores, each with its n; and what is reached without any video."""
    return _scores(gather(job))


def outcomes(job: Evaluation) -> Section:
    """What became of the asks."""
    return _outcomes(gather(job))


def remembering(job: Evaluation) -> Section:
    """What the memory holds and takes."""
    return _remembering(gather(job))


def answering(job: Evaluation) -> Section:
    """What answers take."""
    return _answering(gather(job))


def replies(job: Evaluation) -> Section:
    """A few asks up close, with their replies."""
    return _replies(gather(job))


def write(job: Evaluation) -> Path:
    """Write metrics.json and the report of a run, at any moment of it; says where the report is."""
    return paths.ShownPath(save(gather(job)))


REPORTED = "BENCH_REPORTED"
"""Environment variable with a file that `finish` adds the report's path to, for `make eval`."""


def finish(job: Evaluation) -> Path:
    """`write`, at the end of a run.

    Raises:
        BenchError: something is left undone; the report says what, and the message where it is.
    """
    path = write(job)
    if os.environ.get(REPORTED):
        with Path(os.environ[REPORTED]).open("a", encoding="utf-8") as told:
            told.write(f"{path}\n")
    if job.undone:
        raise BenchError(f"{job.undone}; report: {paths.short(path)}")
    return path


def save(material: Material) -> Path:
    """Write a run's metrics.json and its report, `outputs/<run folder name>.html`, each at once."""
    if not material.unread:
        material.run.write_metrics(metrics(material))
    place = paths.outputs() / f"{material.run.folder.name}.html"
    return write_whole(place, of(material).html)


def of(material: Material) -> Page:
    """The whole report."""
    head = header.header(material)
    changed = head.changed or (("none", "every parameter has its default"),)
    return Page(
        "Evaluation report",
        head.title,
        head.line,
        tuple(_sections(material)),
        tuple(caveats(material)),
        tuple(header.tiles(material)),
        (*head.facts, ("Parameters that differ from their defaults", changed)),
    )


def _sections(material: Material) -> Iterator[Section]:
    yield _scores(material)
    if not (material.unread and material.bench.needs_data):
        yield _outcomes(material)
        yield Section("What the scores hang on", "", tuple(material.bench.strata(material)))
        yield from material.bench.acts(material)
        yield _remembering(material)
        yield _answering(material)
        yield _replies(material)
    files = tables.source_files(material)
    if files.rows:
        yield Section("The source's files", "", (files,))
    yield _again(material)


def _scores(material: Material) -> Section:
    absent = f"No scores: {material.unread}." if material.unread else ""
    pieces = () if absent else tuple(material.bench.scores(material))
    return Section("Scores", "", pieces, absent)


def _outcomes(material: Material) -> Section:
    return Section("What became of each ask", "", tuple(material.bench.outcomes(material)))


def _remembering(material: Material) -> Section:
    return Section("What remembering takes", "", tuple(material.bench.remembering(material)))


def _answering(material: Material) -> Section:
    return Section("What answering takes", "", tuple(material.bench.answering(material)))


def _replies(material: Material) -> Section:
    made = Cards(tuple(cards.replies(material)))
    return Section("A few asks up close", UP_CLOSE, (made,))


def _again(material: Material) -> Section:
    notebook = material.manifest.get("notebook", "03_eval")
    made = command(notebook, material.params, f"outputs/{notebook}-{material.label}.ipynb")
    kept = tuple(Row((Cell(a), Cell(b))) for a, b in record_files(material))
    folder = material.run.folder
    note = "The same command goes on where this run stopped. Its records lie in "
    note += f"{paths.short(folder)}; python -m bench_lib report {folder.name} writes this page "
    note += "again from them."
    files = Table("Records", ("file", "what it holds"), kept, texts=2)
    return Section("Run it again", note, (Listing("Command", made), files))
