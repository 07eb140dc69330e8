"""The one video clock. All timers of the agent use it, never the wall.

`lockstep`: video time moves only when it is told to; a call takes the video seconds that the
latency model gives it, so that a slow monitor really misses frames, and two runs are equal.
`realtime`: video time runs with the wall at `speed` from the first frame on, except while it is
paused. It is paused for reactive questions and runs on for proactive ones.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import anyio


class Lockstep:
    """Time that is told; see the module."""

    def __init__(self, now_s: float = 0.0) -> None:
        self.now_s = now_s

    def copy(self) -> Lockstep:
        """A second clock at the same instant."""
        return Lockstep(self.now_s)

    async def reach(self, t_s: float) -> None:
        """Move to an instant; never backwards."""
        self.now_s = max(self.now_s, t_s)

    def arrived(self, t_s: float, lasts_s: float) -> float:
        """When what was begun at `t_s` is there: after the seconds that it lasts."""
        return t_s + lasts_s

    def pause(self) -> None:
        """Nothing moves anyway."""

    def resume(self) -> None:
        """Nothing moves anyway."""


class Realtime:
    """Time that runs; see the module. Branches share the clock of their trunk."""

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self._video_s, self._wall_s = 0.0, 0.0
        self._running, self._paused = False, 0

    def copy(self) -> Realtime:
        """The same clock."""
        return self

    @property
    def now_s(self) -> float:
        """Video seconds now."""
        if self._paused or not self._running:
            return self._video_s
        return self._video_s + (time.monotonic() - self._wall_s) * self.speed

    async def reach(self, t_s: float) -> None:
        """Wait until the clock shows an instant; the first call starts it there."""
        if not self._running:
            self._video_s, self._wall_s, self._running = t_s, time.monotonic(), True
        while self.now_s < t_s:
            left_s = (t_s - self.now_s) / self.speed
            await anyio.sleep(0.01 if self._paused else max(left_s, 0.001))

    def arrived(self, t_s: float, lasts_s: float) -> float:
        """When what was begun at `t_s` is there: now."""
        return max(t_s, self.now_s)

    def pause(self) -> None:
        """Stop; pauses count, so that as many resumes let it go on."""
        self._video_s, self._wall_s = self.now_s, time.monotonic()
        self._paused += 1

    def resume(self) -> None:
        """Go on after the last pause has ended."""
        self._paused -= 1
        if not self._paused:
            self._wall_s = time.monotonic()


class Latency:
    """Video seconds that calls take in lockstep, by worker: a number, or a list to draw from.

    A draw depends on the seed, the worker and the call's place, so runs are equal.
    """

    def __init__(self, seconds: Mapping[str, Any], seed: int) -> None:
        self.seconds, self.seed = seconds, seed

    def of(self, worker: str, place: str) -> float:
        """Seconds of a call; `place` names it within the run."""
        given = self.seconds.get(worker, self.seconds.get("default", 0.0))
        if isinstance(given, int | float):
            return float(given)
        digest = blake2b(f"{self.seed} {worker} {place}".encode(), digest_size=8).digest()
        return float(given[int.from_bytes(digest, "big") % len(given)])
