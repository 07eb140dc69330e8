"""An agent's memory in pictures: its events and monitors along the video, its entity graph."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bench_lib.benches.arena.story import Story
from bench_lib.report.text import clipped, duration, plural
from bench_lib.report.theme import INK, MUTED, Figure, colour, draw, hours_or_less, tint
from bench_lib.streammind.bank import Entity, Relation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVELS = (
    ("super", "supers", "#4a4e8f"),
    ("macro", "macros", "#5b7fb5"),
    ("micro", "micros", "#9cb7d4"),
)
"""Levels of events, where the bank holds them, and their shade."""
NODES, EDGES = 24, 36
TYPES = {"person": "#b5552c", "object": "#4668ad", "place": "#2f8f7a", "group": "#8a6d1f"}


def events(story: Story) -> Figure:
    """Events by level, key frames, monitors with their alerts, and the questions."""
    title = "Memory and monitors along the video"
    if not story.entries:
        return Figure(title, absent="no memory was kept")
    bank = story.bank
    last_s = max(e.end_s for e in story.entries)
    step, unit = hours_or_less(last_s)
    watches = _watches(story, last_s)
    lanes = [*(name for name, _, _ in LEVELS), "key frames", *watches, "questions"]
    known = right(story)

    def paint(axes: Axes) -> None:
        for lane, (_, attribute, shade) in enumerate(LEVELS):
            for at, event in enumerate(getattr(bank, attribute).values()):
                _span(
                    axes, lane, event.start_s, event.end_s, step, tint(shade, 1 - 0.45 * (at % 2))
                )
        kept = [e.start_s / step for e in story.entries if e.kind == "frame"]
        axes.plot(kept, [len(LEVELS)] * len(kept), "|", color=INK, markersize=7, alpha=0.6)
        for lane, (start_s, end_s, alerts) in enumerate(watches.values(), len(LEVELS) + 1):
            _span(axes, lane, start_s, end_s, step, tint(colour("Pro"), 0.4), 0.34)
            axes.plot([t / step for t in alerts], [lane] * len(alerts), "D", color=colour("Pro"),
                      markersize=4)  # fmt: skip
        for candidate in story.candidates:
            t_s, own = candidate.probes[0].t_s / step, colour(candidate.task)
            face = own if known.get(candidate.id, math.nan) == 1 else "white"
            axes.plot(t_s, len(lanes) - 1, "o", color=own, markerfacecolor=face, markersize=5.5)
        axes.set_yticks(range(len(lanes)), [clipped(x, 40) for x in lanes], fontsize=8)
        axes.set_ylim(len(lanes) - 0.4, -0.6)
        axes.set_xlim(0, last_s / step)
        axes.set_xlabel(f"in the stream [{unit}]")
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)

    counts = ", ".join(plural(len(getattr(bank, a)), f"{name} event") for name, a, _ in LEVELS)
    alt = f"Lanes over {duration(last_s)} of video: {counts}, {plural(len(watches), 'monitor')}."
    note = "Shades change from event to event. Diamonds: alerts. Questions in the colour of their "
    note += (
        "capability, filled where the answer was right; a proactive one stands at its instruction."
    )
    return draw(title, paint, alt, note, (9.6, 1.0 + 0.27 * len(lanes)))


def _span(
    axes: Axes,
    lane: int,
    start_s: float,
    end_s: float,
    step: float,
    shade: str,
    height: float = 0.6,
) -> None:
    axes.barh(lane, (end_s - start_s) / step, height, start_s / step, color=shade, linewidth=0)


def _watches(story: Story, last_s: float) -> dict[str, tuple[float, float, list[float]]]:
    """Begin, end and alerts of each monitor, by its id and condition."""
    begun: dict[str, tuple[str, float]] = {}
    ended: dict[str, float] = {}
    alerts: dict[str, list[float]] = {}
    for entry in story.entries:
        key = str(entry.body.get("id", ""))
        if entry.kind == "monitor" and entry.body["what"] == "started":
            condition = str(entry.body["condition"])
            short = condition[-30:].partition(" ")[2]
            told = condition if len(condition) < 32 or not short else f"… {short}"
            begun[key] = f"{key} {told}", entry.recorded_s
        elif entry.kind == "monitor" and entry.body["what"] in ("ended", "cancelled"):
            ended[key] = entry.recorded_s
        elif entry.kind == "alert":
            alerts.setdefault(entry.body["monitor"], []).append(entry.start_s)
    return {
        name: (start_s, ended.get(key, last_s), alerts.get(key, []))
        for key, (name, start_s) in begun.items()
    }


def right(story: Story) -> dict[str, float]:
    material, trajectory = story.there
    rows = material.scored.rows
    rows = rows[rows["trajectory"] == trajectory.id]
    return dict(zip(rows["candidate"].astype(str), rows["value"].astype(float), strict=True))


def graph(story: Story) -> Figure:
    """The entities with most relations, in columns by type, and the newest relations of them."""
    title = "Entities and relations at the end of the video"
    bank = story.bank
    edges = [r for r in bank.relations if r.label != "possibly same"]
    if not edges:
        return Figure(title, absent="the memory holds no relation")
    degree: dict[str, int] = {}
    for edge in edges:
        for end in (edge.src, edge.dst):
            degree[end] = degree.get(end, 0) + 1
    top = sorted(degree, key=lambda key: (-degree[key], key))[:NODES]
    shown = [bank.entities[key] for key in top if key in bank.entities]
    names = {e.id for e in shown}
    drawn = sorted((r for r in edges if {r.src, r.dst} <= names), key=lambda r: r.end_s)[-EDGES:]
    shown = [e for e in shown if any(e.id in (r.src, r.dst) for r in drawn)]
    places = _places(shown)

    def paint(axes: Axes) -> None:
        for edge in drawn:
            _edge(axes, edge, places)
        for entity in shown:
            x, y = places[entity.id]
            shade = TYPES.get(entity.type, "#6b7280")
            box = {"boxstyle": "round,pad=0.3", "facecolor": tint(shade, 0.22), "edgecolor": shade}
            axes.text(x, y, clipped(entity.name, 26), ha="center", va="center", fontsize=8,
                      zorder=5, bbox=box)  # fmt: skip
        axes.set_xlim(-0.45, max(x for x, _ in places.values()) + 0.45)
        axes.set_ylim(-0.02, 1.02)
        axes.axis("off")

    told = "; ".join(
        f"{_named(bank.entities, r.src)} {r.label} {_named(bank.entities, r.dst)}"
        for r in drawn[-8:]
    )
    alt = f"Graph of {plural(len(shown), 'entity', 'entities')} and "
    alt += f"{plural(len(drawn), 'relation')}; the newest: {told}."
    note = (
        f"{len(shown)} of {plural(len(bank.entities), 'entity', 'entities')} and {len(drawn)} of "
    )
    note += (
        f"{plural(len(edges), 'relation')}: the most connected ones and their newest relations. "
    )
    note += "Columns are types; pale lines are relations that another one has ended."
    tallest = max(
        sum(x == at for x, _ in places.values()) for at in {x for x, _ in places.values()}
    )
    return draw(title, paint, alt, note, (9.6, max(3.0, 0.42 * tallest + 0.8)))


def _named(entities: dict[str, Entity], key: str) -> str:
    return entities[key].name if key in entities else key


def _places(shown: list[Entity]) -> dict[str, tuple[float, float]]:
    """Columns by type, each entity near the order of its first sighting."""
    order = [*TYPES, *sorted({e.type for e in shown} - set(TYPES))]
    columns = [t for t in order if any(e.type == t for e in shown)]
    found = {}
    for x, kind in enumerate(columns):
        own = sorted((e for e in shown if e.type == kind), key=lambda e: (e.first_s, e.id))
        for at, entity in enumerate(own):
            found[entity.id] = float(x), 1 - (at + 0.5) / len(own)
    return found


def _edge(axes: Axes, edge: Relation, places: dict[str, tuple[float, float]]) -> None:
    (x1, y1), (x2, y2) = places[edge.src], places[edge.dst]
    shade = "#c3cad2" if edge.ended else "#52606d"
    bend = 0.25 if x1 == x2 else 0.08
    axes.annotate(
        "", (x2, y2), (x1, y1),
        arrowprops={"arrowstyle": "-|>", "color": shade, "linewidth": 0.9, "shrinkA": 12,
                    "shrinkB": 14, "connectionstyle": f"arc3,rad={bend}"},
    )  # fmt: skip
    part = 0.42
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.8}
    axes.text(x1 + (x2 - x1) * part, y1 + (y2 - y1) * part, edge.label, fontsize=6.5,
              color=MUTED, ha="center", va="center", zorder=4, bbox=box)  # fmt: skip
