"""Rows of one context and many questions about it, and the batches made of them.

A pack is a context followed by branches that see the context and themselves only. So one context is
read once, however much is asked about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Row:
    """A prompt and its reply: ids `[n]`, positions `[3, n]`, whether each token is to be said.

    `shots` are the numbers of the shots that show the answer; empty where that is not told.
    """

    x: Ints
    places: Ints
    said: NDArray[np.bool_]
    shots: tuple[int, ...] = ()


@dataclass(frozen=True)
class Pack:
    """Rows with a common beginning. `branch` `[n]` is 0 in the beginning, then 1, 2, ...

    `shots` are those of its rows.
    """

    x: Ints
    places: Ints
    said: NDArray[np.bool_]
    branch: Ints
    shots: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Batch:
    """Packs side by side. `visible` `[b, 1, n, n]` says which token sees which.

    `branch` `[b, n]` numbers the rows of a pack from 1 on, `shots` are theirs.
    """

    x: Tensor
    places: Tensor
    said: Tensor
    visible: Tensor
    branch: Tensor
    shots: tuple[tuple[tuple[int, ...], ...], ...]

    def to(self, device: torch.device) -> Batch:
        """The same on a device."""
        x, places, said = (t.to(device) for t in (self.x, self.places, self.said))
        return Batch(x, places, said, self.visible.to(device), self.branch.to(device), self.shots)


def row(
    prompt: tuple[Ints, Ints],
    reply: Sequence[int],
    said_from: int = 0,
    shots: tuple[int, ...] = (),
) -> Row:
    """A prompt with its reply, of which the tokens from `said_from` on are to be learned."""
    x, places = prompt
    start = int(places.max()) + 1
    after = np.broadcast_to(np.arange(start, start + len(reply)), (3, len(reply)))
    said = np.zeros(len(x) + len(reply), bool)
    said[len(x) + said_from :] = True
    return Row(
        np.concatenate([x, np.asarray(reply, np.int64)]),
        np.concatenate([places, after], axis=1),
        said,
        shots,
    )


def pack(rows: Sequence[Row]) -> Pack:
    """Rows behind their longest common beginning; a row's last token is never shared."""
    common = min(int(r.said.argmax()) for r in rows)
    if len(rows) > 1:
        first = rows[0]
        for other in rows[1:]:
            n = min(common, len(other.x))
            same = (first.x[:n] == other.x[:n]) & (first.places[:, :n] == other.places[:, :n]).all(
                0
            )
            common = n if same.all() else int(same.argmin())
    # The token before a reply predicts it, so it must lie in the reply's own branch.
    common = max(0, min(common, *(int(r.said.argmax()) - 1 for r in rows)))
    pieces = [(rows[0], slice(0, common), 0)]
    pieces += [(r, slice(common, None), i + 1) for i, r in enumerate(rows)]
    return Pack(
        np.concatenate([r.x[s] for r, s, _ in pieces]),
        np.concatenate([r.places[:, s] for r, s, _ in pieces], axis=1),
        np.concatenate([r.said[s] for r, s, _ in pieces]),
        np.concatenate([np.full(len(r.x[s]), i) for r, s, i in pieces]),
        tuple(r.shots for r in rows),
    )


def batch(packs: Sequence[Pack], pad: int) -> Batch:
    """Packs padded to one length; padding sees itself only and says nothing."""
    n = max(len(p.x) for p in packs)
    x = np.full((len(packs), n), pad, np.int64)
    places = np.zeros((3, len(packs), n), np.int64)
    said = np.zeros((len(packs), n), bool)
    branch = np.full((len(packs), n), -1, np.int64)
    for i, p in enumerate(packs):
        m = len(p.x)
        x[i, :m], places[:, i, :m], said[i, :m], branch[i, :m] = p.x, p.places, p.said, p.branch
    where = torch.from_numpy(branch)
    before = torch.ones(n, n, dtype=torch.bool).tril()
    shared = (where[:, None] == 0) | (where[:, None] == where[:, :, None])
    visible = (before & shared) | torch.eye(n, dtype=torch.bool)
    ids, told = torch.from_numpy(x), torch.from_numpy(said)
    shots = tuple(p.shots for p in packs)
    return Batch(ids, torch.from_numpy(places), told, visible[:, None], where, shots)
