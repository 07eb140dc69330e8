"""The decoding loop: ours, so that the first token is timed and nothing guesses positions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench_lib.backbones.base import Backbone
from bench_lib.backbones.cache import Cache
from bench_lib.backbones.prompt import Built
from bench_lib.errors import BenchError
from bench_lib.exchange import Generation
from bench_lib.measure import count

PREFILL_TOKENS = 8_192
"""Tokens read at once: bounds the memory of a long prompt's activations."""


@dataclass(frozen=True)
class Decoded:
    """A reply. Instants are `time.perf_counter()` seconds, taken after the device has finished.

    `stop` is `end` (a stop token came) or `length`. `logits` `[vocabulary]` are those of the first
    token, where they were asked for. `prompt_tokens` counts what was read for this reply.
    """

    text: str
    ids: tuple[int, ...]
    stop: str
    ready_at: float
    first_token_at: float
    done_at: float
    prompt_tokens: int
    logits: NDArray[np.float32] | None = None


@torch.inference_mode()
def decode(
    backbone: Backbone,
    prompt: Built,
    generation: Generation,
    cache: Cache | None = None,
    starts: Sequence[int] | None = None,
) -> Decoded:
    """Read a prompt after `cache` (which stays as it is) and write a reply token by token.

    Greedy at temperature 0, else sampled from the smallest set of tokens whose probability reaches
    `top_p`. The repetition penalty divides positive and multiplies negative scores of tokens that
    the prompt's text or the reply holds already (CTRL, section 4.1). `decode_steps` counts passes
    of one token; the first token of a reply comes from the prefill. `starts` is added to the
    positions, layer by layer, where layers remember different tokens. Raises BenchError when
    positions would pass what the model was made for.
    """
    shifts = (0,) * backbone.layers if starts is None else starts
    moved = len(set(shifts)) > 1

    def placed(where: Tensor) -> Tensor | list[Tensor]:
        return [where + shift for shift in shifts] if moved else where + shifts[0]

    position = int(prompt.positions.max()) + 1
    limit = backbone.context
    if position + max(shifts) + generation.max_new_tokens > limit:
        raise BenchError(
            f"the prompt ends at position {position + max(shifts)} and "
            f"{generation.max_new_tokens} tokens may follow, but {backbone.id} knows {limit}: "
            "give it fewer frames or tokens"
        )
    synchronize(backbone.device)
    ready_at = time.perf_counter()
    model = backbone.decoder
    space = model.scratch(len(prompt.x) + generation.max_new_tokens, cache)
    for x, where in zip(
        prompt.x.split(PREFILL_TOKENS), prompt.positions.split(PREFILL_TOKENS, dim=1), strict=True
    ):
        hidden = model.advance(x, placed(where), space)
    count("tokens_prefilled", len(prompt.x))
    logits = model.logits(hidden[-1:])[0]
    first_logits = logits.cpu().numpy() if generation.keep_logits else None
    choose = _Chooser(generation, prompt.text_ids)
    ids: list[int] = []
    stop, first_token_at = "length", ready_at
    while len(ids) < generation.max_new_tokens:
        token = choose(logits)  # reads the token, and so waits for the device
        if not ids:
            first_token_at = time.perf_counter()
        ids.append(token)
        if token in backbone.stop_ids:
            stop = "end"
            break
        if len(ids) < generation.max_new_tokens:
            where = torch.full((3, 1), position, device=backbone.device)
            hidden = model.advance(backbone.embed([token]), placed(where), space)
            logits = model.logits(hidden)[0]
            position += 1
            count("decode_steps")
    return Decoded(
        text=backbone.tokenizer.decode(ids, skip_special_tokens=True),
        ids=tuple(ids),
        stop=stop,
        ready_at=ready_at,
        first_token_at=first_token_at,
        done_at=time.perf_counter(),
        prompt_tokens=len(prompt.x),
        logits=first_logits,
    )


def synchronize(device: torch.device) -> None:
    """Wait until the device has done what was asked of it."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class _Chooser:
    """Picks the next token from scores `[vocabulary]`."""

    def __init__(self, generation: Generation, prompt_ids: Tensor) -> None:
        self.how = generation
        self.seen = prompt_ids.unique()
        # On the CPU whatever the device, so that a seed means the same everywhere.
        self.random = torch.Generator().manual_seed(generation.seed)

    def __call__(self, logits: Tensor) -> int:
        if self.how.repetition_penalty != 1.0:
            logits = self._penalised(logits)
        if self.how.temperature == 0:
            token = int(logits.argmax())
        else:
            token = self._sampled(logits)
        if self.how.repetition_penalty != 1.0:
            self.seen = torch.cat((self.seen, self.seen.new_tensor([token]))).unique()
        return token

    def _penalised(self, logits: Tensor) -> Tensor:
        scores = logits[self.seen]
        factor = self.how.repetition_penalty
        scores = torch.where(scores < 0, scores * factor, scores / factor)
        return logits.index_copy(0, self.seen, scores)

    def _sampled(self, logits: Tensor) -> int:
        ordered, order = (logits.cpu() / self.how.temperature).softmax(-1).sort(descending=True)
        before = ordered.cumsum(-1) - ordered
        kept = ordered.masked_fill(before >= self.how.top_p, 0.0)  # the likeliest always stays
        return int(order[torch.multinomial(kept, 1, generator=self.random)])
