"""Films to H.264 files: layers are turned into YUV planes once a shot, frames are cheap copies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from bench_lib.dollhouse.world import atlas, sound, strip
from bench_lib.dollhouse.world.camera import Film, Shot
from bench_lib.dollhouse.world.rooms import MARGIN, SIZE
from bench_lib.dollhouse.world.stage import layers
from bench_lib.schema import clock

Planes = tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]
VERSION = 6
"""Counts changes of the pictures; part of every file's digest."""


@dataclass(frozen=True)
class Look:
    """How films are recorded. Motion in pixels, noise as a standard deviation, light as a share.

    `light` is how much the brightness varies between shots. `strip` draws the code strip. `sound`
    adds the spoken lines where espeak-ng is installed, over a hiss of `hiss` (root mean square of
    full scale 1). `clock` draws the wall clock.
    """

    fps: int = 4
    size: int = SIZE
    motion: int = 6
    noise: float = 1.5
    light: float = 0.08
    strip: bool = True
    sound: bool = True
    hiss: float = 0.0
    clock: bool = True
    crf: int = 25
    preset: str = "superfast"


def write(film: Film, look: Look, path: Path) -> None:
    """Encode a film to `path`, atomically: readers see the whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    options = {"preset": look.preset, "crf": str(look.crf), "g": str(look.fps * 4)}
    try:
        with av.open(str(part), "w", options={"movflags": "faststart"}) as out:
            stream = out.add_stream("libx264", rate=look.fps, options=options)
            stream.width = stream.height = look.size
            stream.pix_fmt = "yuv420p"
            stream.thread_count = 1
            speech = _speech(out) if look.sound and sound.available() else None
            for planes in frames(film, look):
                stack = np.concatenate([planes[0].ravel(), planes[1].ravel(), planes[2].ravel()])
                shape = (look.size * 3 // 2, look.size)
                frame = av.VideoFrame.from_ndarray(stack.reshape(shape), format="yuv420p")
                out.mux(stream.encode(frame))
            out.mux(stream.encode())
            if speech:
                _speak(out, speech, film, look.hiss)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _speech(out: Any) -> Any:
    """A stream for the spoken lines."""
    stream = out.add_stream("aac", rate=sound.RATE)
    stream.layout = "mono"
    stream.thread_count = 1
    return stream


def _speak(out: Any, stream: Any, film: Film, hiss: float) -> None:
    samples = sound.track(film, hiss)
    for start in range(0, len(samples), 1024):
        frame = av.AudioFrame.from_ndarray(samples[None, start : start + 1024], "s16", "mono")
        frame.sample_rate, frame.pts = sound.RATE, start
        out.mux(stream.encode(frame))
    out.mux(stream.encode())


def frames(film: Film, look: Look) -> Iterator[Planes]:
    """The frames of a film as YUV planes, the code strip and the clock on top."""
    shown: Shot | None = None
    for index in range(film.duration_s * look.fps):
        t_s = index / look.fps
        shot = film.shot_at(t_s)
        if shot is not shown:
            shown, still, moving = shot, *_prepared(shot, film, look)
        yield _frame(film, shot, look, index, still, moving)


def image(film: Film, t_s: float, look: Look) -> NDArray[np.uint8]:
    """One frame `[size, size, 3]` in RGB, as it is before encoding."""
    shot = film.shot_at(t_s)
    still, moving = _prepared(shot, film, look)
    y, u, v = _frame(film, shot, look, int(t_s * look.fps), still, moving)
    stack = np.concatenate([y.ravel(), u.ravel(), v.ravel()]).reshape(-1, y.shape[1])
    rgb = av.VideoFrame.from_ndarray(stack, format="yuv420p").to_ndarray(format="rgb24")
    return np.asarray(rgb, np.uint8)


@dataclass(frozen=True)
class _Moving:
    planes: Planes
    alpha: NDArray[np.uint16]
    alpha_half: NDArray[np.uint16]
    start: tuple[int, int]
    end: tuple[int, int]


def _prepared(shot: Shot, film: Film, look: Look) -> tuple[Planes, _Moving | None]:
    drawn = layers(shot)
    seed = (film.wall_start_s + shot.start_s) & 0xFFFF
    gain = 1 + look.light * (np.random.default_rng((11, seed)).random() * 2 - 1)
    still = _yuv(np.asarray(drawn.still), gain)
    if drawn.moving is None:
        return still, None
    rgba = np.asarray(drawn.moving)
    alpha = rgba[..., 3].astype(np.uint16)
    half = _halved(rgba[..., 3]).astype(np.uint16)
    return still, _Moving(_yuv(rgba[..., :3], gain), alpha, half, drawn.start, drawn.end)


def _frame(
    film: Film, shot: Shot, look: Look, index: int, still: Planes, moving: _Moving | None
) -> Planes:
    t_s = index / look.fps
    wall_s = film.wall_start_s + int(t_s)
    key = film.wall_start_s * look.fps + index
    dx, dy = _sway(key / look.fps, look.motion)
    left, top = MARGIN + dx, MARGIN + dy
    y = still[0][top : top + SIZE, left : left + SIZE].copy()
    half = slice(top // 2, top // 2 + SIZE // 2), slice(left // 2, left // 2 + SIZE // 2)
    u, v = still[1][half].copy(), still[2][half].copy()
    if moving:
        share = _ease((t_s - shot.start_s) / (shot.end_s - shot.start_s))
        x0, x1 = moving.start[0], moving.end[0]
        y0, y1 = moving.start[1], moving.end[1]
        bob = 4 * np.sin(t_s * 5) if moving.start == moving.end else 0
        at = (_even(x0 + (x1 - x0) * share), _even(y0 + (y1 - y0) * share + bob))
        _paste((y, u, v), moving, at)
    if look.noise:
        field_ = _noise(look.noise)[key % 16]
        y = np.clip(y.astype(np.int16) + field_, 0, 255).astype(np.uint8)
    if look.clock:
        _stamp((y, u, v), clock(wall_s))
    planes = (y, u, v) if look.size == SIZE else _resized((y, u, v), look.size)
    if look.strip:
        _strip(planes, strip.encode(shot.at(film.wall_start_s, t_s), key & 255))
    return planes


def _even(value: float) -> int:
    return int(value) // 2 * 2


def _ease(share: float) -> float:
    """A movement that rests at both ends of its shot."""
    inner = min(1.0, max(0.0, (share - 0.2) / 0.6))
    return inner * inner * (3 - 2 * inner)


def _sway(t_s: float, motion: int) -> tuple[int, int]:
    """Where the camera looks: slow loops, within the margin, in even pixels (chroma is halved)."""
    reach = min(motion, MARGIN)
    return _even(reach * np.sin(t_s * 1.3)), _even(reach * np.sin(t_s * 1.7 + 1))


@lru_cache(maxsize=4)
def _noise(level: float) -> NDArray[np.int16]:
    rng = np.random.default_rng(5)
    return np.rint(rng.normal(0, level, (16, SIZE, SIZE))).astype(np.int16)


def _yuv(rgb: NDArray[np.uint8], gain: float) -> Planes:
    """BT.601 planes in video range, chroma at half size."""
    scaled = np.clip(rgb.astype(np.float32) * np.float32(gain), 0, 255)
    r, g, b = scaled[..., 0], scaled[..., 1], scaled[..., 2]
    y = 16 + (65.481 * r + 128.553 * g + 24.966 * b) / 255
    u = 128 + (-37.797 * r - 74.203 * g + 112.0 * b) / 255
    v = 128 + (112.0 * r - 93.786 * g - 18.214 * b) / 255
    return y.round().astype(np.uint8), _halved(u), _halved(v)


def _halved(plane: NDArray[np.generic]) -> NDArray[np.uint8]:
    h, w = plane.shape
    blocks = plane.reshape(h // 2, 2, w // 2, 2).astype(np.float32)
    return blocks.mean((1, 3)).round().astype(np.uint8)


def _paste(planes: Planes, moving: _Moving, at: tuple[int, int]) -> None:
    """Blend the moving part in; what lies outside the picture is cut off."""
    for plane, part, scale in zip(planes, moving.planes, (1, 2, 2), strict=True):
        alpha = moving.alpha if scale == 1 else moving.alpha_half
        x, y = at[0] // scale, at[1] // scale
        h, w = part.shape
        y0, y1, x0, x1 = max(y, 0), min(y + h, len(plane)), max(x, 0), min(x + w, len(plane[0]))
        a = alpha[y0 - y : y1 - y, x0 - x : x1 - x]
        new = part[y0 - y : y1 - y, x0 - x : x1 - x].astype(np.uint16)
        old = plane[y0:y1, x0:x1]
        plane[y0:y1, x0:x1] = ((new * a + old.astype(np.uint16) * (255 - a)) // 255).astype(
            np.uint8
        )


def _stamp(planes: Planes, line: str) -> None:
    """The wall clock in the upper left corner."""
    mask = _line(line)
    h, w = mask.shape
    planes[0][4 : 4 + h, 4 : 4 + w] = mask
    for plane in planes[1:]:
        plane[2 : 2 + h // 2, 2 : 2 + w // 2] = 128


@lru_cache(maxsize=256)
def _line(line: str) -> NDArray[np.uint8]:
    mask = atlas.text(line, 18)
    box = np.full((24, _even(mask.shape[1] + 9)), 20, np.uint8)
    inside = box[3:21, 4 : 4 + mask.shape[1]]
    inside[...] = 20 + mask.astype(np.uint16) * 215 // 255
    return box


def _strip(planes: Planes, cells: NDArray[np.bool_]) -> None:
    """Draw the cells at the lower edge; sizes are whole pixels where the width allows."""
    size = planes[0].shape[1]
    tall = max(strip.ROWS, round(size * strip.HEIGHT))
    rows = np.arange(tall) * strip.ROWS // tall
    columns = np.arange(size) * strip.CELLS // size
    planes[0][-tall:] = np.where(cells[rows][:, columns], 235, 16)
    for plane in planes[1:]:
        plane[-(tall + 1) // 2 :] = 128


def _resized(planes: Planes, size: int) -> Planes:
    def one(plane: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
        return np.array(Image.fromarray(plane).resize((side, side), Image.Resampling.BICUBIC))

    return one(planes[0], size), one(planes[1], size // 2), one(planes[2], size // 2)
