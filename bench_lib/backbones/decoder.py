"""The text decoder, driven layer by layer over the library's modules.

What a cache method changes is the attention between what is read now and what is remembered; all
else of a layer is the library's own projections, norms and MLP. So the positions are ours, the keys
are kept un-rotated, layers may remember different tokens, and a method is one function:

    attend(layer, q, k, v, q_pos, k_pos) -> [heads, n, head_dim]

with `q` `[heads, n, head_dim]` of the tokens read now, `k` and `v` `[kv_heads, m, head_dim]` of all
that the layer holds including them, both un-rotated, and positions `[3, n]` and `[3, m]`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from bench_lib.backbones.attention import Attention, rotated
from bench_lib.backbones.cache import Cache, Scratch

Attend = Callable[[int, Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
Mix = Callable[[int, Tensor, Tensor, Tensor], Tensor]


class Decoder:
    """The decoder of a Qwen-like model (RMS norms before attention and MLP, rotary positions)."""

    def __init__(self, text: Any, head: Any, attention: Attention) -> None:
        """Wrap `text`, the library's text model, and `head`, its output layer."""
        self.text = text
        self.head = head
        self.attention = attention
        config = text.config
        self.layers = len(text.layers)
        self.heads: int = config.num_attention_heads
        self.kv_heads: int = config.num_key_value_heads
        self.hidden: int = config.hidden_size
        self.head_dim: int = getattr(config, "head_dim", None) or self.hidden // self.heads
        self.normed = hasattr(text.layers[0].self_attn, "q_norm")

    def angles(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines `[n, head_dim]` of positions `[3, n]`."""
        cos, sin = self.text.rotary_emb(self.head.weight, positions[:, None])
        return cos[0], sin[0]

    def rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        """Keys or queries `[heads, n, head_dim]` at positions `[3, n]`."""
        return rotated(x, *self.angles(positions))

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, q_pos: Tensor, k_pos: Tensor
    ) -> Tensor:
        """The plain hook: full causal attention at the given positions."""
        return self.attention(self.rotate(q, q_pos), self.rotate(k, k_pos), v)

    def read(
        self,
        x: Tensor,
        positions: Tensor | Sequence[Tensor],
        cache: Cache,
        attend: Attend | None = None,
    ) -> tuple[Tensor, Cache]:
        """Read `x` `[n, width]` after `cache`; returns hidden states `[n, hidden]` and the cache.

        `positions` `[3, n]` may be given per layer. The old cache stays as it was.
        """
        hook = attend or self.attend
        places = _per_layer(positions, self.layers)
        keys, values, where = [], [], []
        joined: dict[tuple[int, int], Tensor] = {}

        def mix(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            old, new = cache.positions[layer], places[layer]
            both = (id(old), id(new))
            if both not in joined:
                joined[both] = torch.cat((old, new), dim=1)
            where.append(joined[both])
            keys.append(torch.cat((cache.keys[layer], k), dim=1))
            values.append(torch.cat((cache.values[layer], v), dim=1))
            return hook(layer, q, keys[-1], values[-1], new, where[-1])

        hidden = self._run(x, mix)
        return hidden, Cache(tuple(keys), tuple(values), tuple(where))

    def scratch(self, room: int, cache: Cache | None = None) -> Scratch:
        """A workspace with room for `room` more tokens after those of `cache`."""
        held = [0 if cache is None else cache.length(i) for i in range(self.layers)]
        like = self.head.weight
        space = Scratch(self.layers, self.kv_heads, self.head_dim, [n + room for n in held], like)
        if cache is not None:
            turned = {id(p): self.angles(p) for p in cache.positions}
            for i, (k, v, p) in enumerate(
                zip(cache.keys, cache.values, cache.positions, strict=True)
            ):
                space.extend(i, rotated(k, *turned[id(p)]), v)
        return space

    def advance(self, x: Tensor, positions: Tensor | Sequence[Tensor], scratch: Scratch) -> Tensor:
        """Read `x` `[n, width]` into a workspace; returns hidden states `[n, hidden]`."""
        places = _per_layer(positions, self.layers)
        turned = {id(p): self.angles(p) for p in places}

        def mix(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            cos, sin = turned[id(places[layer])]
            keys, values = scratch.extend(layer, rotated(k, cos, sin), v)
            return self.attention(rotated(q, cos, sin), keys, values)

        return self._run(x, mix)

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores `[n, vocabulary]` of the next token in float32."""
        return self.head(hidden).float()

    def _run(self, x: Tensor, mix: Mix) -> Tensor:
        hidden, *deep = x.split(self.hidden, dim=1)
        for i, layer in enumerate(self.text.layers):
            out = mix(i, *self.project(i, hidden))
            hidden = hidden + layer.self_attn.o_proj(out.transpose(0, 1).reshape(len(x), -1))
            hidden = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
            if i < len(deep):  # DeepStack: zero wherever a token is text
                hidden = hidden + deep[i]
        return self.text.norm(hidden)

    def project(self, layer: int, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Un-rotated queries, keys and values `[heads, n, head_dim]` of states `[n, hidden]`."""
        attn = self.text.layers[layer].self_attn
        x = self.text.layers[layer].input_layernorm(hidden)
        q, k, v = (
            project(x).view(len(x), -1, self.head_dim)
            for project in (attn.q_proj, attn.k_proj, attn.v_proj)
        )
        if self.normed:
            q, k = attn.q_norm(q), attn.k_norm(k)
        return q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1)


def _per_layer(positions: Tensor | Sequence[Tensor], layers: int) -> Sequence[Tensor]:
    return [positions] * layers if isinstance(positions, Tensor) else positions
