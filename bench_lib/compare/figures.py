"""Figures of 09_compare: one panel a system, the tasks in their fixed order, axes from 0 to 100."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench_lib.compare.job import Comparison
from bench_lib.compare.tables import cost_of, dagger, score
from bench_lib.readings.origins import apart
from bench_lib.report.text import size
from bench_lib.report.theme import INK, MUTED, Figure, colour, draw, sheet, tint
from bench_lib.score.aggregate import OVERALL
from bench_lib.tasks import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

PANELS = 12
"""Systems that are drawn; the tables hold all."""
ACROSS = 3
MARK = "#111820"


@dataclass(frozen=True)
class Scores:
    """Task scores of a system, NaN where it has none; bounds where it is unjudged."""

    name: str
    tasks: tuple[Task, ...]
    published: bool
    values: list[float]
    low: list[float]
    high: list[float]
    bounds: list[tuple[float, float]]

    @property
    def codes(self) -> list[str]:
        """Codes of the tasks, in order."""
        return [task.code for task in self.tasks]

    @property
    def shades(self) -> list[str]:
        """The colour of each task's capability."""
        return [colour(task.capability) for task in self.tasks]


def scores_of(job: Comparison, system: str, origin: str) -> Scores:
    """The task scores of a system."""
    tasks = job.bench.tasks
    rows = [score(job, system, task.code) for task in tasks]

    def column(name: str) -> list[float]:
        return [math.nan if one is None else float(one[name]) for one in rows]

    ends = list(zip(column("bound_low"), column("bound_high"), strict=True))
    shown = job.shown(system, origin) + dagger(job, system, origin)
    published = origin == "published"
    return Scores(shown, tasks, published, column("value"), column("low"), column("high"), ends)


def _panels(job: Comparison) -> tuple[list[Scores], Scores, str]:
    """What is drawn, the reference, and what is said below."""
    drawn = [scores_of(job, *pair) for pair in job.systems[:PANELS]]
    reference = scores_of(job, job.reference, "run")
    note = f"The reference, {reference.name}, is drawn in black in every panel."
    if any(s.name.endswith("†") for s in drawn):
        note += " † not comparable with published rows."
    if len(job.systems) > PANELS:
        note += f" {len(job.systems) - PANELS} more systems are in the tables."
    return drawn, reference, note


def _alt(kind: str, drawn: Sequence[Scores]) -> str:
    told = [
        f"{s.name}: "
        + ", ".join(
            f"{code} {value:.0f}" if not math.isnan(value) else f"{code} none"
            for code, value in zip(s.codes, s.values, strict=True)
        )
        for s in drawn
    ]
    return f"{kind}, one panel a system. " + ". ".join(told) + "."


def bars(job: Comparison) -> Figure:
    """Bars of the tasks with intervals; the reference as a black line over each."""
    drawn, reference, note = _panels(job)
    deep = math.ceil(len(drawn) / ACROSS)

    def paint(canvas: Canvas) -> None:
        for at, one in enumerate(drawn):
            axes = canvas.add_subplot(deep, ACROSS, at + 1)
            _bars(axes, one, reference, labelled=at % ACROSS == 0)

    note += " Whiskers are 95 % intervals over trajectories; hatched spans are bounds of scores "
    note += "that wait for a judge; a dash is no score."
    alt = _alt("Bars by task", drawn)
    return sheet("Bars", paint, alt, note, (11.0, 2.35 * deep + 0.2))


def _bars(axes: Axes, one: Scores, reference: Scores, labelled: bool) -> None:
    places = np.arange(len(one.codes))
    for at, value in enumerate(one.values):
        low, high = one.bounds[at]
        if not math.isnan(value):
            face = tint(one.shades[at], 0.45) if one.published else one.shades[at]
            axes.bar(at, value, 0.74, color=face, linewidth=0, zorder=2)
            if not math.isnan(one.low[at]):
                ends = [[value - one.low[at]], [one.high[at] - value]]
                axes.errorbar(at, value, ends, color="#39434d", linewidth=0.8, zorder=3)
        elif not math.isnan(low):
            axes.bar(at, high - low, 0.74, low, facecolor="none", edgecolor=one.shades[at],
                     hatch="////", linewidth=0.6, zorder=2)  # fmt: skip
        else:
            axes.text(at, 2, "–", ha="center", color=MUTED, fontsize=9)
    if one.name != reference.name:
        known = [at for at, v in enumerate(reference.values) if not math.isnan(v)]
        heights = [reference.values[at] for at in known]
        axes.hlines(heights, np.array(known) - 0.46, np.array(known) + 0.46, color=MARK,
                    linewidth=1.5, zorder=4)  # fmt: skip
    axes.set_title(one.name, fontsize=9.5, loc="left", fontweight="bold")
    axes.set_xticks(places, one.codes, rotation=60, fontsize=7.5)
    for label, shade in zip(axes.get_xticklabels(), one.shades, strict=True):
        label.set_color(shade)
    axes.set_ylim(0, 100)
    axes.set_xlim(-0.6, len(one.codes) - 0.4)
    axes.grid(axis="x", visible=False)
    axes.tick_params(axis="x", length=0, pad=1)
    axes.set_ylabel("score [%]" if labelled else "")


def radar(job: Comparison) -> Figure:
    """The same as radars."""
    drawn, reference, note = _panels(job)
    across = 4
    deep = math.ceil(len(drawn) / across)
    angles = np.linspace(0, 2 * np.pi, len(reference.codes), endpoint=False)

    def paint(canvas: Canvas) -> None:
        for at, one in enumerate(drawn):
            axes = canvas.add_subplot(deep, across, at + 1, projection="polar")
            axes.set_theta_offset(np.pi / 2)  # type: ignore[attr-defined]
            axes.set_theta_direction(-1)  # type: ignore[attr-defined]
            if one.name != reference.name:
                _ring(axes, angles, reference.values, MARK, 1.1, fill=False)
            shade = "#8d7b2a" if one.published else INK if one.name == reference.name else "#7d4a9e"
            _ring(axes, angles, one.values, shade, 1.6, fill=True)
            axes.set_ylim(0, 100)
            axes.set_rlabel_position(15)  # type: ignore[attr-defined]
            axes.set_yticks([25, 50, 75, 100], ["", "50", "", ""], fontsize=6.5, color=MUTED)
            axes.set_xticks(angles, one.codes, fontsize=7.5)
            for label, own in zip(axes.get_xticklabels(), one.shades, strict=True):
                label.set_color(own)
            axes.tick_params(axis="x", pad=-2)
            axes.spines["polar"].set_color("#c5ccd3")
            axes.set_title(one.name, fontsize=9, fontweight="bold", pad=10)

    note += " From the centre, 0, to the rim, 100 %; lines break where a task has no score."
    alt = _alt("Radars of the tasks", drawn)
    return sheet("Radars", paint, alt, note, (11.0, 2.9 * deep))


def _ring(
    axes: Axes, angles: np.ndarray, values: list[float], shade: str, width: float, fill: bool
) -> None:
    closed = np.array([*values, values[0]])
    around = np.array([*angles, angles[0]])
    axes.plot(around, closed, color=shade, linewidth=width, zorder=3, marker="o", markersize=2)
    if fill and not np.isnan(closed).any():
        axes.fill(around, closed, color=shade, alpha=0.16, linewidth=0)


def bubbles(job: Comparison) -> Figure:
    """Overall score against the wait for the first token; the area grows with storage."""
    title = "Utility, latency, storage"
    points, absent = [], []
    for system, origin in job.systems:
        one, cost = score(job, system, OVERALL), cost_of(job, system, origin)
        name = job.shown(system, origin) + dagger(job, system, origin)
        value = math.nan if one is None else float(one["value"])
        if math.isnan(value) or math.isnan(cost["ttft_s"]):
            absent.append(f"{name} ({'no overall score' if math.isnan(value) else 'no wait'})")
            continue
        points.append((name, cost["ttft_s"], value, cost["bytes_per_hour"], origin))
    below = f"Not drawn: {', '.join(absent)}." if absent else ""
    if not points:
        return Figure(title, absent=f"no system has both an overall score and a wait. {below}")
    known = [p[3] for p in points if not math.isnan(p[3]) and p[3] > 0]

    def paint(axes: Axes) -> None:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        taken: list[tuple[float, float]] = []
        for name, wait, value, stored, origin in sorted(points, key=lambda p: -p[2]):
            shade = "#8d7b2a" if origin == "published" else "#3566a8"
            area = _area(stored, known)
            hollow = math.isnan(stored) or not stored
            axes.scatter([wait], [value], s=area, facecolors="none" if hollow else shade,
                         edgecolors=shade, alpha=0.6, linewidths=1.2, zorder=3)  # fmt: skip
            told = "" if hollow else f"\n{size(stored)}/h"
            shift = math.sqrt(area) / 2 + 3
            place = math.log10(wait), value
            near = sum(abs(x - place[0]) < 0.8 and abs(y - place[1]) < 7 for x, y in taken)
            taken.append(place)
            axes.annotate(name + told, (wait, value), (shift, -19 * near),
                          textcoords="offset points", fontsize=7.5, va="center",
                          color=INK)  # fmt: skip
        low, high = min(p[1] for p in points), max(p[1] for p in points)
        axes.set_xlim(low / 2.5, high * 6)
        axes.set_ylim(-9, 112)
        axes.set_yticks(range(0, 101, 20))
        axes.set_xlabel("first token with preparation, mean [s]")
        axes.set_ylabel("overall score [%]")

    told = "; ".join(
        f"{n}: {v:.1f} % after {w:.3g} s"
        + (f", {size(b)} an hour" if not math.isnan(b) else ", storage not given")
        for n, w, v, b, _ in points
    )
    note = "The area grows with the logarithm of storage per hour of video; a ring stores nothing "
    note += f"or is not given. Blue: runs, ochre: published. {below} {apart(job.materials)}"
    return draw(title, paint, f"Bubbles. {told}.", note.rstrip(), (8.6, 4.6))


def _area(stored: float, known: list[float]) -> float:
    if math.isnan(stored) or stored <= 0:
        return 45.0
    low, high = math.log10(min(known)), math.log10(max(known))
    share = (math.log10(stored) - low) / (high - low) if high > low else 0.5
    return 60 + 840 * share
