"""infinipot_v: a full cache is compressed by redundancy in time and by the size of values.

InfiniPot-V (arXiv 2506.15745, NeurIPS 2025), training-free, no question needed. When a block of
grids fills the cache, every head of every layer keeps a share of its entries: the newest grids and
those least like them at the same cell (TaR, temporal-axis redundancy), then, for the rest of the
room, those with the largest values (VaN, value norm).

Each head keeps entries of its own, so keys are held turned at their positions, as in the release,
and positions in the cache are zero; they are never compacted.

`parity`: after its first compression the release still reads a cache entry's cell off its place in
line, although what is left of a grid no longer fills one; without parity the true cell is kept.
Pooling of value norms reads places in line in either case.

Deviations: the release spreads frames over the whole video, plans positions for all of it and
keeps more in its last blocks, which a stream cannot; here every block is compressed alike. Markers
of sessions stay beside the budget. Of Qwen3-VL there is no release: all heads keep the same whole
grids, scored by their means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from bench_lib.backbones.cache import Cache
from bench_lib.backbones.chunk import Chunk
from bench_lib.errors import BenchError
from bench_lib.measure import count
from bench_lib.memories.cache_memory import CacheMemory, CacheState

POOLS = ((3, 7), (2, 5), (1, 3), (0, 1))
"""Dimensions and width of pooling in each quarter of the layers (release)."""


@dataclass(kw_only=True)
class InfinipotV(CacheMemory):
    """InfiniPot-V.

    Attributes:
        block_grids: Grids that fill the cache. 32: the release's evaluation.
        keep_grids: Grids' worth of entries that stay. 24: the release's evaluation.
        tar_share: Share of what stays that TaR picks, the newest among it. 0.5: release.
        recent_share: Newest share of the grids, which stays and is compared with. 0.25: release.
        pooling: Smooth value norms over neighbours, more in shallow layers. The paper has it; the
            release's scripts leave it off.
        parity: See the module. True: release.
        max_pixels: 100,352: release (128 tokens a grid).
        fps: 1. The release takes at most 768 frames from a whole video instead.
        clip_frames: 16, two frames for each grid that a compression makes room for.
    """

    bounded: ClassVar[bool] = True

    max_pixels: int | None = 100_352
    clip_frames: int = 16
    block_grids: int = 32
    keep_grids: int = 24
    tar_share: float = 0.5
    recent_share: float = 0.25
    pooling: bool = False
    parity: bool = True

    def __post_init__(self) -> None:
        newest, picked = int(self.block_grids * self.recent_share), self._picked(1)
        if not 0 < newest <= picked <= self.keep_grids < self.block_grids:
            raise BenchError(
                f"infinipot_v: of {self.block_grids} grids {self.keep_grids} stay, {picked} of "
                f"them for TaR with the {newest} newest; each must hold the next and one at least"
            )

    def remember(self, state: CacheState, chunk: Chunk) -> CacheState:
        """See `CacheMemory.remember`."""
        after = settled(self.read(state, chunk), self.served.decoder.rotate)
        if not self.parity and not chunk.whole:
            rows, cols = state.lattice
            fresh = torch.arange(rows * cols, dtype=torch.int32).repeat(chunk.grids)
            fresh = fresh.expand(self.served.kv_heads, -1).to(self.served.device)
            before = state.memory or (fresh[:, :0],) * self.served.layers
            after = replace(after, memory=tuple(torch.cat((c, fresh), dim=1) for c in before))
        return self.evict(after, chunk)

    @torch.inference_mode()
    def evict(self, state: CacheState, chunk: Chunk) -> CacheState:
        """See `CacheMemory.evict`."""
        cells = state.lattice[0] * state.lattice[1]
        sizes = [u.unique_consecutive(return_counts=True)[1] for u in state.units]
        grids = len(sizes[0]) if sizes else state.visual() // cells
        if grids < self.block_grids:
            return state
        kept = []
        for layer in range(self.served.layers):
            keys = state.cache.keys[layer][:, state.fixed :]
            values = state.cache.values[layer][:, state.fixed :]
            if sizes:
                kept.append(self._whole(keys, values, sizes[layer], cells))
                continue
            where = state.memory[layer].long() if state.memory else None
            norms = self._norms(values, layer, state.lattice)
            kept.append(self._own(keys, norms, cells, grids, where))
        if state.memory:
            left = (c.gather(1, index) for c, index in zip(state.memory, kept, strict=True))
            state = replace(state, memory=tuple(left))
        return _gathered(state, kept)

    def _picked(self, per_grid: int) -> int:
        """Entries that TaR picks, the newest among them."""
        return self.keep_grids * per_grid - round((1 - self.tar_share) * self.keep_grids * per_grid)

    def _own(
        self, keys: Tensor, norms: Tensor, cells: int, grids: int, where: Tensor | None
    ) -> Tensor:
        """Entries `[kv_heads, n]` that each head keeps, rising; `where` are their true cells."""
        newest = int(grids * self.recent_share) * cells
        apart = -likeness(keys, newest, cells, where)
        old = apart.topk(max(0, self._picked(cells) - newest), dim=-1).indices
        recent = torch.arange(keys.shape[1] - newest, keys.shape[1], device=keys.device)
        first = torch.cat((old, recent.expand(len(keys), -1)), dim=1)
        score = norms.scatter(1, first, float(norms.max()) + 1)
        return score.topk(self.keep_grids * cells, dim=-1).indices.sort(dim=-1).values

    def _whole(self, keys: Tensor, values: Tensor, sizes: Tensor, cells: int) -> Tensor:
        """Entries of the grids that all heads keep; the cells of a grid precede its end marker."""
        ends = sizes.cumsum(0)
        visual = (ends - 1 - cells)[:, None] + torch.arange(cells, device=keys.device)
        newest = int(len(sizes) * self.recent_share)
        apart = -likeness(keys[:, visual.flatten()], newest * cells, cells, None)
        apart = apart.unflatten(1, (-1, cells)).mean((0, 2))
        old = apart.topk(max(0, self._picked(1) - newest)).indices
        recent = torch.arange(len(sizes) - newest, len(sizes), device=keys.device)
        score = values.float().norm(dim=-1)[:, visual].mean((0, 2))
        score = score.scatter(0, torch.cat((old, recent)), float(score.max()) + 1)
        stays = torch.zeros(len(sizes), dtype=torch.bool, device=keys.device)
        stays[score.topk(self.keep_grids).indices] = True
        return stays.repeat_interleave(sizes).nonzero()[:, 0].expand(len(keys), -1)

    def _norms(self, values: Tensor, layer: int, lattice: tuple[int, int]) -> Tensor:
        """Sizes `[kv_heads, n]` of values, pooled over neighbours where asked."""
        norms = values.float().norm(dim=-1)
        if not self.pooling:
            return norms
        axes, width = POOLS[min(layer // max(1, self.served.layers // len(POOLS)), len(POOLS) - 1)]
        return pooled(norms, axes, width, lattice)


def settled(state: CacheState, rotate: Callable[[Tensor, Tensor], Tensor]) -> CacheState:
    """The state with keys turned at their positions, which are zero from then on."""
    cache = state.cache
    keys = tuple(rotate(k, p) for k, p in zip(cache.keys, cache.positions, strict=True))
    return replace(state, cache=replace(cache, keys=keys, positions=_zeros(keys)))


def _zeros(keys: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Zero positions `[3, n]` for each layer, one tensor where layers are equally long."""
    sizes = {k.shape[1]: torch.zeros(3, k.shape[1], dtype=torch.int32) for k in keys}
    there = {n: zeros.to(keys[0].device) for n, zeros in sizes.items()}
    return tuple(there[k.shape[1]] for k in keys)


def likeness(keys: Tensor, newest: int, cells: int, where: Tensor | None) -> Tensor:
    """Mean cosine of each older key with the newest grids' keys at its cell.

    Args:
        keys: `[kv_heads, n, d]`, the last `newest` those of whole grids.
        newest: Entries compared with; not scored.
        cells: Entries of a grid.
        where: Cells `[kv_heads, n]` of the entries; None reads them off their places in line.

    Returns:
        `[kv_heads, n - newest]` float32.
    """
    unit = F.normalize(keys.float(), dim=-1, eps=1e-9)
    older, recent = unit[:, :-newest], unit[:, -newest:]
    mean = recent.unflatten(1, (-1, cells)).mean(1)
    if where is None:
        where = torch.arange(older.shape[1], device=keys.device).expand(len(keys), -1) % cells
    there = where[:, : older.shape[1], None].expand(-1, -1, keys.shape[-1])
    return (older * mean.gather(1, there)).sum(-1)


def pooled(norms: Tensor, axes: int, width: int, lattice: tuple[int, int]) -> Tensor:
    """Means of `norms` `[heads, n]` over `width` neighbours along time, rows and columns.

    One axis is the line of entries; two are rows and columns of each grid's worth of entries; three
    add time. What lies outside counts as zero; a width above the smallest side is cut to it.
    """
    if axes == 0:
        return norms
    if axes == 1:
        return F.avg_pool1d(norms, width, stride=1, padding=width // 2)
    block = norms.unflatten(1, (-1, *lattice))
    width = min(width, *block.shape[1:])
    width -= 1 - width % 2
    if width < 2:
        return norms
    pool = F.avg_pool2d if axes == 2 else F.avg_pool3d
    return pool(block, width, stride=1, padding=width // 2).flatten(1)


def _gathered(state: CacheState, kept: list[Tensor]) -> CacheState:
    """The state with the visual entries `[kv_heads, n]` that each layer's heads keep."""
    cache, fixed = state.cache, state.fixed
    count("entries_evicted", sum(state.visual(i) - x.shape[1] for i, x in enumerate(kept)))

    def left(held: Tensor, index: Tensor) -> Tensor:
        chosen = held[:, fixed:].gather(1, index[..., None].expand(-1, -1, held.shape[-1]))
        return torch.cat((held[:, :fixed], chosen), dim=1)

    keys = tuple(left(k, index) for k, index in zip(cache.keys, kept, strict=True))
    values = tuple(left(v, index) for v, index in zip(cache.values, kept, strict=True))
    units = tuple(u[index[0]] for u, index in zip(state.units, kept, strict=False))
    return replace(state, cache=Cache(keys, values, _zeros(keys)), units=units)
