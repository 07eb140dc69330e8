"""Draws `atlas.png` anew: `python -m bench_lib.dollhouse.world.atlas_build EMOJI_TTF TEXT_TTF`.

The committed atlas was drawn from Noto Color Emoji 2.042 and Liberation Sans Bold 2.1, both under
the SIL Open Font License 1.1 (`ATLAS_LICENSE.txt`).
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

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
            tile = _fit(big)
        else:
            tile = Image.new("RGBA", (TILE, TILE), (255, 255, 255, 0))
            mask = Image.new("L", (TILE, TILE))
            ImageDraw.Draw(mask).text((TILE // 2, TILE - 14), sign, 255, letters, anchor="ms")
            tile.putalpha(mask)
        sheet.paste(tile, (at % COLUMNS * TILE, at // COLUMNS * TILE))
    return sheet


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
