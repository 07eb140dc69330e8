"""video-SALMONN S's test-time-trained layer: a small network whose weights are the memory.

Per head a two-layer network maps a token's key to the normalised difference of its value and key,
and to that of the token `lag` places earlier. Its weights (`Fast`) take one gradient step for each
mini-batch; what the layer gives out is the trained network at the token's query. Queries and keys
are unit vectors, turned by frame, row and column. The class called "conjugate gradient" in the
release takes plain gradient steps at its released settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor

from bench_lib.errors import BenchError
from bench_lib.state.walk import part


@dataclass(frozen=True)
class Fast:
    """The weights that learn: `[heads, d, d]`, `[heads, 1, d]`, twice."""

    w1: Tensor = part("weights")
    b1: Tensor = part("weights")
    w2: Tensor = part("weights")
    b2: Tensor = part("weights")


@dataclass(frozen=True)
class Layer:
    """The trained, fixed part; names are the release's, with `_` for its dots."""

    wq_weight: Tensor
    wq_bias: Tensor
    wk_weight: Tensor
    wk_bias: Tensor
    wv_weight: Tensor
    wv_bias: Tensor
    wo_weight: Tensor
    wo_bias: Tensor
    lag_linear_weight: Tensor
    lag_linear_bias: Tensor
    lag_linear_key_weight: Tensor
    lag_linear_key_bias: Tensor
    learnable_ttt_lr_weight: Tensor
    learnable_ttt_lr_bias: Tensor
    ttt_norm_weight: Tensor
    ttt_norm_bias: Tensor
    post_norm_weight: Tensor
    post_norm_bias: Tensor
    W1: Tensor
    b1: Tensor
    W2: Tensor
    b2: Tensor
    gating_alpha: Tensor

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor]) -> Self:
        """A layer from tensors named as below the release's `ttt_layers.ttt` and `ttt_gating`.

        Raises BenchError where one is missing.
        """
        plain = {name.replace(".", "_"): tensor for name, tensor in tensors.items()}
        names = [f.name for f in fields(cls)]
        missing = [name for name in names if name not in plain]
        if missing:
            raise BenchError(f"the test-time-trained layer lacks {', '.join(missing)}")
        return cls(**{name: plain[name] for name in names})

    @classmethod
    def made(cls, hidden: int, heads: int, like: Tensor) -> Self:
        """An untrained layer, initialised as the release's, the same on every machine."""
        random = torch.Generator().manual_seed(0)
        d = hidden // heads

        def drawn(*shape: int) -> Tensor:
            if like.is_meta:
                return torch.empty(shape, device="meta")
            return torch.randn(shape, generator=random).mul_(0.02)

        made = {f"{name}_weight": drawn(hidden, hidden) for name in _LINEAR}
        made |= {f"{name}_bias": torch.zeros(hidden) for name in _LINEAR}
        made |= {
            "learnable_ttt_lr_weight": drawn(heads, 1, hidden),
            "learnable_ttt_lr_bias": torch.zeros(heads, 1),
            "ttt_norm_weight": torch.ones(heads, d),
            "ttt_norm_bias": torch.zeros(heads, d),
            "post_norm_weight": torch.ones(hidden),
            "post_norm_bias": torch.zeros(hidden),
            "W1": drawn(heads, d, d),
            "b1": torch.zeros(heads, 1, d),
            "W2": drawn(heads, d, d),
            "b2": torch.zeros(heads, 1, d),
            "gating_alpha": torch.full((hidden,), 0.1),
        }
        return cls(**{name: tensor.to(like) for name, tensor in made.items()})

    @property
    def heads(self) -> int:
        """Heads of the small networks."""
        return self.W1.shape[0]

    @property
    def head_dim(self) -> int:
        """Numbers of a head."""
        return self.W1.shape[1]

    def untaught(self) -> Fast:
        """The fast weights before the first token; copies."""
        return Fast(self.W1.clone(), self.b1.clone(), self.W2.clone(), self.b2.clone())


_LINEAR = ("wq", "wk", "wv", "wo", "lag_linear", "lag_linear_key")


@dataclass(frozen=True)
class Pace:
    """How it learns: tokens a step, tokens of the lag, learning rate, weight of the lagged loss."""

    mini_batch: int = 1_024
    lag: int = 1_024
    rate: float = 0.1
    lag_weight: float = 0.1


@dataclass(frozen=True)
class Batch:
    """What one step learns from, per head: `[heads, n, d]`; `rates` `[heads, n]`, `lagged` `[n]`.

    `lagged` is one where there is a token `lag` places earlier.
    """

    keys: Tensor
    target: Tensor
    lag_target: Tensor
    lagged: Tensor
    rates: Tensor


def taught(
    layer: Layer,
    fast: Fast,
    history: Tensor,
    x: Tensor,
    first: int,
    lattice: tuple[int, int],
    pace: Pace,
    parity: bool = False,
) -> tuple[Tensor, Fast, Tensor]:
    """What the layer gives for tokens `x` `[n, hidden]`, its new weights and history.

    Args:
        layer: The fixed part.
        fast: The weights so far.
        history: The newest tokens before `x`, at most `lag` of them, `[m, hidden]`.
        x: Tokens of whole grids, in order.
        first: Count of tokens before them in the stream.
        lattice: Rows and columns of a grid.
        pace: Settings.
        parity: As in the release, zeros that fill the last mini-batch are tokens: they are learnt
            from, and stand in the history. Else nothing comes of them.
    """
    n = len(x)
    filled = F.pad(x, (0, 0, 0, -n % pace.mini_batch))
    real = len(filled) if parity else n
    before = torch.cat((history, filled))[-(len(filled) + pace.lag) :]
    lack = len(filled) + pace.lag - len(before)
    earlier = F.pad(before, (0, 0, lack, 0))[: len(filled)]
    turns = angles(first, len(filled), lattice, layer.head_dim).to(x.device)
    queries = rotated(_unit(layer, filled, "wq"), turns)
    keys = rotated(_unit(layer, filled, "wk"), turns)
    lag_keys = rotated(_unit(layer, filled, "lag_linear_key"), turns)
    whole = Batch(
        keys,
        _normed(layer, _heads(layer, filled, "wv") - keys),
        _normed(layer, _heads(layer, earlier, "lag_linear") - lag_keys),
        (torch.arange(len(filled), device=x.device) >= lack).to(x.dtype),
        _rates(layer, filled, real, pace),
    )
    out = []
    for start in range(0, len(filled), pace.mini_batch):
        now = slice(start, start + pace.mini_batch)
        batch = Batch(
            whole.keys[:, now],
            whole.target[:, now],
            whole.lag_target[:, now],
            whole.lagged[now],
            whole.rates[:, now],
        )
        fast = stepped(layer, fast, batch, pace.lag_weight)
        out.append(answered(layer, fast, queries[:, now]))
    heads_last = torch.cat(out, dim=1).transpose(0, 1).flatten(1)[:n]
    y = F.layer_norm(
        heads_last, heads_last.shape[1:], layer.post_norm_weight, layer.post_norm_bias, 1e-6
    )
    y = F.linear(y, layer.wo_weight, layer.wo_bias)
    seen = torch.cat((history, filled[:real]))
    return y, fast, seen[max(0, len(seen) - pace.lag) :].clone()


def stepped(layer: Layer, fast: Fast, batch: Batch, lag_weight: float) -> Fast:
    """The weights after one gradient step on the sum, over tokens, of rate times half the square.

    The error is that of the network's normalised output against `target`, plus `lag_weight` times
    that against `lag_target`.
    """
    z1, x2, z2 = _network(fast, batch.keys)
    normal, spread = _standard(z2)
    gamma = layer.ttt_norm_weight[:, None]
    y = gamma * normal + layer.ttt_norm_bias[:, None]
    error = (y - batch.target) + lag_weight * batch.lagged[:, None] * (y - batch.lag_target)
    g = error * gamma
    # Through the normalisation, then through the two layers.
    inner = (g * normal).mean(-1, keepdim=True)
    d2 = (g - g.mean(-1, keepdim=True) - normal * inner) / spread
    slope = torch.ops.aten.gelu_backward(torch.ones_like(z1), z1, approximate="tanh")
    d1 = d2 @ fast.w2.transpose(1, 2) * slope
    d1, d2 = (batch.rates[..., None] * d for d in (d1, d2))
    return Fast(
        fast.w1 - batch.keys.transpose(1, 2) @ d1,
        fast.b1 - d1.sum(1, keepdim=True),
        fast.w2 - x2.transpose(1, 2) @ d2,
        fast.b2 - d2.sum(1, keepdim=True),
    )


def answered(layer: Layer, fast: Fast, queries: Tensor) -> Tensor:
    """The network at queries `[heads, n, d]`, normalised, added to them."""
    normal, _ = _standard(_network(fast, queries)[2])
    return queries + layer.ttt_norm_weight[:, None] * normal + layer.ttt_norm_bias[:, None]


def angles(first: int, count: int, lattice: tuple[int, int], head_dim: int) -> Tensor:
    """Turns `[count, head_dim / 2]` of tokens by frame (a quarter), row and column (3/8 each)."""
    rows, cols = lattice
    index = torch.arange(first, first + count)
    places = (index // (rows * cols), index % (rows * cols) // cols, index % cols)
    parts = []
    for place, dim in zip(places, (head_dim // 4, *(head_dim // 8 * 3,) * 2), strict=True):
        speeds = 1.0 / 10_000 ** (torch.arange(0, dim, 2)[: dim // 2].float() / dim)
        parts.append(place.float()[:, None] * speeds)
    return torch.cat(parts, dim=1)


def rotated(x: Tensor, turns: Tensor) -> Tensor:
    """`x` `[heads, n, d]` with neighbouring numbers turned by `turns` `[n, d / 2]`, in float32."""
    even, odd = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    cos, sin = turns.cos(), turns.sin()
    turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)
    return turned.flatten(-2).to(x.dtype)


def _network(fast: Fast, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    z1 = x @ fast.w1 + fast.b1
    x2 = F.gelu(z1, approximate="tanh")
    return z1, x2, x2 @ fast.w2 + fast.b2


def _standard(x: Tensor) -> tuple[Tensor, Tensor]:
    """Zero mean and unit spread over the last axis, and the spread."""
    spread = (x.var(-1, keepdim=True, unbiased=False) + 1e-8).sqrt()
    return (x - x.mean(-1, keepdim=True)) / spread, spread


def _normed(layer: Layer, x: Tensor) -> Tensor:
    """What is to be learnt: normalised with the spread of a sample, as in the release."""
    normal = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-8)
    return layer.ttt_norm_weight[:, None] * normal + layer.ttt_norm_bias[:, None]


def _heads(layer: Layer, x: Tensor, name: str) -> Tensor:
    """A projection of tokens, by heads: `[heads, n, d]`."""
    out = F.linear(x, getattr(layer, f"{name}_weight"), getattr(layer, f"{name}_bias"))
    return out.unflatten(-1, (layer.heads, -1)).transpose(0, 1)


def _unit(layer: Layer, x: Tensor, name: str) -> Tensor:
    return F.normalize(_heads(layer, x, name), dim=-1)


def _rates(layer: Layer, x: Tensor, real: int, pace: Pace) -> Tensor:
    """Learning rates `[heads, n]`: each token's own, zero from `real` on."""
    own = F.linear(x, layer.learnable_ttt_lr_weight[:, 0], layer.learnable_ttt_lr_bias[:, 0])
    rates = own.sigmoid().T * (pace.rate / layer.head_dim / pace.mini_batch)
    rates[:, real:] = 0
    return rates
