"""Reports: one HTML file per run that opens with no network, and its parts for a notebook.

`write(evaluation)` writes the file, at any moment of a run. The others return what a notebook
shows. `python -m bench_lib.report RUN` writes the report of a run folder again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench_lib.evaluate.job import Evaluation
    from bench_lib.report.kit import Fragment


def write(evaluation: Evaluation) -> Path:
    """Write the report of a run to `outputs/<run folder name>.html` and say where it is."""
    from bench_lib import paths
    from bench_lib.evaluate import page
    from bench_lib.readings import material as data
    from bench_lib.report.figures import memory_figures, time_figures
    from bench_lib.report.kit import cards, figures, joined, table

    return paths.ShownPath(page.save(data.gather(evaluation)))


def scores(evaluation: Evaluation) -> Fragment:
    """The score table: every task with its n; below it what is reached without any video."""
    from bench_lib.evaluate import page as render
    from bench_lib.readings import material as data
    from bench_lib.report import analysis_tables
    from bench_lib.report.figures import memory_figures, time_figures
    from bench_lib.report.kit import cards, figures, joined, table
    from bench_lib.report.score_table import scores as table

    material = data.gather(evaluation)
    if material.arena:
        from bench_lib.benches.arena import tables as arena_tables

        return table(arena_tables.capabilities(material))
    return joined([table(table(material)), table(analysis_tables.baselines(material))])


def statuses(evaluation: Evaluation) -> Fragment:
    """What became of the asks, by task and polarity."""
    from bench_lib.evaluate import page as render
    from bench_lib.readings import material as data
    from bench_lib.report import tables
    from bench_lib.report.figures import memory_figures, time_figures
    from bench_lib.report.kit import cards, figures, joined, table

    material = data.gather(evaluation)
    if material.arena:
        from bench_lib.benches.arena import tables as arena_tables

        return table(arena_tables.outcomes(material))
    return table(tables.statuses(material))


def show_figures(evaluation: Evaluation) -> Fragment:
    """The figures of the report."""
    from bench_lib.evaluate import page as render
    from bench_lib.readings import material as data
    from bench_lib.report import figures
    from bench_lib.report.figures import memory_figures, time_figures
    from bench_lib.report.kit import cards, figures, joined, table

    material = data.gather(evaluation)
    if material.arena:
        from bench_lib.benches.arena import figures as arena

        name = material.params.name or material.params.method
        shown = [arena.accuracy({name: material}), arena.timeline(material)]
        costs = [arena.state(material), *time_figures(material)]
        return joined([figures([one]) for one in (*shown, *costs)])
    outcome = [figures.outcomes(material)]
    drawn = [*memory_figures(material), *time_figures(material)]
    return joined([figures(outcome), figures(drawn)])


def replies(evaluation: Evaluation) -> Fragment:
    """A few asks up close, with their replies."""
    from bench_lib.evaluate import page as render
    from bench_lib.readings import material as data
    from bench_lib.report import cards
    from bench_lib.report.figures import memory_figures, time_figures
    from bench_lib.report.kit import cards, figures, joined, table

    return cards(cards.replies(data.gather(evaluation)))


def costs(evaluation: Evaluation) -> Fragment:
    """State carried from session to session, and times to an answer."""
    from bench_lib.evaluate import page as render
    from bench_lib.readings import material as data
    from bench_lib.report import tables
    from bench_lib.report.figures import memory_figures, time_figures
    from bench_lib.report.kit import cards, figures, joined, table

    material = data.gather(evaluation)
    return joined(
        [
            figures(memory_figures(material)[:2]),
            table(tables.times(material)),
        ]
    )
