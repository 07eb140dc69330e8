from __future__ import annotations

import pytest
import torch
from backbone_cases import noise_frames, uneven

from bench_lib.backbones import base, frames
from bench_lib.backbones.base import Backbone
from bench_lib.measure import counting

CELLS = [(1, 1), (3, 5), (4, 4), (2, 7), (5, 3)]


@torch.inference_mode()
def library_embeddings(backbone: Backbone, pictures: list, as_images: bool) -> torch.Tensor:
    """`[grids, cells, width]` from the library's own tower and mergers, one window at a time."""
    grids = torch.from_numpy(frames.pairs(pictures, as_images))
    patches = frames.patches(grids, backbone.preparation)
    rows, cols = (side // backbone.preparation.patch for side in grids.shape[2:4])
    shape = [[1, rows, cols]] * len(grids) if as_images else [[len(grids), rows, cols]]
    call = backbone.model.model.get_image_features if as_images else None
    call = call or backbone.model.model.get_video_features
    out = call(patches.flatten(0, 1), torch.tensor(shape), return_dict=True)
    levels = [torch.cat(out.pooler_output)]
    levels += [torch.cat(list(part)) for part in getattr(out, "deepstack_features", None) or []]
    return torch.cat(levels, dim=-1).view(len(grids), -1, backbone.width)


@pytest.mark.parametrize("cells", CELLS)
def test_batched_windows_equal_the_library(backbone: Backbone, cells: tuple[int, int]) -> None:
    factor = backbone.preparation.factor
    pictures = noise_frames(6, (cells[0] * factor, cells[1] * factor))
    got = backbone.encode(pictures)
    assert got.shape == (3, cells[0] * cells[1], backbone.width)
    torch.testing.assert_close(
        got, library_embeddings(backbone, pictures, False), atol=2e-5, rtol=1e-5
    )


def test_images_equal_the_library(backbone: Backbone) -> None:
    pictures = noise_frames(3, uneven(backbone))
    expected = library_embeddings(backbone, pictures, as_images=True)
    torch.testing.assert_close(backbone.encode(pictures, True), expected, atol=2e-5, rtol=1e-5)
    assert len(backbone.encode(pictures)) == 2  # as video: a pair and a doubled one


def test_a_split_at_even_frames_changes_nothing(
    backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = noise_frames(7, uneven(backbone))
    at_once = backbone.vision(pictures)
    parts = torch.cat([backbone.vision(pictures[:4]), backbone.vision(pictures[4:])])
    torch.testing.assert_close(parts, at_once, atol=1e-5, rtol=1e-5)
    monkeypatch.setitem(base.VISION_PATCHES, "cpu", 1)  # one grid a pass
    torch.testing.assert_close(backbone.vision(pictures), at_once, atol=1e-5, rtol=1e-5)
    monkeypatch.setattr(base, "ENCODE_FRAMES", 2)
    in_parts = backbone.encode(pictures)
    torch.testing.assert_close(in_parts, backbone.project(at_once), atol=1e-5, rtol=1e-5)


def test_grids_do_not_see_each_other(backbone: Backbone) -> None:
    pictures = noise_frames(6, uneven(backbone))
    other = [*pictures[:2], 255 - pictures[2], *pictures[3:]]
    change = (backbone.encode(other) - backbone.encode(pictures)).abs().amax((1, 2))
    assert change[1] > 1e-2
    assert change[0] < 1e-5
    assert change[2] < 1e-5


def test_frames_are_counted_once(backbone: Backbone) -> None:
    with counting() as counts:
        backbone.encode(noise_frames(5, uneven(backbone)))
    assert counts == {"frames_encoded": 5}


def test_projecting_apart_is_encoding(backbone: Backbone) -> None:
    pictures = noise_frames(4, uneven(backbone))
    features = backbone.vision(pictures)
    assert features.shape[:4] == (2, 1 + backbone.deep, 15, 4)
    assert torch.equal(backbone.project(features), backbone.encode(pictures))
