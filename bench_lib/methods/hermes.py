"""hermes: a cache of keys and values as a hierarchy of memories.

HERMES (arXiv 2601.14724, ACL 2026), training-free. After each chunk that fills the budget, every
layer keeps the entries it scores highest: shallow layers the newest (sensory memory), deep layers
those that a question about the whole draws attention to (long-term memory), middle layers a mixture
that shifts with depth (working memory). Scores are smoothed from deep to shallow, so that layers
agree. Deep layers fold what they evict into one summary entry a time. All layers end equally long.

Deviations from the release (Qwen2.5-VL): keys are un-rotated, so that compaction moves positions
and a summary key is the mean of un-rotated keys, which is what the release's re-rotation amounts
to, without its rounding; each layer has its own next position (the release plans it so, but its
hook has no effect where rotary tables are made once per model); attention is float32 (the release
rounds it to float16); scores are worked out only when something will be evicted; markers of
sessions stay beside the budget; the pseudo-questions are worded anew. Of Qwen3-VL there is no
release: a grid stays or goes with its time, so a layer may end up to one grid short.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from bench_lib.backbones.chunk import Chunk
from bench_lib.backbones.prompt import Built
from bench_lib.errors import BenchError, nearest
from bench_lib.exchange import Query, Reply
from bench_lib.measure import count
from bench_lib.memories.cache_memory import CacheMemory, CacheState, best, received

RESERVE = 1_024
"""Positions left for question and answer before positions are compacted (release)."""
PROBES = ("embedding", "propagated")
COMPACTIONS = ("lazy", "eager")
Question = Literal["local", "mixed", "global"]


class Band(NamedTuple):
    """How a layer scores: the share of recency, its decay, the share of the layer below."""

    question: Question
    recency: float
    decay: float
    smooth: float


@dataclass(frozen=True)
class Turn:
    """A question with its answer, an option's letter replaced by its text."""

    question: str
    answer: str


@dataclass(kw_only=True)
class Hermes(CacheMemory):
    """HERMES.

    Attributes:
        kv_size: Visual entries that a layer keeps. 6,000: the release's script; the paper's main
            table has 4,096.
        shallow: Share of layers that keep the newest. 0.1: the release's loader (its class has
            0.3).
        deep: Share of layers that keep what lasts. 0.3: release.
        recency_from: Share of recency in the first middle layer. 0.75: release, Qwen2.5-VL (1.0 for
            LLaVA-OneVision).
        recency_to: The same at the end of the middle. 0.15 (LLaVA-OneVision 0.1).
        decay_from: Decay of recency in the shallow and the first middle layer. 20: release.
        decay_to: The same at the end of the middle. 8 (LLaVA-OneVision 0.5).
        smooth_shallow: Share of the next deeper layer's score. 0.1: release.
        smooth_middle: The same in the middle. 0.3: release.
        smooth_deep: The same in deep layers. 0.4: release.
        probe: `embedding` asks every layer with the words' embeddings, as the release does with
            sdpa and FlashAttention; `propagated` with the states that reading them gives, as its
            eager path does.
        compaction: `lazy` closes gaps in positions when they near the model's limit (release,
            streaming); `eager` at every eviction (release, offline).
        local_question: What shallow layers are asked. Own words for the release's.
        global_question: What deep layers are asked; the middle is asked both.
        repetition_penalty: 1.1, on the reply's own tokens: release.
        max_pixels: 401,408. The release leaves it to the processor; this is FluxMem's, so that both
            see the same frames.
        fps: 0.5: the release's script.
        clip_frames: Frames of a chunk. 16: release.
    """

    bounded: ClassVar[bool] = True

    fps: float = 0.5
    clip_frames: int = 16
    repetition_penalty: float = 1.1
    kv_size: int = 6_000
    shallow: float = 0.1
    deep: float = 0.3
    recency_from: float = 0.75
    recency_to: float = 0.15
    decay_from: float = 20.0
    decay_to: float = 8.0
    smooth_shallow: float = 0.1
    smooth_middle: float = 0.3
    smooth_deep: float = 0.4
    probe: Literal["embedding", "propagated"] = "embedding"
    compaction: Literal["lazy", "eager"] = "lazy"
    local_question: str = (
        "What can be seen right now? Name the things, where they lie, and every small action."
    )
    global_question: str = (
        "What has happened in the whole video? Name who appears, the main events in order, what "
        "changed, and what it is about."
    )

    def __post_init__(self) -> None:
        for name, known in (("probe", PROBES), ("compaction", COMPACTIONS)):
            if getattr(self, name) not in known:
                value = getattr(self, name)
                raise BenchError(f"hermes has no {name} {value!r}; {nearest(value, known)}")
        if not 0 <= self.shallow <= 1 - self.deep <= 1:
            raise BenchError(
                f"hermes: shallow {self.shallow} and deep {self.deep} must be shares of one whole"
            )
        if self.kv_size < 2:
            raise BenchError(f"hermes: kv_size {self.kv_size} leaves no room; give 2 or more")

    def starts(self, state: CacheState) -> Sequence[int]:
        """See `CacheMemory.starts`: behind the largest position of the layer."""
        highest = {id(p): p.amax() for p in state.cache.positions}
        found = dict(zip(highest, torch.stack([*highest.values()]).tolist(), strict=True))
        return [found[id(p)] + 1 for p in state.cache.positions]

    def question(self, query: Query) -> Built:
        """See `CacheMemory.question`; the penalty falls on the reply alone."""
        built = super().question(query)
        return replace(built, text_ids=built.text_ids[:0])

    def commit(self, query: Query, reply: Reply) -> None:
        """See `Method.commit`: the turn opens the pseudo-questions from now on."""
        self.state = replace(self.state, memory=Turn(query.text, said(query, reply.text)))

    @torch.inference_mode()
    def evict(self, state: CacheState, chunk: Chunk) -> CacheState:
        """See `CacheMemory.evict`."""
        if state.cache.length() <= self.kv_size:  # prefix included: release
            return state
        layers = bands(self.served.layers, self)
        starts = self.starts(state)
        scores = smoothed(self._scores(state, layers, starts), [band.smooth for band in layers])
        rooms = [self.kv_size - (band.question == "global") for band in layers]
        units = state.units or (None,) * len(layers)
        index = [best(s, room, u) for s, room, u in zip(scores, rooms, units, strict=True)]
        kept = self.keep(state, index)
        if self.compaction == "eager" or max(starts) - 1 > self.served.context - RESERVE:
            positions = tuple(compacted(p, state.prefix) for p in kept.cache.positions)
            kept = replace(kept, cache=replace(kept.cache, positions=positions))
            count("compactions")
        deep = [i for i, band in enumerate(layers) if band.question == "global"]
        for layer in deep:
            gone = torch.ones(len(scores[layer]), dtype=torch.bool, device=index[layer].device)
            gone[index[layer]] = False
            if len(index[layer]) < len(gone):
                kept = folded(kept, state, layer, gone.nonzero()[:, 0])
        return kept

    def _scores(
        self, state: CacheState, layers: Sequence[Band], starts: Sequence[int]
    ) -> list[Tensor]:
        """Per layer the score `[entries]` of its visual entries, before smoothing."""
        asked = {name: self.served.tokenize(text) for name, text in self._questions(state).items()}
        if self.probe == "propagated":
            read = {name: self.attention(state, ids, starts) for name, ids in asked.items()}
            found = [read[band.question][layer] for layer, band in enumerate(layers)]
        else:
            words = {name: self.served.embed(ids) for name, ids in asked.items()}
            found = [
                self._embedded(state, layer, words[band.question], starts[layer])
                for layer, band in enumerate(layers)
            ]
        return [
            scored(attention[state.fixed :], band.recency, band.decay)
            for attention, band in zip(found, layers, strict=True)
        ]

    def _embedded(self, state: CacheState, layer: int, words: Tensor, start: int) -> Tensor:
        """Attention of words `[n, hidden]` asked as they are in a layer, over its entries."""
        decoder = self.served.decoder
        q, k, _ = decoder.project(layer, words)
        places = torch.arange(start, start + len(words), device=words.device).expand(3, -1)
        held = decoder.rotate(state.cache.keys[layer], state.cache.positions[layer])
        keys = torch.cat((held, decoder.rotate(k, places)), dim=1)
        # No mask among the words: the release has none here.
        return received(decoder.rotate(q, places), keys, causal=False)[: -len(words)]

    def _questions(self, state: CacheState) -> dict[Question, str]:
        local, whole = self.local_question, self.global_question
        if isinstance(state.memory, Turn):
            earlier = f"{state.memory.question} {state.memory.answer}"
            local = f"Just asked and answered: {earlier}\n{local}"
            whole = f"Asked and answered before: {earlier}\n{whole}"
        return {"local": local, "mixed": f"{local}; {whole}", "global": whole}


def bands(layers: int, how: Hermes) -> list[Band]:
    """How each layer scores, from shallow to deep."""
    middle, deep = int(layers * how.shallow), int(layers * (1 - how.deep))
    found = []
    for layer in range(layers):
        if layer < middle:
            found.append(Band("local", 1.0, how.decay_from, how.smooth_shallow))
        elif layer >= deep:
            found.append(Band("global", 0.0, 0.0, how.smooth_deep))
        else:
            done = (layer - middle) / (deep - middle)
            recency = how.recency_from + (how.recency_to - how.recency_from) * done
            decay = how.decay_from + (how.decay_to - how.decay_from) * done
            found.append(Band("mixed", recency, decay, how.smooth_middle))
    return found


def scored(attention: Tensor, recency: float, decay: float) -> Tensor:
    """Attention `[n]` and newness, each stretched to [0, 1], mixed."""
    n = len(attention)
    age = torch.arange(n - 1, -1, -1, device=attention.device, dtype=torch.float32) / max(n - 1, 1)
    return (1 - recency) * _stretched(attention) + recency * _stretched((-decay * age).exp())


def _stretched(values: Tensor) -> Tensor:
    return (values - values.min()) / (values.max() - values.min() + 1e-6)


def smoothed(scores: Sequence[Tensor], shares: Sequence[float]) -> list[Tensor]:
    """Each layer's scores with a share of those of the next deeper one, from deep to shallow.

    Layers of unequal length are stretched onto each other.
    """
    found = [scores[-1]]
    for score, share in zip(scores[-2::-1], shares[-2::-1], strict=True):
        below = found[-1]
        if len(below) != len(score):
            below = F.interpolate(below[None, None], len(score), mode="linear")[0, 0]
        found.append((1 - share) * score + share * below)
    return found[::-1]


def compacted(positions: Tensor, prefix: int) -> Tensor:
    """Positions `[3, n]` without gaps: behind the prefix, each axis by rank among its values."""
    ranks = [axis.unique(return_inverse=True)[1] + prefix for axis in positions[:, prefix:]]
    return torch.cat((positions[:, :prefix], torch.stack(ranks).to(positions.dtype)), dim=1)


def folded(kept: CacheState, before: CacheState, layer: int, gone: Tensor) -> CacheState:
    """The state with a layer's evicted entries (`gone`, visual indices) as one, behind the rest."""
    index = gone + before.fixed
    cache = kept.cache
    place = cache.positions[layer].max() + 1
    parts = {
        "keys": before.cache.keys[layer][:, index].mean(1, keepdim=True),
        "values": before.cache.values[layer][:, index].mean(1, keepdim=True),
        "positions": place.expand(3, 1).to(cache.positions[layer].dtype),
    }
    longer = {
        name: _with(getattr(cache, name), layer, torch.cat((getattr(cache, name)[layer], new), 1))
        for name, new in parts.items()
    }
    count("entries_folded", len(gone))
    units = kept.units
    if units:  # a unit of its own, below all grids
        own = units[layer].new_tensor([-1 - before.grids])
        units = _with(units, layer, torch.cat((units[layer], own)))
    return replace(kept, cache=replace(cache, **longer), units=units)


def said(query: Query, text: str) -> str:
    """A reply for later questions: a bare option letter becomes the option's text."""
    letter = re.fullmatch(r"\s*\(?([A-Z])\)?\.?\s*", text)
    texts = {option.id: option.text for option in query.options}
    return texts.get(letter.group(1), text) if letter else text


def _with(items: tuple[Tensor, ...], index: int, item: Tensor) -> tuple[Tensor, ...]:
    return (*items[:index], item, *items[index + 1 :])
