"""Frames of a session as small pictures for a page, at the instants one asks for."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench_lib.report.text import instant
from bench_lib.schema import Session

if TYPE_CHECKING:
    from bench_lib.report.render import Fragment

GRID_FPS = 4.0
"""Pictures are taken at quarter seconds: the newest frame at or before the instant asked for."""
AREA = 240 * 135
QUALITY = 82


@dataclass(frozen=True)
class Picture:
    """A thumbnail as a data URI, or why there is none."""

    caption: str
    source: str = ""
    why: str = ""
    width: int = 240
    height: int = 135


def strip(session: Session, count: int = 6) -> Fragment:
    """Frames of a session at equal distances, for a notebook."""
    from bench_lib.report import render

    step = session.duration_s / count
    return render.strip(pictures(session, [("", step * (i + 0.5)) for i in range(count)]))


def pictures(
    session: Session, instants: Iterable[tuple[str, float]], reader: str = "decord"
) -> list[Picture]:
    """Thumbnails of one session at named instants in seconds, in the order given.

    A video that cannot be read gives pictures without a source and with the reason.
    """
    from bench_lib.video import VideoError, inspect, open_session

    named = [(label, _grid(session, t_s)) for label, t_s in instants]
    wanted = sorted({t_s for _, t_s in named})
    stretches = tuple((t_s, t_s + 0.5 / GRID_FPS) for t_s in wanted)
    taken: dict[float, tuple[str, int, int]] = {}
    why = "no frame at this time"
    try:
        height, width = inspect(session.spans[0].file).size
        scale = math.sqrt(AREA / (height * width))
        size = max(1, round(height * scale)), max(1, round(width * scale))
        with open_session(session, GRID_FPS, stretches, size, reader=reader) as stream:
            for sample in stream:
                taken[round(sample.t_s, 6)] = _jpeg(sample.frame.pixels(size)), size[1], size[0]
    except VideoError as error:
        why = str(error)
    found = []
    for label, t_s in named:
        caption = f"{label} · {instant(session, t_s)}" if label else instant(session, t_s)
        if round(t_s, 6) in taken:
            source, wide, high = taken[round(t_s, 6)]
            found.append(Picture(caption, source, width=wide, height=high))
        else:
            found.append(Picture(caption, why=why))
    return found


def last_visible(t_s: float, closed: bool) -> float:
    """The last grid instant before a cutoff; a closed cutoff includes its own instant."""
    place = math.floor(t_s * GRID_FPS + 1e-6)
    if not closed and abs(place / GRID_FPS - t_s) < 1e-6:
        place -= 1
    return max(0, place) / GRID_FPS


def _grid(session: Session, t_s: float) -> float:
    latest = max(0.0, session.duration_s - 1 / GRID_FPS)
    return math.floor(min(t_s, latest) * GRID_FPS + 1e-6) / GRID_FPS


def _jpeg(pixels: object) -> str:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=QUALITY)  # type: ignore[arg-type]
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
