"""Reading tensors strictly: nothing missing, nothing left over, every shape as it should be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bench_lib.errors import BenchError

SHOWN = 3


def tensors(folder: Path) -> Iterator[tuple[str, Callable[[], Tensor]]]:
    """Name and reader of each tensor in a folder's safetensors files."""
    from safetensors import safe_open

    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise BenchError(f"{folder} holds no safetensors file: fetch the weights, or convert them")
    for path in files:
        with safe_open(path, "pt") as file:
            for name in file.keys():  # noqa: SIM118 - an opened file is no mapping
                yield name, partial(file.get_tensor, name)


def renamed(
    folder: Path, rename: Callable[[str], str | None], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Tensor]:
    """A folder's tensors under other names; `rename` gives None for one that is not wanted.

    Raises BenchError unless names and shapes are exactly those of `shapes`.
    """
    found: dict[str, Tensor] = {}
    odd: list[str] = []
    for name, read in tensors(folder):
        target = rename(name)
        if target is None:
            continue
        if target not in shapes:
            odd.append(f"{name} is not known")
            continue
        tensor = read()
        if tuple(tensor.shape) != shapes[target]:
            odd.append(f"{name} is {list(tensor.shape)}, not {list(shapes[target])}")
        found[target] = tensor
    odd += [f"{name} is missing" for name in shapes if name not in found]
    if odd:
        more = f", and {len(odd) - SHOWN} more" if len(odd) > SHOWN else ""
        raise BenchError(f"{folder}: {'; '.join(odd[:SHOWN])}{more}")
    return found


def shapes_of(build: Callable[[], Any]) -> dict[str, tuple[int, ...]]:
    """Names and shapes of a model's tensors; it is built without memory."""
    with torch.device("meta"):
        model = build()
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def filled(cls: Any, config: Any, held: dict[str, Tensor], device: str, dtype: torch.dtype) -> Any:
    """A library model of a configuration with these tensors, ready to be read from."""
    model = cls.from_pretrained(
        None, config=config, state_dict=held, dtype=dtype, attn_implementation="sdpa"
    )
    return model.to(device).eval().requires_grad_(False)
