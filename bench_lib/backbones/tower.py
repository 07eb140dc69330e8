"""Pieces of the Qwen vision towers, batched over grids.

The library attends to one window at a time where FlashAttention is absent; here windows of one size
are one batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

Runs = Sequence[tuple[int, int]]
"""Consecutive runs of a sequence, as (how many, length of each)."""


def cell_places(rows: int, cols: int, merge: int) -> Tensor:
    """Row and column `[patches, 2]` of every patch of a grid; patches of a cell lie together."""
    row, col = torch.meshgrid(torch.arange(rows * merge), torch.arange(cols * merge), indexing="ij")
    stacked = torch.stack((row, col), dim=-1).view(rows, merge, cols, merge, 2)
    return stacked.transpose(1, 2).reshape(-1, 2)


def angles_2d(places: Tensor, head_dim: int, theta: float = 10_000.0) -> tuple[Tensor, Tensor]:
    """Cosines and sines `[patches, head_dim]`: rows turn one half, columns the other.

    The rotary embedding of Qwen2-VL's tower and its successors.
    """
    half = head_dim // 2
    exponents = torch.arange(0, half, 2, device=places.device, dtype=torch.float32) / half
    turns = (places[:, :, None].float() / theta**exponents).flatten(1)
    turns = torch.cat((turns, turns), dim=-1)
    return turns.cos(), turns.sin()


def order_by_windows(rows: int, cols: int, side: int, per_cell: int) -> tuple[Tensor, Runs]:
    """An order of a grid's patches in which every window of `side` x `side` cells is one run.

    Windows of one size come together, so that they can be attended to in one batch. Returns the
    patch index `[patches]` and the runs in patches.
    """
    cell = torch.arange(rows * cols)
    window = (cell // cols) // side * cols + (cell % cols) // side
    names, member, sizes = window.unique(return_inverse=True, return_counts=True)
    order = torch.argsort(sizes[member] * len(names) + member, stable=True)
    patches = (order[:, None] * per_cell + torch.arange(per_cell)).flatten()
    lengths, counts = sizes.unique(return_counts=True)
    runs = [(int(n), int(size) * per_cell) for size, n in zip(lengths, counts, strict=True)]
    return patches, runs


def attend_blocks(q: Tensor, k: Tensor, v: Tensor, runs: Runs) -> Tensor:
    """Attention inside each run: `[grids, heads, patches, d]` to `[grids, patches, heads * d]`."""
    grids, heads, _, d = q.shape
    done, start = [], 0
    for number, length in runs:
        stop = start + number * length
        q_run, k_run, v_run = (
            t[:, :, start:stop]
            .reshape(grids, heads, number, length, d)
            .transpose(1, 2)
            .reshape(grids * number, heads, length, d)
            for t in (q, k, v)
        )
        out = F.scaled_dot_product_attention(q_run, k_run, v_run)
        done.append(out.transpose(1, 2).reshape(grids, number * length, heads * d))
        start = stop
    return torch.cat(done, dim=1)
