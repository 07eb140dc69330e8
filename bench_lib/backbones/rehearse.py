"""Full-size shapes with random weights: what a run takes in memory, disk and time, without them.

On the meta device nothing is allocated at all and only bytes can be counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import torch

from bench_lib.backbones import CLIP_MEAN, CLIP_STD, hf_compat
from bench_lib.errors import BenchError, nearest

_QWEN25_VISION = {
    "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16,
    "patch_size": 14, "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31],
    "tokens_per_second": 2,
}  # fmt: skip
_QWEN25_ROPE = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]}
_QWEN3_ROPE = {
    "rope_type": "default", "rope_theta": 5e6, "mrope_section": [24, 20, 20],
    "mrope_interleaved": True,
}  # fmt: skip


def _qwen25(hidden: int, inner: int, layers: int, heads: int, kv: int, tied: bool) -> dict:
    return {
        "model_type": "qwen2_5_vl",
        "text_config": {
            "vocab_size": 151_936 if tied else 152_064, "hidden_size": hidden,
            "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": kv, "max_position_embeddings": 128_000, "rms_norm_eps": 1e-6,
            "rope_parameters": _QWEN25_ROPE, "tie_word_embeddings": tied,
        },
        "vision_config": {**_QWEN25_VISION, "out_hidden_size": hidden},
        "tie_word_embeddings": tied,
    }  # fmt: skip


def _qwen3(
    hidden: int, inner: int, vision: tuple[int, int, int], deep: list[int], tied: bool
) -> dict:
    depth, vision_hidden, vision_inner = vision
    return {
        "model_type": "qwen3_vl",
        "text_config": {
            "vocab_size": 151_936, "hidden_size": hidden, "intermediate_size": inner,
            "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
            "head_dim": 128, "max_position_embeddings": 262_144, "rms_norm_eps": 1e-6,
            "rope_parameters": _QWEN3_ROPE,
        },
        "vision_config": {
            "depth": depth, "hidden_size": vision_hidden, "intermediate_size": vision_inner,
            "num_heads": 16, "patch_size": 16, "out_hidden_size": hidden,
            "num_position_embeddings": 2_304, "deepstack_visual_indexes": deep,
        },
        "tie_word_embeddings": tied,
    }  # fmt: skip


SHAPES: dict[str, dict[str, Any]] = {
    "qwen2.5-vl-3b": _qwen25(2048, 11_008, 36, 16, 2, tied=True),
    "qwen2.5-vl-7b": _qwen25(3584, 18_944, 28, 28, 4, tied=False),
    "qwen3-vl-4b": _qwen3(2560, 9_728, (24, 1024, 4096), [5, 11, 17], tied=True),
    "qwen3-vl-8b": _qwen3(4096, 12_288, (27, 1152, 4304), [8, 16, 24], tied=False),
}
"""Shapes of the published checkpoints' configurations."""
REDUCED = ("layers", "vision")


def rehearse(
    spec: str, device: str, dtype: torch.dtype, seed: int, tokenizer_of: Path
) -> hf_compat.Parts:
    """Build `NAME` or `NAME?layers=N&vision=N`: depths of decoder and vision tower cut to N.

    Its tokenizer is that of the folder `tokenizer_of`, whose ids must fit; its frames are prepared
    as the published checkpoints do. Raises BenchError for an unknown name or option.
    """
    name, _, options = spec.partition("?")
    config = _cut(_shape(name), _options(spec, options))
    tokenizer = hf_compat.tokenizer(tokenizer_of)
    config |= {
        f"{kind}_token_id": tokenizer.convert_tokens_to_ids(f"<|{token}|>")
        for kind, token in (("image", "image_pad"), ("video", "video_pad"))
    }
    with torch.device("meta"):
        model = hf_compat.build(hf_compat.config_of(config["model_type"], config), dtype)
    if device != "meta":
        model = _filled(model, device, seed)
    third = config["model_type"] == "qwen3_vl"
    return hf_compat.Parts(
        id=f"rehearse:{spec}@seed{seed}",
        noise=f"{spec} has random weights: its answers are noise, its cost is real",
        model_type=config["model_type"],
        model=model.eval().requires_grad_(False),
        tokenizer=tokenizer,
        preprocessor={
            "image_mean": [0.5] * 3 if third else CLIP_MEAN,
            "image_std": [0.5] * 3 if third else CLIP_STD,
            "min_pixels": 65_536 if third else 3_136,
            "max_pixels": 16_777_216 if third else 12_845_056,
        },
        stop_ids=hf_compat.stop_ids(tokenizer),
    )


def _shape(name: str) -> dict[str, Any]:
    if name not in SHAPES:
        raise BenchError(f"no shape {name!r} to rehearse; {nearest(name, SHAPES)}")
    shape = SHAPES[name]
    # Copies: what is cut is not the table.
    return {key: dict(v) if isinstance(v, dict) else v for key, v in shape.items()}


def _options(spec: str, options: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for key, value in parse_qsl(options, keep_blank_values=True):
        if key not in REDUCED:
            raise BenchError(f"rehearse:{spec}: no option {key!r}; {nearest(key, REDUCED)}")
        if not value.isdecimal() or int(value) < 1:
            raise BenchError(f"rehearse:{spec}: {key} is {value!r}; give a whole number above 0")
        found[key] = int(value)
    return found


def _cut(config: dict[str, Any], options: dict[str, int]) -> dict[str, Any]:
    text, vision = config["text_config"], config["vision_config"]
    text["num_hidden_layers"] = min(text["num_hidden_layers"], options.get("layers", 1_000))
    depth = min(vision["depth"], options.get("vision", 1_000))
    vision["depth"] = depth
    for key in ("fullatt_block_indexes", "deepstack_visual_indexes"):
        if key in vision:
            kept = [i for i in vision[key] if i < depth]
            # A cut tower keeps one block of the kind, so that all its code runs.
            vision[key] = kept or [depth - 1]
    return config


def _filled(model: Any, device: str, seed: int) -> Any:
    """The model with memory of its own, weights uniform with the usual spread of 0.02."""
    model = model.to_empty(device=device)
    model.tie_weights()
    random = torch.Generator(device=device).manual_seed(seed)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data.uniform_(-0.035, 0.035, generator=random)
        else:
            parameter.data.zero_()
    for name, parameter in model.named_parameters():
        if ("norm" in name and name.endswith("weight")) or "ln_q" in name:
            parameter.data.fill_(1.0)
    rotary = model.model.language_model.rotary_emb
    inverse, _ = rotary.compute_default_rope_parameters(rotary.config)
    rotary.inv_freq.data.copy_(inverse)
    return model
