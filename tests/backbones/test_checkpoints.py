"""Loaders of tuned checkpoints: every published tensor has its place, and what is read is used."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import released
import torch
from backbone_cases import noise_frames
from safetensors.torch import load_file, save_file
from token_laws import QUERY, SHORT, film, logits, session

from bench_lib import methods
from bench_lib.backbones import checkpoints, frames, hf_compat
from bench_lib.backbones.checkpoints import flash_vstream, read, streamforest, video_salmonn_s
from bench_lib.backbones.generate import decode
from bench_lib.backbones.prompt import Prompt, Visual
from bench_lib.backbones.rehearse import SHAPES
from bench_lib.errors import BenchError
from bench_lib.exchange import Generation
from bench_lib.memories.parts import ttt
from bench_lib.opening import backbones

PUBLISHED_TEXT = {
    "vocab_size": 152_064, "hidden_size": 3_584, "intermediate_size": 18_944,
    "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
    "tie_word_embeddings": False,
}  # fmt: skip


# Published names and shapes ----------------------------------------------------------------------


def test_every_published_tensor_of_flash_vstream_has_its_place() -> None:
    vision = {"depth": 32, "embed_dim": 1_280, "hidden_size": 3_584, "num_heads": 16}
    config = flash_vstream.config_of(
        {**PUBLISHED_TEXT, "rope_scaling": released.ROPE, "vision_config": vision}
    )
    shapes = read.shapes_of(lambda: hf_compat.build(config, torch.bfloat16))
    listed = checkpoints.published("flash_vstream")
    assert {flash_vstream.renamed(name): shape for name, shape in listed.items()} == shapes


def test_every_published_tensor_of_streamforest_has_its_place() -> None:
    tower, language = streamforest.configs({**PUBLISHED_TEXT, "model_type": "llava_qwen"})
    listed = checkpoints.published("streamforest")
    assert {streamforest.renamed(name): shape for name, shape in listed.items()} == (
        streamforest.shapes_of(tower, language)
    )


def test_every_published_tensor_of_video_salmonn_s_has_its_place() -> None:
    config = hf_compat.config_of("qwen3_vl", SHAPES["qwen3-vl-8b"])
    shapes = read.shapes_of(lambda: hf_compat.build(config, torch.bfloat16))
    listed = {
        name: shape
        for name, shape in checkpoints.published("video_salmonn_s").items()
        if not video_salmonn_s.hears(name)
    }
    layer = {name: shape for name, shape in listed.items() if name.startswith("model.ttt_")}
    assert {name: shape for name, shape in listed.items() if name not in layer} == shapes
    empty = {name: torch.empty(shape, device="meta") for name, shape in layer.items()}
    learnt = ttt.Layer.of(video_salmonn_s.learning(empty, Path()))
    assert (learnt.heads, learnt.head_dim) == (8, 512)
    assert learnt.wq_weight.shape == (4_096, 4_096)


# Flash-VStream: Qwen2-VL -------------------------------------------------------------------------


def test_flash_vstream_is_read(tmp_path: Path) -> None:
    """Vision, positions and decoder equal the library's model of the same weights."""
    model = released.flash_vstream(tmp_path)
    backbone = backbones.load(str(tmp_path), device="cpu")
    assert backbone.tuned_for == "flash_vstream"
    pictures = noise_frames(6, (56, 84))
    stack = torch.from_numpy(frames.pairs(pictures, as_images=False))
    patches = frames.patches(stack, backbone.preparation).flatten(0, 1)
    grid = torch.tensor([[3, 4, 6]])
    with torch.inference_mode():
        library = model.model.visual(patches, grid).pooler_output
        mine = backbone.encode(pictures).flatten(0, 1)
    torch.testing.assert_close(mine, library, atol=1e-4, rtol=1e-4)
    visual = Visual.whole(mine.view(3, 6, -1), [0, 1, 2, 3, 4, 5], (2, 3))
    built = (
        Prompt(backbone).turn("user").show(visual).text("Where?").end().turn("assistant").build()
    )
    with torch.inference_mode():
        out = model.model.language_model(
            inputs_embeds=built.x[None], position_ids=built.positions[:, None]
        )
        expected = model.lm_head(out.last_hidden_state)[0, -1]
    found = decode(backbone, built, Generation(max_new_tokens=1, keep_logits=True)).logits
    np.testing.assert_allclose(found, expected, atol=2e-4)
    # The published layout: grids count on, cells in place, text after the largest.
    t, row, col = built.positions
    at = int((t != col).nonzero()[0]) - 1
    start = int(t[at])
    assert t[at : at + 18].tolist() == [start + g for g in range(3) for _ in range(6)]
    assert (row - start)[at : at + 6].tolist() == [0, 0, 0, 1, 1, 1]
    assert (col - start)[at : at + 6].tolist() == [0, 1, 2, 0, 1, 2]
    assert int(t[at + 18]) == start + 3


def test_a_gap_in_time_stays_a_gap(tmp_path: Path) -> None:
    released.flash_vstream(tmp_path)
    backbone = backbones.load(str(tmp_path), device="cpu")
    tokens = torch.zeros(3, backbone.width)
    visual = Visual(
        tokens, torch.arange(3), torch.zeros(3).long(), ((0, 1), (2, 3), (10, 11)), (0, 14), (1, 1)
    )
    prompt = Prompt(backbone)
    backbone.place(prompt, visual)
    built = prompt.build()
    assert built.positions[0].tolist() == [0, 1, 2, 6, 9]


def test_flash_vstream_answers_with_its_own_weights(tmp_path: Path) -> None:
    released.flash_vstream(tmp_path)
    backbone = backbones.load(str(tmp_path), device="cpu")
    method = methods.load("flash_vstream", temporal_length=8, spatial_length=4).attach(backbone)
    assert method.caveat == ""
    method.reset("T001", 42)
    session(method, 0, film(40))
    assert np.isfinite(logits(method)).all()
    other = methods.load("streamforest")
    with pytest.raises(BenchError, match="streamforest needs weights trained for it"):
        other.attach(backbone)


def test_a_checkpoint_with_another_memory_is_refused(tmp_path: Path) -> None:
    released.flash_vstream(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["vision_config"]["flash_memory_config"]["flash_memory_temporal_method"] = "sample"
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(BenchError, match="trained with the memory 'sample'"):
        backbones.load(str(tmp_path), device="cpu")


# StreamForest: SigLIP, projector, Qwen2 ----------------------------------------------------------


def test_streamforest_is_read(tmp_path: Path) -> None:
    tower, projector, language = released.forest(tmp_path)
    backbone = backbones.load(str(tmp_path), device="cpu")
    assert backbone.tuned_for == "streamforest"
    assert backbone.frame_size((480, 640)) == (62, 62)
    assert backbone.lattice((62, 62)) == (4, 4)
    pictures = noise_frames(3, (62, 62))
    pixels = (torch.from_numpy(np.stack(pictures)).float() / 255 - 0.5) / 0.5
    with torch.inference_mode():
        x = tower.embeddings(pixels.permute(0, 3, 1, 2))
        library = tower.encoder(inputs_embeds=x).last_hidden_state
    mine = backbone.vision(pictures, as_images=True)
    torch.testing.assert_close(mine[:, 0, :, 0], library, atol=1e-4, rtol=1e-4)
    with torch.inference_mode():
        torch.testing.assert_close(backbone.project(mine), projector(library), atol=1e-4, rtol=1e-4)
    assert torch.equal(backbone.vision(pictures), mine)  # a frame is a grid, as a video too
    prompt = Prompt(backbone).turn("user")
    prompt.placed(backbone.project(mine)[0], torch.arange(16).expand(3, -1), 16)
    built = prompt.text("Where?").end().turn("assistant").build()
    assert built.positions[0].tolist() == list(range(len(built.x)))
    with torch.inference_mode():
        expected = language(inputs_embeds=built.x[None]).logits[0, -1]
    found = decode(backbone, built, Generation(max_new_tokens=1, keep_logits=True)).logits
    np.testing.assert_allclose(found, expected, atol=2e-4)


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_streamforest_answers_with_its_own_weights(tmp_path: Path, mode: str) -> None:
    released.forest(tmp_path)
    backbone = backbones.load(str(tmp_path), device="cpu")
    args = {"short_frames": 4, "short_tokens": 8, "event_window": 3, "frame_tokens": 4}
    method = methods.load("streamforest", mode=mode, quota=32, heads=4, **args).attach(backbone)
    assert method.caveat == ""
    method.reset("T001", 42)
    session(method, 0, film(30))
    built = method.prompt(method.state, QUERY)
    text = backbone.tokenizer.decode(built.text_ids.tolist())
    assert "<|vision_start|>" not in text
    assert built.positions[0].tolist() == list(range(len(built.x)))
    assert np.isfinite(method.branch().respond(QUERY, SHORT).logits).all()


def test_positions_turn_at_the_published_speed() -> None:
    """Checkpoints of older libraries name it otherwise; the library's default would be noise."""
    old = {"rope_theta": 1_000_000.0, "rope_scaling": None, "model_type": "llava_qwen"}
    _, language = streamforest.configs({**PUBLISHED_TEXT, **old})
    assert language.rope_parameters == {"rope_type": "default", "rope_theta": 1_000_000.0}
    scaled = {"type": "mrope", "mrope_section": [16, 24, 24]}
    vision = {"depth": 1, "embed_dim": 64, "hidden_size": 3_584, "num_heads": 2}
    flash = flash_vstream.config_of(
        {**PUBLISHED_TEXT, **old, "rope_scaling": scaled, "vision_config": vision}
    )
    assert flash.text_config.rope_parameters["rope_theta"] == 1_000_000.0
    assert flash.text_config.rope_parameters["mrope_section"] == [16, 24, 24]
    text = {"rope_theta": 5_000_000, "rope_scaling": {"mrope_section": [24, 20, 20]}}
    third = hf_compat.config_of("qwen3_vl", {"text_config": text})
    assert third.text_config.rope_parameters["rope_theta"] == 5_000_000
    assert third.text_config.rope_parameters["mrope_section"] == [24, 20, 20]


def test_another_projector_is_refused(tmp_path: Path) -> None:
    released.forest(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "mm_projector_type": "tome16_mlp"}))
    with pytest.raises(BenchError, match="projector 'tome16_mlp'"):
        backbones.load(str(tmp_path), device="cpu")


# video-SALMONN S: Qwen3-VL, an adapter, a layer --------------------------------------------------


def test_video_salmonn_s_is_read(tmp_path: Path) -> None:
    model, layer = released.salmonn(tmp_path)
    backbone = backbones.load(str(tmp_path), device="cpu")
    assert backbone.tuned_for == "video_salmonn_s"
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(backbone.model.state_dict()[name], tensor, msg=name)
    method = methods.load("video_salmonn_s", chunk_grids=4, mini_batch=32, lag=32).attach(backbone)
    assert method.caveat == ""
    for name, tensor in vars(layer).items():
        assert torch.equal(getattr(method.layer, name), tensor), name
    method.reset("T001", 42)
    session(method, 0, film(20))
    assert np.isfinite(logits(method)).all()


def test_an_update_is_scaled_and_added(tmp_path: Path) -> None:
    """The control of the one above: without its adapter the base is another model."""
    model, _ = released.salmonn(tmp_path)
    plain = backbones.load(str(tmp_path / "base"), device="cpu")
    name = "model.language_model.layers.0.self_attn.q_proj.weight"
    assert plain.tuned_for == ""
    assert not torch.equal(plain.model.state_dict()[name], model.state_dict()[name])
    same = "model.language_model.layers.1.self_attn.q_proj.weight"
    assert torch.equal(plain.model.state_dict()[same], model.state_dict()[same])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.pop("base_model.model.model.ttt_layers.ttt.wq.weight"), "lacks wq_weight"),
        (lambda t: t.update({"base_model.model.lm_tail": torch.ones(2)}), "lm_tail is not known"),
        (lambda t: t.update({"base_model.model.x.lora_A.weight": torch.ones(2, 2)}), "x.weight"),
    ],
)
def test_an_adapter_that_does_not_fit_is_refused(tmp_path: Path, change, says: str) -> None:
    released.salmonn(tmp_path)
    path = tmp_path / "video_salmonn_s_ttt_lora" / "adapter_model.safetensors"
    held = load_file(path)
    change(held)
    save_file(held, path)
    with pytest.raises(BenchError, match=says):
        methods.load("video_salmonn_s").attach(backbones.load(str(tmp_path), device="cpu"))


# What is wrong with a folder ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.pop("model.norm.weight"), "norm.weight is missing"),
        (lambda t: t.update(extra=torch.ones(1)), "extra is not known"),
        (lambda t: t.update({"model.norm.weight": torch.ones(7)}), "norm.weight is .7., not .192."),
    ],
)
def test_weights_that_do_not_fit_are_named(tmp_path: Path, change, says: str) -> None:
    released.flash_vstream(tmp_path)
    held: dict[str, torch.Tensor] = {}
    for path in tmp_path.glob("*.safetensors"):
        held |= load_file(path)
        path.unlink()
    change(held)
    save_file(held, tmp_path / "model.safetensors")
    with pytest.raises(BenchError, match=says):
        backbones.load(str(tmp_path), device="cpu")


def test_a_folder_without_weights_is_named(tmp_path: Path) -> None:
    released.flash_vstream(tmp_path)
    for path in tmp_path.glob("*.safetensors"):
        path.unlink()
    with pytest.raises(BenchError, match="holds no safetensors file"):
        backbones.load(str(tmp_path), device="cpu")


def test_plain_checkpoints_are_left_alone() -> None:
    from bench_lib.dollhouse.training import tiny

    assert checkpoints.find(tiny.checkpoint("tiny-untrained")) is None
    assert backbones.load("tiny-untrained", device="cpu").tuned_for == ""
