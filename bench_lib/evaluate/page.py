"""From material to one HTML file that opens with no network, and to fragments for a notebook."""

from __future__ import annotations

from pathlib import Path

from bench_lib import paths
from bench_lib.files import write_whole as write
from bench_lib.readings.judged import metrics
from bench_lib.readings.material import Material
from bench_lib.report import analysis, analysis_tables, header, tables
from bench_lib.report import cards as cards_of
from bench_lib.report import figures as drawn
from bench_lib.report.caveats import caveats
from bench_lib.report.command import command, record_files
from bench_lib.report.figures import memory_figures, time_figures
from bench_lib.report.kit import template
from bench_lib.report.score_table import scores


def save(material: Material) -> Path:
    """Write a run's metrics.json and its report, `outputs/<run folder name>.html`, each at once."""
    if not material.unread:
        material.run.write_metrics(metrics(material))
    return write(report_path(material), page(material))


def report_path(material: Material) -> Path:
    """Where the report of a run lies."""
    return paths.outputs() / f"{material.run.folder.name}.html"


def page(material: Material) -> str:
    """The whole report as HTML."""
    if material.arena:
        from bench_lib.benches.arena import page as arena_page

        return arena_page.report(material)
    notebook = material.manifest.get("notebook", "03_eval")
    method = material.params.name or material.params.method
    return template("page.html").render(
        head=header.header(material),
        tiles=header.tiles(material),
        caveats=caveats(material),
        scores=scores(material),
        baselines=analysis_tables.baselines(material),
        analysis=analysis.of(material),
        unreadable=analysis.format_failures(material),
        outcomes=drawn.outcomes(material),
        statuses=tables.statuses(material),
        memory=memory_figures(material),
        state=tables.state(material),
        time=time_figures(material),
        times=tables.times(material),
        work=tables.work(material),
        cards=cards_of.replies(material),
        command=command(notebook, material.params, f"outputs/{notebook}-{method}.ipynb"),
        folder=paths.short(material.run.folder),
        report=paths.short(report_path(material)),
        records=record_files(material),
    )
