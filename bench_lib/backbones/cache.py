"""Keys and values of what a decoder has read.

`Cache` is a memory: un-rotated keys with their positions, tensors that are never written in place,
so that an append shares nothing it could spoil and a fork is a second reference. `Scratch` is the
private workspace of one answer: rotated keys in buffers with room for what is to come, so that a
decoding step copies one token and not the whole memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from bench_lib.state.walk import part


@dataclass(frozen=True)
class Cache:
    """Per layer: keys and values `[kv_heads, n, head_dim]`, positions `[3, n]` (t, h, w).

    `n` may differ between layers; layers that agree may share one positions tensor.
    """

    keys: tuple[Tensor, ...] = part("kv")
    values: tuple[Tensor, ...] = part("kv")
    positions: tuple[Tensor, ...] = part("index")

    @classmethod
    def empty(cls, layers: int, kv_heads: int, head_dim: int, like: Tensor) -> Self:
        """A cache that holds nothing, with the device and dtype of `like`."""
        nothing = like.new_empty(kv_heads, 0, head_dim)
        nowhere = torch.empty(3, 0, dtype=torch.long, device=like.device)
        return cls((nothing,) * layers, (nothing,) * layers, (nowhere,) * layers)

    def length(self, layer: int = 0) -> int:
        """Tokens held by a layer."""
        return self.keys[layer].shape[1]

    def gather(self, index: Sequence[Tensor]) -> Self:
        """The tokens of `index[layer]`, in that order; always copies, so no view stays behind."""
        # Layers that share positions and take the same tokens go on sharing them.
        picks = {(id(p), id(i)): p[:, i] for p, i in zip(self.positions, index, strict=True)}
        return replace(
            self,
            keys=tuple(k[:, i] for k, i in zip(self.keys, index, strict=True)),
            values=tuple(v[:, i] for v, i in zip(self.values, index, strict=True)),
            positions=tuple(
                picks[id(p), id(i)] for p, i in zip(self.positions, index, strict=True)
            ),
        )

    def cut(self, start: int, stop: int | None = None) -> Self:
        """Tokens `start` to `stop` of every layer, copied."""
        part_of = slice(start, stop)
        # One copy of a positions tensor that layers share stays one.
        places = {id(p): p[:, part_of].clone() for p in self.positions}
        return replace(
            self,
            keys=tuple(k[:, part_of].clone() for k in self.keys),
            values=tuple(v[:, part_of].clone() for v in self.values),
            positions=tuple(places[id(p)] for p in self.positions),
        )

    def to(self, device: str | torch.device) -> Self:
        """The same cache on another device."""
        places = {id(p): p.to(device) for p in self.positions}
        return replace(
            self,
            keys=tuple(k.to(device) for k in self.keys),
            values=tuple(v.to(device) for v in self.values),
            positions=tuple(places[id(p)] for p in self.positions),
        )

    @property
    def kv_bytes(self) -> int:
        """Bytes of keys and values."""
        return sum(t.numel() * t.element_size() for t in (*self.keys, *self.values))


class Scratch:
    """Rotated keys and values of one answer, in buffers of a fixed capacity."""

    def __init__(
        self, layers: int, kv_heads: int, head_dim: int, capacity: Sequence[int], like: Tensor
    ) -> None:
        self._keys = [like.new_empty(kv_heads, capacity[i], head_dim) for i in range(layers)]
        self._values = [like.new_empty(kv_heads, capacity[i], head_dim) for i in range(layers)]
        self._length = [0] * layers

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append rotated keys and values; returns all that the layer holds now."""
        start = self._length[layer]
        stop = start + keys.shape[1]
        self._keys[layer][:, start:stop] = keys
        self._values[layer][:, start:stop] = values
        self._length[layer] = stop
        return self._keys[layer][:, :stop], self._values[layer][:, :stop]
