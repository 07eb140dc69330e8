"""What is said in a stream, as a memory holds it: captions as texts, sound as samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bench_lib.errors import BenchError, nearest
from bench_lib.exchange import Note
from bench_lib.state.walk import part
from bench_lib.video.stream import EPSILON_S, SAMPLE_RATE, Clip, SessionInfo

Speech = Literal["none", "captions", "sound"]
"""How a method takes what is said (StreamArena, Eq. 16: sound for omni models, else captions)."""
FULL = 32_767


@dataclass(frozen=True)
class Said:
    """A caption."""

    start_s: float
    end_s: float
    text: str = part("text")


@dataclass(frozen=True)
class Sounding:
    """16 kHz mono sound `[n]` int16 from an instant on; its bytes count with the frames."""

    start_s: float
    samples: NDArray[np.int16] = part("frames")

    @property
    def end_s(self) -> float:
        """The instant after its last sample."""
        return self.start_s + len(self.samples) / SAMPLE_RATE


def checked(method: str, speech: str, known: Sequence[str] = get_args(Speech)) -> None:
    """Raise BenchError for a way of taking speech that a method does not have."""
    if speech not in known:
        raise BenchError(f"{method}: speech is {speech!r}; {nearest(speech, known)}")


def captions(clip: Clip) -> tuple[Said, ...]:
    """The captions of a clip."""
    return tuple(Said(c.start_s, c.end_s, c.text) for c in clip.captions)


def sound(clip: Clip) -> tuple[Sounding, ...]:
    """The sound of a clip, in a copy of its own."""
    if clip.audio is None or not len(clip.audio):
        return ()
    samples = (np.clip(clip.audio, -1, 1) * FULL).round().astype(np.int16)
    return (Sounding(clip.audio_start_s, samples),)


def samples(held: Iterable[Sounding], start_s: float, end_s: float) -> NDArray[np.float32]:
    """The sound of `[start_s, end_s)` on one line of time, silent where none is held."""
    first, last = (round(t * SAMPLE_RATE) for t in (start_s, end_s))
    found = np.zeros(max(0, last - first), np.float32)
    for piece in held:
        at = round(piece.start_s * SAMPLE_RATE) - first
        skip = max(0, -at)
        taken = piece.samples[skip : max(skip, len(found) - at)]
        found[at + skip : at + skip + len(taken)] = taken / np.float32(FULL)
    return found


def notes(held: Iterable[Said], index: int, wall_start_s: float | None) -> list[Note]:
    """Captions as notes at the instants of their ends, in order."""
    base_s = wall_start_s
    return [
        Note(index, c.end_s, f"Speech: {c.text}", None if base_s is None else base_s + c.end_s)
        for c in sorted(held, key=lambda c: c.end_s)
    ]


def said_in(held: Iterable[Said], info: SessionInfo, since_s: float, until_s: float) -> list[Note]:
    """The captions that have ended in `(since_s, until_s]` of their session, as notes."""
    ended = [c for c in held if since_s + EPSILON_S < c.end_s <= until_s + EPSILON_S]
    return notes(ended, info.index, info.wall_start_s)
