"""The atlas: sprites of things, people and tools, and letters, in one PNG of equal tiles."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

PATH = Path(__file__).with_name("atlas.png")
TILE, COLUMNS = 80, 12

SPRITES = {
    "cup": "☕", "bottle": "🍾", "bucket": "🪣", "jar": "🫙", "bowl": "🥣", "vase": "🏺",
    "kettle": "🫖", "lamp": "💡", "radio": "📻", "torch": "🔦", "candle": "🕯", "laptop": "💻",
    "phone": "📱", "bag": "👜", "case": "💼", "purse": "👛", "parcel": "📦", "apple": "🍎",
    "carrot": "🥕", "pear": "🍐", "lemon": "🍋", "egg": "🥚", "onion": "🧅", "pie": "🥧",
    "pepper": "🫑", "sock": "🧦", "scarf": "🧣", "shirt": "👕", "hat": "👒", "coat": "🧥",
    "book": "📕", "letter": "✉", "spoon": "🥄", "key": "🔑", "ball": "⚽", "drum": "🥁",
    "bell": "🔔", "shoe": "👟", "kite": "🪁", "robot": "🤖",
    "grandmother": "👵", "grandfather": "👴", "girl": "👧", "boy": "👦", "builder": "👷",
    "wizard": "🧙", "clown": "🤡",
    "hands": "🤲", "grip": "🤏",
    "take": "⬆", "put": "⬇", "seek": "🔍", "open": "🔓", "close": "🔒", "fill": "🚰",
    "pour": "💦", "turn on": "⚡", "turn off": "🚫", "wash": "🧼", "cut": "🔪", "stir": "🌀",
    "fold": "🧷", "read": "👓", "fix": "🔧", "clean": "🧹", "paint": "🖌", "wait": "⏳",
    "leave": "🚪",
    "full": "💧", "empty": "⭕", "on": "🌟", "off": "🌑",
    "kitchen": "🍽", "bathroom": "🛁", "bedroom": "🛏", "hallway": "🖼", "study": "🗺",
    "garden": "🌳", "garage": "🚗", "lounge": "📺",
}  # fmt: skip
"""Names of the sprites in the atlas's order, with the character each was drawn from."""
GLYPHS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:"

TINTS = {
    "red": (216, 38, 44),
    "orange": (247, 128, 18),
    "yellow": (250, 212, 30),
    "green": (46, 158, 62),
    "blue": (38, 98, 222),
    "purple": (140, 56, 176),
    "white": (236, 236, 238),
    "black": (58, 58, 64),
}

DARK = (60, 56, 70, 255)


@lru_cache
def _sheet() -> Image.Image:
    with Image.open(PATH) as image:
        return image.convert("RGBA")


def _tile(index: int) -> Image.Image:
    x, y = index % COLUMNS * TILE, index // COLUMNS * TILE
    return _sheet().crop((x, y, x + TILE, y + TILE))


@lru_cache(maxsize=2048)
def sprite(name: str, colour: str, size: int) -> Image.Image:
    """A sprite of `size` pixels, RGBA; with a colour it is tinted and gets an outline."""
    tile = _tile(list(SPRITES).index(name))
    if colour:
        tile = _outlined(_tinted(tile, TINTS[colour]))
    return tile.resize((size, size), Image.Resampling.LANCZOS)


@lru_cache(maxsize=64)
def badge(state: str, size: int) -> Image.Image:
    """A state's sign on a pale disc, readable on any background."""
    disc = Image.new("RGBA", (4 * size, 4 * size))
    ImageDraw.Draw(disc).ellipse((0, 0, 4 * size - 1, 4 * size - 1), (255, 255, 255, 235), DARK, 6)
    disc = disc.resize((size, size), Image.Resampling.LANCZOS)
    name = {"open": "open", "closed": "close"}.get(state, state)
    inner = size * 7 // 10
    disc.alpha_composite(sprite(name, "", inner), ((size - inner) // 2, (size - inner) // 2))
    return disc


def _tinted(tile: Image.Image, tint: tuple[int, int, int]) -> Image.Image:
    """The tile's light and shade in one colour: dark parts a deep shade, light parts pale."""
    pixels = np.asarray(tile).astype(np.float32)
    alpha = pixels[..., 3:]
    light = pixels[..., :3] @ np.array([0.299, 0.587, 0.114], np.float32)
    seen = light[alpha[..., 0] > 128]
    low, middle, high = np.quantile(seen, [0.02, 0.5, 0.98])
    spread = max(high - low, 40.0)
    # The commonest light of the sprite gets the pure colour, its extremes a shade and a pale tone.
    level = np.clip((light - middle) / spread * 1.2, -1, 1)[..., None]
    colour = np.array(tint, np.float32)
    dark, pale = colour * 0.35, colour + (255 - colour) * 0.75
    shaded = np.where(level < 0, colour + (colour - dark) * level, colour + (pale - colour) * level)
    return Image.fromarray(np.concatenate([shaded, alpha], -1).clip(0, 255).astype(np.uint8))


def _outlined(tile: Image.Image) -> Image.Image:
    """The tile with a thin dark rim, so that it stands out from any wall."""
    room = Image.new("RGBA", (TILE + 6, TILE + 6))
    room.paste(tile, (3, 3))
    rim = (
        room.getchannel("A").filter(ImageFilter.MaxFilter(5)).filter(ImageFilter.GaussianBlur(0.7))
    )
    back = Image.new("RGBA", room.size, (30, 26, 30, 0))
    back.putalpha(rim.point(lambda a: int(a * 0.8)))
    return Image.alpha_composite(back, room)


@lru_cache(maxsize=512)
def glyph(letter: str, height: int) -> NDArray[np.uint8]:
    """A letter as a mask `[height, width]`; a space is empty."""
    width = max(2, round(height * 0.62))
    if letter == " ":
        return np.zeros((height, width), np.uint8)
    tile = _tile(len(SPRITES) + GLYPHS.index(letter)).getchannel("A")
    box = (int(TILE * 0.12), int(TILE * 0.12), int(TILE * 0.88), int(TILE * 0.9))
    return np.asarray(tile.crop(box).resize((width, height), Image.Resampling.LANCZOS))


def text(line: str, height: int) -> NDArray[np.uint8]:
    """A line of text as a mask `[height, width]`."""
    return np.concatenate([glyph(letter, height) for letter in line], axis=1)
