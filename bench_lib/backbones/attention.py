"""Rotation and causal attention over grouped heads; the same code on CPU and GPU."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]
"""`(q [heads, n, d], k [kv_heads, m, d], v [kv_heads, m, d]) -> [heads, n, d]`, m >= n: the last
query sees all keys, the one before it all but the last, and so on."""


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """`x` `[heads, n, d]` turned by angles `[n, d]` whose two halves agree (RoPE, half split)."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def sdpa(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Fused attention; on CUDA the flash kernels that torch brings along."""
    heads, n, d = q.shape
    if n == 1:
        # One query sees every key: heads of a group become rows, and no key is repeated.
        rows = q.reshape(k.shape[0], -1, d)
        return F.scaled_dot_product_attention(rows[None], k[None], v[None])[0].view(heads, 1, d)
    m, grouped = k.shape[1], heads != k.shape[0]
    if n == m:
        return F.scaled_dot_product_attention(
            q[None], k[None], v[None], is_causal=True, enable_gqa=grouped
        )[0]
    if q.is_cuda:
        # A mask that the flash kernels know. Its module takes seconds to import.
        from torch.nn.attention.bias import causal_lower_right

        mask: Tensor = causal_lower_right(n, m)
    else:
        mask = torch.ones(n, m, dtype=torch.bool, device=q.device).tril(m - n)
    return F.scaled_dot_product_attention(
        q[None], k[None], v[None], attn_mask=mask, enable_gqa=grouped
    )[0]


def eager(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The definition, written out: scores and softmax in float32. For checks, not for speed."""
    group = q.shape[0] // k.shape[0]
    keys, values = (t.repeat_interleave(group, dim=0) for t in (k, v))
    scores = (q.float() @ keys.float().transpose(1, 2)) * q.shape[-1] ** -0.5
    n, m = scores.shape[1:]
    seen = torch.ones(n, m, dtype=torch.bool, device=q.device).tril(m - n)
    return (scores.masked_fill(~seen, float("-inf")).softmax(-1) @ values.float()).to(q.dtype)


KINDS: dict[str, Attention] = {"sdpa": sdpa, "eager": eager}
