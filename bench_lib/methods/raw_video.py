"""raw_video: keep every recording and replay it with the question, thinned to a frame limit.

Memory protocol `raw_video` of APM-Bench (protocol, sections 10 and 11): all videos of completed
sessions plus the current prefix at 1 fps, uniformly thinned to at most 1,024 frames (proprietary
models and the Qwen family) or 128 (InternVL3.5-8B, VideoLLaMA3-7B). How history and current prefix
share the limit is not published: uniform over the joined time line is taken (open point 7).
Registrations stand at their place in the replayed video (open points 5 and 8).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from bench_lib.errors import BenchError
from bench_lib.exchange import InputClass
from bench_lib.memories.frame_window import FrameWindow, Held, Shown, thin
from bench_lib.video.stream import StoredFrame


@dataclass(kw_only=True)
class RawVideo(FrameWindow):
    """All sessions so far, thinned at each question.

    Args:
        max_frames: Frame limit of one question (paper: 1,024; 128 for small contexts).
        max_pixels: The paper is silent; 100,352 (128 patches of 28 x 28) is what the thinned form
            of FluxMem takes and keeps 1,024 frames within 131,072 visual tokens as images.
        as_video: Send runs as videos, as models that take videos are fed.
        reserve: Frames of the limit that the current session may claim before the rest is shared;
            an ablation, 0 in the paper's setting.
        grid: `uniform`, or `fixed`: every 2^k-th frame, k the smallest that fits, and the newest
            one. A later question then shows the same frames and more, so a server's prefix cache
            stays warm until k grows.
        part_frames: With a fixed grid, short parts that stay the same (32, say) are what a server
            can reuse.
    """

    input_class: ClassVar[InputClass] = "thinned"
    # The prefix is read anew as one video, each frame with later ones (StreamArena, Eq. 13).
    causal: ClassVar[bool] = False

    max_frames: int = 1024
    max_pixels: int = 100_352
    as_video: bool = True
    reserve: int = 0
    grid: Literal["uniform", "fixed"] = "uniform"

    def __post_init__(self) -> None:
        if self.grid not in ("uniform", "fixed"):
            raise BenchError(f"raw_video: grid is uniform or fixed, not {self.grid!r}")
        if self.max_frames < 1 or not 0 <= self.reserve <= self.max_frames:
            raise BenchError(
                f"raw_video: max_frames={self.max_frames} must be at least 1 and hold "
                f"reserve={self.reserve}"
            )

    def shown(self) -> Sequence[Shown]:
        """See `FrameWindow.shown`."""
        current = self.state.current
        sessions: list[Held] = [*self.state.past, *([current] if current else [])]
        if not sessions:
            return []
        before = sum(len(held.frames) for held in sessions[:-1])
        chosen = self.choose(before, len(sessions[-1].frames))
        shown, offset = [], 0
        for held in sessions:
            end = offset + len(held.frames)
            shown.append((held, [i - offset for i in chosen if offset <= i < end]))
            offset = end
        return shown

    def choose(self, before: int, now: int) -> Sequence[int]:
        """Indices on the joined time line of `before` earlier frames and `now` current ones."""
        total, limit = before + now, self.max_frames
        if self.grid == "fixed" and total > limit:
            stride = 1
            while (total - 1) // stride + 2 > limit and stride < total:
                stride *= 2
            return sorted({*range(0, total, stride)[: limit - 1], total - 1})
        chosen = thin(total, limit)
        claim = min(now, self.reserve)
        if total > limit and sum(i >= before for i in chosen) < claim:
            chosen = thin(before, limit - claim) + [before + i for i in thin(now, claim)]
        return chosen

    def state_bytes(self) -> Mapping[str, int]:
        """Bytes of the stored videos of completed sessions (`frames`), as the paper counts them.

        Apart from them, as `index`, those of the handles: an instant, and where the frame lies.
        """
        handles = [frame for held in self.state.past for frame in held.frames]
        paths = {f.path for f in handles if isinstance(f, StoredFrame)}
        return {
            "frames": sum(held.recorded_bytes for held in self.state.past),
            "index": 24 * len(handles) + sum(len(path.encode()) for path in paths),
        }
