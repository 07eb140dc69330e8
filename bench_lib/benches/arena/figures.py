"""Figures of StreamArena's runs: accuracy side by side, and when a method spoke up."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from bench_lib.benches.arena.tables import N_A, Runs
from bench_lib.readings.found import line
from bench_lib.readings.material import Material
from bench_lib.report.cells import SHADES, SIGNS
from bench_lib.report.text import clipped, plural
from bench_lib.report.theme import INK, MUTED, Figure, colour, draw, hours_or_less, sheet, tint
from bench_lib.tasks import WINDOW

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

NEAR_S = (-6.0, 8.0)
"""Seconds around the due time that the second panel shows."""
MOST = 40
"""Proactive cases that a timeline draws; the table has all."""
MARKS = {"right": "#2f8f7a", "wrong": "#c0392b", "unjudged": "#9aa5b1"}


def accuracy(runs: Runs) -> Figure:
    """Every run at every capability, with intervals; bounds where answers are unjudged."""
    title = "Accuracy by capability"
    if not runs:
        return Figure(title, absent="no run is there yet")
    codes = [task.code for task in next(iter(runs.values())).bench.tasks]
    found = {
        label: [None if c in m.unsupported else line(m.found.capabilities, c) for c in codes]
        for label, m in runs.items()
    }

    def paint(axes: Axes) -> None:
        width = (0.62 if len(runs) > 1 else 0.42) / max(1, len(runs))
        for number, (label, lines) in enumerate(found.items()):
            for at, one in enumerate(lines):
                shade = SHADES[number % len(SHADES)] if len(runs) > 1 else colour(codes[at])
                place = at + (number - (len(runs) - 1) / 2) * width
                name = label if not at else None
                _bar(axes, place, width * 0.86, one, shade, name)
        axes.set_xticks(range(len(codes)), codes)
        for text, code in zip(axes.get_xticklabels(), codes, strict=True):
            text.set_color(colour(code))
            text.set_fontweight("bold")
        axes.set_ylim(0, 100)
        axes.set_xlim(-0.55, len(codes) - 0.45)
        axes.set_ylabel("accuracy [%]")
        axes.grid(axis="x", visible=False)
        axes.tick_params(axis="x", length=0)
        if len(runs) > 1:
            axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(5, len(runs)))

    told = "; ".join(
        f"{label}: " + ", ".join(f"{c} {_said(one)}" for c, one in zip(codes, lines, strict=True))
        for label, lines in found.items()
    )
    note = "Lines: 95 % intervals over videos, where there is one. Hatched: bounds while unjudged."
    return draw(title, paint, f"Bars by capability. {told}.", note, (8.2, 3.0))


def _bar(
    axes: Axes, place: float, width: float, one: pd.Series | None, shade: str, label: str | None
) -> None:
    value = math.nan if one is None else float(one["value"])
    if one is not None and not math.isnan(value):
        axes.bar(place, value, width, color=shade, linewidth=0, zorder=2, label=label)
        if not math.isnan(one["low"]):
            axes.plot([place] * 2, [one["low"], one["high"]], color=INK, linewidth=1, zorder=3)
        axes.text(place, min(value, 96) + 1, f"{value:.0f}", ha="center", fontsize=7.5, color=INK)
        return
    axes.bar(place, 0, width, color=shade, label=label)
    if one is not None and not math.isnan(one["bound_low"]):
        low, high = one["bound_low"], one["bound_high"]
        axes.bar(place, high - low, width, low, facecolor="none", edgecolor=shade, hatch="////",
                 linewidth=0.6, zorder=2)  # fmt: skip
    else:
        told = "N/A" if one is None else "–"
        axes.text(place, 1.5, told, ha="center", fontsize=8, color=MUTED)


def _said(one: pd.Series | None) -> str:
    if one is None:
        return "N/A"
    if math.isnan(one["value"]):
        low, high = one["bound_low"], one["bound_high"]
        return "no score" if math.isnan(low) else f"{low:.0f} to {high:.0f}"
    return f"{one['value']:.0f}"


def timeline(material: Material) -> Figure:
    """Each proactive case: in its video on the left, around its due time on the right."""
    name = material.params.name or material.params.method
    title = f"Proactive cases of {name}"
    rows = material.scored.rows
    own = rows[(rows["task"] == "Pro") & rows["scored"].astype(bool)]
    if "Pro" in material.unsupported:
        return Figure(title, absent=N_A)
    if own.empty:
        return Figure(title, absent="no proactive case was scored")
    own = own.sort_values(["trajectory", "asked_s"])
    left_out, own = max(0, len(own) - MOST), own.head(MOST)
    last = own[["due_s", "observed_s", "delivered_s"]].replace(math.inf, math.nan).max().max()
    step, unit = hours_or_less(float(last))

    def paint(canvas: Canvas) -> None:
        from matplotlib.lines import Line2D

        grid = canvas.add_gridspec(1, 2, width_ratios=(1.15, 1))
        whole = canvas.add_subplot(grid[0])
        near = canvas.add_subplot(grid[1], sharey=whole)
        near.axvspan(-WINDOW.early_s, WINDOW.late_s, color="#e3efe9", zorder=0, linewidth=0)
        for place, (_, one) in enumerate(own.iterrows()):
            _case(whole, near, place, one, step)
        names = [_short(one) for _, one in own.iterrows()]
        whole.set_yticks(range(len(own)), names, fontsize=7)
        whole.set_ylim(len(own) - 0.4, -0.6)
        whole.set_xlabel(f"in the video [{unit}]")
        whole.set_xlim(left=0)
        near.set_xlim(*NEAR_S)
        near.set_xlabel("after the due time [s]")
        near.tick_params(axis="y", labelleft=False, length=0)
        near.axvline(0, color=MUTED, linewidth=0.8, linestyle=(0, (3, 2)))
        for axes in (whole, near):
            axes.grid(axis="y", visible=False)
        handles = [
            Line2D([], [], color=INK, marker=">", linestyle="", markersize=5, label="registered"),
            Line2D([], [], color=MUTED, marker="|", linestyle="", markersize=9, label="due"),
            *(
                Line2D([], [], color=shade, marker="o", linestyle="", markersize=5,
                       label=f"observed: {what}")
                for what, shade in MARKS.items()
                if what in {_judged(one) for _, one in own.iterrows()}
            ),
            Line2D([], [], color=INK, marker="D", markerfacecolor="white", linestyle="",
                   markersize=4.5, label="delivered"),
        ]  # fmt: skip
        canvas.legend(handles=handles, loc="outside upper center", ncols=6, fontsize=8)

    counts = own["timing"].value_counts()
    told = ", ".join(f"{n} {kind}" for kind, n in counts.items())
    note = "Green span: the window in which a first alert counts. Arrows: alerts beyond the panel."
    note += f" {plural(left_out, 'more case')} in the table." if left_out else ""
    alt = f"Timeline of {plural(len(own), 'proactive case')}: {told}."
    return sheet(title, paint, alt, note, (9.6, 1.3 + 0.24 * len(own)))


def _short(one: pd.Series) -> str:
    """A case's name behind the end of that of its video."""
    name, video = str(one["candidate"]), str(one["trajectory"])
    end = video if len(video) < 12 else video.rpartition("-")[2][-11:]
    return clipped(f"{end} {name.removeprefix(video).lstrip('-')}", 22)


def _judged(one: pd.Series) -> str:
    if one["unjudged"]:
        return "unjudged"
    return "right" if one["value"] == 1 else "wrong"


def _case(whole: Axes, near: Axes, place: int, one: pd.Series, step: float) -> None:
    due, seen, out = (float(one[k]) for k in ("due_s", "observed_s", "delivered_s"))
    shade = MARKS[_judged(one)]
    band = tint(colour("Pro"), 0.35)
    whole.plot([one["asked_s"] / step, due / step], [place] * 2, color=band, linewidth=3)
    whole.plot(one["asked_s"] / step, place, ">", color=INK, markersize=4.5)
    whole.plot(due / step, place, "|", color=MUTED, markersize=9, markeredgewidth=1.6)
    if not math.isfinite(seen):
        near.text(NEAR_S[1] - 0.1, place, "no alert", ha="right", va="center", fontsize=7.5,
                  color=MUTED)  # fmt: skip
        return
    whole.plot(seen / step, place, "o", color=shade, markersize=4.5, zorder=4)
    lag, late = seen - due, out - due
    if NEAR_S[0] <= lag <= NEAR_S[1]:
        end = min(late, NEAR_S[1])
        near.plot([lag, end], [place] * 2, color=shade, linewidth=1.2)
        if late <= NEAR_S[1]:
            near.plot(late, place, "D", color=shade, markerfacecolor="white", markersize=4.5)
        near.plot(lag, place, "o", color=shade, markersize=5, zorder=4)
        return
    early = lag < 0
    edge, way = (NEAR_S[0] + 0.2, "<") if early else (NEAR_S[1] - 0.2, ">")
    near.plot(edge, place, way, color=shade, markersize=5)
    near.text(edge + (0.4 if early else -0.4), place, f"{lag:+.0f} s", va="center", fontsize=7.5,
              ha="left" if early else "right", color=MUTED)  # fmt: skip


def state(material: Material) -> Figure:
    """Bytes of the memory along the video, as each question found it."""
    title = "Memory along the video"
    points = [(r.trajectory, r.cutoff_s, sum(r.state_bytes.values())) for r in material.responses
              if r.state_bytes and not material.bench.task(r.task).watches]  # fmt: skip
    if not points:
        return Figure(title, absent="no question was answered yet")
    frame = pd.DataFrame(points, columns=["trajectory", "t_s", "bytes"]).sort_values("t_s")
    step, unit = hours_or_less(float(frame["t_s"].max()))

    def paint(axes: Axes) -> None:
        groups = list(frame.groupby("trajectory", sort=True))
        for number, (name, own) in enumerate(groups):
            look = SIGNS[number % len(SIGNS)] + "-"
            axes.plot(own["t_s"] / step, own["bytes"] / 2**20, look, linewidth=1.2, markersize=3.5,
                      color=tint(INK, 0.95 - 0.6 * number / len(groups)),
                      label=clipped(str(name), 18) if len(groups) <= 8 else None)  # fmt: skip
        axes.set_xlabel(f"question in the video [{unit}]")
        axes.set_ylabel("state [MiB]")
        axes.set_ylim(bottom=0)
        if len(groups) <= 8:
            axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)

    top = float(frame["bytes"].max()) / 2**20
    alt = f"Lines of {plural(len(points), 'question')}; the largest state is {top:.2f} MiB."
    return draw(title, paint, alt, "Of the branch that answered: tensors, frames, texts.")
