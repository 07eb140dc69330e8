"""The decoder's part of training: one step over a batch, on spoken or on seen tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bench_lib.dollhouse.training.rows import Batch
from bench_lib.dollhouse.training.words import CELLS, SLOT_CELLS, Says, fixed, tokens_of

_AIM, _AIMED = 1.0, slice(2, 5)
"""Weight of the attention's aim, and the layers that have one."""
_HEAVY = 10.0
"""How much more a letter or a decision counts than another token: one decides a question."""
_ROWS, _COLUMNS = ("far", "near"), ("left", "middle", "right")
"""The words of places, as in `words.SLOTS`."""


class Bank:
    """What visual tokens hold: words per shot and cell, and once seen, features.

    Words stand in for features before the tower has learned to say them: the sum of their
    embeddings with noise.
    """

    DEPTH = 12

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.words: list[Tensor] = []
        self.own: list[Tensor] = []
        self.features: list[Tensor] = []
        token = tokenizer.convert_tokens_to_ids
        self.options = {token(f"{letter}. "): token(letter) for letter in "ABCDE"}
        ends = [i for word, i in tokenizer.get_vocab().items() if "\n" in word or "\u010a" in word]
        self.ends = torch.tensor([*ends, token("<|im_end|>")])
        self.rows = {token(f"{space}{w}"): i for space in ("", " ") for i, w in enumerate(_ROWS)}
        self.columns = {token(f" {w}"): i for i, w in enumerate(_COLUMNS)}

    def add(self, said: list[Says], seen: Tensor | None = None) -> int:
        """Add a shot by what its cells say, with what was seen of it `[16, width]` if it was."""
        self.words.append(word_ids(self.tokenizer, said))
        # What all tokens of a frame say, and what a token always says, gives no place away.
        own = [{f: w for f, w in fields.items() if f != "room"} for fields in said]
        self.own.append(word_ids(self.tokenizer, own, always=False))
        if seen is not None:
            self.features.append(seen)
        return len(self.words) - 1

    def says(self, x: Tensor) -> Tensor:
        """Ids `[b, n, DEPTH]` of what visual tokens say of their own; -1 elsewhere."""
        found = torch.full((*x.shape, self.DEPTH), -1, dtype=torch.int64)
        seen = x.cpu() < 0
        flat = -1 - x.cpu()[seen]
        shots, where = flat // CELLS, flat % CELLS
        unique, back = shots.unique(return_inverse=True)
        if len(unique):
            found[seen] = torch.stack([self.own[int(i)] for i in unique])[back, where]
        return found.to(x.device)

    def lines(self, x: Tensor) -> Tensor:
        """For each token `[b, n]` of a batch the id of the letter in whose option it stands, or -1.

        An option begins at its letter and ends with its line.
        """
        code = torch.full(x.shape, -1, dtype=torch.int64)
        for token, letter in self.options.items():
            code[x.cpu() == token] = letter
        code[torch.isin(x.cpu(), self.ends)] = 0
        at = torch.where(code >= 0, torch.arange(x.shape[1]), 0).cummax(1).values
        found = code.gather(1, at)
        return found.masked_fill(found == 0, -1).to(x.device)

    def slots(self, x: Tensor) -> Tensor:
        """For each token `[b, n]` of a batch the cell of the place that it names, or -1.

        A place is named by two words, as in `far left`; each of them is a token of it.
        """
        row, column = (torch.full(x.shape, -1) for _ in range(2))
        for found, words in ((row, self.rows), (column, self.columns)):
            for token, number in words.items():
                found[x.cpu() == token] = number
        both = (row[:, :-1] >= 0) & (column[:, 1:] >= 0)
        named = torch.tensor(SLOT_CELLS)[3 * row[:, :-1].clamp(min=0) + column[:, 1:].clamp(min=0)]
        cell = torch.full(x.shape, -1, dtype=torch.int64)
        cell[:, :-1][both] = named[both]
        cell[:, 1:][both] = named[both]
        return cell.to(x.device)

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


def word_ids(tokenizer: Any, said: list[Says], always: bool = True) -> Tensor:
    """Token ids `[16, DEPTH]` of what the cells say, -1 where there is none.

    `always`: with what they say whatever the picture.
    """
    ids = torch.full((CELLS, Bank.DEPTH), -1, dtype=torch.int64)
    for cell, fields in enumerate(said):
        words = list(fixed(cell) if always else ())
        words += [t for f, w in fields.items() for t in tokens_of(f, w)]
        found = [tokenizer.convert_tokens_to_ids(w) for w in words]
        ids[cell, : len(found)] = torch.tensor(found)
    return ids


def states_of(
    model: Any, lot: Batch, bank: Bank, noise: float
) -> tuple[Tensor, Tensor, Sequence[Tensor]]:
    """What the decoder thinks before each token that is to be said.

    Last states `[k, width]`, those tokens `[k]`, and per layer how much its heads look at every
    token `[k, heads, n]`.
    """
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
        output_attentions=True,
    )
    said = lot.said[:, 1:]
    # Attention is only told by a model that was opened for training (`train.blank`).
    looks = [layer.transpose(1, 2)[:, :-1][said] for layer in out.attentions or ()]
    return out.last_hidden_state[:, :-1][said], lot.x[:, 1:][said], looks


def aim(looks: Sequence[Tensor], lot: Batch, bank: Bank) -> Tensor:
    """How far half of the heads of the middle layers are from what holds the word to be said.

    Minus the log of the attention on those visual tokens that say it (for a letter, on its option;
    for a place, on the token that stands there), averaged over the words for which there are such
    tokens. Finding a thing in what is seen, and an option among several, are skills that start
    late, if at all, when only the reply is judged; told where to look, they start at once.
    """
    rows, at = torch.nonzero(lot.said[:, 1:], as_tuple=True)
    wanted = lot.x[rows, at + 1]
    says = bank.says(lot.x)  # [b, n, DEPTH]
    holds = (says[rows] == wanted[:, None, None]).any(-1)
    holds |= bank.lines(lot.x)[rows] == wanted[:, None]
    cells = torch.where(lot.x < 0, (-1 - lot.x) % CELLS, -2)
    holds |= cells[rows] == bank.slots(lot.x)[rows, at + 1, None]
    holds &= lot.visible[rows, 0, at] & shown(lot)[rows, lot.branch[rows, at + 1]]
    told = holds.any(-1)
    if not bool(told.any()):
        return torch.zeros(())
    losses = []
    for look in looks[_AIMED]:
        heads = look.shape[1] // 2
        mass = (look[told][:, :heads].float() * holds[told][:, None]).sum(-1)
        losses.append(-(mass + 1e-4).log().mean())
    return torch.stack(losses).mean()


def shown(lot: Batch) -> Tensor:
    """For each row of each pack the tokens `[b, rows + 1, n]` that may hold its answer.

    Visual tokens of the shots that show it, where those are told, and all tokens of text.
    """
    shot = torch.where(lot.x < 0, torch.div(-1 - lot.x, CELLS, rounding_mode="floor"), -1)
    found = torch.ones(len(lot.x), 1 + max(map(len, lot.shots)), lot.x.shape[1], dtype=torch.bool)
    for i, rows in enumerate(lot.shots):
        for j, shots in enumerate(rows):
            if shots:
                found[i, j + 1] = torch.isin(shot[i].cpu(), torch.tensor([-1, *shots]))
    return found.to(lot.x.device)


def loss(
    model: Any, lot: Batch, bank: Bank, noise: float = 0.2, heavy: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean cross-entropy, whether each said token is the likeliest, and the tokens.

    Tokens of `heavy` count `_HEAVY` times, and how far attention is from its aim a part.
    """
    device = model.lm_head.weight.device
    lot = lot.to(device)
    with torch.autocast(device.type, torch.bfloat16):
        states, wanted, looks = states_of(model, lot, bank, noise)
        scores = model.lm_head(states)
    scores = scores.float()
    with torch.no_grad():
        right = scores.argmax(-1) == wanted
    value = F.cross_entropy(scores, wanted, reduction="none")
    weight = torch.ones_like(value)
    if heavy is not None:
        weight[torch.isin(wanted, heavy.to(device))] = _HEAVY
    value = (value * weight).sum() / weight.sum()
    if looks:
        value = value + _AIM * aim(looks, lot, bank)
    return value, right, wanted
