"""LLaVA-OneVision: what is encoded and read equals the library's one-shot pass over a video."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import released
import torch
from backbone_cases import noise_frames

from bench_lib.backbones.base import Backbone
from bench_lib.backbones.chunk import chunk
from bench_lib.backbones.generate import decode
from bench_lib.backbones.prompt import Prompt, Visual
from bench_lib.errors import BenchError
from bench_lib.exchange import Generation
from bench_lib.opening import backbones

FRAMES = 5
ONE = Generation(max_new_tokens=1, keep_logits=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("llava")


@pytest.fixture(scope="module")
def library(folder: Path) -> Any:
    return released.llava(folder)


@pytest.fixture(scope="module")
def backbone(folder: Path, library: Any) -> Backbone:
    return backbones.load(str(folder), device="cpu")


@pytest.fixture
def pictures() -> list[np.ndarray]:
    return noise_frames(FRAMES, (100, 100))


def prepared(pictures: list[np.ndarray]) -> torch.Tensor:
    """`[1, frames, 3, height, width]` as the library's processor normalises them."""
    stack = torch.from_numpy(np.stack(pictures)).float()
    return ((stack / 255 - 0.5) / 0.5).permute(0, 3, 1, 2)[None]


def seen(backbone: Backbone, pictures: list[np.ndarray]) -> Visual:
    return Visual.whole(backbone.encode(pictures), range(len(pictures)), (4, 4))


def test_shapes_are_those_of_the_published_path(backbone: Backbone) -> None:
    assert backbone.frame_size((480, 640)) == (100, 100)
    assert backbone.lattice((100, 100)) == (4, 4)  # 7 patches a side, halved and rounded up
    assert backbone.pixels((4, 4)) == (100, 100)
    assert backbone.frames_per_grid == 1


def test_embeddings_equal_the_library(
    backbone: Backbone, library: Any, pictures: list[np.ndarray]
) -> None:
    with torch.inference_mode():
        video = library.model.get_video_features(
            prepared(pictures), vision_feature_layer=-1, vision_feature_select_strategy="full"
        ).pooler_output
    *_, newline = video[0]
    mine = backbone.encode(pictures)
    assert mine.shape == (FRAMES, 16, backbone.hidden)
    torch.testing.assert_close(mine.flatten(0, 1), video[0, :-1], atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(newline, library.model.image_newline)
    parts = [backbone.encode(pictures[:2]), backbone.encode(pictures[2:])]
    torch.testing.assert_close(torch.cat(parts), mine, atol=1e-5, rtol=1e-5)


def test_a_whole_video_is_read_as_by_the_library(
    backbone: Backbone, library: Any, pictures: list[np.ndarray]
) -> None:
    prompt = Prompt(backbone).turn("user").show(seen(backbone, pictures))
    built = prompt.text("Where is the red cup?").end().turn("assistant").build()
    assert built.visual_tokens == FRAMES * 16 + 1  # one learned token behind the video
    ids = built.text_ids.tolist()
    before = len(Prompt(backbone).turn("user").build().x)
    video = [library.config.video_token_index] * built.visual_tokens
    placed = torch.tensor([ids[:before] + video + ids[before:]])
    with torch.inference_mode():
        out = library(input_ids=placed, pixel_values_videos=prepared(pictures))
    assert built.positions.tolist() == [list(range(placed.shape[1]))] * 3
    found = decode(backbone, built, ONE).logits
    np.testing.assert_allclose(found, out.logits[0, -1], atol=2e-4)
    other = decode(backbone, Prompt(backbone).turn("user").build(), ONE).logits
    assert np.abs(other - found).max() > 1e-2, "the control"


def test_chunks_equal_one_shot(backbone: Backbone, pictures: list[np.ndarray]) -> None:
    """A memory that reads a video in parts holds what one pass over it gives."""
    before = Prompt(backbone).turn("user").build()

    def read(cuts: list[int]) -> tuple[torch.Tensor, Any]:
        _, cache = backbone.read(before.x, before.positions, backbone.empty_cache())
        hidden, start = None, len(before.x)
        for a, b in zip([0, *cuts], [*cuts, FRAMES], strict=True):
            part = chunk(backbone, "", seen(backbone, pictures[a:b]), bare=True)
            assert part.units.tolist() == [g for g in range(b - a) for _ in range(16)]
            assert not part.whole
            hidden, cache = backbone.read(part.x, part.positions + start, cache)
            start += part.span
        return hidden[-1], cache

    once, whole = read([])
    twice, parts = read([2, 3])
    torch.testing.assert_close(twice, once, atol=1e-5, rtol=1e-5)
    assert torch.equal(whole.positions[0], parts.positions[0])
    for one, other in zip(whole.keys, parts.keys, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"vision_feature_layer": [-2, -1]}, "one vision layer"),
        ({"vision_feature_select_strategy": "default"}, "full alone"),
    ],
)
def test_other_features_are_refused(tmp_path: Path, change: dict, said: str) -> None:
    released.llava(tmp_path, **change)
    with pytest.raises(BenchError, match=said):
        backbones.load(str(tmp_path), device="cpu")


def test_an_earlier_layer_of_the_tower_may_be_read(
    tmp_path: Path, pictures: list[np.ndarray]
) -> None:
    library = released.llava(tmp_path, vision_feature_layer=-2)
    with torch.inference_mode():
        video = library.model.get_video_features(
            prepared(pictures), vision_feature_layer=-2, vision_feature_select_strategy="full"
        ).pooler_output
    mine = backbones.load(str(tmp_path), device="cpu").encode(pictures).flatten(0, 1)
    torch.testing.assert_close(mine, video[0, :-1], atol=2e-5, rtol=1e-4)
