"""Stream time and the clocks that people and models read: sessions one after another.

Labels are `DAY1 10:03:12` where a session has a wall clock, else time in the stream, `00:03:12`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bench_lib.schema import clock


@dataclass(frozen=True)
class Place:
    """A session's place: its second 0 is `offset_s` of the stream."""

    id: str
    index: int
    offset_s: float
    wall_s: float | None


class Timeline:
    """Sessions in their order."""

    def __init__(self, places: tuple[Place, ...] = ()) -> None:
        self.places = places

    def _at(self, t_s: float) -> Place | None:
        past = [p for p in self.places if p.offset_s <= t_s + 1e-6]
        return past[-1] if past else (self.places[0] if self.places else None)

    def label(self, t_s: float) -> str:
        """An instant of the stream for people and models."""
        place = self._at(t_s)
        if place is None or place.wall_s is None:
            return clock(max(0.0, t_s)).split()[1]
        return clock(place.wall_s + t_s - place.offset_s)

    def span(self, start_s: float, end_s: float) -> str:
        """A stretch, `DAY1 10:03:12 to 10:03:40`."""
        start, end = self.label(start_s), self.label(end_s)
        same_day = start.split()[0] == end.split()[0]
        return f"{start} to {end.split()[-1] if same_day else end}"

    def read(self, text: str | float) -> float:
        """The instant that a label or a number of seconds names; ValueError where it is none.

        A time of day without its day is taken in the latest session that may contain it.
        """
        if isinstance(text, int | float):
            return float(text)
        found = re.fullmatch(r"\s*(?:DAY(\d+)\s+)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)\s*", text)
        if not found:
            try:
                return float(text)
            except ValueError:
                raise ValueError(f"{text!r} is no time such as {self.label(0.0)!r}") from None
        day, hours, minutes, seconds = found.groups()
        of_day = int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds)
        clocked = [p for p in self.places if p.wall_s is not None]
        if not clocked:
            return of_day
        for place in reversed(clocked):
            assert place.wall_s is not None
            first_day = int(place.wall_s) // 86_400
            wall_s = (int(day) - 1 if day else first_day) * 86_400 + of_day
            if wall_s >= place.wall_s:
                return self._clipped(place, place.offset_s + wall_s - place.wall_s)
        return clocked[0].offset_s

    def _clipped(self, place: Place, t_s: float) -> float:
        """No later than the next session's start."""
        later = [p.offset_s for p in self.places if p.offset_s > place.offset_s]
        return min([t_s, *later])
