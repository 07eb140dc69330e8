"""Small checkpoints in the authors' layouts, from the library's models with drawn weights."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from bench_lib.backbones import hf_compat
from bench_lib.backbones.checkpoints import streamforest
from bench_lib.dollhouse.training import tiny
from bench_lib.memories.parts.ttt import Layer

ROPE = {"type": "mrope", "rope_type": "default", "mrope_section": [4, 6, 6]}
TEXT = {
    "hidden_size": 192, "intermediate_size": 256, "num_hidden_layers": 3, "num_attention_heads": 6,
    "num_key_value_heads": 2, "max_position_embeddings": 32_768, "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False, "rope_theta": 1_000_000.0, "hidden_act": "silu",
    "bos_token_id": None, "eos_token_id": 258, "pad_token_id": 256,
}  # fmt: skip


def words(folder: Path, name: str = "tiny-untrained") -> int:
    """Copy the tiny model's tokenizer and preparation; returns the size of its vocabulary."""
    source = tiny.checkpoint(name)
    folder.mkdir(parents=True, exist_ok=True)
    for file in (
        "tokenizer.json", "tokenizer_config.json", "generation_config.json",
        "preprocessor_config.json",
    ):  # fmt: skip
        shutil.copy(source / file, folder / file)
    return json.loads((source / "config.json").read_text())["text_config"]["vocab_size"]


def drawn(model: Any, seed: int = 0) -> dict[str, Tensor]:
    """Weights of a model, drawn so that every tensor matters."""
    random = torch.Generator().manual_seed(seed)
    state = {}
    for name, tensor in model.state_dict().items():
        noise = torch.randn(tensor.shape, generator=random)
        scale = tensor.shape[-1] ** -0.5 if tensor.ndim > 1 else 0.1
        state[name] = noise * scale + (1.0 if "norm" in name and tensor.ndim == 1 else 0.0)
    return state


def write(folder: Path, config: dict, state: dict[str, Tensor], files: int = 2) -> None:
    """Configuration and weights, these in several files."""
    (folder / "config.json").write_text(json.dumps(config))
    names = sorted(state)
    for i in range(files):
        part = {name: state[name].contiguous() for name in names[i::files]}
        save_file(part, folder / ("model.safetensors" if files == 1 else f"model-{i}.safetensors"))


def flash_vstream(folder: Path) -> Any:
    """A Flash-VStream folder; returns the library's model of the same weights."""
    vision = {
        "depth": 3, "embed_dim": 64, "hidden_size": 192, "num_heads": 2, "mlp_ratio": 4,
        "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, "in_channels": 3,
    }  # fmt: skip
    text = {**TEXT, "vocab_size": words(folder), "rope_scaling": ROPE}
    model = hf_compat.build(
        hf_compat.config_of("qwen2_vl", {**text, "vision_config": vision}), torch.float32
    )
    model.load_state_dict(drawn(model))
    state = {
        name.replace("model.visual.", "visual.").replace("model.language_model.", "model."): tensor
        for name, tensor in model.state_dict().items()
    }
    memory = {"flash_memory_temporal_method": "kmeans_ordered"}
    config = {
        **text,
        "model_type": "flash_vstream_qwen2_vl",
        "vision_config": {**vision, "flash_memory_config": memory},
    }
    write(folder, config, state)
    return model.eval()


def forest(folder: Path) -> tuple[Any, Any, Any]:
    """A StreamForest folder; returns the library's tower, projector and language model."""
    vision = {
        "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
        "num_attention_heads": 4, "image_size": 62, "patch_size": 14,
    }  # fmt: skip
    config = {
        **TEXT,
        "vocab_size": words(folder),
        "model_type": "llava_qwen",
        "mm_projector_type": "tome729_fstw_pemf",
        "vision_config": vision,
    }
    (folder / "preprocessor_config.json").unlink()
    library = hf_compat.library()
    tower_config, language_config = streamforest.configs(config)
    tower, language = (
        library.SiglipVisionModel(tower_config),
        library.Qwen2ForCausalLM(language_config),
    )
    projector = streamforest.projector_of(64, 192)
    for i, model in enumerate((tower, language, projector)):
        model.load_state_dict(drawn(model, i))
    state = {f"{streamforest.TOWER}{k}": v for k, v in tower.state_dict().items()}
    state |= {f"{streamforest.PROJECTOR}{k}": v for k, v in projector.state_dict().items()}
    state |= language.state_dict()
    write(folder, config, state)
    return tower.eval(), projector.eval(), language.eval()


def llava(folder: Path, **change: Any) -> Any:
    """A LLaVA-OneVision folder in the library's layout; returns the library's model."""
    size = words(folder)
    tokenizer = hf_compat.tokenizer(folder)
    config = {
        "model_type": "llava_onevision",
        "vision_config": {
            "model_type": "siglip_vision_model", "hidden_size": 64, "intermediate_size": 96,
            "num_hidden_layers": 3, "num_attention_heads": 4, "image_size": 100, "patch_size": 14,
            "vision_use_head": False,
        },
        "text_config": {"model_type": "qwen2", **TEXT, "vocab_size": size},
        "image_token_index": tokenizer.convert_tokens_to_ids("<|image_pad|>"),
        "video_token_index": tokenizer.convert_tokens_to_ids("<|video_pad|>"),
        "vision_feature_layer": -1,
        "vision_feature_select_strategy": "full",
        **change,
    }  # fmt: skip
    square = {"height": 100, "width": 100}
    prepared = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "size": square}
    (folder / "preprocessor_config.json").write_text(json.dumps(prepared))
    values = {k: v for k, v in config.items() if k != "model_type"}
    model = hf_compat.build(hf_compat.config_of("llava_onevision", values), torch.float32)
    model.load_state_dict(drawn(model))
    write(folder, config, model.state_dict(), files=1)
    return model.eval()


def salmonn(folder: Path, rank: int = 4) -> tuple[Any, Layer]:
    """A video-SALMONN S folder; returns the library's merged model and the learning layer."""
    base, adapter = folder / "base", folder / "video_salmonn_s_ttt_lora"
    words(base, "tiny-qwen3")
    source = json.loads((tiny.checkpoint("tiny-qwen3") / "config.json").read_text())
    config = {**source, "tie_word_embeddings": False}
    config["text_config"] = {**config["text_config"], "tie_word_embeddings": False}
    model = hf_compat.build(
        hf_compat.config_of("qwen3_vl", {k: v for k, v in config.items() if k != "model_type"}),
        torch.float32,
    )
    model.load_state_dict(drawn(model))
    ears = {"model.audio.conv1.weight": torch.zeros(2, 3, 3)}
    write(base, {**config, "audio_config": {"d_model": 4}}, {**model.state_dict(), **ears}, 1)
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(json.dumps({"r": rank, "lora_alpha": 8}))
    random = torch.Generator().manual_seed(5)
    layer = Layer.made(192, 6, torch.empty(0))
    held: dict[str, Tensor] = {}
    merged = model.state_dict()
    for target in (
        "model.language_model.layers.0.self_attn.q_proj",
        "model.visual.blocks.1.attn.proj",
    ):
        out, inner = merged[f"{target}.weight"].shape
        a, b = torch.randn(rank, inner, generator=random), torch.randn(out, rank, generator=random)
        held[f"base_model.model.{target}.lora_A.weight"] = a
        held[f"base_model.model.{target}.lora_B.weight"] = b
        merged[f"{target}.weight"] = merged[f"{target}.weight"] + 8 / rank * b @ a
    dotted = {k.replace("_weight", ".weight").replace("_bias", ".bias"): k for k in vars(layer)}
    for released, ours in dotted.items():
        whole = ("ttt_norm", "learnable_ttt_lr")
        name = ours if ours.startswith(whole) else released
        home = "ttt_gating" if name == "gating_alpha" else "ttt_layers.ttt"
        held[f"base_model.model.model.{home}.{name}"] = getattr(layer, ours)
    save_file({k: v.contiguous() for k, v in held.items()}, adapter / "adapter_model.safetensors")
    model.load_state_dict(merged)
    return model.eval(), layer
