"""Videos whose pictures say which source frame they are: a number in a grid of coarse blocks.

Sixteen blocks, four by four, light or dark. The corners tell whether a picture is upright (only the
upper left one is light); the other twelve hold the number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from bench_lib.schema import Session, Span
from bench_lib.video.session import open_session
from bench_lib.video.stream import Size

CORNERS = [(0, 0), (0, 3), (3, 0), (3, 3)]
INNER = [(row, col) for row in range(4) for col in range(4) if (row, col) not in CORNERS]
RATE = 48_000
LIGHT = 190
"""Leaves room for 65 steps of grain."""


def picture(number: int, size: Size = (48, 64)) -> NDArray[np.uint8]:
    """The picture of a frame number (0 to 4095), `[height, width, 3]`."""
    grid = np.full((4, 4), 30, np.uint8)
    grid[0, 0] = LIGHT
    for bit, place in enumerate(INNER):
        grid[place] = LIGHT if number >> bit & 1 else 30
    rows = np.arange(size[0]) * 4 // size[0]
    cols = np.arange(size[1]) * 4 // size[1]
    return np.repeat(grid[rows][:, cols, None], 3, 2)


def number(pixels: NDArray[np.uint8]) -> int:
    """Which frame a picture shows; fails on a picture that is not upright."""
    height, width = pixels.shape[:2]
    grey = pixels.astype(float).mean(2)
    light = {}
    for row in range(4):
        for col in range(4):
            # The middle of a block: edges are smeared by lossy coding.
            y, x = int((row + 0.5) * height / 4), int((col + 0.5) * width / 4)
            light[row, col] = grey[y - 2 : y + 3, x - 2 : x + 3].mean() > 125
    assert [light[corner] for corner in CORNERS] == [True, False, False, False], "not upright"
    return sum(int(light[place]) << bit for bit, place in enumerate(INNER))


def write(
    path: Path,
    times_ms: Sequence[int],
    codec: str = "libx264",
    options: dict[str, str] | None = None,
    pix_fmt: str = "yuv420p",
    size: Size = (48, 64),
    numbers: Sequence[int] | None = None,
    sound: NDArray[np.float32] | None = None,
    sound_codec: str = "aac",
    sound_start_ms: int = 0,
    grain: int = 0,
    stamped: Callable[[int, Any], None] | None = None,
    sound_stamped: Callable[[int, Any], None] | None = None,
    stored: Callable[[NDArray[np.uint8]], NDArray[np.uint8]] = lambda pixels: pixels,
    flags: dict[str, str] | None = None,
) -> Path:
    """Write a video: picture i is number i (or `numbers[i]`), shown from `times_ms[i]` on.

    `sound` is mono at 48 kHz. `grain` is the height of a pattern that moves with the number, so
    that pictures differ everywhere and are predicted from one another. `stamped` may change the
    timestamps (in milliseconds) of the n-th packet of pictures, in decoding order, `sound_stamped`
    those of sound (in samples). `stored` makes the picture that is stored of the one to be
    seen; `flags` are the container's.
    """
    base = Fraction(1, 1000)
    with av.open(str(path), "w", options=flags or {}) as container:
        stream: Any = container.add_stream(codec, rate=10, options=options or {})
        stream.height, stream.width = stored(picture(0, size)).shape[:2]
        stream.pix_fmt = pix_fmt
        stream.codec_context.thread_count = 1  # what an encoder makes depends on it
        stream.time_base = stream.codec_context.time_base = base
        heard: Any = None
        if sound is not None:
            heard = container.add_stream(sound_codec, rate=RATE, layout="mono")
        noise = np.random.default_rng(0).random((*size, 3))
        packets = []
        for i, time_ms in enumerate(times_ms):
            n = numbers[i] if numbers is not None else i
            pixels = picture(n, size)
            if grain:
                moving = np.roll(noise, (n, 2 * n), (0, 1)) * grain
                pixels = (pixels + moving).astype(np.uint8)
            pixels = np.ascontiguousarray(stored(pixels))
            frame = av.VideoFrame.from_ndarray(pixels, "rgb24").reformat(format=pix_fmt)
            frame.pts, frame.time_base = time_ms, base
            packets += stream.encode(frame)
        packets += stream.encode(None)
        for n, packet in enumerate(packets if stamped else ()):
            stamped(n, packet)
        if heard is not None:
            spoken = _sound(heard, sound, sound_start_ms)
            for n, packet in enumerate(spoken if sound_stamped else ()):
                sound_stamped(n, packet)
            packets += spoken
        packets.sort(key=lambda p: p.dts * p.time_base)
        for packet in packets:
            container.mux(packet)
    return path


def _sound(stream: Any, sound: Any, start_ms: int) -> list[Any]:
    packets = []
    step = stream.codec_context.frame_size or 1024
    form = stream.codec_context.format.name
    for at in range(0, len(sound), 1024):
        chunk = sound[None, at : at + 1024].astype(np.float32)
        frame: Any = av.AudioFrame.from_ndarray(chunk, "fltp", "mono")
        frame.sample_rate, frame.pts = RATE, at + start_ms * RATE // 1000
        frame.time_base = Fraction(1, RATE)
        resampler = av.AudioResampler(form, "mono", RATE, frame_size=step)
        for piece in [frame] if form == "fltp" else resampler.resample(frame):
            packets += stream.encode(piece)
    return packets + stream.encode(None)


def session(*spans: tuple[Path, float, float]) -> Session:
    """A session of (file, start, end) spans."""
    made = tuple(Span(file=str(file), start_s=start, end_s=end) for file, start, end in spans)
    return Session(id="S", index=0, spans=made, duration_s=sum(s.end_s - s.start_s for s in made))


def seen(recorded: Session, fps: float, stretches: Any = None, **options: Any) -> dict[int, int]:
    """Which frame is shown at each instant k."""
    stretches = stretches or [(0.0, recorded.duration_s)]
    with open_session(recorded, fps, stretches, **options) as stream:
        return {round(s.t_s * fps): number(s.frame.pixels()) for s in stream}


def expected(
    times_ms: Sequence[int], fps: float, start_ms: int, end_ms: int, first: int = 0
) -> dict[int, int]:
    """By definition: at k / fps the newest picture whose time (the file's) is not later."""
    shown = {}
    for k in range(10_000):
        at_ms = start_ms + 1000 * k / fps
        if at_ms >= end_ms - 1e-3:
            break
        past = [i for i, time_ms in enumerate(times_ms) if time_ms <= at_ms + 1e-3]
        if past:
            shown[k] = first + past[-1]
    return shown
