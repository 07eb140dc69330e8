"""A frame of the stream as it is kept: a JPEG with its time."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from bench_lib.video.stream import Frame, Size, resized


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


def instant(frame_id: str) -> float:
    """The stream time that a frame's id names; ValueError where it is none."""
    return int(frame_id[1:]) / 1000


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
