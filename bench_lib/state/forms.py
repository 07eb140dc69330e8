"""How the numbers of a memory lie on disk: as they are, or in one byte each.

`exact` is every bit. `int8` and `fp8` take the floating tensors of tokens and caches (kinds
`kv`, `embeddings`, `features`); all else, whole numbers, positions, times, scores and weights that
learn, stays exact. Loading gives the original dtype back.

`int8`: a symmetric scale per channel, the largest magnitude over the tokens (the axis before the
last) becoming 127. `fp8`: float8 e4m3 (3 bits of mantissa, largest 448) with one scale per piece.
A piece that would not become smaller stays exact: scales weigh four bytes each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

KINDS = ("kv", "embeddings", "features")
"""Kinds of tensors that a form other than `exact` changes."""
SCALE = ".scale"
INT8_LARGEST = 127.0
FP8_LARGEST = 448.0


def form_of(tensor: Tensor, kind: str, wanted: str) -> str:
    """The form in which a state's tensor of this kind is written."""
    return wanted if kind in KINDS and tensor.is_floating_point() else "exact"


def written(tensor: Tensor, form: str) -> dict[str, Tensor]:
    """What is written of a tensor: itself under an empty name, or numbers and their `.scale`."""
    import torch

    if form == "exact" or not tensor.numel():
        return {"": tensor}
    x = tensor.float()
    if form == "int8":
        largest = x.abs().amax(-2, keepdim=True) if x.ndim > 1 else x.abs().max()[None]
        scale = _scale(largest, INT8_LARGEST)
        numbers = (x / scale).round().clamp(-INT8_LARGEST, INT8_LARGEST).to(torch.int8)
    else:
        scale = _scale(x.abs().max()[None], FP8_LARGEST)
        numbers = (x / scale).clamp(-FP8_LARGEST, FP8_LARGEST).to(torch.float8_e4m3fn)
    small = numbers.numel() + scale.numel() * scale.element_size()
    if small >= tensor.numel() * tensor.element_size():
        return {"": tensor}
    return {"": numbers, SCALE: scale}


def restored(parts: Mapping[str, Tensor], dtype: str) -> Tensor:
    """The tensor of what was written, in its original dtype (`bfloat16`)."""
    import torch

    if SCALE not in parts:
        return parts[""]
    return (parts[""].float() * parts[SCALE]).to(getattr(torch, dtype))


def _scale(largest: Tensor, top: float) -> Tensor:
    """Scales that bring `largest` to `top`; 1 where there is nothing but zeros."""
    return (largest / top).where(largest > 0, 1.0)
