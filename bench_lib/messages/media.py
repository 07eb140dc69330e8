"""Frames and sound as bytes: content digests, images, small videos, WAV."""

from __future__ import annotations

import contextlib
import io
import wave
import weakref
from collections.abc import Sequence
from fractions import Fraction
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from bench_lib.messages.chat import Frames, Message, Sound, Text
from bench_lib.video.stream import SAMPLE_RATE, Frame, Size

_digests: dict[int, tuple[weakref.ref[Frame], str]] = {}


def digest(frame: Frame) -> str:
    """32 hex digits of a frame's own pixels; remembered as long as the handle lives."""
    known = _digests.get(id(frame))
    if known and known[0]() is frame:
        return known[1]
    pixels = np.ascontiguousarray(frame.pixels())
    value = blake2b(repr(pixels.shape).encode() + pixels.tobytes(), digest_size=16).hexdigest()
    with contextlib.suppress(TypeError):  # a handle with slots cannot be watched
        key = id(frame)
        _digests[key] = (weakref.ref(frame, lambda _: _digests.pop(key, None)), value)
    return value


def short_digest(*what: Any) -> str:
    """32 hex digits of plain values."""
    return blake2b(repr(what).encode(), digest_size=16).hexdigest()


def sound_digest(sound: Sound) -> str:
    """32 hex digits of the samples."""
    return blake2b(np.ascontiguousarray(sound.samples).tobytes(), digest_size=16).hexdigest()


def skeleton(messages: Sequence[Message]) -> tuple[list[Any], list[str]]:
    """Messages as plain lists without media, and the digests of the media in order.

    The two together determine what a model is shown: roles, texts, grouping, form, size, pixels.
    """
    digests: list[str] = []
    turns: list[Any] = []
    for message in messages:
        parts: list[Any] = []
        for part in message.parts:
            if isinstance(part, Text):
                parts.append(["text", part.text])
            elif isinstance(part, Frames):
                form = "video" if part.video else "images"
                times = [round(f.t_s, 6) for f in part.frames] if part.video else len(part.frames)
                parts.append([form, times, list(part.size or ())])
                digests += [digest(frame) for frame in part.frames]
            else:
                parts.append(["sound", len(part.samples)])
                digests.append(sound_digest(part))
        turns.append([message.role, parts])
    return turns, digests


def image(frame: Frame, size: Size | None, form: str, quality: int) -> bytes:
    """A frame as JPEG or PNG."""
    buffer = io.BytesIO()
    picture = Image.fromarray(frame.pixels(size))
    if form == "png":
        picture.save(buffer, "PNG", compress_level=1)
    else:
        picture.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


def mp4(frames: Sequence[Frame], size: Size | None) -> bytes:
    """Frames as an H.264 file whose presentation times are the frames' own, from 0, in ms.

    Odd sizes lose their last row or column, which 4:2:0 cannot hold.
    """
    import av

    buffer = io.BytesIO()
    first = frames[0].pixels(size)
    height, width = first.shape[0] // 2 * 2, first.shape[1] // 2 * 2
    gaps = [b.t_s - a.t_s for a, b in pairwise(frames)]
    rate = Fraction(1 / float(np.median(gaps)) if gaps else 1).limit_denominator(1000)
    with av.open(buffer, "w", format="mp4") as container:
        stream: Any = container.add_stream(
            "libx264", rate=rate, options={"crf": "18", "preset": "veryfast"}
        )
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.time_base = Fraction(1, 1000)
        stream.codec_context.time_base = Fraction(1, 1000)
        stream.codec_context.thread_count = 1
        for frame in frames:
            shown: Any = av.VideoFrame.from_ndarray(frame.pixels(size)[:height, :width], "rgb24")
            shown.pts = round((frame.t_s - frames[0].t_s) * 1000)
            shown.time_base = Fraction(1, 1000)
            container.mux(stream.encode(shown))
        container.mux(stream.encode())
    return buffer.getvalue()


def wav(samples: NDArray[np.float32]) -> bytes:
    """16 kHz mono samples in [-1, 1] as 16-bit WAV."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    return buffer.getvalue()
