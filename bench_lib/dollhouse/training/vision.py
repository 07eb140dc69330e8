"""The tower's part of training: every visual token learns to say its words.

A token's target is the sum of the embeddings of its words; beside that, each field of it must be
readable: the right word ahead of all others of the field, or nothing where there is nothing.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from bench_lib.backbones import frames
from bench_lib.backbones.hf_compat import Parts
from bench_lib.backbones.qwen2_5_vl import Qwen25VL
from bench_lib.dollhouse.training import tiny
from bench_lib.dollhouse.training.loop import Step
from bench_lib.dollhouse.training.scenes import pair
from bench_lib.dollhouse.training.stories import FIRST_SEED
from bench_lib.dollhouse.training.text import word_ids
from bench_lib.dollhouse.training.words import (
    ACT_CELL,
    CELLS,
    FIELDS,
    HAND_CELL,
    NOTICE_CELL,
    PERSON_CELL,
    SIGN_CELL,
    SLOT_CELLS,
    Says,
    cells,
    tokens_of,
)
from bench_lib.dollhouse.world.world import SMALL, build

_THING = ("colour", "kind", "state")
OF_CELL: dict[int, tuple[str, ...]] = {
    **dict.fromkeys(SLOT_CELLS, (*_THING, "place", "n")),
    HAND_CELL: (*_THING, "action"),
    ACT_CELL: (*_THING, "action", "place", "person"),
    NOTICE_CELL: (*_THING, "action", "sign", "number"),
    PERSON_CELL: ("person",),
    SIGN_CELL: ("sign", "number"),
}
"""The fields that a token may say, beside the room."""
_WORLDS, _EACH = 1_000_000, 10
_LOTS, _USES = 5, 3
_PRESENT, _ABSENT = 10.0, 5.0
"""Scores of a word that is there, and of nothing."""


def opened(model: Any, tokenizer: Any) -> Qwen25VL:
    """The library's model behind our own tower, weights shared."""
    how = tiny.preparation("tiny")
    parts = Parts("training", "", "qwen2_5_vl", model, tokenizer, how, frozenset())
    return Qwen25VL(parts, "sdpa", None)


def looked_at(backbone: Qwen25VL, pairs: Tensor) -> Tensor:
    """Embeddings `[n, 16, width]` of frame pairs `[n, 2, 112, 112, 3]`, with gradients."""
    patches = frames.patches(pairs.to(backbone.device), backbone.preparation)
    with torch.autocast(backbone.device.type, torch.bfloat16):
        features = backbone._tower(patches, 4, 4)
        merged = backbone._merge(features)
    return merged.float()


class Readout:
    """Scores of the words of all fields, by dot product with their embeddings."""

    def __init__(self, tokenizer: Any, table: Tensor) -> None:
        self.tokenizer, self.table = tokenizer, table.detach()
        self.scale = _PRESENT / float(self.table.square().sum(1).mean())
        self.words = {}
        for field, words in FIELDS.items():
            ids = [[tokenizer.convert_tokens_to_ids(t) for t in tokens_of(field, w)] for w in words]
            self.words[field] = torch.stack([self.table[i].mean(0) for i in ids])

    def target(self, said: list[Says]) -> tuple[Tensor, dict[str, Tensor]]:
        """Summed embeddings `[16, width]`, and per field the wanted word of each cell.

        A field that a cell never has is -100 there, one that it lacks now the number after the
        last word.
        """
        ids = word_ids(self.tokenizer, said).to(self.table.device)
        summed = (F.embedding(ids.clamp(min=0), self.table) * (ids >= 0)[..., None]).sum(1)
        wanted = {f: torch.full((CELLS,), -100) for f in FIELDS}
        for cell in range(CELLS):
            for field in ("room", *OF_CELL.get(cell, ())):
                word = said[cell].get(field)
                number = FIELDS[field].index(word) if word else len(FIELDS[field])
                wanted[field][cell] = number
        return summed, wanted

    def scores(self, tokens: Tensor, field: str) -> Tensor:
        """`[..., words + 1]`; the last is that of nothing."""
        found = tokens @ self.words[field].T * self.scale
        nothing = torch.full_like(found[..., :1], _ABSENT)
        return torch.cat([found, nothing], dim=-1)


def fresh(rng: np.random.Generator, size: int) -> tuple[Tensor, list[list[Says]]]:
    """Frame pairs `[size, 2, 112, 112, 3]` of worlds never used before, and what they shall say.

    A few scenes of each world only: with many, the tower learns the households by heart (kinds were
    78 % right on 10,000 scenes of 100 worlds and 22 % on others).
    """
    pairs: list[NDArray[np.uint8]] = []
    said: list[list[Says]] = []
    while len(pairs) < size:
        world = build(FIRST_SEED + int(rng.integers(_WORLDS)), SMALL)
        shots = [(f, i) for f in world.films for i in range(len(f.shots))]
        for at in rng.choice(len(shots), min(_EACH, len(shots), size - len(pairs)), replace=False):
            film, i = shots[int(at)]
            before = film.shots[i - 1] if i else None
            pairs.append(pair(rng, film.shots[i], film.wall_start_s, before))
            said.append(cells(film.shots[i]))
    return torch.from_numpy(np.stack(pairs)), said


def steps(backbone: Qwen25VL, readout: Readout, seed: int, size: int) -> Step:
    """Training steps, `size` scenes each.

    Drawing takes longer than learning, so each scene is used about three times: a lot is drawn
    every third step, and a step takes its scenes from the last few.
    """

    @functools.lru_cache(_LOTS)
    def lot(number: int) -> tuple[Tensor, list[list[Says]]]:
        return fresh(np.random.default_rng((seed, 2, number)), size)

    def step(number: int) -> Any:
        newest = number // _USES
        lots = [lot(k) for k in range(max(0, newest + 1 - _LOTS), newest + 1)]
        pairs = torch.cat([pairs for pairs, _ in lots])
        said = [one for _, lot_said in lots for one in lot_said]
        taken = np.random.default_rng((seed, 4, number)).choice(len(said), size, replace=False)
        return loss(backbone, readout, pairs[taken], [said[int(i)] for i in taken])

    return step


def loss(backbone: Qwen25VL, readout: Readout, pairs: Tensor, said: list[list[Says]]) -> Any:
    """The loss over some scenes, and how often each field is right."""
    tokens = looked_at(backbone, pairs)
    targets = [readout.target(one) for one in said]
    sums = torch.stack([summed for summed, _ in targets]).to(tokens.device)
    value = F.mse_loss(tokens, sums) / readout.table.var()
    marks = {"mse": (float(value.detach()), 1.0)}
    for field in FIELDS:
        wanted = torch.stack([fields[field] for _, fields in targets]).to(tokens.device)
        here = wanted >= 0
        scores = readout.scores(tokens[here], field)
        value = value + F.cross_entropy(scores, wanted[here])
        there = wanted[here] < len(FIELDS[field])
        right = scores.detach().argmax(-1) == wanted[here]
        marks[field] = (float(right[there].sum()), float(there.sum()))
        marks[f"{field}-none"] = (float(right[~there].sum()), float((~there).sum()))
    return value, marks
