"""Reverse image search over the atlas: which thing does a crop show?

For the search provider of an agent, which sees a crop without the code strip and has to find the
documents about the thing in it. It compares with every tinted sprite at a few sizes and places.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from bench_lib.dollhouse.world import atlas
from bench_lib.dollhouse.world.grammar import Item
from bench_lib.dollhouse.world.words import COLOURS, KINDS

_SIDE = 64
_SIZES = (40, 48, 51, 54, 60)
"""Sizes of the sprite within the crop, which is brought to 64 x 64 pixels."""
FARTHEST = 0.08
"""Mean squared difference (full scale 1) above which nothing is recognised."""
PLAIN = 0.1
"""Standard deviation below which a crop shows a bare wall or floor."""


def find(crop: NDArray[np.uint8]) -> Item | None:
    """The thing a crop `[height, width, 3]` shows, None when it looks like none.

    The crop should hold the thing and little else: its box with some margin.
    """
    side = max(crop.shape[:2])
    square = Image.new("RGB", (side, side), tuple(int(v) for v in np.median(crop, axis=(0, 1))))
    image = Image.fromarray(crop)
    square.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
    small = square.resize((_SIDE, _SIDE), Image.Resampling.BICUBIC)
    pixels = np.asarray(small, np.float32).transpose(2, 0, 1) / 255
    spectrum, squares = np.fft.rfft2(pixels), np.fft.rfft2((pixels**2).sum(0))
    best = min((_nearest(size, spectrum, squares) for size in _SIZES), key=lambda found: found[0])
    bare = np.asarray(image, np.float32).std(axis=(0, 1)).max() < PLAIN * 255
    return best[1] if best[0] < FARTHEST and not bare else None


def _nearest(
    size: int, spectrum: NDArray[np.complex128], squares: NDArray[np.complex128]
) -> tuple[float, Item]:
    """The best sprite of one size: the smallest mean of squared differences over its own pixels."""
    masks, painted, energy, area = _sprites(size)
    space = _SIDE - size + 1
    there = np.fft.irfft2(squares * masks.conj(), (_SIDE, _SIDE))[:, :space, :space]
    cross = np.fft.irfft2((spectrum * painted.conj()).sum(1), (_SIDE, _SIDE))[:, :space, :space]
    kind = np.repeat(np.arange(len(KINDS)), len(COLOURS))
    differences = (there[kind] - 2 * cross + energy[:, None, None]) / area[kind, None, None]
    lowest = differences.min((1, 2))
    at = int(lowest.argmin())
    return float(lowest[at]), Item(COLOURS[at % len(COLOURS)], KINDS[at // len(COLOURS)])


@lru_cache
def _sprites(
    size: int,
) -> tuple[
    NDArray[np.complex128], NDArray[np.complex128], NDArray[np.float64], NDArray[np.float64]
]:
    """Spectra of masks `[kinds]` and of masked sprites `[kinds x colours, 3]`, energies, areas."""
    masks, painted, energy, area = [], [], [], []
    for kind in KINDS:
        for colour in COLOURS:
            rgba = np.asarray(atlas.sprite(kind, colour, size), np.float32) / 255
            mask = np.zeros((_SIDE, _SIDE))
            mask[:size, :size] = rgba[..., 3]
            values = np.zeros((3, _SIDE, _SIDE))
            values[:, :size, :size] = rgba[..., :3].transpose(2, 0, 1)
            painted.append(np.fft.rfft2(values * mask))
            energy.append(float((values**2 * mask).sum()))
        masks.append(np.fft.rfft2(mask))
        area.append(mask.sum())
    return np.stack(masks), np.stack(painted), np.array(energy), np.array(area)
