"""simplestream: the newest four frames and nothing else.

The no-memory baseline of APM-Bench (protocol, section 10: Qwen3-VL-8B-Instruct, the four newest
frames, no memory). Frames go as separate images at 1 fps. Deviation: each image is preceded by its
time and the session by a header, so that clocks in a question mean something.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench_lib.errors import BenchError
from bench_lib.memories.frame_window import FrameWindow, Shown
from bench_lib.video.stream import Clip


@dataclass(kw_only=True)
class SimpleStream(FrameWindow):
    """The newest frames of the current session.

    Args:
        recent_frames: How many (published: 2, 4 and 8; APM-Bench uses 4).
    """

    persistent = False
    bounded = True

    recent_frames: int = 4

    def observe(self, clip: Clip) -> None:
        """Hold the newest frames; older handles go."""
        super().observe(clip)
        self._hold(self.state.current.frames[-self.recent_frames :])

    def __post_init__(self) -> None:
        if self.recent_frames < 1:
            raise BenchError(f"simplestream: recent_frames must be 1 or more: {self.recent_frames}")

    def shown(self) -> Sequence[Shown]:
        """See `FrameWindow.shown`."""
        held = self.state.current
        return [] if held is None else [(held, range(len(held.frames)))]
