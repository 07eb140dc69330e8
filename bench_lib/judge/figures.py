"""Figures of 04_judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench_lib.judge import tables
from bench_lib.readings.material import Material
from bench_lib.report.theme import MUTED, Figure, colour, draw, tint
from bench_lib.schema import Verdict
from bench_lib.score.adaptive import POLARITIES
from bench_lib.score.instances import keys
from bench_lib.tasks import AR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCORES = (5, 4, 3, 2, 1)
FAILED = "no verdict"


def distribution(material: Material, verdicts: Sequence[Verdict]) -> Figure:
    """Stacked bars: the scores given, by task and side, with what has no verdict."""
    title = "Scores that the judge gave"
    rows = material.scored.adaptive
    places = dict(zip(keys(rows), zip(rows["task"], rows["polarity"], strict=True), strict=True))
    counts: dict[tuple[str, str], Counter[int | str]] = {}
    for v in verdicts:
        task, side = places.get(v.key, (None, None))
        place = str(task), str(side)
        counts.setdefault(place, Counter())[v.score if v.score is not None else FAILED] += 1
    groups = [
        (f"{task.code} {sign}", counts[task.code, side])
        for task in tables.tasks(material)
        for side, sign in zip(POLARITIES, "+−", strict=True)
        if (task.code, side) in counts
    ]
    if not groups:
        return Figure(title, absent="no verdict yet")
    looks: dict[int | str, str] = {
        score: tint(colour(AR), (0.12, 0.3, 0.5, 0.75, 1.0)[score - 1]) for score in SCORES
    }
    looks[FAILED] = "#3a3f47"

    def paint(axes: Axes) -> None:
        from matplotlib.patches import Patch

        for at, (_, found) in enumerate(groups):
            n, left = sum(found.values()), 0.0
            for score in (*SCORES, FAILED):
                share = 100 * found.get(score, 0) / n
                face = looks[score]
                axes.barh(at, share, 0.7, left, color=face, edgecolor="#9c4d22", linewidth=0.3)
                left += share
            axes.text(101.2, at, f"{n:,}", va="center", fontsize=8, color=MUTED)
        axes.text(101.2, -0.9, "verdicts", va="center", fontsize=8, color=MUTED)
        axes.set_yticks(range(len(groups)), [label for label, _ in groups])
        axes.set_ylim(len(groups) - 0.4, -1.3)
        axes.set_xlim(0, 100)
        axes.set_xlabel("share of the verdicts [%]")
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        handles = [Patch(label=str(s), facecolor=looks[s], edgecolor="#9c4d22") for s in SCORES]
        if any(found.get(FAILED) for _, found in groups):
            handles.append(Patch(label=FAILED, facecolor=looks[FAILED]))
        axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=6)

    told = "; ".join(
        f"{label}: " + ", ".join(f"{n} x {score}" for score, n in sorted(found.items(), key=str))
        for label, found in groups
    )
    note = "Only replies that passed the gate are judged. + and − are positive and negative probes."
    alt = f"Stacked bars by task. {told}."
    return draw(title, paint, alt, note, (9.2, 1.3 + 0.27 * len(groups)))
