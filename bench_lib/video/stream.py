"""What a method is shown of a video, and the clip law that cuts it.

Sampling grid: instant k of a session is `k / fps` seconds after its start. The frame of an instant
is the newest picture whose presentation timestamp is not later than it, so a frame never shows the
future. Clip law: clips are consecutive runs of `clip_frames` instants counted from the start of
what is fed; nothing else moves a boundary. What lies between the last full clip and a cutoff is
observed in the branch of that probe, never by the trunk.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from bench_lib.errors import BenchError

if TYPE_CHECKING:  # the decoding process imports this module and needs no records
    from bench_lib.schema import Caption

Size = tuple[int, int]
"""Height and width in pixels."""
EPSILON_S = 1e-6
SAMPLE_RATE = 16_000


def visible(t_s: float, cutoff_s: float, closed: bool) -> bool:
    """Whether an instant lies before the cutoff; a closed cutoff includes its own instant."""
    return t_s <= cutoff_s + EPSILON_S if closed else t_s < cutoff_s - EPSILON_S


class Frame(Protocol):
    """A handle to one sampled picture: no path, no neighbour, nothing of the future."""

    @property
    def t_s(self) -> float:
        """The instant of the session this frame stands for, in seconds."""

    def pixels(self, size: Size | None = None) -> NDArray[np.uint8]:
        """The picture `[height, width, 3]` in RGB, resized to `size` where that differs."""


def resized(pixels: NDArray[np.uint8], size: Size | None) -> NDArray[np.uint8]:
    """`pixels` at `size`, bicubic with antialiasing; the same array when it fits already."""
    if size is None or pixels.shape[:2] == size:
        return pixels
    return np.asarray(Image.fromarray(pixels).resize((size[1], size[0]), Image.Resampling.BICUBIC))


@dataclass(frozen=True)
class ArrayFrame:
    """A frame held in memory."""

    t_s: float
    array: NDArray[np.uint8]

    def pixels(self, size: Size | None = None) -> NDArray[np.uint8]:
        """See `Frame.pixels`."""
        return resized(self.array, size)


@dataclass(frozen=True)
class EncodedFrame:
    """A frame held in memory as an image file; what a saved memory holds of a stored frame."""

    t_s: float
    data: bytes

    def pixels(self, size: Size | None = None) -> NDArray[np.uint8]:
        """See `Frame.pixels`."""
        with Image.open(io.BytesIO(self.data)) as image:
            return resized(np.asarray(image.convert("RGB")), size)


@dataclass(frozen=True)
class StoredFrame:
    """A frame that lies in the frame store, as an encoded image inside a session's file."""

    t_s: float
    path: str
    offset: int
    nbytes: int

    def encoded(self) -> EncodedFrame:
        """Its image in memory; raises BenchError when the store has dropped the session since."""
        try:
            with Path(self.path).open("rb") as file:
                file.seek(self.offset)
                return EncodedFrame(self.t_s, file.read(self.nbytes))
        except FileNotFoundError:
            raise BenchError(
                f"the frame store no longer holds {Path(self.path).name}, which a memory needs: "
                "observe the session again, or give the store more room (store_gib)"
            ) from None

    def pixels(self, size: Size | None = None) -> NDArray[np.uint8]:
        """See `Frame.pixels`; raises what `encoded` raises."""
        return self.encoded().pixels(size)


@dataclass(frozen=True)
class SessionInfo:
    """All that a method learns of a session before seeing it: no path, no length, no candidate."""

    id: str
    index: int
    wall_start_s: float | None
    frame_size: Size


@dataclass(frozen=True)
class Clip:
    """A slice of the stream, in time order, handed over once.

    Frames may be empty at a tail that only brings sound or captions. `audio` is 16 kHz mono float32
    of the same stretch, for methods that ask for it.
    """

    session: int
    frames: tuple[Frame, ...]
    captions: tuple[Caption, ...] = ()
    audio: NDArray[np.float32] | None = None
    audio_start_s: float = 0.0

    def until(self, cutoff_s: float, closed: bool) -> Clip:
        """What of this clip is visible at a cutoff; possibly nothing."""
        audio = self.audio
        if audio is not None:
            audio = audio[: max(0, int((cutoff_s - self.audio_start_s) * SAMPLE_RATE))]
        return replace(
            self,
            frames=tuple(f for f in self.frames if visible(f.t_s, cutoff_s, closed)),
            captions=tuple(c for c in self.captions if visible(c.end_s, cutoff_s, closed)),
            audio=audio,
        )

    def after(self, cutoff_s: float, closed: bool) -> Clip:
        """What `until` leaves."""
        audio, start_s = self.audio, self.audio_start_s
        if audio is not None:
            taken = max(0, int((cutoff_s - start_s) * SAMPLE_RATE))
            audio, start_s = audio[taken:], start_s + min(taken, len(audio)) / SAMPLE_RATE
        return replace(
            self,
            frames=tuple(f for f in self.frames if not visible(f.t_s, cutoff_s, closed)),
            captions=tuple(c for c in self.captions if not visible(c.end_s, cutoff_s, closed)),
            audio=audio,
            audio_start_s=start_s,
        )

    @cached_property
    def empty(self) -> bool:
        """Whether nothing is in it."""
        return not self.frames and not self.captions and (self.audio is None or not len(self.audio))
