from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from backbone_cases import noise_frames
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_lib.backbones import frames
from bench_lib.errors import BenchError

HOW = frames.Preparation(
    patch=14,
    merge=2,
    mean=(0.48145466, 0.4578275, 0.40821073),
    std=(0.26862954, 0.26130258, 0.27577711),
    min_pixels=3_136,
    max_pixels=401_408,
)


@settings(deadline=None)
@given(
    st.integers(1, 4_000),
    st.integers(1, 4_000),
    st.sampled_from([28, 32]),
    st.sampled_from([12_544, 100_352, 401_408, 12_845_056]),
)
def test_sizes_are_those_of_the_library(height: int, width: int, factor: int, most: int) -> None:
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

    if max(height, width) > 200 * min(height, width):
        with pytest.raises(BenchError, match="too narrow"):
            frames.fit((height, width), factor, 3_136, most)
        return
    size = frames.fit((height, width), factor, 3_136, most)
    assert size == smart_resize(height, width, factor, 3_136, most)
    assert all(side % factor == 0 and side > 0 for side in size)


def test_patches_equal_an_independent_walk() -> None:
    """Each number is looked up by hand: grid, cell, patch of the cell, channel, frame, pixel."""
    rows, cols = 2, 3
    pictures = noise_frames(3, (rows * 28, cols * 28))
    grids = frames.pairs(pictures, as_images=False)
    got = frames.patches(torch.from_numpy(grids), HOW).numpy()
    assert got.shape == (2, rows * cols * 4, 3 * 2 * 14 * 14)
    random = np.random.default_rng(0)
    for _ in range(400):
        grid, row, col = random.integers(2), random.integers(rows), random.integers(cols)
        down, right, channel, time = random.integers(2, size=4)
        channel = random.integers(3)
        y, x = random.integers(14, size=2)
        picture = pictures[min(2 * grid + time, 2)]  # the lone last frame stands twice
        value = picture[row * 28 + down * 14 + y, col * 28 + right * 14 + x, channel] / 255
        expected = (value - HOW.mean[channel]) / HOW.std[channel]
        patch = ((row * cols + col) * 2 + down) * 2 + right
        number = ((channel * 2 + time) * 14 + y) * 14 + x
        assert math.isclose(got[grid, patch, number], expected, abs_tol=1e-5)


def test_images_equal_the_librarys_processor() -> None:
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    (picture,) = noise_frames(1, (84, 140))
    theirs = Qwen2VLImageProcessorPil()(picture, return_tensors="pt")["pixel_values"]
    stack = torch.from_numpy(frames.pairs([picture], as_images=True))
    torch.testing.assert_close(frames.patches(stack, HOW)[0], theirs, atol=1e-5, rtol=0)


def test_frames_that_do_not_divide_are_refused() -> None:
    with pytest.raises(BenchError, match="do not divide"):
        frames.patches(torch.zeros(1, 2, 30, 28, 3, dtype=torch.uint8), HOW)
