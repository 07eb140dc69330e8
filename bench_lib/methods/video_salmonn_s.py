"""video_salmonn_s: tokens pass a layer that learns as it goes, then those unlike the last one stay.

video-SALMONN S (arXiv 2510.11129, ICML 2026), on visual token embeddings before the decoder. Chunks
of 64 grids go through a test-time-trained layer (`parts.ttt`), whose fast weights carry what went
before; its gated output is added to the tokens. Of all tokens so far, 16,384 stay: those whose
cosine with the token before them in raster order is smallest, over embedding and DeepStack levels
together (`parts.unlike`). They keep the places they had.

The trained layer comes with the checkpoint. On a stock model (`weights: stock`) there is none, and
selection alone remains; on a model made here the layer is made too, untrained.

Deviations from the release: cosines are float32; a chunk ends with its session and goes on counting
places in the next (the release knows one video); what fills the last mini-batch of a chunk teaches
nothing and is not remembered (`parity: true`: zeros are learnt from, stand in the history and shift
the lag); sound is not heard, and the pruned reading of its memory that the paper describes is left
out, as in the released command.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from bench_lib.backbones.prompt import Prompt, Visual
from bench_lib.errors import BenchError
from bench_lib.measure import count
from bench_lib.memories.parts import ttt, unlike
from bench_lib.memories.parts.ttt import Fast, Layer, Pace
from bench_lib.memories.token_memory import Group, TokenMemory, TokenState, marker
from bench_lib.memories.tuned import Tuned
from bench_lib.state.walk import part


@dataclass(frozen=True)
class Unit:
    """A grid whose time a question is told: see `Place`."""

    number: int
    session: int
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Stream:
    """video-SALMONN S's memory.

    Attributes:
        tokens: What was kept, `[n, width]`.
        grids: Their grids' numbers, `[n]` int32.
        cells: Their cells in raster order, `[n]` int32.
        units: Grids in time order, all or those with tokens left.
        pending: Grids of a chunk that is not complete.
        fast: The learning layer's weights.
        history: The newest embeddings it was given, `[lag, hidden]`.
    """

    tokens: Tensor | None = part("embeddings", default=None)
    grids: Tensor | None = part("index", default=None)
    cells: Tensor | None = part("index", default=None)
    units: tuple[Unit, ...] = ()
    pending: tuple[Group, ...] = ()
    fast: Fast | None = None
    history: Tensor | None = part("embeddings", default=None)


@dataclass(kw_only=True)
class VideoSalmonnS(Tuned, TokenMemory):
    """video-SALMONN S. Origins are arguments of the released command (README) unless said.

    Attributes:
        weights: See `Tuned`; see the module for what a stock model lacks.
        memory_tokens: Visual tokens kept. 16,384: `fixed_memory_size`.
        step: Tokens that come to the selection at once. 4,096: `stepsize`.
        chunk_grids: Grids that pass the layer at once. 64: `forward_ttt_layers`.
        lag: Tokens between a token and the earlier one it predicts. 1,024: `lag_distances`.
        mini_batch: Tokens a gradient step. 1,024: `init_ttt_layers`.
        base_rate: Learning rate before a token's own factor. 0.1: `init_ttt_layers`.
        lag_weight: Of the lagged loss. 0.1: `ema_factor`.
        heads: Of a layer that is made here: at most so many. 8: `ttt_num_heads`.
        empty_units: The time of a grid is told even when none of its tokens is left, as in the
            release; then the prompt grows with the stream, and only without it is the state
            bounded. Only families that write times (Qwen3-VL) differ.
        parity: See the module.
        max_pixels: 176,400: `test.sh`.
        fps: 1: `interval`.
        clip_frames: Frames handed over at once; the memory does not depend on it.
        session_marker: Write a session's number and clock before its tokens. The release has none.
    """

    checkpoint: ClassVar[str] = "tsinghua-ee/video_SALMONN_S (its base and lora folders)"
    persistent: ClassVar[bool] = True

    memory_tokens: int = 16_384
    step: int = 4_096
    chunk_grids: int = 64
    lag: int = 1_024
    mini_batch: int = 1_024
    base_rate: float = 0.1
    lag_weight: float = 0.1
    heads: int = 8
    empty_units: bool = True
    parity: bool = False
    max_pixels: int | None = 176_400

    layer: Layer | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("memory_tokens", "step", "chunk_grids", "lag", "mini_batch", "heads"):
            if getattr(self, name) < 1:
                raise BenchError(
                    f"video_salmonn_s: {name} is {getattr(self, name)}; give 1 or more"
                )

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        """Whether grids that lost all tokens are forgotten."""
        return not self.empty_units

    def attach(self, model: Any) -> Self:
        """See `Method.attach`."""
        super().attach(model)
        if self.trained:
            self.layer = Layer.of(model.extra)
        elif self.weights == "tuned":
            like = torch.empty(0, dtype=model.dtype, device=model.device)
            self.layer = Layer.made(model.hidden, self._heads(model.hidden), like)
        return self

    @property
    def caveat(self) -> str:
        """See `Method.caveat`."""
        said = super().caveat
        if not said:
            return ""
        lacks = "untrained" if self.layer else "absent, selection alone remains"
        return f"{said}; its learning layer is {lacks}"

    def _heads(self, hidden: int) -> int:
        """Heads of a layer made here: places are told by sixteenths of a head's numbers."""
        fit = [h for h in range(1, self.heads + 1) if hidden % (16 * h) == 0]
        if not fit:
            raise BenchError(f"video_salmonn_s: {hidden} numbers do not divide into heads of 16 n")
        return fit[-1]

    # The memory -----------------------------------------------------------------------------------

    def blank(self) -> Stream:
        """See `TokenMemory.blank`."""
        return Stream(fast=self.layer.untaught() if self.layer else None)

    def end_session(self, recorded_bytes: int) -> None:
        """See `Method.end_session`; the chunk ends with its session."""
        super().end_session(recorded_bytes)
        memory = self._flushed(self.state.memory, self.state.lattice)
        self.state = replace(self.state, memory=memory)

    def recall(self, memory: Stream) -> Sequence[Unit | Group]:
        """See `TokenMemory.recall`: what a question is told the time of."""
        return (*memory.units, *memory.pending)

    def tokens(self) -> tuple[int, int]:
        """See `Method.tokens`."""
        memory: Stream = self.state.memory
        kept = 0 if memory.tokens is None else len(memory.tokens)
        rows, cols = self.state.lattice
        waiting = sum(len(group.cells) for group in memory.pending)
        return kept + waiting, self.state.grids * rows * cols

    @torch.inference_mode()
    def remember(self, memory: Stream, grids: Sequence[Group], lattice: tuple[int, int]) -> Stream:
        """See `TokenMemory.remember`."""
        memory = replace(memory, pending=(*memory.pending, *grids))
        while len(memory.pending) >= self.chunk_grids:
            memory = self._chunk(memory, memory.pending[: self.chunk_grids], lattice)
        return memory

    @torch.inference_mode()
    def _flushed(self, memory: Stream, lattice: tuple[int, int]) -> Stream:
        """The memory with its incomplete chunk taken in."""
        return self._chunk(memory, memory.pending, lattice) if memory.pending else memory

    def _chunk(self, memory: Stream, chunk: Sequence[Group], lattice: tuple[int, int]) -> Stream:
        tokens = torch.cat([group.tokens for group in chunk])
        tokens, fast, history = self._learnt(memory, tokens, chunk[0].number, lattice)
        sizes = torch.tensor([len(group.cells) for group in chunk], device=tokens.device)
        numbers = torch.tensor([g.number for g in chunk], dtype=torch.int32, device=tokens.device)
        grids = numbers.repeat_interleave(sizes, output_size=len(tokens))
        cells = torch.cat([group.cells for group in chunk])
        if memory.tokens is not None:
            tokens = torch.cat((memory.tokens, tokens))
            grids, cells = torch.cat((memory.grids, grids)), torch.cat((memory.cells, cells))  # type: ignore[arg-type]
        stays = unlike.kept(tokens, self.memory_tokens, self.step)
        count("tokens_dropped", len(tokens) - len(stays))
        units = (*memory.units, *(Unit(g.number, g.session, g.start_s, g.end_s) for g in chunk))
        if not self.empty_units:
            left = set(grids[stays].unique().tolist())
            units = tuple(unit for unit in units if unit.number in left)
        return Stream(
            tokens[stays],
            grids[stays],
            cells[stays],
            units,
            memory.pending[len(chunk) :],
            fast,
            history,
        )

    def _learnt(
        self, memory: Stream, tokens: Tensor, number: int, lattice: tuple[int, int]
    ) -> tuple[Tensor, Fast | None, Tensor | None]:
        """Tokens after the learning layer, its weights and its history."""
        if self.layer is None or memory.fast is None:
            return tokens, None, None
        hidden = self.served.hidden
        x = tokens[:, :hidden]
        history = x[:0] if memory.history is None else memory.history
        first = number * lattice[0] * lattice[1]
        pace = Pace(self.mini_batch, self.lag, self.base_rate, self.lag_weight)
        y, fast, history = ttt.taught(
            self.layer, memory.fast, history, x, first, lattice, pace, self.parity
        )
        count("gradient_steps", -(-len(x) // self.mini_batch))
        x = torch.tanh(self.layer.gating_alpha) * y + x
        return torch.cat((x, tokens[:, hidden:]), dim=1), fast, history

    # The prompt -----------------------------------------------------------------------------------

    def show(self, prompt: Prompt, state: TokenState) -> None:
        """See `TokenMemory.show`."""
        memory = self._flushed(state.memory, state.lattice)
        if memory.tokens is None:
            return
        assert memory.grids is not None
        assert memory.cells is not None
        seen = {session.position: session for session in state.sessions}
        for position, members in groupby(memory.units, key=lambda unit: unit.session):
            units = list(members)
            extent_s = seen[position].extent_s
            assert extent_s is not None
            numbers = torch.tensor([u.number for u in units], device=memory.grids.device)
            here = (memory.grids >= numbers[0]) & (memory.grids <= numbers[-1])
            if self.session_marker:
                prompt.text(marker(seen[position]))
            prompt.show(
                Visual(
                    tokens=memory.tokens[here],
                    grids=torch.searchsorted(numbers, memory.grids[here].long()),
                    cells=memory.cells[here],
                    times_s=tuple((unit.start_s, unit.end_s) for unit in units),
                    extent_s=extent_s,
                    lattice=state.lattice,
                    empty_units=self.empty_units,
                )
            )
