"""Draws `atlas.png` anew: `python -m bench_lib.dollhouse.world.atlas_build EMOJI_TTF TEXT_TTF`.

The committed atlas was drawn from Noto Color Emoji 2.042 and Liberation Sans Bold 2.1, both under
the SIL Open Font License 1.1 (`ATLAS_LICENSE.txt`).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont, ImageOps
from scipy import ndimage

from bench_lib.dollhouse.world.atlas import COLUMNS, GLYPHS, PATH, SPRITES, TILE

_DRAWN = 109
"""The one size at which the emoji font has bitmaps."""


def draw(emoji: Path, text: Path) -> Image.Image:
    """All sprites, then all glyphs, in tiles of one size, row by row."""
    font = ImageFont.truetype(str(emoji), _DRAWN)
    letters = ImageFont.truetype(str(text), TILE - 16)
    rows = -(-(len(SPRITES) + len(GLYPHS)) // COLUMNS)
    sheet = Image.new("RGBA", (COLUMNS * TILE, rows * TILE))
    for at, sign in enumerate((*SPRITES.values(), *GLYPHS)):
        big = Image.new("RGBA", (160, 160))
        pen = ImageDraw.Draw(big)
        if at < len(SPRITES):
            pen.text((10, 10), sign, font=font, embedded_color=True)
            tile = _fit(_single(list(SPRITES)[at], big))
        else:
            tile = Image.new("RGBA", (TILE, TILE), (255, 255, 255, 0))
            mask = Image.new("L", (TILE, TILE))
            ImageDraw.Draw(mask).text((TILE // 2, TILE - 14), sign, 255, letters, anchor="ms")
            tile.putalpha(mask)
        sheet.paste(tile, (at % COLUMNS * TILE, at // COLUMNS * TILE))
    return sheet


def _single(name: str, image: Image.Image) -> Image.Image:
    """The drawing without a second thing in it: frames are counted, and so would it be."""
    left, top, right, low = image.getbbox() or (0, 0, *image.size)
    middle = (left + right) // 2
    if name == "bowl":  # The spoon is in its right half.
        half = image.crop((left, top, middle, low))
        image = Image.new("RGBA", image.size)
        image.paste(half, (left, top))
        image.paste(ImageOps.mirror(half), (middle, top))
    if name == "sock":  # The left one of a pair.
        alpha = np.asarray(image.getchannel("A"))
        found = ndimage.label(alpha > 0)[0]
        image.putalpha(Image.fromarray(np.where(found == found[:, left].max(), alpha, 0)))
    return image


def _fit(image: Image.Image) -> Image.Image:
    """The drawn part, scaled into a tile, centred at its lower edge."""
    image = image.crop(image.getbbox())
    scale = (TILE - 2) / max(image.size)
    size = (round(image.width * scale), round(image.height * scale))
    tile = Image.new("RGBA", (TILE, TILE))
    tile.paste(
        image.resize(size, Image.Resampling.LANCZOS),
        ((TILE - size[0]) // 2, TILE - 1 - size[1]),
    )
    return tile


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2])).save(PATH, optimize=True)
