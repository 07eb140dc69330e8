"""video-SALMONN S's selector: of a growing row of tokens, those least like the one before."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 4_096
"""Tokens compared at once: bounds memory."""


def kept(tokens: Tensor, limit: int, step: int) -> Tensor:
    """Indices `[min(n, limit)]` of the tokens `[n, d]` that stay, in order.

    The first `limit` are held; then, `step` at a time, more come in and the `limit` whose cosine
    with the token before them is smallest stay. What has no token before it goes first.
    """
    norms = tokens.float().norm(dim=1) if len(tokens) <= BLOCK else _norms(tokens)
    every = torch.arange(len(tokens), device=tokens.device)
    held = every[:limit]
    for start in range(limit, len(tokens), step):
        row = torch.cat((held, every[start : start + step]))
        alike = _alike(tokens, norms, row)
        least = torch.argsort(alike, stable=True)[:limit].sort().values
        held = row[least + 1]
    return held


def _alike(tokens: Tensor, norms: Tensor, row: Tensor) -> Tensor:
    """Cosine of each token of a row, but the first, with the one before it."""
    done = []
    for before, now in zip(row[:-1].split(BLOCK), row[1:].split(BLOCK), strict=True):
        dots = (tokens[before].float() * tokens[now].float()).sum(1)
        done.append(dots / (norms[before] * norms[now]).clamp(min=1e-12))
    return torch.cat(done)


def _norms(tokens: Tensor) -> Tensor:
    return torch.cat([part.float().norm(dim=1) for part in tokens.split(BLOCK)])
