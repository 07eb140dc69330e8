"""From pictures to the patches a Qwen vision tower takes; no torchvision.

A grid is two frames in sequence, the unit of time of these towers; a lone last frame is doubled.
A cell is a square of `merge` x `merge` patches: it becomes one visual token.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench_lib.errors import BenchError
from bench_lib.video.stream import Size


@dataclass(frozen=True)
class Preparation:
    """What a checkpoint's preprocessor configuration says: sizes in pixels, colours in 0..1."""

    patch: int
    merge: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    min_pixels: int
    max_pixels: int

    @property
    def factor(self) -> int:
        """Side of a cell in pixels; heights and widths are multiples of it."""
        return self.patch * self.merge


def fit(native: Size, factor: int, min_pixels: int, max_pixels: int) -> Size:
    """The multiple of `factor` nearest to `native` within both pixel limits, aspect kept.

    The arithmetic of the Qwen processors, which rounds sides to the nearest multiple, then scales
    down (rounding down) above `max_pixels` or up (rounding up) below `min_pixels`.
    """
    height, width = native
    if min(native) < 1 or max(native) > 200 * min(native):
        raise BenchError(f"a frame of {height} x {width} pixels cannot be encoded: too narrow")
    rows, cols = (round(side / factor) * factor for side in native)
    if rows * cols > max_pixels:
        scale = math.sqrt(height * width / max_pixels)
        rows, cols = (max(factor, int(side / scale / factor) * factor) for side in native)
    elif rows * cols < min_pixels:
        scale = math.sqrt(min_pixels / (height * width))
        rows, cols = (math.ceil(side * scale / factor) * factor for side in native)
    return rows, cols


def pairs(frames: Sequence[NDArray[np.uint8]], as_images: bool) -> NDArray[np.uint8]:
    """Frames `[height, width, 3]` as grids `[grids, 2, height, width, 3]`.

    As images, every frame makes a grid of its own with itself.
    """
    if as_images:
        frames = [frame for frame in frames for _ in range(2)]
    elif len(frames) % 2:
        frames = [*frames, frames[-1]]
    stack = np.stack(frames)
    return stack.reshape(-1, 2, *stack.shape[1:])


def patches(grids: Tensor, how: Preparation) -> Tensor:
    """Normalised patches `[grids, cells * merge**2, 3 * 2 * patch**2]` of uint8 grids.

    Patches of a cell lie together and cells in raster order, as the library's processors write
    them; runs on the device of `grids`.
    """
    count, time, height, width, channels = grids.shape
    p, m = how.patch, how.merge
    if height % how.factor or width % how.factor:
        raise BenchError(f"frames of {height} x {width} do not divide into cells of {how.factor}")
    mean = torch.tensor(how.mean, device=grids.device)
    std = torch.tensor(how.std, device=grids.device)
    pixels = (grids.float() / 255 - mean) / std
    blocks = pixels.view(count, time, height // how.factor, m, p, width // how.factor, m, p, 3)
    ordered = blocks.permute(0, 2, 5, 3, 6, 8, 1, 4, 7)
    return ordered.reshape(count, (height // p) * (width // p), channels * time * p * p)
