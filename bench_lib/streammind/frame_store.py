"""Persistent key frames: those that events point to, near-duplicates left out.

Hyper-parameters (C.5, Memory Writer): `store_frames` 4,000, `store_lookback_s` 8, `store_bits` 6 of
a 64-bit difference hash. `store_change` is ours: hashes of 8 x 8 cells do not see a scoreboard that
changes by a digit (distance 0), so a frame counts as known only if also no small cell of it changed
its mean grey by more than that. A frame that the writer marks for its text is always kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from bench_lib.video.picture import Picture

CELLS = (90, 160)
"""Rows and columns of the cells whose mean grey is compared."""


@dataclass(frozen=True)
class Print:
    """What a frame is recognised by."""

    t_s: float
    bits: int
    cells: NDArray[np.uint8]


def dhash(grey: Image.Image) -> int:
    """64-bit difference hash: whether each of 8 x 8 cells is darker than its right neighbour."""
    small = np.asarray(grey.resize((9, 8), Image.Resampling.BOX), np.int16)
    flags = (small[:, 1:] > small[:, :-1]).ravel()
    return int("".join("1" if flag else "0" for flag in flags), 2)


def print_of(frame: Picture) -> Print:
    """The print of a frame."""
    grey = Image.fromarray(frame.pixels()).convert("L")
    cells = np.asarray(grey.resize((CELLS[1], CELLS[0]), Image.Resampling.BOX))
    return Print(frame.t_s, dhash(grey), cells)


def alike(one: Print, other: Print, bits: int, change: float) -> bool:
    """Whether two frames show the same: near hashes, and no cell that changed much."""
    if (one.bits ^ other.bits).bit_count() > bits:
        return False
    difference = np.abs(one.cells.astype(np.int16) - other.cells)
    return bool(difference.max() <= change)


class FrameStore:
    """Key frames by id. `refs` counts the events that point to each."""

    def __init__(
        self, most: int, lookback_s: float, bits: int, change: float, frames: Iterable[Picture] = ()
    ) -> None:
        self.most, self.lookback_s, self.bits, self.change = most, lookback_s, bits, change
        self.frames = {frame.id: frame for frame in frames}
        self.refs = dict.fromkeys(self.frames, 1)
        self._prints: dict[str, Print] = {}

    def copy(self) -> FrameStore:
        """A second store that keeps and names frames as this one would."""
        other = FrameStore(self.most, self.lookback_s, self.bits, self.change)
        other.frames, other.refs = dict(self.frames), dict(self.refs)
        other._prints = dict(self._prints)
        return other

    def forget(self) -> None:
        """What was seen just now is no longer near (a session has ended); frames stay."""
        self._prints = {}

    def keep(self, frame: Picture, now_s: float, text_bearing: bool = False) -> tuple[str, bool]:
        """Keep a frame; the id under which it is found and whether it is new."""
        if frame.id in self.frames:
            self.refs[frame.id] += 1
            return frame.id, False
        self._prints = {
            key: known
            for key, known in self._prints.items()
            if known.t_s >= now_s - self.lookback_s and key in self.frames
        }
        own = print_of(frame)
        if not text_bearing:
            for key, known in self._prints.items():
                if alike(own, known, self.bits, self.change):
                    self.refs[key] += 1
                    return key, False
        self.frames[frame.id], self.refs[frame.id] = frame, 1
        self._prints[frame.id] = own
        return frame.id, True

    def evict(self) -> list[str]:
        """Drop frames above the limit, those with the fewest references first, then the oldest."""
        dropped = []
        while len(self.frames) > self.most:
            fewest = min(self.refs.values())
            key = next(k for k in self.frames if self.refs[k] == fewest)
            del self.frames[key], self.refs[key]
            dropped.append(key)
        return dropped

    @property
    def nbytes(self) -> int:
        """Bytes of all JPEGs."""
        return sum(len(frame.jpeg) for frame in self.frames.values())
