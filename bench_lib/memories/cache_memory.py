"""Memories of keys and values: the stream is read once, a question is read after what is left.

    frames --encode--> tokens --planned positions--> read after the cache --evict--> cache

A chunk is the whole grids of one clip. A cache holds, in this order, the prefix (system prompt and
the opened user turn), the markers of the newest sessions, and the visual entries; only the last are
evicted. Keys are un-rotated and turned at their planned positions when they are read, so that an
eviction moves positions and never keys. An odd frame waits for its pair; a question doubles it for
itself alone, the session's end for good.

A subclass says what stays after a chunk (`evict`) and, where a question looks for something, what
it is read after (`recall`). Where grids carry text of their own (Qwen3-VL's times), a grid with its
time and markers is one unit that stays or goes as a whole.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from bench_lib.backbones.cache import Cache
from bench_lib.backbones.chunk import Chunk, chunk
from bench_lib.backbones.decoder import Attend
from bench_lib.backbones.generate import decode, synchronize
from bench_lib.backbones.prompt import Built, Prompt, Visual, grid_times
from bench_lib.errors import BenchError
from bench_lib.exchange import Generation, Query, Reply
from bench_lib.measure import count
from bench_lib.memories.method import Method
from bench_lib.memories.token_memory import Held, Seen, marker, runs, when
from bench_lib.state.walk import part
from bench_lib.video.stream import Clip, Frame, SessionInfo, Size

MARKER_ENTRIES = 512
"""Room for session markers, beside the budget of a method: some forty sessions."""


@dataclass(frozen=True)
class CacheState:
    """All of a cache memory.

    Attributes:
        cache: Keys, values and positions: prefix, session markers, visual entries.
        prefix: Entries of the prefix.
        markers: Entries of each session marker that is held, oldest first.
        next: The next free position.
        units: Per layer the grid of each visual entry, where grids are evicted whole; else empty.
        memory: What the subclass keeps besides.
        session: The session that runs, or the last one.
        marked: Whether its marker has been read.
        held: An odd frame that waits.
        lattice: Rows and columns of cells.
        grids: Grids read so far.
        seen: Visual entries so far, with those of grids that were merged before they were read.
    """

    cache: Cache
    prefix: int
    next: int
    markers: tuple[int, ...] = ()
    units: tuple[Tensor, ...] = part("index", default=())
    memory: Any = None
    session: Seen | None = None
    marked: bool = False
    held: tuple[Held, ...] = ()
    lattice: tuple[int, int] = (0, 0)
    grids: int = 0
    seen: int = 0

    @property
    def fixed(self) -> int:
        """Entries that no eviction touches."""
        return self.prefix + sum(self.markers)

    def visual(self, layer: int = 0) -> int:
        """Visual entries of a layer."""
        return self.cache.length(layer) - self.fixed


@dataclass(kw_only=True)
class CacheMemory(Method):
    """Base of memories that hold keys and values of the decoder.

    Attributes:
        session_marker: Read a session's number and clock before its first grid. No release has it.
        repetition_penalty: The method's published one, used unless a run gives its own.
    """

    # Keys and values are computed once, from themselves and earlier ones (StreamArena, Eq. 14).
    causal: ClassVar[bool] = True
    model: ClassVar[Literal["none", "backbone", "chat"]] = "backbone"
    bare: ClassVar[bool] = True
    """Whether chunks are read without markers that enclose them, as most releases do."""

    max_pixels: int | None = 401_408
    session_marker: bool = True
    repetition_penalty: float = 1.0

    # What a subclass says -------------------------------------------------------------------------

    @abstractmethod
    def evict(self, state: CacheState, chunk: Chunk) -> CacheState:
        """The state after a chunk was read into its cache, whose entries are the newest."""

    def remember(self, state: CacheState, chunk: Chunk) -> CacheState:
        """The state after a chunk."""
        return self.evict(self.read(state, chunk), chunk)

    def recall(self, state: CacheState, query: Query) -> tuple[Cache, Sequence[int]]:
        """What a question is read after, and the next free position of each layer."""
        return state.cache, self.starts(state)

    def starts(self, state: CacheState) -> Sequence[int]:
        """The next free position of each layer."""
        return (state.next,) * self.served.layers

    def sift(self, tokens: Tensor, times_s: Times) -> tuple[Tensor, Times]:
        """What of new grids `[grids, cells, width]` is read at all."""
        return tokens, times_s

    def question(self, query: Query) -> Built:
        """What is read after the memory: system text, what was said, the question."""
        said = [f"[{when(note)}] {note.text}" for note in query.notes]
        lines = [query.system, *said, query.text] if query.system else [*said, query.text]
        return Prompt(self.served).text("\n" + "\n".join(lines)).end().turn("assistant").build()

    # The contract ---------------------------------------------------------------------------------

    def frame_size(self, native: Size) -> Size:
        """See `Method.frame_size`."""
        return self.served.frame_size(native, self.max_pixels)

    @torch.inference_mode()
    def reset(self, trajectory_id: str, seed: int) -> None:
        """See `Method.reset`."""
        prompt = Prompt(self.served)
        if self.served.default_system:
            prompt.turn("system").text(self.served.default_system).end()
        prefix = prompt.turn("user").build()
        empty = self.served.empty_cache()
        nowhere = (empty.positions[0].int(),) * self.served.layers
        places = prefix.positions.int()
        _, cache = self.served.read(prefix.x, places, replace(empty, positions=nowhere))
        self.state = CacheState(cache, prefix=len(prefix.x), next=len(prefix.x))

    def begin_session(self, info: SessionInfo) -> None:
        """See `Method.begin_session`."""
        lattice = self.served.lattice(info.frame_size)
        seen = Seen(info.index, info.wall_start_s)
        self.state = replace(self.state, session=seen, marked=False, lattice=lattice)

    def observe(self, clip: Clip) -> None:
        """See `Method.observe`."""
        held = (*self.state.held, *((clip.session, frame) for frame in clip.frames))
        count("frames_observed", len(clip.frames))
        ripe = len(held) - len(held) % self.served.frames_per_grid
        self.state = replace(self._taken_in(self.state, held[:ripe]), held=held[ripe:])

    def end_session(self, recorded_bytes: int) -> None:
        """See `Method.end_session`."""
        self.state = replace(self._taken_in(self.state, self.state.held), held=())

    def tokens(self) -> tuple[int, int]:
        """See `Method.tokens`; kept is the mean over layers."""
        layers = range(self.served.layers)
        return sum(map(self.state.visual, layers)) // len(layers), self.state.seen

    @torch.inference_mode()
    def respond(self, query: Query, generation: Generation) -> Reply:
        """See `Method.respond`; the state stays as it is."""
        state = self._taken_in(self.state, self.state.held)
        synchronize(self.served.device)
        ready_at = time.perf_counter()
        cache, starts = self.recall(state, query)
        if generation.repetition_penalty == 1.0:
            generation = replace(generation, repetition_penalty=self.repetition_penalty)
        said = decode(self.served, self.question(query), generation, cache, starts)
        count("model_calls")
        return Reply(
            text=said.text,
            ready_at=ready_at,
            first_token_at=said.first_token_at,
            done_at=said.done_at,
            stop=said.stop,
            logits=said.logits,
        )

    def load(self, folder: Path) -> None:
        """See `Method.load`; what layers shared they share again."""
        super().load(folder)
        units = joined(self.state.units)
        self.state = replace(self.state, cache=shared(self.state.cache), units=units)

    # Reading --------------------------------------------------------------------------------------

    @torch.inference_mode()
    def _taken_in(self, state: CacheState, held: Sequence[Held]) -> CacheState:
        """The state after reading frames; a lone last one is doubled."""
        for _, run in runs(held):
            new = self._chunk(state, run)
            merged = -(-len(run) // self.served.frames_per_grid) - new.grids
            after = self.remember(state, new)
            state = replace(
                after,
                cache=shared(after.cache),
                units=joined(after.units),
                marked=True,
                grids=state.grids + new.grids,
                seen=state.seen + len(new.units) + merged * state.lattice[0] * state.lattice[1],
            )
        return state

    def _chunk(self, state: CacheState, run: Sequence[Frame]) -> Chunk:
        size = self.served.pixels(state.lattice)
        tokens = self.served.encode([frame.pixels(size) for frame in run])
        times = grid_times([frame.t_s for frame in run], self.served.frames_per_grid)
        tokens, times_s = self.sift(tokens, times)
        grids, cells = tokens.shape[:2]
        visual = Visual(
            tokens=tokens.flatten(0, 1),
            grids=torch.arange(grids).repeat_interleave(cells),
            cells=torch.arange(cells).repeat(grids),
            times_s=times_s,
            extent_s=(times_s[0][0], times_s[-1][0]),
            lattice=state.lattice,
        )
        assert state.session is not None
        due = self.session_marker and not state.marked
        return chunk(self.served, marker(state.session) if due else "", visual, self.bare)

    def read(self, state: CacheState, chunk: Chunk, attend: Attend | None = None) -> CacheState:
        """The state with a chunk's entries in its cache, a marker's moved to the others."""
        places = chunk.positions.to(self.served.device)
        starts = self.starts(state)
        moved = {start: places + start for start in starts}
        where = [moved[start] for start in starts]
        _, cache = self.served.read(chunk.x, where, state.cache, attend)
        units = state.units
        if chunk.whole:
            fresh = (chunk.units + state.grids).int().to(self.served.device)
            before = units or (fresh[:0],) * self.served.layers
            both = {id(u): torch.cat((u, fresh)) for u in before}
            units = tuple(both[id(u)] for u in before)
        after = replace(state, cache=cache, units=units, next=state.next + chunk.span)
        return self._with_marker(state, after, chunk.words) if chunk.words else after

    def _with_marker(self, before: CacheState, after: CacheState, words: int) -> CacheState:
        """Move a new marker behind the others; the oldest leave when their room is full."""
        markers = (*before.markers, words)
        stays = self.marker_stays(markers)
        device = self.served.device
        ends = torch.tensor((before.prefix, *before.markers)).cumsum(0).tolist()
        index: dict[int, Tensor] = {}
        for layer in range(self.served.layers):
            old, now = before.cache.length(layer), after.cache.length(layer)
            spans = [*pairwise(ends), (old, old + words)]
            kept = [span for span, stay in zip(spans, stays, strict=True) if stay]
            order = [(0, before.prefix), *kept, (before.fixed, old), (old + words, now)]
            index.setdefault(old, torch.cat([torch.arange(*span, device=device) for span in order]))
        lengths = [before.cache.length(layer) for layer in range(self.served.layers)]
        cache = after.cache.gather([index[length] for length in lengths])
        kept_sizes = tuple(size for size, stay in zip(markers, stays, strict=True) if stay)
        return replace(after, cache=cache, markers=kept_sizes)

    def marker_stays(self, markers: Sequence[int]) -> list[bool]:
        """Which session markers, given by their entries, stay: the newest that fit."""
        behind = torch.tensor(markers).flip(0).cumsum(0).flip(0)
        return (behind <= MARKER_ENTRIES).tolist()

    # Evicting -------------------------------------------------------------------------------------

    def keep(self, state: CacheState, index: Sequence[Tensor]) -> CacheState:
        """The state with these visual entries of each layer alone; indices rise."""
        fixed = torch.arange(state.fixed, device=self.served.device)
        gone = sum(state.visual(layer) - len(i) for layer, i in enumerate(index))
        count("entries_evicted", gone)
        full = {id(i): torch.cat((fixed, i + state.fixed)) for i in index}
        cache = state.cache.gather([full[id(i)] for i in index])
        units = tuple(u[i] for u, i in zip(state.units, index, strict=False))
        return replace(state, cache=cache, units=units)

    def attention(
        self, state: CacheState, ids: Sequence[int], starts: Sequence[int]
    ) -> list[Tensor]:
        """How much of the attention of a text, read after the cache, each entry of a layer gets.

        Per layer `[entries]` in float32: the mean over heads and the text's tokens.
        """
        decoder = self.served.decoder
        found: list[Tensor] = []

        def capture(
            layer: int, q: Tensor, k: Tensor, v: Tensor, q_pos: Tensor, k_pos: Tensor
        ) -> Tensor:
            turned = decoder.rotate(q, q_pos), decoder.rotate(k, k_pos)
            found.append(received(*turned, causal=True)[: -len(ids)])
            return decoder.attend(layer, q, k, v, q_pos, k_pos)

        places = torch.arange(len(ids), device=self.served.device, dtype=torch.int32).expand(3, -1)
        self.served.read(
            self.served.embed(ids), [places + start for start in starts], state.cache, capture
        )
        return found


Times = tuple[tuple[float, float], ...]
"""First and last instant of each grid."""


def received(q: Tensor, k: Tensor, causal: bool) -> Tensor:
    """Attention that keys get from all queries, mean over heads and queries.

    Args:
        q: Rotated queries `[heads, n, d]`.
        k: Rotated keys `[kv_heads, m, d]`, the queries' own at the end.
        causal: Whether a query sees the keys up to its own, or all.

    Returns:
        `[m]` float32.
    """
    grouped = q.float().unflatten(0, (len(k), -1))
    scores = grouped @ k.float()[:, None].transpose(-1, -2) * q.shape[-1] ** -0.5
    if causal:
        n, m = scores.shape[-2:]
        seen = torch.ones(n, m, dtype=torch.bool, device=q.device).tril(m - n)
        scores = scores.masked_fill(~seen, float("-inf"))
    return scores.softmax(-1).mean((0, 1, 2))


def best(score: Tensor, room: int, units: Tensor | None = None) -> Tensor:
    """Indices, rising, of the `room` highest of `score` `[n]`.

    With `units` `[n]`, units stay whole: those of the highest mean, as many as come before the
    first that does not fit; raises BenchError where that is none.
    """
    if units is None:
        return score.topk(min(room, len(score)), sorted=False).indices.sort().values
    names, member, sizes = units.unique(return_inverse=True, return_counts=True)
    means = score.new_zeros(len(names)).index_add_(0, member, score) / sizes
    order = means.argsort(descending=True, stable=True)
    chosen = order[sizes[order].cumsum(0) <= room]
    if not len(chosen):
        unit = int(sizes.max())
        raise BenchError(f"a budget of {room} entries holds no grid of {unit}: give a larger one")
    stays = torch.zeros(len(names), dtype=torch.bool, device=score.device)
    stays[chosen] = True
    return stays[member].nonzero()[:, 0]


def shared(cache: Cache) -> Cache:
    """The same cache; layers whose positions are equal share them, also after a load."""
    return replace(cache, positions=joined(cache.positions))


def joined(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The same whole numbers, one tensor where they are equal."""
    own = {id(t): t for t in tensors}
    if len(own) <= 1:
        return tensors
    # Sums first: one look at the device tells most of them apart.
    sums = torch.stack([t.sum() for t in own.values()]).tolist()
    kept: dict[tuple[int, int], list[Tensor]] = {}
    same = {}
    for (name, tensor), total in zip(own.items(), sums, strict=True):
        alike = kept.setdefault((tensor.shape[-1], total), [])
        same[name] = next((t for t in alike if torch.equal(t, tensor)), tensor)
        if same[name] is tensor:
            alike.append(tensor)
    return tuple(same[id(t)] for t in tensors)
