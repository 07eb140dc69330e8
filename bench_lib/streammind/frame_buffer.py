"""The ring of recent frames: 60 s first in, first out, each a JPEG of at most 720 px.

Hyper-parameters (C.5, "FrameBuffer and audio observations"): `fps` 2, `max_side` 720,
`jpeg_quality` 75, `ring_s` 60. What has left the ring and is not in the frame store is gone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from bench_lib.errors import BenchError
from bench_lib.video.picture import Picture, instant


class FrameGone(BenchError):
    """A frame was asked for that neither the ring nor the frame store holds."""


class FrameBuffer:
    """Frames in time order, none older than `seconds` before the newest."""

    def __init__(self, seconds: float, frames: tuple[Picture, ...] = ()) -> None:
        self.seconds = seconds
        self._frames = list(frames)
        self._times = [frame.t_s for frame in frames]

    def copy(self) -> FrameBuffer:
        """A second ring with the same frames."""
        return FrameBuffer(self.seconds, tuple(self._frames))

    def push(self, frame: Picture) -> int:
        """Add the newest frame; returns how many fell out. Raises BenchError for one of before."""
        if self._times and frame.t_s <= self._times[-1]:
            raise BenchError(f"frame at {frame.t_s} s comes after one at {self._times[-1]} s")
        self._frames.append(frame)
        self._times.append(frame.t_s)
        out = bisect_right(self._times, frame.t_s - self.seconds)
        del self._frames[:out], self._times[:out]
        return out

    def clear(self) -> None:
        """Forget all frames (a session has ended)."""
        self._frames, self._times = [], []

    def until(self, t_s: float) -> tuple[Picture, ...]:
        """All frames not later than an instant."""
        return tuple(self._frames[: bisect_right(self._times, t_s + 1e-6)])

    def find(self, frame_id: str) -> Picture | None:
        """The frame of that id, None where the ring does not hold it."""
        try:
            at = bisect_left(self._times, instant(frame_id) - 0.0006)
        except ValueError:
            return None
        return next((f for f in self._frames[at : at + 2] if f.id == frame_id), None)

    @property
    def nbytes(self) -> int:
        """Bytes of all JPEGs."""
        return sum(len(frame.jpeg) for frame in self._frames)

    def __len__(self) -> int:
        return len(self._frames)
