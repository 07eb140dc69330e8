"""StreamForest-Qwen2: SigLIP without its last layer, a projector of two layers, Qwen2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

from bench_lib.backbones import hf_compat
from bench_lib.backbones.checkpoints import read
from bench_lib.backbones.siglip_qwen2 import Pair
from bench_lib.errors import BenchError

TOWER = "model.vision_tower.vision_tower.vision_model."
PROJECTOR = "model.mm_projector.mlp."
PREPARATION = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
VISION = {
    "hidden_size": 1_152, "intermediate_size": 4_304, "num_hidden_layers": 27,
    "num_attention_heads": 16, "image_size": 384, "patch_size": 14, "layer_norm_eps": 1e-6,
}  # fmt: skip
"""SigLIP so400m, patch 14, 384 pixels: what the release's class builds."""


def load(folder: Path, name: str, device: str, dtype: torch.dtype) -> hf_compat.Parts:
    """Read the checkpoint; see `checkpoints.find`."""
    values = json.loads((folder / "config.json").read_text())
    return hf_compat.around(
        folder,
        name,
        model(folder, values, device, dtype),
        "siglip_qwen2",
        tuned_for="streamforest",
        preprocessor=PREPARATION,
    )


def model(folder: Path, values: dict[str, Any], device: str, dtype: torch.dtype) -> Pair:
    """Tower, projector and language model of a configuration, with the folder's weights."""
    tower, language = configs(values)
    shapes = shapes_of(tower, language)
    held = read.renamed(folder, renamed, shapes)
    if not any(name.startswith("tower.") for name in held):
        raise BenchError(f"{folder} holds no vision tower")
    parts = {
        kind: {k.removeprefix(f"{kind}."): v for k, v in held.items() if k.startswith(f"{kind}.")}
        for kind in ("tower", "projector", "language")
    }
    projector = projector_of(tower.hidden_size, language.hidden_size)
    projector.load_state_dict(parts["projector"])
    return Pair(
        read.filled(hf_compat.library().SiglipVisionModel, tower, parts["tower"], device, dtype),
        projector.to(device, dtype).requires_grad_(False),
        read.filled(
            hf_compat.library().Qwen2ForCausalLM, language, parts["language"], device, dtype
        ),
    )


def configs(values: dict[str, Any]) -> tuple[Any, Any]:
    """The library's configurations of tower and language model."""
    transformers = hf_compat.library()
    vision = {**VISION, **values.get("vision_config", {})}
    # The release deletes the tower's last layer; its head is not used.
    vision["num_hidden_layers"] -= 1
    tower = transformers.SiglipVisionConfig(**vision, vision_use_head=False)
    own = transformers.Qwen2Config().to_dict()
    text = {
        k: v for k, v in values.items() if k in own and k not in ("model_type", "architectures")
    }
    # The release drops any scaling of positions; the library reads their speed by another name.
    rope = {"rope_type": "default", "rope_theta": float(values.get("rope_theta", 10_000))}
    return tower, transformers.Qwen2Config(**{**text, "rope_parameters": rope})


def projector_of(width: int, hidden: int) -> nn.Sequential:
    """The projector; its weights are not set."""
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, hidden))


def shapes_of(tower: Any, language: Any) -> dict[str, tuple[int, ...]]:
    """Names and shapes of all tensors, under `tower.`, `projector.` and `language.`."""
    transformers = hf_compat.library()
    parts = {
        "tower": lambda: transformers.SiglipVisionModel(tower),
        "projector": lambda: projector_of(tower.hidden_size, language.hidden_size),
        "language": lambda: transformers.Qwen2ForCausalLM(language),
    }
    return {
        f"{kind}.{name}": shape
        for kind, build in parts.items()
        for name, shape in read.shapes_of(build).items()
    }


def renamed(name: str) -> str:
    """Our name of a tensor of the release."""
    if name.startswith(TOWER):
        return f"tower.{name.removeprefix(TOWER)}"
    if name.startswith(PROJECTOR):
        return f"projector.{name.removeprefix(PROJECTOR)}"
    return f"language.{name}"
