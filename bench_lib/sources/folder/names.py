"""What a file's name says: when it was recorded, as cameras and people write it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bench_lib.texts import folded

DAY_S = 86_400.0
EGOLIFE_FPS = 20
"""The last two digits of EgoLife's times count frames."""
_EPOCH = datetime(1970, 1, 1)
_DAYS = re.compile(r"(?:^|_)DAY(\d{1,3})(?:_[A-Z]\w*?)?_(\d\d)(\d\d)(\d\d)(\d\d)?(?!\d)", re.I)
_DATE = r"(?<!\d)((?:19|20)\d\d)[-._]?(\d\d)[-._]?(\d\d)"
_CLOCK = (
    r"(?:(\d\d?)[-.:_h]?(\d\d)[-.:_m]?(\d\d)s?(?:[-.:_]?(\d{3}))?|(\d\d?)[-.:h](\d\d))(?!\d)"
    r"(?:\s*([ap])\.?m\b)?"
)
_MOMENT = re.compile(rf"{_DATE}(?:[-_ T.,]*|[-_ ,]*(?:at|um|à|a las|alle)\s+){_CLOCK}", re.I)
_DATE_ALONE = re.compile(rf"{_DATE}(?!\d)")
_CHAPTER = re.compile(r"(?:G[HXPS](\d\d)|GOPR)(\d{4})(?!\d)", re.I)
_SECONDS = re.compile(r"(?<!\d)(1\d{9})(\d{3})?(?!\d)")
_LEADING = re.compile(r"(\d{1,4})[\s._)-]*[^\W\d_]")
_WEEK = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = re.compile(rf"({'|'.join(_WEEK)}|{'|'.join(d[:3] for d in _WEEK)})(?![a-z])", re.I)


@dataclass(frozen=True)
class Stamp:
    """When a file was recorded, as its name tells; stamps of one `kind` can be compared.

    `wall_s` counts from 00:00 of a day 1 that all stamps of the kind share; None where the name
    tells no time of day.
    """

    kind: str
    key: tuple[float, ...]
    wall_s: float | None = None


def natural(name: str) -> tuple[Any, ...]:
    """A key by which day2 stands before day10."""
    parts = [part for part in re.split(r"(\d+)", folded(name)) if part]
    return [(0, int(p), "") if p.isdecimal() else (1, 0, p) for p in parts], name


def stamp(name: str) -> Stamp | None:
    """When a file of that name (without its suffix) was recorded; None where it does not say.

    A number in front of words is as good: people number what they name.
    """
    if found := _DAYS.search(name):
        day, hours, minutes, seconds, frame = (int(digits or 0) for digits in found.groups())
        if day and hours < 24 and minutes < 60 and seconds < 60:
            clock_s = hours * 3600 + minutes * 60 + seconds + frame / EGOLIFE_FPS
            start_s = (day - 1) * DAY_S + clock_s
            return Stamp("days and times", (start_s,), start_s)
    for found in _MOMENT.finditer(name):
        date, rest = found.groups()[:3], found.groups()[3:]
        clock = rest[:4] if rest[0] else (*rest[4:6], "0", None)
        if (moment_s := _seconds(date, clock, rest[6])) is not None:
            return Stamp("dates", (moment_s,), moment_s)
    for found in _DATE_ALONE.finditer(name):
        if (day_s := _seconds(found.groups(), ("0", "0", "0", None), None)) is not None:
            return Stamp("dates", (day_s,))
    if found := _CHAPTER.match(name):
        return Stamp("numbers and chapters", (int(found[2]), int(found[1] or 0)))
    if found := _SECONDS.search(name):
        # Phones count these from 1970 in UTC, so the time of day where they were is not told.
        return Stamp("dates", (int(found[1]) + int(found[2] or 0) / 1000,))
    if found := _LEADING.match(name):
        return Stamp("leading numbers", (int(found[1]),))
    if found := _WEEKDAY.match(name):
        day = next(n for n, one in enumerate(_WEEK) if one.startswith(found[1].lower()))
        return Stamp("weekdays", (day,))
    return None


def _seconds(date: Any, clock: Any, half: str | None) -> float | None:
    """A moment in seconds since 1970, wherever it was; None where there is no such time."""
    year, month, day = map(int, date)
    hours, minutes, seconds, ms = (int(digits or 0) for digits in clock)
    if half:
        hours = hours % 12 + (12 if half.lower() == "p" else 0)
    try:
        moment = datetime(year, month, day, hours, minutes, seconds, ms * 1000)
    except ValueError:
        return None
    return (moment - _EPOCH).total_seconds()
