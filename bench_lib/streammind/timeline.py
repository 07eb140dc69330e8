"""Stream time and the clocks that people and models read: sessions one after another.

Labels are `DAY1 10:03:12` where a session has a wall clock, else time in the stream, `00:03:12`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from bench_lib.schema import clock

DAY_S = 86_400.0


@dataclass(frozen=True)
class Place:
    """A session's place: its second 0 is `offset_s` of the stream."""

    id: str
    index: int
    offset_s: float
    wall_s: float | None


class Timeline:
    """Sessions in their order; the last one is known until `end_s`."""

    def __init__(self, places: tuple[Place, ...] = (), end_s: float = math.inf) -> None:
        self.places, self.end_s = places, end_s

    def _at(self, t_s: float) -> Place | None:
        past = [p for p in self.places if p.offset_s <= t_s + 1e-6]
        return past[-1] if past else (self.places[0] if self.places else None)

    def label(self, t_s: float) -> str:
        """An instant of the stream for people and models."""
        place = self._at(t_s)
        if place is None or place.wall_s is None:
            seconds = max(0, int(t_s))
            return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        return clock(place.wall_s + t_s - place.offset_s)

    def span(self, start_s: float, end_s: float) -> str:
        """A stretch, `DAY1 10:03:12 to 10:03:40`."""
        start, end = self.label(start_s), self.label(end_s)
        same_day = start.split()[0] == end.split()[0]
        return f"{start} to {end.split()[-1] if same_day else end}"

    def read(self, text: str | float) -> float:
        """The instant that a label or a number of seconds names; ValueError where it is none.

        A time without its day is stream time where that lies in a session without a clock, else a
        time of day in the latest session that may contain it.
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
        if not any(p.wall_s is not None for p in self.places):
            return of_day + (int(day) - 1) * DAY_S if day else of_day
        if day:
            return self._of_wall((int(day) - 1) * DAY_S + of_day)
        return self._of_day(of_day)

    def _of_wall(self, wall_s: float) -> float:
        """The instant of a wall time: between two sessions where the later one starts."""
        first = None
        for place in reversed(self.places):
            if place.wall_s is not None:
                if wall_s >= place.wall_s:
                    return min(place.offset_s + wall_s - place.wall_s, self._next_s(place))
                first = place
        assert first is not None
        return first.offset_s

    def _of_day(self, of_day_s: float) -> float:
        """The instant of a time of day in the latest session that contains it."""
        at = self._at(of_day_s)
        if at is not None and at.wall_s is None and of_day_s <= self.end_s:
            return of_day_s
        clocked = [p for p in reversed(self.places) if p.wall_s is not None]
        for place in clocked:
            assert place.wall_s is not None
            # A label has whole seconds: it may lie a little before the start that it names.
            after_s = (of_day_s - place.wall_s + 1.0) % DAY_S - 1.0
            t_s, next_s = place.offset_s + max(0.0, after_s), self._next_s(place)
            if t_s < next_s and (t_s <= self.end_s or next_s < math.inf):
                return t_s
        latest = clocked[0].wall_s
        assert latest is not None
        return self._of_wall(latest // DAY_S * DAY_S + of_day_s)

    def _next_s(self, place: Place) -> float:
        """The start of the session after this one."""
        later = (p.offset_s for p in self.places if p.offset_s > place.offset_s)
        return min(later, default=math.inf)
