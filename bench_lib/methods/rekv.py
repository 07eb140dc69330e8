"""rekv: everything is kept, and each layer looks up what a question needs.

ReKV (arXiv 2503.00540, ICLR 2025), training-free. While the stream is read, an entry attends to the
last `n_local` entries and to the system prompt, which it sees from one fixed distance once it lies
further back. Un-rotated keys and values of every grid are kept as a block, with the mean of its
keys as its representative. A question is read after the system prompt and the blocks that its own
mean query is closest to, layer by layer: what deeper layers look up depends on what shallower ones
found. Blocks stand in time order at contiguous positions. The answer is read after the same blocks.

Deviations: the release's block is a frame of 196 tokens, as here on LLaVA-OneVision; on the Qwen
families it is a grid of two frames, of at most as many tokens; on three axes "contiguous" means
that each block keeps its own layout and starts where the one before ends, as images in one prompt
do. Until the window has filled once, the release attends to the system prompt at its true distance
and for a few entries after that twice; here every entry attends to it once. Retrieval reads the
request as it is put, options and reply format included, with what was said before: a query holds no
bare question. The marker of a session precedes its first retrieved block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from bench_lib.backbones.cache import Cache
from bench_lib.backbones.chunk import Chunk
from bench_lib.errors import BenchError, nearest
from bench_lib.exchange import Query
from bench_lib.measure import count
from bench_lib.memories.cache_memory import CacheMemory, CacheState, shared
from bench_lib.state import walk as states
from bench_lib.state.walk import part
from bench_lib.video.stream import SessionInfo

ATTEND_ENTRIES = 1_024
"""Entries that attend at once while a chunk is read: bounds the masks."""


@dataclass(frozen=True)
class Block:
    """One grid, or the marker of a session.

    Attributes:
        kv: Un-rotated keys and values `[layers, 2, kv_heads, n, head_dim]`.
        mean: Per layer the mean key, repeated for all query heads as the release stores it,
            `[layers, heads * head_dim]`.
        layout: Which of the store's layouts its entries have.
        session: Position of its session.
    """

    kv: Tensor = part("kv")
    mean: Tensor = part("index")
    layout: int = 0
    session: int = 0


@dataclass(frozen=True)
class Store:
    """All that was seen.

    Attributes:
        prefix: The system prompt.
        blocks: Grids in time order.
        markers: Markers of the sessions, in time order.
        layouts: Positions `[3, n]` int32 of a block's entries from 0, on the CPU.
        total: Entries read so far, the prefix among them.
    """

    prefix: Cache
    blocks: tuple[Block, ...] = ()
    markers: tuple[Block, ...] = ()
    layouts: tuple[Tensor, ...] = part("index", default=())
    total: int = 0


@dataclass(kw_only=True)
class Rekv(CacheMemory):
    """ReKV.

    Attributes:
        n_local: Entries an entry attends to. 15,000: the release's scripts.
        topk: Blocks that a layer retrieves. 64: the release's scripts.
        chunk_size: Blocks in sequence that are scored, and retrieved, together. 1: release.
        blocks_on: Where blocks lie, `cpu` (release) or `device`.
        max_pixels: 153,664, which is 196 tokens a grid, the release's tokens of a frame.
        fps: 0.5: the paper's streaming runs.
        clip_frames: Frames encoded at once. 64: release.
    """

    bounded: ClassVar[bool] = False

    fps: float = 0.5
    clip_frames: int = 64
    max_pixels: int | None = 153_664
    n_local: int = 15_000
    topk: int = 64
    chunk_size: int = 1
    blocks_on: Literal["cpu", "device"] = "cpu"

    def __post_init__(self) -> None:
        if self.blocks_on not in ("cpu", "device"):
            known = ("cpu", "device")
            raise BenchError(
                f"rekv: blocks_on {self.blocks_on!r}; {nearest(self.blocks_on, known)}"
            )
        if self.chunk_size < 1 or self.topk % self.chunk_size:
            raise BenchError(
                f"rekv: topk {self.topk} must be a multiple of chunk_size {self.chunk_size}"
            )

    def reset(self, trajectory_id: str, seed: int) -> None:
        """See `Method.reset`."""
        super().reset(trajectory_id, seed)
        prefix = self.state.cache.cut(0)
        self.state = replace(self.state, memory=Store(prefix, total=prefix.length()))

    def begin_session(self, info: SessionInfo) -> None:
        """See `Method.begin_session`; raises BenchError for blocks above the window."""
        super().begin_session(info)
        rows, cols = self.state.lattice
        if self.topk * rows * cols > self.n_local:
            raise BenchError(
                f"rekv: {self.topk} blocks of {rows * cols} tokens do not fit n_local "
                f"{self.n_local}: give a smaller topk or max_pixels"
            )

    def load(self, folder: Path) -> None:
        """See `Method.load`; blocks go where they belong."""
        loaded = states.load(folder, self._identity(), type(self), "cpu")
        device = self.served.device
        store = loaded.memory
        moved = replace(
            store,
            prefix=shared(store.prefix.to(device)),
            blocks=tuple(self._placed(block) for block in store.blocks),
            markers=tuple(self._placed(block) for block in store.markers),
        )
        self.state = replace(loaded, cache=shared(loaded.cache.to(device)), memory=moved)

    def tokens(self) -> tuple[int, int]:
        """See `Method.tokens`."""
        return sum(block.kv.shape[3] for block in self.state.memory.blocks), self.state.seen

    # Reading --------------------------------------------------------------------------------------

    @torch.inference_mode()
    def remember(self, state: CacheState, chunk: Chunk) -> CacheState:
        """See `CacheMemory.remember`: the window slides, and every grid becomes a block."""
        store: Store = state.memory
        places = (chunk.positions + state.next).to(self.served.device)
        held = state.cache.length()

        def attend(
            layer: int, q: Tensor, k: Tensor, v: Tensor, q_pos: Tensor, k_pos: Tensor
        ) -> Tensor:
            # Distances alone count: small positions keep their angles exact.
            near = q_pos - state.next, k_pos - state.next
            return self._windowed(layer, q, k, v, *near, store, store.total - held)

        _, cache = self.served.read(chunk.x, places, state.cache, attend)
        size = len(chunk.x)
        store = self._stored(store, cache.cut(cache.length() - size), chunk, state)
        return replace(
            state,
            cache=cache.cut(max(0, cache.length() - self.n_local)),
            next=state.next + chunk.span,
            memory=replace(store, total=store.total + size),
        )

    def evict(self, state: CacheState, chunk: Chunk) -> CacheState:
        """See `CacheMemory.evict`: nothing leaves."""
        return state

    def _windowed(
        self,
        layer: int,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        q_pos: Tensor,
        k_pos: Tensor,
        store: Store,
        first: int,
    ) -> Tensor:
        """Attention to the window and, from afar, to the prefix.

        `first` numbers the first of `k`; the last of them are the queries' own.
        """
        rotate, size = self.served.decoder.rotate, q.shape[1]
        if store.total + size <= self.n_local:
            return self.served.attention(rotate(q, q_pos), rotate(k, k_pos), v)
        far = torch.full((3, 1), self.n_local - 1, device=q.device)
        return windowed(
            (rotate(q, q_pos), rotate(q, far)),
            (rotate(k, k_pos), v),
            (store.prefix.keys[layer], store.prefix.values[layer]),
            first,
            self.n_local,
        )

    def _stored(self, store: Store, new: Cache, chunk: Chunk, state: CacheState) -> Store:
        """The store with the blocks of a chunk, whose entries are `new`."""
        assert state.session is not None
        kv = torch.stack([torch.stack(pair) for pair in zip(new.keys, new.values, strict=True)])
        group = self.served.decoder.heads // self.served.kv_heads
        sizes = chunk.units.bincount(minlength=chunk.grids).tolist()
        if chunk.words:
            sizes = [chunk.words, *sizes]
        layouts, blocks = store.layouts, []
        for entries, where in zip(
            kv.split(sizes, dim=3), chunk.positions.split(sizes, dim=1), strict=True
        ):
            layouts, number = _numbered(layouts, where - where.amin(1, keepdim=True))
            mean = entries[:, 0].mean(2).repeat_interleave(group, dim=1).flatten(1)
            block = Block(entries.clone(), mean, number, state.session.position)
            blocks.append(self._placed(block))
        words = 1 if chunk.words else 0
        return replace(
            store,
            blocks=(*store.blocks, *blocks[words:]),
            markers=(*store.markers, *blocks[:words]),
            layouts=layouts,
        )

    def _placed(self, block: Block) -> Block:
        device = self.served.device
        kv = block.kv.to("cpu" if self.blocks_on == "cpu" and device.type == "cuda" else device)
        return replace(block, kv=kv, mean=block.mean.to(device))

    # Retrieving -----------------------------------------------------------------------------------

    @torch.inference_mode()
    def recall(self, state: CacheState, query: Query) -> tuple[Cache, Sequence[int]]:
        """See `CacheMemory.recall`: each layer's blocks, found while it reads the question."""
        store: Store = state.memory
        if not store.blocks:
            return store.prefix, (state.prefix,) * self.served.layers
        rotate = self.served.decoder.rotate
        means = torch.stack([block.mean for block in store.blocks], dim=1)
        found: list[tuple[Tensor, Tensor, Tensor, int]] = []

        def attend(
            layer: int, q: Tensor, k: Tensor, v: Tensor, q_pos: Tensor, k_pos: Tensor
        ) -> Tensor:
            alike = means[layer].float() @ q.mean(1).flatten().float()
            chosen = nearest_blocks(alike, self.topk, self.chunk_size)
            count("blocks_retrieved", len(chosen))
            found.append(self._gathered(store, layer, chosen))
            keys, values, places, end = found[-1]
            there = q_pos + end
            held = torch.cat((rotate(keys, places), rotate(k, there)), dim=1)
            return self.served.attention(rotate(q, there), held, torch.cat((values, v), dim=1))

        said = [note.text for note in query.notes]
        ids = self.served.tokenize("\n".join([*said, query.text]))
        where = torch.arange(len(ids), device=self.served.device, dtype=torch.int32).expand(3, -1)
        self.served.read(self.served.embed(ids), where, self.served.empty_cache(), attend)
        keys, values, places, ends = (tuple(items) for items in zip(*found, strict=True))
        return Cache(keys, values, places), ends

    def _gathered(
        self, store: Store, layer: int, chosen: Sequence[int]
    ) -> tuple[Tensor, Tensor, Tensor, int]:
        """Keys, values and positions of the prefix and of chosen blocks, and where they end."""
        device = self.served.device
        markers = {block.session: block for block in store.markers}
        sequence: list[Block] = []
        for index in chosen:
            block = store.blocks[index]
            if block.session in markers:
                sequence.append(markers.pop(block.session))
            sequence.append(block)
        kv = [block.kv[layer].to(device) for block in sequence]
        places, start = [], store.prefix.length()
        for block in sequence:
            layout = store.layouts[block.layout]
            places.append(layout + start)
            start += int(layout.max()) + 1
        prefix = store.prefix
        return (
            torch.cat((prefix.keys[layer], *(pair[0] for pair in kv)), dim=1),
            torch.cat((prefix.values[layer], *(pair[1] for pair in kv)), dim=1),
            torch.cat((prefix.positions[layer], torch.cat(places, dim=1).to(device)), dim=1),
            start,
        )


Pair = tuple[Tensor, Tensor]


def windowed(q: Pair, kv: Pair, prefix: Pair, first: int, window: int) -> Tensor:
    """Causal attention to the newest `window` entries, and to a prefix that lies further back.

    Args:
        q: Queries `[heads, n, d]` turned at their positions, and turned at the far one.
        kv: Turned keys and values `[kv_heads, m, d]`, the last `n` the queries' own.
        prefix: Un-rotated keys and values `[kv_heads, p, d]` of the stream's first entries.
        first: Number of the first of `kv` in the stream.
        window: Entries a query sees, itself among them.

    Returns:
        `[heads, n, d]`.
    """
    (near, far), (keys, values), (sink, sunk) = q, kv, prefix
    n, m, d = near.shape[1], keys.shape[1], near.shape[2]
    # Two dot products in one: near halves meet near keys, far halves meet the prefix.
    queries = torch.cat((near, far), dim=-1)
    keys, sink = F.pad(keys, (0, d)), F.pad(sink, (d, 0))
    done = []
    for start in range(0, n, ATTEND_ENTRIES):
        stop = min(n, start + ATTEND_ENTRIES)
        low, high = max(0, m - n + start - window + 1), m - n + stop
        own = torch.arange(first + m - n + start, first + high, device=near.device)[:, None]
        back = own - torch.arange(first + low, first + high, device=near.device)
        gone = own - torch.arange(sink.shape[1], device=near.device) >= window
        out = F.scaled_dot_product_attention(
            queries[None, :, start:stop],
            torch.cat((sink, keys[:, low:high]), dim=1)[None],
            torch.cat((sunk, values[:, low:high]), dim=1)[None],
            attn_mask=torch.cat((gone, (back >= 0) & (back < window)), dim=1),
            scale=d**-0.5,
            enable_gqa=True,
        )
        done.append(out[0])
    return torch.cat(done, dim=1)


def nearest_blocks(alike: Tensor, topk: int, chunk_size: int) -> list[int]:
    """The `topk` blocks of highest `alike` `[blocks]`, in time order.

    Blocks are taken `chunk_size` in sequence, by their mean; the last group may be shorter.
    """
    if len(alike) <= topk:
        return list(range(len(alike)))
    groups = [group.mean() for group in alike.split(chunk_size)]
    best = torch.stack(groups).topk(topk // chunk_size).indices.sort().values.tolist()
    return [
        i
        for group in best
        for i in range(group * chunk_size, min(len(alike), (group + 1) * chunk_size))
    ]


def _numbered(layouts: tuple[Tensor, ...], layout: Tensor) -> tuple[tuple[Tensor, ...], int]:
    """The layouts with this one among them, and its number."""
    for number, known in enumerate(layouts):
        if torch.equal(known, layout):
            return layouts, number
    return (*layouts, layout), len(layouts)
