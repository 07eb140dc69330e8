"""Sine and cosine codes of place and time, as StreamForest adds them to vision features.

Of a token's channels the first quarter tells its frame, the rest its column, then its row.
"""

from __future__ import annotations

import torch
from torch import Tensor


def codes(frame: int, lattice: tuple[int, int], channels: int, period: int = 512) -> Tensor:
    """Codes `[cells, channels]` of one frame, cells in raster order; frames repeat at `period`.

    `channels` must be a multiple of 16.
    """
    rows, cols = lattice
    cells = torch.arange(rows * cols)
    time = _waves(torch.full((rows * cols,), frame % period), channels // 4)
    place = channels // 4 * 3 // 2
    return torch.cat((time, _waves(cells % cols, place), _waves(cells // cols, place)), dim=1)


def _waves(position: Tensor, channels: int) -> Tensor:
    """Sines, then cosines, `[n, channels]`, of positions `[n]` at falling frequencies."""
    half = channels // 2
    turns = position.float()[:, None] / 10_000 ** (torch.arange(half) / half)
    return torch.cat((turns.sin(), turns.cos()), dim=1)
