"""From an OpenAI-style request back to messages: what `chat/wire.py` writes, read again."""

from __future__ import annotations

import io
from base64 import b64decode
from binascii import Error as Base64Error
from typing import Any

import numpy as np
from PIL import Image, UnidentifiedImageError

from bench_lib.messages.chat import Frames, Message, Part, Sound, Text
from bench_lib.video.stream import ArrayFrame


class BadRequest(Exception):
    """A request that cannot be understood, in words for whoever sent it."""


def messages_of(turns: Any) -> list[Message]:
    """The messages of a request; raises BadRequest."""
    if not isinstance(turns, list) or not turns:
        raise BadRequest("a request needs a list of messages")
    return [Message(turn["role"], tuple(_parts(turn.get("content")))) for turn in turns]


def _parts(content: Any) -> list[Part]:
    if isinstance(content, str):
        return [Text(content)]
    parts: list[Part] = []
    for item in content or []:
        kind = item.get("type")
        if kind == "text":
            parts.append(Text(item["text"]))
        elif kind == "image_url":
            parts.append(Frames((_picture(*_data(item["image_url"]["url"])),)))
        elif kind == "video_url":
            parts.append(Frames(_video(*_data(item["video_url"]["url"])), video=True))
        elif kind == "input_audio":
            parts.append(Sound(np.zeros(0, np.float32)))  # this observer does not listen
        else:
            raise BadRequest(f"unknown kind of content: {kind!r}")
    return parts


def _data(url: str) -> tuple[str, str]:
    """Media type and base64 text of a data URL."""
    head, comma, data = url.partition(",")
    if not head.startswith("data:") or not comma:
        raise BadRequest("media must be in the request as data URLs; this server opens no file")
    return head.removeprefix("data:").partition(";")[0], data


def _picture(kind: str, data: str) -> ArrayFrame:
    try:
        with Image.open(io.BytesIO(b64decode(data))) as image:
            return ArrayFrame(0.0, np.asarray(image.convert("RGB")))
    except (UnidentifiedImageError, Base64Error, OSError) as error:
        raise BadRequest(f"an image of type {kind} cannot be read: {error}") from None


def _video(kind: str, data: str) -> tuple[ArrayFrame, ...]:
    if kind == "video/jpeg":
        return tuple(_picture("image/jpeg", part) for part in data.split(","))
    import av

    try:
        with av.open(io.BytesIO(b64decode(data)), "r") as container:
            return tuple(
                ArrayFrame(float(f.time or 0), np.asarray(f.to_ndarray(format="rgb24"), np.uint8))
                for f in container.decode(video=0)
            )
    except (av.error.FFmpegError, Base64Error) as error:
        raise BadRequest(f"a video of type {kind} cannot be read: {error}") from None
