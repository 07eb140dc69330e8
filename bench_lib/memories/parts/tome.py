"""Token merging (ToMe, arXiv 2210.09461) as StreamForest runs it: by pairs of even and odd tokens.

Similarity is the cosine of a token's mean over the vision tower's heads. Tokens may carry more than
what is compared: the first `hidden` numbers count.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def merged(x: Tensor, target: int, heads: int, hidden: int) -> Tensor:
    """Tokens `[b, n, d]` merged until `target` are left, `[b, target, d]`; fewer stay as they are.

    A round takes at most half of the tokens: of the even ones those most like some odd one join it,
    in a mean weighted by how many tokens each stands for. What is left comes in the order of the
    release: even tokens that stayed, most alike first, then odd ones in place.
    """
    rest, size = x.float(), torch.ones_like(x[..., :1], dtype=torch.float32)
    while rest.shape[1] > target:
        gone = min(rest.shape[1] - target, rest.shape[1] // 2)
        rest, size = _round(rest, size, gone, heads, hidden)
    return rest.to(x.dtype)


def likeness(first: Tensor, second: Tensor, gone: int, heads: int, hidden: int) -> float:
    """How alike two sets of tokens `[n, d]` are: the mean cosine of the `gone` best pairs."""
    best, _ = _matches(torch.cat((first, second))[None].float(), heads, hidden)
    return float(best[0].topk(gone).values.mean())


def _matches(x: Tensor, heads: int, hidden: int) -> tuple[Tensor, Tensor]:
    """For each even token `[b, n/2]` its best cosine with an odd one, and which that is."""
    metric = x[..., :hidden].unflatten(-1, (heads, -1)).mean(-2)
    metric = F.normalize(metric, dim=-1)
    scores = metric[:, ::2] @ metric[:, 1::2].transpose(1, 2)
    best, which = scores.max(-1)
    return best, which


def _round(x: Tensor, size: Tensor, gone: int, heads: int, hidden: int) -> tuple[Tensor, Tensor]:
    best, which = _matches(x, heads, hidden)
    order = best.argsort(dim=-1, descending=True, stable=True)
    source, stays = order[:, :gone], order[:, gone:]
    # Summed by a product, not by scattered adds: the same on every pass, also on a GPU.
    joins = F.one_hot(which.gather(1, source), x[:, 1::2].shape[1]).transpose(1, 2).float()
    mass = torch.cat((x * size, size), dim=-1)
    even, odd = mass[:, ::2], mass[:, 1::2]
    odd = odd + joins @ _taken(even, source)
    left = torch.cat((_taken(even, stays), odd), dim=1)
    return left[..., :-1] / left[..., -1:], left[..., -1:]


def _taken(x: Tensor, index: Tensor) -> Tensor:
    return x.gather(1, index[..., None].expand(-1, -1, x.shape[-1]))
