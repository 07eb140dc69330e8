"""What is heard: sound cut into windows, transcribed above a level; and captions.

Hyper-parameters (C.5, "FrameBuffer and audio observations"): `audio_window_s` 5, `audio_min_rms`
0.005, `audio_most` 300. A window becomes readable at its end plus what transcribing took, a caption
at its end (Eq. 16); one that straddles an instant is not readable then.
"""

from __future__ import annotations

from collections.abc import Callable
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


class Ear:
    """Collects sound, and keeps the newest observations.

    Args:
        window_s, min_rms, most: See the module.
        listen: Speech recognition; without it only captions are heard.
        latency_s: Seconds of video after a window's end until its text is there.
    """

    def __init__(
        self,
        window_s: float,
        min_rms: float,
        most: int,
        listen: Listen | None = None,
        latency_s: float = 0.0,
        heard: tuple[Heard, ...] = (),
    ) -> None:
        self.window_s, self.min_rms, self.most = window_s, min_rms, most
        self.listen, self.latency_s = listen, latency_s
        self.heard = heard
        self._held: list[NDArray[np.float32]] = []
        self._held_from_s = 0.0

    def copy(self) -> Ear:
        """A second one that has heard the same."""
        other = Ear(self.window_s, self.min_rms, self.most, self.listen, self.latency_s, self.heard)
        other._held, other._held_from_s = list(self._held), self._held_from_s
        return other

    def add(self, start_s: float, end_s: float, text: str, available_s: float) -> None:
        """Keep an observation; the oldest goes where there are too many."""
        self.heard = (*self.heard, Heard(start_s, end_s, text, available_s))[-self.most :]

    def sound(self, samples: NDArray[np.float32], start_s: float) -> None:
        """Take in sound; each full window that is loud enough is transcribed."""
        if self.listen is None or not len(samples):
            return
        if not self._held:
            self._held_from_s = start_s
        self._held.append(samples)
        size = int(self.window_s * SAMPLE_RATE)
        joined = np.concatenate(self._held)
        while len(joined) >= size:
            self._window(joined[:size])
            joined = joined[size:]
            self._held_from_s += self.window_s
        self._held = [joined] if len(joined) else []

    def rest(self) -> None:
        """The sound ends here: what is left of it is a last window, a shorter one."""
        if self._held:
            self._window(np.concatenate(self._held))
            self._held = []

    def _window(self, samples: NDArray[np.float32]) -> None:
        assert self.listen is not None
        if float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) < self.min_rms:
            count("quiet_windows")
            return
        text = self.listen(samples).strip()
        count("windows_transcribed")
        if text:
            end_s = self._held_from_s + len(samples) / SAMPLE_RATE
            self.add(self._held_from_s, end_s, text, end_s + self.latency_s)

    def clear(self) -> None:
        """Forget sound and observations (a session has ended)."""
        self.heard, self._held = (), []

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
        sound = sum(part.nbytes for part in self._held)
        return sound + sum(len(h.text.encode()) for h in self.heard)
