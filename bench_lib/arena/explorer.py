"""Stepping through an agent's calls in JupyterLab: a question or a worker, then its calls in order.

What is shown is drawn as in the report; there the same calls stand one below the other.
"""

from __future__ import annotations

from typing import Any

from bench_lib.arena.job import Arena
from bench_lib.benches.arena.story import WORKERS, Story
from bench_lib.report.kit import template
from bench_lib.report.sections import Section

EVERY = "every call of the "


def show(job: Arena) -> Any:
    """The explorer of the run, video and question that the parameters choose."""
    title = "Any call"
    if job.absent:
        return Section(title, absent=job.absent)
    story = job.story
    if story.absent:
        return Section(title, absent=story.absent)
    return of(story)


def choices(story: Story) -> dict[str, list[dict[str, Any]]]:
    """Calls by what they can be chosen by: each question that has some, then each worker."""
    found = {}
    for candidate in story.candidates:
        said = candidate.registration.text if candidate.registration else candidate.question
        name = f"{candidate.probes[0].t_s:g} s, {candidate.task}: {said}"
        found[name] = story.of_question(candidate)
    for worker in WORKERS:
        found[EVERY + worker] = [c for c in story.calls if c["worker"] == worker]
    return {name: calls for name, calls in found.items() if calls}


def of(story: Story) -> Any:
    """The widgets: what is chosen, a slider over its calls, and the call."""
    import ipywidgets as widgets

    known = choices(story)
    chosen = widgets.Dropdown(options=list(known), description="calls of")
    chosen.layout.width = "100%"
    place = widgets.IntSlider(min=1, max=1, description="call", continuous_update=False)
    view = widgets.HTML()

    def draw(_: Any = None) -> None:
        calls = known[chosen.value]
        pieces = tuple(story.exchanges([calls[min(place.value, len(calls)) - 1]]))
        made = Section(f"Call {place.value} of {len(calls)}", "", pieces)
        view.value = str(template("section.html").render(section=made))

    def choose(_: Any = None) -> None:
        place.max = len(known[chosen.value])
        place.value = 1
        draw()

    chosen.observe(choose, names="value")
    place.observe(draw, names="value")
    choose()
    return widgets.VBox([chosen, place, view])
