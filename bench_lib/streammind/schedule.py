"""What is due when: ticks on the video clock, and results that are still on their way.

A worker that is busy when its next tick is due skips it; skips are counted, never queued. At one
instant results arrive before new ticks begin, so a call that lasts exactly one period skips none.
"""

from __future__ import annotations

import heapq
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count as numbers

from bench_lib.streammind.models import Path

Apply = Callable[[float], None]
"""Takes a result in, at the instant of stream time at which it is recorded."""


@dataclass
class Job:
    """One tick's work: `work` asks models and gives what is to be taken in; `free` comes after."""

    path: Path
    work: Callable[[], Awaitable[Apply]]
    free: Callable[[], None]


@dataclass
class Pending:
    """Results by the instant at which they arrive, in the order in which they were begun."""

    _heap: list[tuple[float, int, Apply]] = field(default_factory=list)
    _numbers: numbers[int] = field(default_factory=numbers)

    def add(self, at_s: float, apply: Apply) -> None:
        """A result arrives at an instant."""
        heapq.heappush(self._heap, (at_s, next(self._numbers), apply))

    @property
    def next_s(self) -> float:
        """When the next result arrives; infinity where none is on its way."""
        return self._heap[0][0] if self._heap else float("inf")

    def arrive(self, t_s: float) -> None:
        """Take in all that has arrived by an instant."""
        while self._heap and self._heap[0][0] <= t_s + 1e-9:
            at_s, _, apply = heapq.heappop(self._heap)
            apply(at_s)
