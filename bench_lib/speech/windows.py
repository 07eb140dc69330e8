"""What is heard: sound cut into windows, transcribed above a level; and captions.

Hyper-parameters (C.5, "FrameBuffer and audio observations"): `audio_window_s` 5, `audio_min_rms`
0.005, `audio_most` 300. A window becomes readable at its end plus what transcribing took, a caption
at its end (Eq. 16); one that straddles an instant is not readable then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench_lib.measure import count
from bench_lib.video.stream import SAMPLE_RATE

WINDOW_S, MIN_RMS = 5.0, 0.005
Listen = Callable[[NDArray[np.float32]], str]
"""16 kHz mono samples of one window to text; empty where nothing was said."""


@dataclass(frozen=True)
class Heard:
    """Something that was said, readable from `available_s` on."""

    start_s: float
    end_s: float
    text: str
    available_s: float


@dataclass(frozen=True)
class Window:
    """Sound that is transcribed at once, 16 kHz mono."""

    start_s: float
    samples: NDArray[np.float32]

    @property
    def end_s(self) -> float:
        """When its last sample is over."""
        return self.start_s + len(self.samples) / SAMPLE_RATE


class Ear:
    """Collects sound, and keeps the newest observations.

    Args:
        window_s, min_rms, most: See the module.
        listen: Speech recognition; without it only captions are heard.
    """

    def __init__(
        self,
        window_s: float,
        min_rms: float,
        most: int,
        listen: Listen | None = None,
        heard: tuple[Heard, ...] = (),
    ) -> None:
        self.window_s, self.min_rms, self.most = window_s, min_rms, most
        self.listen, self.heard = listen, heard
        self._held: NDArray[np.float32] = np.zeros(0, np.float32)
        self._held_from_s, self._until_s = 0.0, -math.inf

    def copy(self) -> Ear:
        """A second one that has heard the same."""
        other = Ear(self.window_s, self.min_rms, self.most, self.listen, self.heard)
        other._held = self._held
        other._held_from_s, other._until_s = self._held_from_s, self._until_s
        return other

    def add(self, start_s: float, end_s: float, text: str, available_s: float) -> None:
        """Keep an observation in its place; the oldest goes where there are too many."""
        heard = sorted((*self.heard, Heard(start_s, end_s, text, available_s)), key=_start_s)
        self.heard = tuple(heard[-self.most :])

    def windows(self, samples: NDArray[np.float32], start_s: float) -> list[Window]:
        """Take in sound; the full windows that are loud enough to be transcribed.

        A gap in the sound keeps its time: a short one is silence in its window, a long one ends the
        window before it. What was heard before is passed over.
        """
        if self.listen is None or not len(samples):
            return []
        found: list[Window] = []
        gap = round((start_s - self._until_s) * SAMPLE_RATE) if self._until_s > -math.inf else 0
        if gap < 0:
            samples, start_s = samples[-gap:], self._until_s
        elif 0 < gap <= self.window_s * SAMPLE_RATE and len(self._held):
            samples = np.concatenate([np.zeros(gap, np.float32), samples])
        elif gap:
            found += self._left()
        if not len(samples):
            return found
        if not len(self._held):
            self._held_from_s = start_s
        self._held = np.concatenate([self._held, samples])
        self._until_s = self._held_from_s + len(self._held) / SAMPLE_RATE
        size = int(self.window_s * SAMPLE_RATE)
        while len(self._held) >= size:
            found += self._loud(Window(self._held_from_s, self._held[:size]))
            self._held, self._held_from_s = self._held[size:], self._held_from_s + self.window_s
        return found

    def _left(self) -> list[Window]:
        last = Window(self._held_from_s, self._held)
        self._held = self._held[:0]
        return self._loud(last) if len(last.samples) else []

    def _loud(self, window: Window) -> list[Window]:
        if float(np.sqrt(np.mean(np.square(window.samples, dtype=np.float64)))) >= self.min_rms:
            return [window]
        count("quiet_windows")
        return []

    def sound(self, samples: NDArray[np.float32], start_s: float) -> None:
        """Take in sound, and what is said in it at once; raises what the recogniser raises."""
        self._transcribe(self.windows(samples, start_s))

    def rest(self) -> None:
        """The sound ends here: what is left of it is a last window, a shorter one."""
        self._transcribe(self._left())

    def _transcribe(self, windows: Iterable[Window]) -> None:
        for window in windows:
            assert self.listen is not None
            self.take(window, self.listen(window.samples), window.end_s)

    def take(self, window: Window, text: str, available_s: float) -> None:
        """What was said in a window."""
        count("windows_transcribed")
        if text.strip():
            self.add(window.start_s, window.end_s, text.strip(), available_s)

    def clear(self) -> None:
        """Forget sound and observations (a session has ended)."""
        self.heard, self._held, self._until_s = (), self._held[:0], -math.inf

    def until(self, t_s: float, window_s: float) -> tuple[Heard, ...]:
        """What was readable at an instant and ended at most `window_s` before it."""
        return tuple(
            h
            for h in self.heard
            if h.available_s <= t_s + 1e-6 and t_s - window_s - 1e-6 <= h.end_s <= t_s + 1e-6
        )

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept: texts and the sound of the window under way."""
        return self._held.nbytes + sum(len(h.text.encode()) for h in self.heard)


def _start_s(heard: Heard) -> float:
    return heard.start_s
