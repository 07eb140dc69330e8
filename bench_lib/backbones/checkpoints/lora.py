"""Low-rank updates (LoRA, arXiv 2106.09685) in the PEFT library's layout, merged into weights."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from bench_lib.backbones.checkpoints.read import tensors
from bench_lib.errors import BenchError

PREFIX = "base_model.model."


def merge(folder: Path, held: dict[str, Tensor], skip: Callable[[str], bool]) -> dict[str, Tensor]:
    """Add a folder's updates to the weights in `held`; returns what else the folder holds.

    An update of `name` is `scale * B @ A` for the tensor `name.weight`, computed in float32. Names
    come without PEFT's prefix; `skip` tells those that are not wanted.

    Raises:
        BenchError: the folder is no such adapter, or updates what `held` does not hold.
    """
    path = folder / "adapter_config.json"
    if not path.exists():
        raise BenchError(f"{folder} is no LoRA adapter: adapter_config.json is missing")
    config = json.loads(path.read_text())
    if config.get("use_dora"):
        raise BenchError(f"{folder}: DoRA adapters are not supported")
    rank = config["r"]
    scale = config["lora_alpha"] / (math.sqrt(rank) if config.get("use_rslora") else rank)
    halves: dict[str, dict[str, Tensor]] = {}
    rest: dict[str, Tensor] = {}
    for full, read in tensors(folder):
        name = full.removeprefix(PREFIX).replace(".modules_to_save.default", "")
        name = name.replace(".default.weight", ".weight").replace(".base_layer.", ".")
        if skip(name):
            continue
        for half in ("lora_A", "lora_B"):
            if name.endswith(f".{half}.weight"):
                halves.setdefault(name.removesuffix(f".{half}.weight"), {})[half] = read()
                break
        else:
            rest[name] = read()
    for name, pair in halves.items():
        target = f"{name}.weight"
        if target not in held or len(pair) < 2:
            raise BenchError(f"{folder}: an update of {target}, which the base does not hold whole")
        update = pair["lora_B"].float() @ pair["lora_A"].float() * scale
        held[target] = (held[target].float() + update).to(held[target].dtype)
    return rest
