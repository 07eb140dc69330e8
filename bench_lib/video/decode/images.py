"""Sampled frames as image files: lossless or JPEG."""

from __future__ import annotations

import io
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Form = Literal["lossless", "jpeg"]


def encoded(pixels: NDArray[np.uint8], form: str) -> bytes:
    """An image file of `[height, width, 3]`.

    `lossless` is WebP at its fastest: on real frames of 448 x 448 a quarter smaller than the
    fastest PNG, and a third faster both ways. `jpeg` has quality 90.
    """
    buffer = io.BytesIO()
    image = Image.fromarray(pixels)
    if form == "jpeg":
        image.save(buffer, "JPEG", quality=90)
    else:
        image.save(buffer, "WEBP", lossless=True, quality=0, method=0)
    return buffer.getvalue()


def decoded(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The pixels of an encoded image that is not kept."""
    with Image.open(io.BytesIO(image.data)) as picture:
        return np.asarray(picture.convert("RGB"))
