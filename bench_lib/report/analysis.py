"""The analyses of one run: in its report, and in 04_judge where a judge has its say in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench_lib.readings.material import Material
from bench_lib.report import analysis_tables as tables
from bench_lib.report import moment_tables as moments
from bench_lib.report.tables import Table
from bench_lib.report.theme import Figure, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAR = "#7b8794"


def of(material: Material) -> Sequence[Table]:
    """All tables of the analyses, in the order in which they are shown."""
    return (
        tables.splits(material),
        moments.placements(material),
        moments.hourly(material),
        moments.leak(material),
        moments.again(material),
    )


def format_failures(material: Material) -> Figure:
    """Unreadable replies against the length of history: bars with intervals and n."""
    title = "Unreadable replies, as history grows"
    absent = tables.nothing(material)
    if absent:
        return Figure(title, absent=absent)
    found = tables.unreadable(material.scored)
    if not found["n"].any():
        return Figure(title, absent="no reply was scored")
    top = max(5.0, float(found[["rate", "high"]].max().max()) * 1.25)

    def paint(axes: Axes) -> None:
        for place, one in found.iterrows():
            at = float(place)  # type: ignore[arg-type]
            if one["n"]:
                axes.bar(at, one["rate"], 0.6, color=BAR, zorder=3)
                if one["low"] == one["low"]:
                    axes.plot([at, at], [one["low"], one["high"]], color="#3a3f47", zorder=4)
            axes.text(at, top * 0.97, f"n {one['n']:,}", ha="center", va="top", fontsize=7.5)
        axes.set_xticks(range(len(found)), list(found["history"]), fontsize=8)
        axes.set_ylim(0, min(100.0, top))
        axes.set_ylabel("unparsed [%]")
        axes.set_xlabel("video before the cutoff")
        axes.grid(axis="x", visible=False)

    told = "; ".join(
        f"{one['history']}: {one['rate']:.1f} % of {one['n']}"
        if one["n"]
        else f"{one['history']}: none"
        for _, one in found.iterrows()
    )
    note = "Of scored replies. Lines are 95 % intervals over trajectories, where there is one."
    return draw(title, paint, f"Bars by length of history. {told}.", note, (6.4, 2.6))
