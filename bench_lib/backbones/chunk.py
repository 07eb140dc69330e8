"""A part of a stream as a decoder reads it after what it has read before."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from bench_lib.backbones.base import Backbone
from bench_lib.backbones.prompt import Prompt, Visual


@dataclass(frozen=True)
class Chunk:
    """Grids of one session, behind a text where one opens them.

    Attributes:
        x: Inputs `[n, width]`.
        words: How many of them belong to the text.
        positions: Planned positions `[3, n]` int32 from 0, on the CPU.
        units: Grid of each input behind the text, counted in the chunk, on the CPU.
        grids: Number of grids.
        span: Positions that the chunk takes.
        whole: Whether grids carry text of their own (Qwen3-VL's times), so that a memory that drops
            a grid's tokens one by one would leave a time without a picture.
    """

    x: Tensor
    words: int
    positions: Tensor
    units: Tensor
    grids: int
    span: int
    whole: bool


def chunk(backbone: Backbone, text: str, visual: Visual, bare: bool) -> Chunk:
    """Lay out whole grids after a text; `bare` as in `Backbone.place`."""
    layout = _Layout(backbone)
    layout.text(text)
    words = layout.size()
    backbone.place(layout, visual, bare=bare)
    built = layout.build()
    units = layout.units()[words:]
    return Chunk(
        x=built.x,
        words=words,
        positions=layout.places(),
        units=units,
        grids=len(visual.times_s),
        span=layout.next,
        whole=bare and len(units) > len(visual.tokens),
    )


class _Layout(Prompt):
    """A prompt that knows which grid each of its tokens belongs to."""

    def __init__(self, backbone: Backbone) -> None:
        super().__init__(backbone)
        self._shown: list[tuple[int, Tensor]] = []

    def size(self) -> int:
        """Tokens appended so far."""
        self._flush()
        return sum(where.shape[1] for where in self._positions)

    def placed(
        self, tokens: Tensor, where: Tensor, span: int, grids: Tensor | None = None
    ) -> Prompt:
        """See `Prompt.placed`."""
        super().placed(tokens, where, span, grids)
        assert grids is not None
        self._shown.append((self.size() - len(tokens), grids))
        return self

    def places(self) -> Tensor:
        """All positions `[3, n]` int32."""
        return torch.cat(self._positions, dim=1).int()

    def units(self) -> Tensor:
        """Grid of each token: the token after a grid ends it, all other text opens the next."""
        found: list[Tensor] = []
        done, last = 0, torch.empty(0, dtype=torch.long)
        for start, grids in self._shown:
            ends = last[: start - done]
            found += [ends, grids[:1].expand(start - done - len(ends)), grids]
            done, last = start + len(grids), grids[-1:]
        return torch.cat([*found, last.expand(self.size() - done)])
