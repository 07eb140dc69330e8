"""From material to one HTML file that opens with no network, and to fragments for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bench_lib import paths
from bench_lib.files import write_whole as write
from bench_lib.readings.judged import metrics
from bench_lib.readings.material import Material
from bench_lib.report import analysis, analysis_tables, header, tables
from bench_lib.report import cards as cards_of
from bench_lib.report import figures as drawn
from bench_lib.report.caveats import caveats
from bench_lib.report.command import command
from bench_lib.report.frames import Picture
from bench_lib.report.score_table import scores
from bench_lib.report.tables import Table
from bench_lib.report.theme import COLOURS, Figure


class Fragment:
    """A piece of a report that a notebook shows; it carries its own style."""

    def __init__(self, name: str, html: str) -> None:
        self.name, self.html = name, html

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return f"<{self.name}>"


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


def memory_figures(material: Material) -> list[Figure]:
    """What the memory holds, in three figures."""
    return [
        drawn.state_growth(material),
        drawn.state_kinds(material),
        drawn.tokens_kept(material),
    ]


def time_figures(material: Material) -> list[Figure]:
    """What time went into, in two figures."""
    return [drawn.clip_times(material), drawn.first_token(material)]


def record_files(material: Material) -> list[tuple[str, str]]:
    """The files of the run folder and what they hold."""
    known = {
        "manifest.json": "parameters, versions, one entry per process",
        "responses.*.jsonl": "one line per ask: raw reply, status, decision, timings, counters",
        "sessions.*.jsonl": "one line per fed session: state bytes, clip times, counters",
        "verdicts.*.jsonl": "one line per judged reply: score, checks, justification, raw reply",
        "repeats.*.jsonl": "one line per ask that was put a second time",
        "calls.*.jsonl": "one line per call of an agent's worker: what it saw, what it said",
        "memory.*.jsonl": "one line per video: the agent's memory at its end",
        "metrics.json": "scores with their n",
        "states": "saved memories",
    }
    return [(name, what) for name, what in known.items() if any(material.run.folder.glob(name))]


def table(made: Table) -> Fragment:
    """A table for a notebook."""
    return _fragment(made.title, "table", made=made)


def figures(made: Sequence[Figure]) -> Fragment:
    """Figures for a notebook."""
    return _fragment("figures: " + ", ".join(f.title for f in made), "figures", made=made)


def cards(made: Sequence[cards_of.Card]) -> Fragment:
    """Cards for a notebook."""
    return _fragment(f"{len(made)} cards", "cards", made=made)


def strip(made: Sequence[Picture]) -> Fragment:
    """A row of frames for a notebook."""
    return _fragment(f"{len(made)} frames", "strip", made=made)


def joined(parts: Sequence[Fragment]) -> Fragment:
    """Fragments one below the other."""
    return Fragment(", ".join(p.name for p in parts), "".join(p.html for p in parts))


def _fragment(name: str, macro: str, made: Any) -> Fragment:
    return Fragment(name, template("fragment.html").render(macro=macro, made=made))


@cache
def _environment() -> Environment:
    here = Path(__file__).parent
    environment = Environment(
        loader=FileSystemLoader(here),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["style"] = Markup((here / "style.css").read_text(encoding="utf-8"))
    environment.globals["capabilities"] = dict(COLOURS)
    return environment


def template(name: str) -> Any:
    """A template of this folder."""
    return _environment().get_template(name)
