"""The decoder's part of training: one step over a batch, on spoken or on seen tokens."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bench_lib.dollhouse.train_rows import Batch
from bench_lib.dollhouse.train_words import CELLS, Says, fixed, tokens_of


class Bank:
    """What visual tokens hold: words per shot and cell, and once seen, features.

    Words stand in for features before the tower has learned to say them: the sum of their
    embeddings with noise.
    """

    DEPTH = 12

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.words: list[Tensor] = []
        self.features: list[Tensor] = []

    def add(self, said: list[Says], seen: Tensor | None = None) -> int:
        """Add a shot by what its cells say, or by what was seen of it `[16, width]`."""
        if seen is not None:
            self.features.append(seen)
            return len(self.features) - 1
        self.words.append(word_ids(self.tokenizer, said))
        return len(self.words) - 1

    def embed(self, codes: Tensor, table: Tensor, noise: float) -> Tensor:
        """Embeddings `[n, width]` of visual tokens by their codes `-1 - 16 * shot - cell`."""
        flat = -1 - codes.cpu()
        shots, where = flat // CELLS, flat % CELLS
        unique, back = shots.unique(return_inverse=True)
        held = torch.stack([(self.features or self.words)[int(i)] for i in unique])[back, where].to(
            table.device
        )
        if self.features:
            clean = held.to(table.dtype)
        else:
            found = F.embedding(held.clamp(min=0), table)
            clean = (found * (held >= 0)[..., None]).sum(1)
        scale = table.detach().std()
        return clean + noise * scale * torch.randn_like(clean)


def word_ids(tokenizer: Any, said: list[Says]) -> Tensor:
    """Token ids `[16, DEPTH]` of what the cells say, -1 where there is none."""
    ids = torch.full((CELLS, Bank.DEPTH), -1, dtype=torch.int64)
    for cell, fields in enumerate(said):
        words = [*fixed(cell), *(t for f, w in fields.items() for t in tokens_of(f, w))]
        found = [tokenizer.convert_tokens_to_ids(w) for w in words]
        ids[cell, : len(found)] = torch.tensor(found)
    return ids


def hidden(model: Any, lot: Batch, bank: Bank, noise: float) -> tuple[Tensor, Tensor]:
    """Last states `[k, width]` before each token that is to be said, and those tokens `[k]`."""
    text = model.model.language_model
    table = text.embed_tokens.weight
    seen = lot.x < 0
    x = F.embedding(lot.x.clamp(min=0), table)
    if bool(seen.any()):
        x = x.masked_scatter(seen[..., None], bank.embed(lot.x[seen], table, noise).to(x.dtype))
    mask = torch.zeros_like(lot.visible, dtype=x.dtype).masked_fill(~lot.visible, -1e9)
    out = text(
        inputs_embeds=x,
        position_ids=lot.places,
        attention_mask={"full_attention": mask},
        use_cache=False,
    ).last_hidden_state
    said = lot.said[:, 1:]
    return out[:, :-1][said], lot.x[:, 1:][said]


def loss(model: Any, lot: Batch, bank: Bank, noise: float = 0.2) -> tuple[Tensor, Tensor, Tensor]:
    """Mean cross-entropy, whether each said token is the likeliest, and the tokens."""
    device = model.lm_head.weight.device
    with torch.autocast(device.type, torch.bfloat16):
        states, wanted = hidden(model, lot.to(device), bank, noise)
        scores = model.lm_head(states)
    scores = scores.float()
    with torch.no_grad():
        right = scores.argmax(-1) == wanted
    return F.cross_entropy(scores, wanted), right, wanted
