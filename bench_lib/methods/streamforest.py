"""streamforest: the newest frame whole, recent ones thinned, older ones as a forest of events.

StreamForest (arXiv 2509.24871, NeurIPS 2025), on vision features before the projector. Codes of
place and time are added to each frame. The newest keeps all tokens, the ones before are merged to
128 (ToMe). When those are too many, the oldest are cut at the least alike neighbours into an event
of 64 tokens a frame. When events hold more than a quota, neighbours are merged, the pair first that
is most alike, oldest and least merged. A question reads events, recent frames and the newest one.

`mode: batch` is the release, which is given a whole video at the question and updates once: all
events are cut before any is merged. It needs the features of every frame (5.6 GiB an hour at the
published size). `mode: streaming` updates after every frame and keeps the forest alone (about
21 MiB); its events differ. The batch is kept as features, so that a frame is encoded once; the
release encodes up to `max_frames` of them at each question.

Deviations from the release: cosines and means are float32; equal similarities are told apart by
order; frames are those of the sampling grid; what a question is told of times is in other words.
On a model that was not trained for it: a token is a cell of the model's own merger, all its patches
together; every frame is encoded by itself (two-frame towers see it twice); codes are foreign to
the merger (`add_codes: false` leaves them out); where a frame has fewer tokens than a tier keeps,
the tier keeps all; the family's video markers stand around the block; positions count tokens on all
axes, as for text; DeepStack levels are averaged with their token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench_lib.backbones.prompt import Prompt
from bench_lib.errors import BenchError, nearest
from bench_lib.exchange import InputClass
from bench_lib.memories.parts import forest as trees
from bench_lib.memories.parts import pace
from bench_lib.memories.parts.forest import Forest, Look, Plan
from bench_lib.memories.parts.sincos import codes
from bench_lib.memories.parts.speech import Speech, checked
from bench_lib.memories.token_memory import Place, TokenMemory, TokenState, marker
from bench_lib.memories.tuned import Tuned

MODES = ("batch", "streaming")


@dataclass(frozen=True)
class Seen:
    """StreamForest's memory: every frame's features in batch mode, a forest in streaming mode."""

    frames: tuple[Look, ...] = ()
    forest: Forest = field(default_factory=Forest)


@dataclass(kw_only=True)
class Streamforest(Tuned, TokenMemory):
    """StreamForest. Origins are arguments of the release's `MemoryManager` unless said.

    Attributes:
        mode: See the module. `batch`: the release.
        weights: See `Tuned`.
        newest_frames: Frames kept whole. 1: `st_memory_windows`.
        short_frames: Thinned frames that are never cut into events. 18: `st_memory_windows`.
        whole_tokens: Tokens of a whole frame. 729: `st_memory_tokens`.
        short_tokens: Tokens of a thinned frame. 128: `st_memory_tokens`.
        event_window: Most frames of a new event. 8: `event_split_window`.
        frame_tokens: Tokens a frame of an event. 64: `long_memory_tokens_per_frame`.
        quota: Most tokens of all events. 5,120: `long_memory_tokens_quota`.
        unlike_weight: Of a pair's difference. 0.4: `sim_weight_g`.
        recent_weight: Of a pair's time. 0.2: `time_weight_a`.
        merged_weight: Of a pair's earlier merges. 0.4: `merge_weight_b`.
        heads: Over which similarity is averaged. 16: the vision tower's.
        period: Frames after which time codes repeat. 512: `time_pos_embedding_window`.
        add_codes: Add the codes to what is kept, as the trained projector expects.
        time_message: Tell frames and seconds before the question, as `short_online_v2` does.
        max_frames: Frames that `batch` looks at, evenly spaced. 2,048: the evaluation scripts.
        max_pixels: Of towers without a size of their own. 147,456 (384 x 384): the release's tower.
        speech: `captions` puts what was said before the question, as StreamArena's runs do. The
            release has none.
        fps: 1: the evaluation scripts.
        clip_frames: Frames handed over at once; the memory does not depend on it.
        session_marker: Write the number and clock of the sessions in memory before it. The release
            has none.
    """

    checkpoint: ClassVar[str] = "MCG-NJU/StreamForest-Qwen2-7B"
    persistent: ClassVar[bool] = True
    frames_per_grid: ClassVar[int] = 1  # type: ignore[assignment,misc]

    mode: Literal["batch", "streaming"] = "batch"
    newest_frames: int = 1
    short_frames: int = 18
    whole_tokens: int = 729
    short_tokens: int = 128
    event_window: int = 8
    frame_tokens: int = 64
    quota: int = 5_120
    unlike_weight: float = 0.4
    recent_weight: float = 0.2
    merged_weight: float = 0.4
    heads: int = 16
    period: int = 512
    add_codes: bool = True
    time_message: bool = True
    max_frames: int = 2_048
    max_pixels: int | None = 147_456
    speech: Speech = "none"  # type: ignore[misc]

    def __post_init__(self) -> None:
        super().__post_init__()
        checked("streamforest", self.speech, ("none", "captions"))
        if self.mode not in MODES:
            raise BenchError(f"streamforest: mode is {self.mode!r}; {nearest(self.mode, MODES)}")
        for name in (
            "newest_frames", "short_frames", "whole_tokens", "short_tokens", "event_window",
            "frame_tokens", "quota", "heads", "period", "max_frames",
        ):  # fmt: skip
            if getattr(self, name) < 1:
                raise BenchError(f"streamforest: {name} is {getattr(self, name)}; give 1 or more")

    @property
    def input_class(self) -> InputClass:  # type: ignore[override]
        """See `Method.input_class`; a batch is thinned and rebuilt at each probe."""
        return "thinned" if self.mode == "batch" else "incremental"

    @property
    def causal(self) -> bool:  # type: ignore[override]
        """See `Method.causal`; a batch merges a frame with later ones (StreamArena, Eq. 13)."""
        return self.mode == "streaming"

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        """Whether the forest is all that is kept."""
        return self.mode == "streaming"

    # The contract ---------------------------------------------------------------------------------

    def blank(self) -> Seen:
        """See `TokenMemory.blank`."""
        return Seen()

    def recall(self, memory: Seen) -> Sequence[Look]:
        """See `TokenMemory.recall`: the frames that are in no event."""
        return (*memory.frames, *memory.forest.short, *memory.forest.newest)

    def reached(self, memory: Seen) -> set[int]:
        """See `TokenMemory.reached`; of an event, the sessions in which it begins and ends."""
        ends = {session for event in memory.forest.events for session in event.sessions}
        return super().reached(memory) | ends

    def tokens(self) -> tuple[int, int]:
        """See `Method.tokens`."""
        memory: Seen = self.state.memory
        rows, cols = self.state.lattice
        events = sum(len(event.tokens) for event in memory.forest.events)
        kept = events + sum(len(look.tokens) for look in self.recall(memory))
        return kept, self.state.grids * rows * cols

    def perceive(self, pictures: list[NDArray[np.uint8]], places: Sequence[Place]) -> list[Look]:
        """See `TokenMemory.perceive`: features `[cells, levels * merge**2 * channels]`."""
        features = self.served.vision(pictures, as_images=True)
        flat = features.transpose(1, 2).flatten(2)
        return [Look(at.number, at.session, flat[i].clone()) for i, at in enumerate(places)]

    @torch.inference_mode()
    def remember(self, memory: Seen, grids: Sequence[Look], lattice: tuple[int, int]) -> Seen:
        """See `TokenMemory.remember`."""
        if self.mode == "batch":
            return replace(memory, frames=(*memory.frames, *grids))
        forest, plan = memory.forest, self._plan(grids[0], lattice)
        for look in grids:
            forest = trees.added(forest, self._coded(look, look.number, lattice), plan)
            forest = trees.settled(forest, plan)
        return replace(memory, forest=forest)

    # The memory -----------------------------------------------------------------------------------

    def _forest(self, memory: Seen, lattice: tuple[int, int]) -> Forest:
        """What a question reads."""
        if self.mode == "streaming":
            return memory.forest
        forest = Forest()
        if not memory.frames:
            return forest
        plan = self._plan(memory.frames[0], lattice)
        for frame, i in enumerate(pace.thinned(len(memory.frames), self.max_frames)):
            forest = trees.added(forest, self._coded(memory.frames[i], frame, lattice), plan)
        return trees.settled(forest, plan)

    def _coded(self, look: Look, frame: int, lattice: tuple[int, int]) -> Look:
        """A look with the codes of its place in the stream, on the tower's last level."""
        if not self.add_codes:
            return look
        hidden, tokens = self._hidden(look), look.tokens
        added = codes(frame, lattice, hidden, self.period).to(tokens)
        coded = torch.cat((tokens[:, :hidden] + added, tokens[:, hidden:]), dim=1)
        return replace(look, tokens=coded)

    def _hidden(self, look: Look) -> int:
        """Numbers of a token on the tower's last level."""
        hidden = look.tokens.shape[1] // (1 + self.served.deep)
        if hidden % self.heads or hidden % 16:
            raise BenchError(
                f"streamforest: a token of {self.served.id} has {hidden} numbers: heads must "
                f"divide them, {self.heads} does not, and codes need a multiple of 16"
            )
        return hidden

    def _plan(self, look: Look, lattice: tuple[int, int]) -> Plan:
        whole = min(self.whole_tokens, lattice[0] * lattice[1])
        short = min(self.short_tokens, whole)
        return Plan(
            self.newest_frames,
            self.short_frames,
            whole,
            short,
            self.event_window,
            min(self.frame_tokens, short),
            self.quota,
            (self.unlike_weight, self.recent_weight, self.merged_weight),
            self.heads,
            self._hidden(look),
        )

    # The prompt -----------------------------------------------------------------------------------

    @torch.inference_mode()
    def show(self, prompt: Prompt, state: TokenState) -> None:
        """See `TokenMemory.show`."""
        forest = self._forest(state.memory, state.lattice)
        if not forest.newest:
            return
        for seen in state.sessions:
            if self.session_marker and seen.position in self.reached(state.memory):
                prompt.text(marker(seen))
        plan = self._plan(forest.newest[0], state.lattice)
        flat = torch.cat(trees.tokens(forest, plan))
        tokens = self.served.project(self._features(flat))[0]
        if not self.trained:
            prompt.control("<|vision_start|>")
        prompt.placed(tokens, torch.arange(len(tokens)).expand(3, -1), len(tokens))
        if not self.trained:
            prompt.control("<|vision_end|>")
        if self.time_message:
            prompt.text(self._message(state, forest))

    def _features(self, tokens: Tensor) -> Tensor:
        """Tokens `[n, d]` as the features of one grid, `[1, levels, n, merge**2, channels]`."""
        levels, merge = 1 + self.served.deep, self.served.preparation.merge**2
        return tokens.view(len(tokens), levels, merge, -1).transpose(0, 1)[None]

    def _message(self, state: TokenState, forest: Forest) -> str:
        shown = forest.passed + len(forest.short) + len(forest.newest)
        back_s = (state.grids - 1) / self.fps
        extent = state.sessions[-1].extent_s if state.sessions else None
        now = f", second {extent[1]:.1f} of this session" if extent else ""
        return f"\nAbove are {shown} frames of {back_s:.1f} seconds of video up to now{now}.\n"
