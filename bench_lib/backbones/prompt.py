"""A chat as embeddings and positions: what a decoder reads before it answers.

The wording of turns is the Qwen families' chat template, written here because visual tokens stand
between its words; a test compares it with the tokenizer's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor

from bench_lib.backbones import base


@dataclass(frozen=True)
class Visual:
    """Visual tokens of one stretch of video, or of one image.

    Attributes:
        tokens: Embeddings `[n, width]`, grid by grid.
        grids: For each token, its grid as an index into `times_s`, `[n]`.
        cells: For each token, its cell in raster order, `[n]`.
        times_s: First and last frame instant of each grid that has tokens here, in order.
        extent_s: First instants of the first and the last grid of the stretch, whether tokens of
            them are left or not: positions are planned for the whole stretch.
        lattice: Rows and columns of cells.
        video: False for an image.
        empty_units: Grids of which no token is left keep the text that a family writes for each.
    """

    tokens: Tensor
    grids: Tensor
    cells: Tensor
    times_s: tuple[tuple[float, float], ...]
    extent_s: tuple[float, float]
    lattice: tuple[int, int]
    video: bool = True
    empty_units: bool = False

    @classmethod
    def whole(
        cls,
        tokens: Tensor,
        frame_times_s: Sequence[float],
        lattice: tuple[int, int],
        video: bool = True,
    ) -> Visual:
        """All tokens `[grids, cells, width]` of frames seen at these instants."""
        grids, cells = tokens.shape[:2]
        # One grid a frame, or one for two (a lone frame is one either way).
        times = grid_times(frame_times_s, 1 if grids == len(frame_times_s) else 2)
        return cls(
            tokens=tokens.flatten(0, 1),
            grids=torch.arange(grids).repeat_interleave(cells),
            cells=torch.arange(cells).repeat(grids),
            times_s=times,
            extent_s=(times[0][0], times[-1][0]),
            lattice=lattice,
            video=video,
        )

    def between(self, start: int, stop: int) -> Visual:
        """Tokens `start` to `stop`; times and extent stay."""
        here = slice(start, stop)
        return replace(
            self, tokens=self.tokens[here], grids=self.grids[here], cells=self.cells[here]
        )


def grid_times(
    frame_times_s: Sequence[float], frames_per_grid: int = 2
) -> tuple[tuple[float, float], ...]:
    """First and last instant of each grid of one frame or two; a lone last frame is both."""
    times = list(frame_times_s)
    if frames_per_grid == 1:
        return tuple(zip(times, times, strict=True))
    seconds = times[1::2] if len(times) % 2 == 0 else [*times[1::2], times[-1]]
    return tuple(zip(times[::2], seconds, strict=True))


@dataclass(frozen=True)
class Built:
    """A finished prompt: inputs `[n, width]`, positions `[3, n]`, ids of its text `[m]`."""

    x: Tensor
    positions: Tensor
    text_ids: Tensor
    visual_tokens: int


class Prompt:
    """Builds one prompt from start to end. `next` is the next free position."""

    def __init__(self, backbone: base.Backbone) -> None:
        self.backbone = backbone
        self.next = 0
        self._waiting = ""
        self._pieces: list[list[int] | Tensor] = []
        self._positions: list[Tensor] = []

    def turn(self, role: str) -> Prompt:
        """Open a turn of `system`, `user` or `assistant`."""
        self.control("<|im_start|>")
        return self.text(f"{role}\n")

    def end(self) -> Prompt:
        """Close a turn."""
        self.control("<|im_end|>")
        return self.text("\n")

    def text(self, text: str) -> Prompt:
        """Append plain text. It is cut into tokens only at control tokens, as the template is."""
        self._waiting += text
        return self

    def control(self, name: str) -> None:
        """Append a control token."""
        self._flush()
        self._count([self.backbone.token(name)])

    def show(self, visual: Visual) -> Prompt:
        """Append visual tokens in the family's layout; raises ValueError for times out of order."""
        starts = [visual.extent_s[0], *(start for start, _ in visual.times_s), visual.extent_s[1]]
        if any(later < earlier for earlier, later in pairwise(starts)):
            raise ValueError(f"grids of one stretch must be in time order: {starts}")
        if len(visual.tokens) or visual.empty_units:
            self.backbone.place(self, visual)
        return self

    def visual(self, visual: Visual, steps: Tensor, span: int) -> None:
        """Append a stretch's tokens at `steps` `[n]` after `next`; grids span `span` steps in all.

        For the families' `place`: afterwards `next` lies behind the whole stretch, as if no token
        of it had been dropped.
        """
        rows, cols = visual.lattice
        cells = visual.cells.cpu().long()
        where = torch.stack((steps.long(), cells // cols, cells % cols))
        self.placed(visual.tokens, where, max(span, rows, cols), visual.grids)

    def placed(
        self, tokens: Tensor, where: Tensor, span: int, grids: Tensor | None = None
    ) -> Prompt:
        """Append visual tokens `[n, width]` at positions `where` `[3, n]` after `next`.

        For memories with positions of their own; `next` moves on by `span`. `grids` `[n]`, where
        the tokens are those of whole grids, say which.
        """
        self._flush()
        self._pieces.append(tokens)
        self._positions.append(where.cpu() + self.next)
        self.next += span
        return self

    @torch.inference_mode()
    def build(self) -> Built:
        """All that was appended."""
        self._flush()
        model = self.backbone
        ids = [i for piece in self._pieces if isinstance(piece, list) for i in piece]
        words = iter(model.embed(ids).split([len(p) for p in self._pieces if isinstance(p, list)]))
        seen = [piece for piece in self._pieces if isinstance(piece, Tensor)]
        width = model.width if seen else model.hidden
        x = torch.cat(
            [
                piece.to(model.dtype)
                if isinstance(piece, Tensor)
                else torch.nn.functional.pad(next(words), (0, width - model.hidden))
                for piece in self._pieces
            ]
        )
        return Built(
            x=x,
            positions=torch.cat(self._positions, dim=1).to(model.device),
            text_ids=torch.tensor(ids, device=model.device),
            visual_tokens=sum(len(piece) for piece in seen),
        )

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, ""
        self._count(self.backbone.tokenize(waiting))

    def _count(self, ids: list[int]) -> None:
        if ids:
            self._pieces.append(ids)
            self._positions.append((torch.arange(len(ids)) + self.next).expand(3, -1))
            self.next += len(ids)
