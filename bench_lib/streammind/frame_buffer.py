"""The ring of recent frames: 60 s first in, first out, each a JPEG of at most 720 px.

Hyper-parameters (C.5, "FrameBuffer and audio observations"): `fps` 2, `max_side` 720,
`jpeg_quality` 75, `ring_s` 60. What has left the ring and is not in the frame store is gone.
"""

from __future__ import annotations

import io
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from bench_lib.errors import BenchError
from bench_lib.stream import Frame, Size, resized


class FrameGone(BenchError):
    """A frame was asked for that neither the ring nor the frame store holds."""


@dataclass(frozen=True)
class Picture:
    """A frame of the stream as it is kept: `t_s` is stream time, `id` is made of it."""

    t_s: float
    jpeg: bytes

    @property
    def id(self) -> str:
        """`f` and the milliseconds of the stream; the same frame has the same id everywhere."""
        return f"f{round(self.t_s * 1000):07d}"

    def pixels(self, size: Size | None = None) -> NDArray[np.uint8]:
        """See `stream.Frame.pixels`."""
        with Image.open(io.BytesIO(self.jpeg)) as image:
            return resized(np.asarray(image.convert("RGB")), size)


def fitted(size: Size, longest: int) -> Size:
    """A size whose longest side is at most `longest`, in the same proportion."""
    scale = min(1.0, longest / max(size))
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def picture(frame: Frame, t_s: float, max_side: int, quality: int) -> Picture:
    """A frame as a JPEG of at most `max_side`."""
    return Picture(t_s, encoded(frame.pixels(), max_side, quality))


def encoded(pixels: NDArray[np.uint8], max_side: int, quality: int) -> bytes:
    """Pixels as a JPEG of at most `max_side`."""
    size = fitted((pixels.shape[0], pixels.shape[1]), max_side)
    buffer = io.BytesIO()
    Image.fromarray(resized(pixels, size)).save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


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
            at = bisect_left(self._times, int(frame_id[1:]) / 1000 - 0.0006)
        except ValueError:
            return None
        return next((f for f in self._frames[at : at + 2] if f.id == frame_id), None)

    @property
    def nbytes(self) -> int:
        """Bytes of all JPEGs."""
        return sum(len(frame.jpeg) for frame in self._frames)

    def __len__(self) -> int:
        return len(self._frames)
