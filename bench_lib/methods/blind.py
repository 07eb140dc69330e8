"""blind: the question alone, without a single frame. What it scores is guessable from the text.

A shortcut baseline. The paper drops candidates that at least two of three models answer without
video (protocol, section 15); this method measures what is left of that on any model. The wearer's
own words of the current session are part of the question and are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench_lib.measure import count
from bench_lib.memories.frame_window import FrameWindow, Shown
from bench_lib.video.stream import Clip


@dataclass(kw_only=True)
class Blind(FrameWindow):
    """Sees nothing."""

    persistent = False
    bounded = True
    sees = False

    def observe(self, clip: Clip) -> None:
        """Look away."""
        count("frames_observed", len(clip.frames))

    def shown(self) -> Sequence[Shown]:
        """No session is shown."""
        return []
