"""How everything looks: one colour per capability, one drawing style, figures as inline SVG."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench_lib.content import digest
from bench_lib.tasks import AR, CSU, FREE, RTP

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

COLOURS: Mapping[str, str] = {
    CSU: "#3566a8",
    RTP: "#2b8a68",
    AR: "#c4622d",
    FREE.capability: "#6b7280",
    "RTP": "#2f8f7a",
    "HR": "#4668ad",
    "Tool": "#8a6d1f",
    "Pro": "#b5552c",
}
"""One colour per capability, used in every table, figure and card; distinct to the colour-blind."""
OTHER = "#6b7280"
INK = "#1f2933"
MUTED = "#5b6773"
KINDS: Mapping[str, str] = {
    "kv": "#4a4e8f",
    "embeddings": "#7d6bb0",
    "features": "#b58fc4",
    "frames": "#e0b1c4",
    "text": "#c9b458",
    "registrations": "#8d7b2a",
    "index": "#9aa5b1",
    "weights": "#4d5966",
}
"""One colour per kind of state; `registrations` is the log of what the wearer asked for."""
DENSE = 3000
"""Above this many marks a figure is embedded as PNG."""
PANEL_INCHES = (5.4, 3.1)


@dataclass(frozen=True)
class Figure:
    """A drawn figure, or the reason why there is nothing to draw.

    `alt` says in words what the picture shows; `note` what a reader must know to read it.
    """

    title: str
    alt: str = ""
    picture: str = ""
    note: str = ""
    absent: str = ""


def colour(capability: str) -> str:
    """The colour of a capability."""
    return COLOURS.get(capability, OTHER)


def tint(value: str, strength: float = 0.32) -> str:
    """`value` mixed with white; strength 1 is the colour itself."""
    parts = [int(value[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(255 - (255 - part) * strength):02x}" for part in parts)


def draw(
    title: str,
    paint: Callable[[Axes], None],
    alt: str,
    note: str = "",
    inches: tuple[float, float] = PANEL_INCHES,
    marks: int = 0,
) -> Figure:
    """A figure from what `paint` puts on one set of axes; nothing global is touched."""
    return sheet(title, lambda canvas: paint(canvas.add_subplot()), alt, note, inches, marks)


def sheet(
    title: str,
    paint: Callable[[Canvas], None],
    alt: str,
    note: str = "",
    inches: tuple[float, float] = PANEL_INCHES,
    marks: int = 0,
) -> Figure:
    """A figure from what `paint` puts on a sheet with any number of axes."""
    import matplotlib as mpl
    import seaborn as sns
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Sheet

    with mpl.rc_context(_style(sns)):  # type: ignore[arg-type]
        canvas = Sheet(figsize=inches, layout="constrained")
        FigureCanvasAgg(canvas)
        paint(canvas)
        for axes in canvas.axes:
            if axes.name == "rectilinear":
                sns.despine(ax=axes)
        buffer = io.BytesIO()
        if marks > DENSE:
            canvas.savefig(buffer, format="png", dpi=180)
        else:
            canvas.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    if marks > DENSE:
        return Figure(title, alt, _png(buffer.getvalue(), alt), note)
    return Figure(title, alt, _inline(buffer.getvalue().decode(), title, alt), note)


def _style(sns: Any) -> dict[str, Any]:
    return {
        **sns.axes_style("ticks"),
        **sns.plotting_context("paper", font_scale=1.05),
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],  # ships with matplotlib: the same picture everywhere
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": "#9aa5b1",
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "axes.grid": True,
        "grid.color": "#e8ecf0",
        "axes.axisbelow": True,
        "legend.frameon": False,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "text.parse_math": False,  # names are text, dollar signs included
        "svg.fonttype": "path",
        "svg.hashsalt": "bench",
    }


def _png(data: bytes, alt: str) -> str:
    from markupsafe import escape

    source = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    return f'<img role="img" class="plot" src="{source}" alt="{escape(alt)}">'


def _inline(svg: str, title: str, alt: str) -> str:
    """An SVG for the inside of a page: scalable, labelled, with ids that no other figure has."""
    from markupsafe import escape

    svg = re.sub(r"\s*<(title|metadata)>.*?</\1>", "", svg[svg.index("<svg") :], flags=re.S)
    mark = f"f{digest(title + svg, 6)}-"
    svg = re.sub(r'\bid="', f'id="{mark}', svg)
    svg = re.sub(r'href="#', f'href="#{mark}', svg)
    svg = re.sub(r"url\(#", f"url(#{mark}", svg)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    return svg.replace("<svg", f'<svg class="plot" role="img" aria-label="{escape(alt)}"', 1)


def hours_or_less(largest_s: float) -> tuple[float, str]:
    """Seconds of the unit that fits an axis, and the unit."""
    if largest_s >= 7200:
        return 3600.0, "h"
    return (60.0, "min") if largest_s >= 180 else (1.0, "s")
