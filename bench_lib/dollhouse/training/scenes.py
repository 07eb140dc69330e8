"""Scenes as the tower gets them: two frames of 112 x 112, drawn straight into arrays, and kept.

No video is encoded: scaling down to a quarter hides most of what a codec leaves, and noise, light
and a little blur stand for the rest. The code strip is never drawn.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from bench_lib.dollhouse.world import atlas, render
from bench_lib.dollhouse.world.camera import Shot
from bench_lib.dollhouse.world.rooms import MARGIN, SIZE
from bench_lib.dollhouse.world.stage import Layers, layers
from bench_lib.dollhouse.world.world import World
from bench_lib.schema import clock

SIDE = 112
_MOTION = 6
_VERSION = 2  # raise it when scenes are drawn in another way


def pair(
    rng: np.random.Generator, shot: Shot, wall_start_s: int, before: Shot | None
) -> NDArray[np.uint8]:
    """Two frames `[2, 112, 112, 3]` of a shot: the second one is always of it.

    The first is the same (an image), an earlier one, or of the shot before it (a cut).
    """
    drawn, how = layers(shot), rng.random()
    u = float(rng.random())
    second = _frame(rng, drawn, u, wall_start_s + shot.start_s)
    if how < 0.4:
        return np.stack([second, second])
    if how < 0.6 and before is not None:
        first = _frame(rng, layers(before), 1.0, wall_start_s + before.start_s)
    else:
        first = _frame(rng, drawn, max(0.0, u - 0.25), wall_start_s + shot.start_s)
    return np.stack([first, second])


def scenes(world: World, seed: int, folder: Path) -> NDArray[np.uint8]:
    """A pair for each shot of a world in order, `[shots, 2, 112, 112, 3]`; drawn once, kept."""
    file = folder / f"{world.seed}-{seed}-{_VERSION}.npy"
    if file.exists():
        return np.load(file)
    rng = np.random.default_rng((seed, 3, world.seed))
    found = []
    for film in world.films:
        for i, shot in enumerate(film.shots):
            found.append(pair(rng, shot, film.wall_start_s, film.shots[i - 1] if i else None))
    stack = np.stack(found)
    folder.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}.npy")
    np.save(part, stack)
    part.replace(file)
    return stack


def _frame(rng: np.random.Generator, drawn: Layers, u: float, wall_s: int) -> NDArray[np.uint8]:
    dx, dy = (int(v) for v in rng.integers(-_MOTION, _MOTION + 1, 2))
    box = (MARGIN + dx, MARGIN + dy, MARGIN + dx + SIZE, MARGIN + dy + SIZE)
    picture = drawn.still.convert("RGB").crop(box)
    if drawn.moving is not None:
        share = render._ease(u)
        x, y = (int(a + (b - a) * share) for a, b in zip(drawn.start, drawn.end, strict=True))
        bob = int(rng.integers(-4, 5)) if drawn.start == drawn.end else 0
        picture.paste(drawn.moving, (x, y + bob), drawn.moving)
    line = atlas.text(clock(wall_s), 18)
    picture.paste((20, 20, 20), (4, 4, 4 + line.shape[1] + 9, 28))
    picture.paste((235, 235, 235), (8, 7), Image.fromarray(line))
    small = picture.resize((SIDE, SIDE), Image.Resampling.BICUBIC, reducing_gap=2.0)
    if rng.random() < 0.3:
        small = small.filter(ImageFilter.GaussianBlur(float(rng.uniform(0.2, 0.6))))
    gain = 1 + 0.1 * float(rng.uniform(-1, 1))
    pixels = np.asarray(small, np.float32) * gain
    pixels += rng.normal(0, float(rng.uniform(0, 4)), pixels.shape).astype(np.float32)
    return np.clip(pixels, 0, 255).astype(np.uint8)
