"""The code strip survives what a picture goes through, and nothing false is read from it."""

from __future__ import annotations

import io
from functools import lru_cache
from pathlib import Path

import av
import numpy as np
import pytest
from house_worlds import composed
from numpy.typing import NDArray
from PIL import Image

from bench_lib.dollhouse.world import render, strip
from bench_lib.dollhouse.world.grammar import Item
from bench_lib.dollhouse.world.picture import Group, Picture
from bench_lib.dollhouse.world.render import Look

SIZES = (720, 448, 392, 308, 252, 224, 168, 140, 112)


@lru_cache
def _pictures() -> list[tuple[NDArray[np.uint8], Picture]]:
    world, _ = composed(3)
    found = []
    for film in world.films[:2]:
        for shot in film.shots[::3]:
            pixels = render.image(film, shot.start_s + 1, Look(noise=8, motion=8))
            found.append((pixels, film.picture(shot.start_s + 1)))
    return found


def _sized(pixels: NDArray[np.uint8], size: int, quality: int = 75) -> NDArray[np.uint8]:
    image = Image.fromarray(pixels).resize((size, size), Image.Resampling.BICUBIC)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return np.asarray(Image.open(buffer).convert("RGB"))


@pytest.mark.parametrize("size", SIZES)
def test_read_after_resizing_and_jpeg_75(size: int) -> None:
    for pixels, picture in _pictures():
        assert strip.decode(_sized(pixels, size)) == picture


def test_read_after_h264_at_crf_30_then_112_px_and_jpeg(tmp_path: Path) -> None:
    world, _ = composed(5, "small")
    film = world.films[0]
    render.write(film, Look(crf=30, noise=6, motion=8), tmp_path / "film.mp4")
    with av.open(str(tmp_path / "film.mp4")) as container:
        frames = [f.to_ndarray(format="rgb24") for f in container.decode(video=0)]
    assert len(frames) == film.duration_s * 4
    for index, pixels in enumerate(frames):
        assert strip.decode(pixels) == film.picture(index / 4)
        assert strip.decode(_sized(pixels, 112)) == film.picture(index / 4)


def test_below_its_resolution_it_is_unreadable_not_wrong() -> None:
    for pixels, picture in _pictures():
        assert strip.decode(_sized(pixels, 56)) in (None, picture)
        assert strip.decode(_sized(pixels, 40)) is None


def test_grey_and_noise_and_other_pictures_are_unreadable() -> None:
    pixels, _ = _pictures()[0]
    grey = pixels.copy()
    grey[-21:] = 128
    noise = np.random.default_rng(0).integers(0, 256, (448, 448, 3)).astype(np.uint8)
    assert strip.decode(grey) is None
    assert strip.decode(noise) is None
    assert strip.decode(pixels[::-1]) is None
    assert strip.decode(np.zeros((1, 1, 3), np.uint8)) is None


def test_one_wrong_cell_is_noticed() -> None:
    picture = Picture(4_000, "kitchen", (Group(Item("red", "cup"), "full", "table", 2),))
    cells = strip.encode(picture, 7)
    for row, column in ((0, 20), (1, 63), (2, 0), (2, 63)):
        wrong = cells.copy()
        wrong[row, column] ^= True
        assert strip.decode(_drawn(wrong)) is None
    assert strip.decode(_drawn(cells)) == picture


def test_seeds_scramble_and_do_not_change_the_meaning() -> None:
    picture = Picture(4_000, "garden", person="girl", sign="BUS 42", action="wait")
    drawn = {strip.encode(picture, seed).tobytes() for seed in range(256)}
    assert len(drawn) == 256
    for seed in range(0, 256, 17):
        assert strip.decode(_drawn(strip.encode(picture, seed))) == picture


def test_what_does_not_fit_is_refused() -> None:
    groups = tuple(Group(Item("red", "cup", 1), "full", "table", i % 6) for i in range(7))
    with pytest.raises(ValueError, match="at most 6 groups"):
        strip.encode(Picture(0, "kitchen", groups), 0)
    with pytest.raises(ValueError, match="does not fit"):
        strip.encode(Picture(40 * 86_400, "kitchen"), 0)


def _drawn(cells: NDArray[np.bool_]) -> NDArray[np.uint8]:
    pixels = np.full((448, 448, 3), 90, np.uint8)
    pixels[-21:] = np.kron(cells.astype(np.uint8), np.full((7, 7), 255, np.uint8))[..., None]
    return pixels
