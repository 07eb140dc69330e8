"""The figures of a run. Each says in words what it shows, or why there is nothing to show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bench_lib.readings import times
from bench_lib.readings.material import OUTCOMES, Material
from bench_lib.report import tables
from bench_lib.report.text import clipped, duration, plural, size
from bench_lib.report.theme import INK, KINDS, MUTED, Figure, colour, draw, hours_or_less, tint

if TYPE_CHECKING:
    from matplotlib.axes import Axes

from bench_lib.report import figures as drawn

SMALL = (4.2, 3.1)
"""Inches of a figure of which three stand side by side."""
OWN_LINES = 8
"""Up to this many trajectories each line is named; beyond, their median is drawn over them."""
SPAN = 30.0
"""Seconds are drawn on a logarithmic axis where the largest is more than this times the least."""
NO_HISTORY = "no session was begun after another one, so nothing was carried over yet"
LOOKS: dict[str, dict[str, Any]] = {
    "unparsed": {"facecolor": "#c3cad2", "hatch": "////", "edgecolor": "#6b7683"},
    "refused": {"facecolor": "#d9c27a", "edgecolor": "#8a7424"},
    "error": {"facecolor": "#3a3f47"},
    "not_run": {"facecolor": "#ffffff", "edgecolor": "#9aa5b1", "linestyle": (0, (2, 1.5))},
}
"""How outcomes are drawn that say nothing about right or wrong; the others wear the capability."""


def outcomes(material: Material) -> Figure:
    """Stacked bars by task: what became of each ask, positive and negative probes apart."""
    title = "Which asks passed the gate, and how the others ended"
    groups = [
        (label, capability, len(group), group["outcome"].value_counts().to_dict())
        for label, capability, group in tables.by_task(material)
    ]
    if not groups:
        return Figure(title, absent="nothing was asked")
    present = [name for name in OUTCOMES if any(counts.get(name) for *_, counts in groups)]

    def paint(axes: Axes) -> None:
        from matplotlib.patches import Patch

        for place, (_, capability, n, counts) in enumerate(groups):
            left = 0.0
            for name in present:
                share = 100 * counts.get(name, 0) / n
                if share:
                    look = _look(name, colour(capability))
                    axes.barh(place, share, 0.7, left, linewidth=0.6, zorder=3, **look)
                left += share
            axes.text(101.2, place, f"{n:,}", va="center", fontsize=8, color=MUTED)
        axes.text(101.2, -0.9, "asks", va="center", fontsize=8, color=MUTED)
        axes.set_yticks(range(len(groups)), [label for label, *_ in groups])
        axes.set_ylim(len(groups) - 0.4, -1.3)
        axes.set_xlim(0, 100)
        axes.set_xlabel("share of the asks [%]")
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        handles = [
            Patch(label=name.replace("_", " "), linewidth=0.6, **_look(name, "#7b8794"))
            for name in present
        ]
        axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=7)

    told = [
        f"{label}: "
        + ", ".join(
            f"{counts[name]} {name.replace('_', ' ')}" for name in present if counts.get(name)
        )
        + f" of {n}"
        for label, _, n, counts in groups
    ]
    return draw(
        title,
        paint,
        "Stacked bars by task. " + "; ".join(told) + ".",
        "Solid passed, pale failed, in the colour of the capability. + and − are positive probes "
        "(INTERVENE is right) and negative probes (SILENT is right).",
        inches=(9.2, 1.25 + 0.25 * len(groups)),
    )


def _look(name: str, own: str) -> dict[str, Any]:
    if name in LOOKS:
        return LOOKS[name]
    return {"facecolor": tint(own) if name == "failed" else own}


def state_growth(material: Material) -> Figure:
    """Bytes of completed sessions at each session's begin, one line per trajectory."""
    title = "Memory of earlier sessions, as history grows"
    frame = material.stretches
    if frame.empty or not (frame["prior_s"] > 0).any():
        return Figure(title, absent=NO_HISTORY)
    if not frame["prior_bytes"].any():
        return Figure(title, absent="N/A: the method holds nothing of completed sessions")
    lines = (
        frame.groupby(["trajectory", "number"], as_index=False)[["prior_s", "prior_bytes"]]
        .max()
        .sort_values(["trajectory", "number"])
    )
    last = lines.groupby("trajectory").last()
    step, unit = _bytes_unit(float(lines["prior_bytes"].max()))
    note = "Measured when a session begins: the current session is not in it."
    if (frame.groupby("trajectory")["episode"].nunique() > 1).any():
        note += " The memory lives for one episode; shown is the largest of each session number."

    def paint(axes: Axes) -> None:
        _lines(axes, lines, "prior_s", lines["prior_bytes"] / step)
        axes.set_ylabel(f"state [{unit}]")
        axes.set_ylim(bottom=0)

    told = "; ".join(
        f"{name} reaches {size(row.prior_bytes)} after {duration(row.prior_s)} of video"
        for name, row in list(last.iterrows())[:OWN_LINES]
    )
    return draw(
        title,
        paint,
        f"Lines for {plural(len(last), 'trajectory', 'trajectories')}. {told}.",
        note,
        SMALL,
    )


def state_kinds(material: Material) -> Figure:
    """Mean bytes by kind at the begin of each session number."""
    title = "What that memory is made of"
    rows = [
        {"trajectory": r["trajectory"], "number": r["position"] + 1, "kind": kind, "bytes": count}
        for r in material.sessions
        for kind, count in {**r["prior_bytes"], "registrations": r["note_bytes"]}.items()
    ]
    frame = pd.DataFrame(rows, columns=["trajectory", "number", "kind", "bytes"])
    if not (frame["number"] > 1).any():
        return Figure(title, absent=NO_HISTORY)
    if not frame["bytes"].any():
        return Figure(title, absent="N/A: the method holds nothing of completed sessions")
    largest = frame.groupby(["trajectory", "number", "kind"], as_index=False)["bytes"].max()
    count = largest.groupby("number")["trajectory"].nunique()
    wide = largest.pivot_table(index="number", columns="kind", values="bytes", aggfunc="sum")
    wide = wide.fillna(0).div(count, axis=0)
    kinds = [kind for kind in KINDS if kind in wide and wide[kind].any()]
    step, unit = _bytes_unit(float(wide[kinds].sum(axis=1).max()))

    def paint(axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator

        bottom = np.zeros(len(wide))
        for kind in kinds:
            heights = wide[kind].to_numpy() / step
            axes.bar(
                wide.index,
                heights,
                0.72,
                bottom,
                color=KINDS[kind],
                label=kind,
                linewidth=0,
                zorder=3,
            )
            bottom = bottom + heights
        axes.set_xlabel("session, in the order fed")
        axes.set_ylabel(f"mean over trajectories [{unit}]")
        axes.grid(axis="x", visible=False)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4)

    final = wide.iloc[-1]
    told = ", ".join(f"{size(final[kind])} {kind}" for kind in kinds)
    note = "Trajectories by session: " + ", ".join(f"{i}: {n}" for i, n in list(count.items())[:10])
    note += ", ..." if len(count) > 10 else ""
    return draw(
        title,
        paint,
        f"Stacked bars by session. At session {wide.index[-1]}: {told}.",
        f"{note}.",
        SMALL,
    )


def tokens_kept(material: Material) -> Figure:
    """Visual tokens in memory as a share of all that were seen, at each session's end."""
    title = "Visual tokens still held, of all that were seen"
    frame = material.stretches[material.stretches["tokens_seen"] > 0].copy()
    if material.stretches.empty:
        return Figure(title, absent="no session was completed yet")
    if frame.empty:
        return Figure(title, absent="N/A: the memory of this method does not hold visual tokens")
    frame["fed_s"] = frame["prior_s"] + frame["duration_s"]
    frame["share"] = 100 * frame["tokens_kept"] / frame["tokens_seen"]
    lines = frame.sort_values(["trajectory", "number", "fed_s"])
    lines = lines.drop_duplicates(["trajectory", "number"], keep="last")
    last = lines.groupby("trajectory").last()

    def paint(axes: Axes) -> None:
        _lines(axes, lines, "fed_s", lines["share"])
        axes.set_ylabel("tokens kept / seen [%]")
        axes.set_ylim(0, 104)
        axes.set_xlabel(axes.get_xlabel().replace("earlier video", "video seen"))

    told = "; ".join(
        f"{name} holds {row.tokens_kept:,.0f} of {row.tokens_seen:,.0f} ({row.share:.1f} %) after "
        f"{duration(row.fed_s)}"
        for name, row in list(last.iterrows())[:OWN_LINES]
    )
    return draw(
        title, paint, f"Lines by trajectory. {told}.", "Measured at each session's end.", SMALL
    )


def clip_times(material: Material) -> Figure:
    """Seconds to take in each clip along the stream, against the clip's own length."""
    title = "Time to take in a clip, along the stream"
    args = material.facts.get("method_args", {})
    length_s = args["clip_frames"] / args["fps"] if args.get("fps") else 0.0
    places, spent = [], []
    for record in material.sessions:
        step = length_s or record["duration_s"] / max(1, len(record["clip_s"]))
        places += [record["prior_s"] + i * step for i in range(len(record["clip_s"]))]
        spent += record["clip_s"]
    if not spent:
        return Figure(title, absent="no clip was observed yet")
    step, unit = hours_or_less(max(places))
    slower = sum(seconds > length_s for seconds in spent)

    def paint(axes: Axes) -> None:
        axes.scatter(np.array(places) / step, spent, s=7, color=INK, alpha=0.35, linewidths=0)
        if length_s:
            axes.axhline(length_s, color="#b42318", linewidth=1.1, linestyle=(0, (4, 2)))
            axes.annotate(
                f"clip length {length_s:g} s",
                (1, length_s),
                (-2, 3),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                ha="right",
                fontsize=8,
                color="#b42318",
            )
        _seconds_axis(axes, "time per clip [s]", [*spent, length_s])
        axes.set_xlabel(f"place in the stream [{unit}]")

    note = "A clip above the line takes longer than it lasts: the method falls behind the stream."
    alt = (
        f"Scatter of {plural(len(spent), 'clip')}: median {duration(float(np.median(spent)))}, "
        f"95th percentile {duration(float(np.quantile(spent, 0.95)))}"
    )
    alt += f"; {slower} took longer than the {length_s:g} s they last." if length_s else "."
    return draw(title, paint, alt, note if length_s else "", marks=len(spent))


def first_token(material: Material) -> Figure:
    """Wait for the first token by length of history, in the colours of the capabilities."""
    title = "Wait for the first token, by length of history"
    frame = times.derived(material)
    if frame.empty:
        return Figure(title, absent="no ask was answered yet")
    step, unit = hours_or_less(float(frame["prefix_s"].max()))
    order = [*material.bench.capabilities, *frame["capability"].unique()]

    def paint(axes: Axes) -> None:
        for capability in dict.fromkeys(order):
            own = frame[frame["capability"] == capability]
            if len(own):
                axes.scatter(
                    own["prefix_s"] / step,
                    own["ttft_prep_s"],
                    s=14,
                    color=colour(capability),
                    alpha=0.75,
                    linewidths=0,
                    label=capability,
                )
        _seconds_axis(axes, "first token, with preparation [s]", frame["ttft_prep_s"])
        axes.set_xlabel(f"video before the cutoff [{unit}]")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, handletextpad=0.1)

    medians = frame.groupby("capability")["ttft_prep_s"].median()
    told = "; ".join(f"{name}: median {duration(value)}" for name, value in medians.items())
    return draw(title, paint, f"Scatter of {plural(len(frame), 'ask')}. {told}.", marks=len(frame))


def _lines(axes: Axes, frame: pd.DataFrame, along: str, values: pd.Series) -> None:
    """One line per trajectory over seconds of video; names where they are few, else a median."""
    step, unit = hours_or_less(float(frame[along].max()))
    groups = list(frame.assign(value=values).groupby("trajectory", sort=True))
    few = len(groups) <= OWN_LINES
    for at, (name, group) in enumerate(groups):
        shade = tint(INK, 0.95 - 0.6 * at / max(1, len(groups))) if few else "#9aa5b1"
        axes.plot(
            group[along] / step,
            group["value"],
            marker="o" if few or len(group) == 1 else None,
            markersize=3.5,
            linewidth=1.5 if few else 0.7,
            color=shade,
            alpha=1 if few else 0.5,
            label=clipped(str(name)) if few else None,
        )
    if few:
        columns = 3 if max(len(str(name)) for name, _ in groups) < 9 else 2
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns)
    else:
        middle = frame.assign(value=values).groupby("number")[[along, "value"]].median()
        axes.plot(middle[along] / step, middle["value"], color=INK, linewidth=2, label="median")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0))
    axes.set_xlabel(f"earlier video [{unit}]")


def _seconds_axis(axes: Axes, label: str, values: Iterable[float]) -> None:
    """From zero, or logarithmic (without the zeros) where values span more than `SPAN`."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    positive = [value for value in values if value > 0]
    if positive and max(positive) > SPAN * min(positive):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(bottom=0)
    axes.set_ylabel(label)


def _bytes_unit(largest: float) -> tuple[float, str]:
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if largest >= 1024**power:
            return 1024.0**power, unit
    return 1.0, "bytes"


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
