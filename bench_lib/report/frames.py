"""Frames of a session as small pictures for a page, at the instants one asks for."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bench_lib.report.text import instant
from bench_lib.schema import Session

if TYPE_CHECKING:
    from bench_lib.report.kit import Fragment

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


@dataclass(frozen=True)
class Shot:
    """A picture to take: the newest frame of a session at an instant in seconds."""

    label: str
    session: Session
    t_s: float


def strip(session: Session, count: int = 6) -> Fragment:
    """Frames of a session at equal distances, for a notebook."""
    from bench_lib.report.kit import strip

    step = session.duration_s / count
    return strip(take([Shot("", session, step * (i + 0.5)) for i in range(count)]))


def take(shots: Sequence[Shot]) -> list[Picture]:
    """A picture for each shot, in their order; each session is opened once.

    A video that cannot be read gives pictures without a source and with the reason.
    """
    by_session: dict[Session, set[float]] = {}
    for shot in shots:
        by_session.setdefault(shot.session, set()).add(_grid(shot))
    taken = {s: _read(s, sorted(instants)) for s, instants in by_session.items()}
    return [_picture(shot, *taken[shot.session]) for shot in shots]


def _picture(shot: Shot, found: dict[float, Picture], why: str) -> Picture:
    when = instant(shot.session, _grid(shot))
    caption = f"{shot.label} · {when}" if shot.label else when
    if _grid(shot) in found:
        return replace(found[_grid(shot)], caption=caption)
    return Picture(caption, why=why)


def _read(session: Session, instants: list[float]) -> tuple[dict[float, Picture], str]:
    """Pictures of one session by instant, and why others are not among them."""
    from bench_lib.video.session import VideoError, inspect, open_session

    # A few instants of a long video: this reader seeks, the other one walks.
    stretches = tuple((t_s, t_s + 0.5 / GRID_FPS) for t_s in instants)
    found: dict[float, Picture] = {}
    try:
        height, width = inspect(session.spans[0].file).size
        scale = math.sqrt(AREA / (height * width))
        size = max(1, round(height * scale)), max(1, round(width * scale))
        with open_session(session, GRID_FPS, stretches, size, reader="pyav") as stream:
            for sample in stream:
                source = _jpeg(sample.frame.pixels(size))
                found[round(sample.t_s, 6)] = Picture("", source, width=size[1], height=size[0])
    except VideoError as error:
        return found, str(error)
    return found, "no frame at this time"


def last_visible(t_s: float, closed: bool) -> float:
    """The last grid instant before a cutoff; a closed cutoff includes its own instant."""
    place = math.floor(t_s * GRID_FPS + 1e-6)
    if not closed and abs(place / GRID_FPS - t_s) < 1e-6:
        place -= 1
    return max(0, place) / GRID_FPS


def _grid(shot: Shot) -> float:
    latest = max(0.0, shot.session.duration_s - 1 / GRID_FPS)
    return math.floor(min(shot.t_s, latest) * GRID_FPS + 1e-6) / GRID_FPS


def _jpeg(pixels: object) -> str:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=QUALITY)  # type: ignore[arg-type]
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
