"""streammem: what the chat template itself attends to stays, and a prototype of every grid.

StreamMem (arXiv 2508.15717), training-free, no question needed. Grids that hardly differ from the
one before are averaged into it before they are read. After each chunk that fills the budget, every
layer keeps the entries that get most attention from the tokens which end a user's turn and open the
assistant's, a stand-in for any question. Each new grid leaves a prototype besides: the mean of its
keys and of its values, weighted by that attention, at the place of its middle entry.

No code was published; what the paper leaves open is decided here: prototypes are entries like all
others from the next chunk on, so that the budget holds for good; grids are merged inside a chunk;
positions stay as planned and the context is not stretched (YaRN in the paper), so that a stream
that outgrows the model's positions is refused. Markers of sessions stay beside the budget. On
Qwen3-VL a grid stays or goes with its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from bench_lib.backbones.cache import Cache
from bench_lib.backbones.chunk import Chunk
from bench_lib.errors import BenchError
from bench_lib.measure import count
from bench_lib.memories.cache_memory import CacheMemory, CacheState, Times, best


@dataclass(kw_only=True)
class Streammem(CacheMemory):
    """StreamMem. Values are those reported for the paper; there is no code to check them against.

    Attributes:
        kv_size: Visual entries that a layer keeps. 6,000: smallest of the paper's budgets.
        similarity: Cosine of the mean embeddings of two grids from which they are merged. 0.95:
            paper. 2 merges none.
        prototypes: Whether new grids leave a prototype. True: paper.
        fps: 0.5: the paper's streaming runs, which follow ReKV's.
        clip_frames: Frames of a chunk. 8: paper.
    """

    bounded: ClassVar[bool] = True

    fps: float = 0.5
    clip_frames: int = 8
    kv_size: int = 6_000
    similarity: float = 0.95
    prototypes: bool = True

    def __post_init__(self) -> None:
        if self.kv_size <= self.clip_frames // 2 + 1:
            raise BenchError(
                f"streammem: kv_size {self.kv_size} holds little beside the prototypes of a chunk "
                f"of {self.clip_frames} frames; give more"
            )

    def sift(self, tokens: Tensor, times_s: Times) -> tuple[Tensor, Times]:
        """See `CacheMemory.sift`: grids alike in sequence become their mean."""
        means = F.normalize(tokens[..., : self.served.hidden].float().mean(1), dim=-1)
        alike = (means[1:] * means[:-1]).sum(-1) > self.similarity
        group = torch.cat((alike.new_zeros(1), ~alike)).cumsum(0)
        sizes = group.bincount()
        count("grids_merged", len(tokens) - len(sizes))
        total = (
            tokens.new_zeros(len(sizes), *tokens.shape[1:])
            .float()
            .index_add_(0, group, tokens.float())
        )
        ends = sizes.cumsum(0).tolist()
        starts = [0, *ends[:-1]]
        spans = tuple((times_s[a][0], times_s[b - 1][1]) for a, b in zip(starts, ends, strict=True))
        return (total / sizes[:, None, None]).to(tokens.dtype), spans

    @torch.inference_mode()
    def evict(self, state: CacheState, chunk: Chunk) -> CacheState:
        """See `CacheMemory.evict`."""
        if max(map(state.visual, range(self.served.layers))) <= self.kv_size:
            return state
        drawn = self.attention(state, self._template(), self.starts(state))
        scores = [attention[state.fixed :] for attention in drawn]
        made = prototypes(state.cache, drawn, chunk.units, chunk.grids) if self.prototypes else None
        room = self.kv_size - (chunk.grids if made else 0)
        units = state.units or (None,) * len(scores)
        kept = self.keep(state, [best(s, room, u) for s, u in zip(scores, units, strict=True)])
        return kept if made is None else self._joined(kept, made, state.grids)

    def _template(self) -> list[int]:
        """The tokens between a question and its answer."""
        end, start = self.served.token("<|im_end|>"), self.served.token("<|im_start|>")
        return [end, *self.served.tokenize("\n"), start, *self.served.tokenize("assistant\n")]

    def _joined(self, state: CacheState, made: Cache, grids: int) -> CacheState:
        """The state with prototypes behind its entries, each a unit of its own."""
        count("prototypes", made.length())
        cache = Cache(
            *(
                tuple(torch.cat(pair, dim=1) for pair in zip(old, new, strict=True))
                for old, new in (
                    (state.cache.keys, made.keys),
                    (state.cache.values, made.values),
                    (state.cache.positions, made.positions),
                )
            )
        )
        own = torch.arange(grids, grids + made.length(), device=self.served.device)
        units = tuple(torch.cat((u, (-1 - own).to(u.dtype))) for u in state.units)
        return replace(state, cache=cache, units=units)


def prototypes(cache: Cache, attention: Sequence[Tensor], units: Tensor, grids: int) -> Cache:
    """One entry for each of the newest `grids`, its keys and values weighted by attention.

    Args:
        cache: Whose last entries are those of the grids.
        attention: Per layer, of every entry, `[entries]`.
        units: The grid of each of the last entries, counted from 0, rising.
        grids: How many there are.
    """
    sizes = units.bincount(minlength=grids)
    middles = (sizes.cumsum(0) - 1 - sizes // 2).to(cache.keys[0].device)
    owner = F.one_hot(units, grids).to(cache.keys[0].device).float()  # [entries, grids]
    keys: list[Tensor] = []
    values: list[Tensor] = []
    places: list[Tensor] = []
    for layer, drawn in enumerate(attention):
        first = cache.length(layer) - len(units)
        weight = owner * drawn[first:, None]
        weight = weight / weight.sum(0).clamp(min=1e-12)
        for held, found in ((cache.keys, keys), (cache.values, values)):
            newest = held[layer][:, first:]
            found.append((weight.T @ newest.float()).to(newest.dtype))
        places.append(cache.positions[layer][:, first + middles])
    return Cache(tuple(keys), tuple(values), tuple(places))
