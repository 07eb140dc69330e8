"""streaming_vlm: the newest seconds of video beside the oldest and newest text.

StreamingVLM (arXiv 2510.09608), the cache policy alone: video entries of a sliding window, text of
an attention sink and of a longer window. What leaves takes its positions with it: the rest closes
up, so that positions never outgrow the model ("shrink", the release's default). Keys are
un-rotated, as in the release.

Deviations: the release comments on every second and keeps its own commentary as text; here nothing
is said until a question comes, so the text is the system prompt, which is the sink and never
leaves, and the markers of sessions. A window is counted in footage that was seen, over sessions
too. The release is a tuned Qwen2.5-VL-7B; any other model runs the same policy without what it
learnt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from bench_lib.backbones.chunk import Chunk
from bench_lib.errors import BenchError
from bench_lib.memories.cache_memory import CacheMemory, CacheState


@dataclass(frozen=True)
class Stretch:
    """Entries whose positions lie together: a session's marker, or a chunk of grids.

    Attributes:
        start: First position.
        span: Positions that it takes.
        entries: Entries in the cache.
        grids: Grids of a chunk; 0 for a marker.
    """

    start: int
    span: int
    entries: int
    grids: int


@dataclass(kw_only=True)
class StreamingVlm(CacheMemory):
    """StreamingVLM.

    Attributes:
        window_s: Seconds of video that stay. 16: release.
        text_sink: Entries of the oldest text that stay. 512: release.
        text_window: Entries of the newest text that stay. 512: release.
        repetition_penalty: 1.05: release. Its temperature of 0.9 is for commentary; questions are
            decoded as the run says.
        max_pixels: 602,112: the limit of a video frame in the release's frame reader.
        fps: 2: release.
        clip_frames: 2, a chunk of one second: release.
    """

    bounded: ClassVar[bool] = True
    bare: ClassVar[bool] = False

    fps: float = 2.0
    clip_frames: int = 2
    max_pixels: int | None = 602_112
    repetition_penalty: float = 1.05
    window_s: float = 16.0
    text_sink: int = 512
    text_window: int = 512

    def __post_init__(self) -> None:
        if self.window_s * self.fps < 2:
            raise BenchError(
                f"streaming_vlm: window_s {self.window_s} holds no two frames at {self.fps} fps"
            )

    def marker_stays(self, markers: Sequence[int]) -> list[bool]:
        """See `CacheMemory.marker_stays`: what fits the sink, then the newest in the window."""
        before = torch.tensor(markers).cumsum(0) + self.state.prefix
        behind = torch.tensor(markers).flip(0).cumsum(0).flip(0)
        return ((before <= self.text_sink) | (behind <= self.text_window)).tolist()

    def remember(self, state: CacheState, chunk: Chunk) -> CacheState:
        """See `CacheMemory.remember`."""
        held = list(state.memory or ())
        if chunk.words:
            stays = iter(self.marker_stays((*state.markers, chunk.words)))
            held.append(Stretch(state.next, chunk.words, chunk.words, 0))
            held = [s for s in held if s.grids or next(stays)]
        grids = len(chunk.units)
        start = state.next + chunk.words
        held.append(Stretch(start, chunk.span - chunk.words, grids, chunk.grids))
        return self.evict(replace(self.read(state, chunk), memory=tuple(held)), chunk)

    @torch.inference_mode()
    def evict(self, state: CacheState, chunk: Chunk) -> CacheState:
        """See `CacheMemory.evict`: the oldest chunks leave, and positions close up."""
        room = round(self.window_s * self.fps / 2)
        held: list[Stretch] = list(state.memory)
        chunks = [s for s in held if s.grids]
        gone = 0
        while sum(s.grids for s in chunks[gone:]) > room and gone < len(chunks) - 1:
            gone += 1
        leaving = set(map(id, chunks[:gone]))
        entries = sum(s.entries for s in chunks[:gone])
        if gone:
            index = torch.arange(entries, state.visual(), device=self.served.device)
            state = self.keep(state, (index,) * self.served.layers)
        return self._closed_up(state, [s for s in held if id(s) not in leaving])

    def _closed_up(self, state: CacheState, held: list[Stretch]) -> CacheState:
        """The state with positions that run through the prefix and then `held`, in time order."""
        start, closed = state.prefix, []
        for stretch in held:
            closed.append(replace(stretch, start=start))
            start += stretch.span
        # In the cache markers stand before chunks, each kind in time order.
        order = sorted(range(len(held)), key=lambda i: held[i].grids > 0)
        moves = torch.tensor([0, *(closed[i].start - held[i].start for i in order)])
        sizes = torch.tensor([state.prefix, *(held[i].entries for i in order)])
        shift = moves.repeat_interleave(sizes).int().to(self.served.device)
        places = state.cache.positions[0] + shift
        cache = replace(state.cache, positions=(places,) * self.served.layers)
        return replace(state, cache=cache, next=start, memory=tuple(closed))
