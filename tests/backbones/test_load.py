from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from bench_lib.backbones import hf_compat
from bench_lib.backbones.base import Backbone
from bench_lib.dollhouse.training import tiny as builder
from bench_lib.errors import BenchError
from bench_lib.opening import backbones


def test_importing_loads_no_torch() -> None:
    code = "import sys, bench_lib.backbones, bench_lib.dollhouse.training.tiny as t; t.checkpoint"
    code += "; print('torch' in sys.modules, 'transformers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_tiny_says_that_it_is_noise(backbone: Backbone) -> None:
    assert "noise" in backbone.noise
    assert backbone.id.startswith(("tiny-untrained@", "tiny-qwen3@"))
    assert 3e6 < sum(p.numel() for p in backbone.model.parameters()) < 6e6
    side = 4 * backbone.preparation.factor
    assert backbone.frame_size((720, 720)) == (side, side)
    assert backbone.lattice((side, side)) == (4, 4)
    assert backbone.frame_size((720, 720), max_pixels=side * side // 4) == (side // 2, side // 2)
    assert backbone.kv_bytes_per_token == 6 * 2 * 2 * 32 * 4


def test_a_seed_makes_the_weights(tmp_path: Path) -> None:
    builder.write(tmp_path / "a", "tiny-untrained", seed=1)
    builder.write(tmp_path / "b", "tiny-untrained", seed=1)
    builder.write(tmp_path / "c", "tiny-untrained", seed=2)
    first, same, other = (hf_compat.revision(tmp_path / name) for name in "abc")
    assert first == same != other


def test_the_checkpoint_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    folder = builder.checkpoint("tiny-untrained")
    built = (folder / "model.safetensors").stat().st_mtime_ns
    assert builder.checkpoint("tiny-untrained") == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == built
    assert builder.checkpoint("tiny-untrained", seed=7) != folder
    assert not list(folder.parent.glob(".draft-*"))


def test_other_tools_can_load_the_folder() -> None:
    """By configuration alone, as a server would: class, tokenizer, template."""
    import transformers

    folder = builder.checkpoint("tiny-untrained")
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder)
    assert type(model).__name__ == "Qwen2_5_VLForConditionalGeneration"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert tokenizer.decode(tokenizer.encode("the red cup")) == "the red cup"
    assert len(tokenizer.encode("the red cup")) == 3
    assert "<|im_start|>" in tokenizer.chat_template
    assert model.generation_config.eos_token_id == [258, 256]


def test_a_folder_is_a_model(tiny: Backbone, tmp_path: Path) -> None:
    copy = tmp_path / "mine"
    builder.write(copy, "tiny-untrained", seed=42)
    (copy / "bench.json").unlink()  # a trained checkpoint carries no such note
    mine = backbones.load(str(copy), device="cpu", max_pixels=3_136)
    assert mine.noise == ""
    assert mine.id != tiny.id
    assert mine.frame_size((112, 112)) == (56, 56)
    assert torch.equal(mine.decoder.head.weight, tiny.decoder.head.weight)


def test_a_hub_snapshot_is_named_by_its_commit(tmp_path: Path) -> None:
    folder = tmp_path / "models--a--b" / "snapshots" / "0123456789abcdef"
    folder.mkdir(parents=True)
    assert hf_compat.revision(folder) == "0123456789ab"


def test_attention_by_its_definition_agrees(tiny: Backbone) -> None:
    from backbone_cases import video_prompt

    plain = backbones.load("tiny-untrained", device="cpu", attention="eager")
    prompt = video_prompt(tiny)
    with torch.inference_mode():
        one, _ = tiny.decoder.read(prompt.x, prompt.positions, tiny.empty_cache())
        two, _ = plain.decoder.read(prompt.x, prompt.positions, plain.empty_cache())
    torch.testing.assert_close(one, two, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"spec": "tiny-untrained", "attention": "flash"}, "unknown attention"),
        ({"spec": "tiny-untrained", "dtype": "int8"}, "unknown dtype"),
        ({"spec": "tiny-untrained", "device": "tpu"}, "unknown device"),
        ({"spec": "tiny-untrained", "device": "meta"}, "use rehearse"),
        ({"spec": "rehearse:qwen2.5-vl-8b"}, "did you mean 'qwen2.5-vl-7b'"),
        ({"spec": "rehearse:qwen2.5-vl-7b?layer=2"}, "did you mean 'layers'"),
        ({"spec": "rehearse:qwen2.5-vl-7b?layers=none"}, "whole number"),
    ],
)
def test_what_cannot_be_is_refused(args: dict, says: str) -> None:
    with pytest.raises(BenchError, match=says):
        backbones.load(**args)


def test_cuda_is_refused_where_there_is_none() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(BenchError, match="no CUDA device"):
        backbones.load("tiny-untrained", device="cuda")


def test_a_broken_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"config\.json is missing"):
        backbones.load(str(tmp_path))
    for name in ("tokenizer.json", "preprocessor_config.json"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    with pytest.raises(BenchError, match="no backbone family for model_type 'llama'"):
        backbones.load(str(tmp_path))


def test_an_unknown_model_is_refused_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(BenchError, match="neither a folder here nor a model"):
        backbones.load("nobody/no-such-model")


SIZES = {  # parameters of the published checkpoints, in billions
    "qwen2.5-vl-3b": 3.75,
    "qwen2.5-vl-7b": 8.29,
    "qwen3-vl-4b": 4.44,
    "qwen3-vl-8b": 8.77,
}


@pytest.mark.parametrize("name", SIZES)
def test_full_size_shapes_weigh_what_the_published_ones_do(name: str) -> None:
    model = backbones.load(f"rehearse:{name}", device="meta")
    weights = sum(p.numel() for p in model.model.parameters())
    assert round(weights / 1e9, 2) == SIZES[name]
    assert model.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("name", "kv_bytes", "token_bytes"),
    [
        ("qwen2.5-vl-7b", 57_344, 7_168),
        ("qwen2.5-vl-3b", 36_864, 4_096),
        ("qwen3-vl-8b", 147_456, 32_768),
    ],
)
def test_bytes_of_a_token_are_the_published_ones(
    name: str, kv_bytes: int, token_bytes: int
) -> None:
    model = backbones.load(f"rehearse:{name}", device="meta")
    assert model.kv_bytes_per_token == kv_bytes
    assert model.width * model.dtype.itemsize == token_bytes


def test_cut_depths_keep_full_width() -> None:
    cut = backbones.load("rehearse:qwen2.5-vl-7b?layers=2&vision=2", device="meta")
    whole = backbones.load("rehearse:qwen2.5-vl-7b", device="meta")
    assert (cut.layers, whole.layers) == (2, 28)
    assert cut.kv_bytes_per_token * 14 == whole.kv_bytes_per_token
    assert cut.width == whole.width
    assert "random weights" in cut.noise
