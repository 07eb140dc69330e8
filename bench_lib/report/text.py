"""Numbers and instants as people read them."""

from __future__ import annotations

from bench_lib.schema import Session, clock

DASH = "—"


def size(count: float) -> str:
    """Bytes in binary units."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


def duration(seconds: float) -> str:
    """A length of time, in the unit that fits it."""
    if seconds < 0.0995:
        return f"{seconds * 1000:.2g} ms" if seconds else "0 s"
    if seconds < 9.95:
        return f"{seconds:.2f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.2f} h"


def ratio(value: float) -> str:
    """A ratio of seconds, with two digits that count."""
    return f"{value:.3f}" if value >= 0.0995 else f"{value:.2g}"


def percent(value: float) -> str:
    """A score in percent: two digits, as the papers print them, wherever it stands."""
    return f"{value:.2f}"


def reach(low: float, high: float) -> str:
    """The ends of an interval or of bounds, in percent."""
    return f"{low:.1f} to {high:.1f}"


def clipped(name: str, length: int = 14) -> str:
    """A name short enough for a figure: its begin and, where names differ, its end."""
    end = length * 2 // 3
    return name if len(name) <= length else f"{name[: length - 1 - end]}…{name[-end:]}"


def plural(count: int, noun: str, many: str = "") -> str:
    """`1 probe`, `2 probes`."""
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def instant(session: Session, t_s: float) -> str:
    """An instant of a session: time in the video, and the wall clock where there is one."""
    shown = f"{int(t_s) // 3600:d}:{int(t_s) // 60 % 60:02d}:{t_s % 60:04.1f}"
    wall = clock(None if session.wall_start_s is None else session.wall_start_s + t_s)
    return f"{session.id} {shown}" + (f" ({wall})" if wall else "")
