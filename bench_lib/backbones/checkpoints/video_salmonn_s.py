"""video-SALMONN S: a Qwen3-VL with ears, and an adapter that brings the learning layer.

The published folder holds the base model and, beside it, LoRA updates together with the layer. The
parts that hear (`model.audio.`) are left on disk.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import Tensor

from bench_lib.backbones import hf_compat
from bench_lib.backbones.checkpoints import lora, read
from bench_lib.errors import BenchError

BASE = "base"
ADAPTER = "video_salmonn_s_ttt_lora"
LAYER = ("model.ttt_layers.ttt.", "model.ttt_gating.")


def load(folder: Path, name: str, device: str, dtype: torch.dtype) -> hf_compat.Parts:
    """Read the checkpoint; see `checkpoints.find`."""
    base = folder / BASE
    values = json.loads((base / "config.json").read_text())
    values.pop("audio_config", None)
    config = hf_compat.config_of("qwen3_vl", {k: v for k, v in values.items() if k != "model_type"})
    shapes = read.shapes_of(lambda: hf_compat.build(config, dtype))
    held = read.renamed(base, lambda n: None if hears(n) else n, shapes)
    layer = learning(lora.merge(folder / ADAPTER, held, hears), folder / ADAPTER)
    return hf_compat.around(
        base,
        name,
        read.filled(hf_compat.model_class("qwen3_vl"), config, held, device, dtype),
        "qwen3_vl",
        tuned_for="video_salmonn_s",
        extra={k: v.to(device, dtype) for k, v in layer.items()},
    )


def hears(name: str) -> bool:
    """Whether a tensor belongs to the parts that hear."""
    return name.startswith("model.audio.")


def learning(rest: dict[str, Tensor], folder: Path) -> dict[str, Tensor]:
    """The learning layer's tensors, named below `ttt_layers.ttt` and `ttt_gating`.

    Raises BenchError for a tensor of another kind, or where there is none.
    """
    found: dict[str, Tensor] = {}
    for name, tensor in rest.items():
        prefix = next((p for p in LAYER if name.startswith(p)), None)
        if prefix is None:
            raise BenchError(f"{folder}: {name} is not known")
        found[name.removeprefix(prefix)] = tensor
    if not found:
        raise BenchError(f"{folder} holds no test-time-trained layer")
    return found
