"""Reports: one HTML file per run that opens with no network, and its parts for a notebook.

`write(evaluation)` writes the file, at any moment of a run. The others return what a notebook
shows. `python -m bench_lib.report RUN` writes the report of a run folder again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench_lib.evaluate.job import Evaluation
    from bench_lib.report.render import Fragment


def write(evaluation: Evaluation) -> Path:
    """Write the report of a run to `outputs/<run folder name>.html` and say where it is."""
    from bench_lib import paths
    from bench_lib.readings import material as data
    from bench_lib.report import render

    return paths.ShownPath(render.save(data.gather(evaluation)))


def scores(evaluation: Evaluation) -> Fragment:
    """The score table: every task with its n; below it what is reached without any video."""
    from bench_lib.readings import material as data
    from bench_lib.report import analysis_tables, render
    from bench_lib.report.score_table import scores as table

    material = data.gather(evaluation)
    if material.arena:
        from bench_lib.benches.arena import tables as arena_tables

        return render.table(arena_tables.capabilities(material))
    return render.joined(
        [render.table(table(material)), render.table(analysis_tables.baselines(material))]
    )


def statuses(evaluation: Evaluation) -> Fragment:
    """What became of the asks, by task and polarity."""
    from bench_lib.readings import material as data
    from bench_lib.report import render, tables

    material = data.gather(evaluation)
    if material.arena:
        from bench_lib.benches.arena import tables as arena_tables

        return render.table(arena_tables.outcomes(material))
    return render.table(tables.statuses(material))


def show_figures(evaluation: Evaluation) -> Fragment:
    """The figures of the report."""
    from bench_lib.readings import material as data
    from bench_lib.report import figures, render

    material = data.gather(evaluation)
    if material.arena:
        from bench_lib.benches.arena import figures as arena

        name = material.params.name or material.params.method
        shown = [arena.accuracy({name: material}), arena.timeline(material)]
        costs = [arena.state(material), *render.time_figures(material)]
        return render.joined([render.figures([one]) for one in (*shown, *costs)])
    outcome = [figures.outcomes(material)]
    drawn = [*render.memory_figures(material), *render.time_figures(material)]
    return render.joined([render.figures(outcome), render.figures(drawn)])


def replies(evaluation: Evaluation) -> Fragment:
    """A few asks up close, with their replies."""
    from bench_lib.readings import material as data
    from bench_lib.report import cards, render

    return render.cards(cards.replies(data.gather(evaluation)))


def costs(evaluation: Evaluation) -> Fragment:
    """State carried from session to session, and times to an answer."""
    from bench_lib.readings import material as data
    from bench_lib.report import render, tables

    material = data.gather(evaluation)
    return render.joined(
        [
            render.figures(render.memory_figures(material)[:2]),
            render.table(tables.times(material)),
        ]
    )
