"""Flash-VStream-Qwen: a Qwen2-VL whose class has a memory without weights of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from bench_lib.backbones import hf_compat
from bench_lib.backbones.checkpoints import read
from bench_lib.errors import BenchError


def load(folder: Path, name: str, device: str, dtype: torch.dtype) -> hf_compat.Parts:
    """Read the checkpoint; see `checkpoints.find`."""
    return hf_compat.around(
        folder, name, model(folder, device, dtype), "qwen2_vl", tuned_for="flash_vstream"
    )


def model(folder: Path, device: str, dtype: torch.dtype) -> Any:
    """The library's Qwen2-VL with the checkpoint's weights."""
    config = config_of(json.loads((folder / "config.json").read_text()))
    cls = hf_compat.model_class("qwen2_vl")
    shapes = read.shapes_of(lambda: hf_compat.build(config, dtype))
    held = read.renamed(folder, renamed, shapes)
    return read.filled(cls, config, held, device, dtype)


def config_of(values: dict[str, Any]) -> Any:
    """The library's configuration of the release's; raises BenchError for another memory."""
    vision = dict(values["vision_config"])
    memory = vision.pop("flash_memory_config", None) or {}
    method = memory.get("flash_memory_temporal_method", "kmeans_ordered")
    if method != "kmeans_ordered":
        raise BenchError(f"trained with the memory {method!r}; flash_vstream has kmeans_ordered")
    vision.pop("model_type", None)
    rest = {k: v for k, v in values.items() if k not in ("vision_config", "model_type")}
    return hf_compat.config_of("qwen2_vl", {**rest, "vision_config": vision})


def renamed(name: str) -> str:
    """The library's name of a tensor of the release (transformers 4.45)."""
    if name.startswith("visual."):
        return f"model.{name}"
    if name.startswith("model."):
        return f"model.language_{name}"
    return name
