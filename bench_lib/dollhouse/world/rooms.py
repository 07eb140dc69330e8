"""Rooms and furniture, drawn with simple shapes: each room and each place looks like no other."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from PIL import Image, ImageDraw

from bench_lib.dollhouse.world import atlas

SIZE = 448
MARGIN = 16
"""Pixels around the picture that camera motion can bring into view."""
WALL_END = 168
COLUMNS = (78, 224, 370)
TOPS = (176, 300)
"""Height of the surfaces on which far and near things stand."""
_SMOOTH = 2
Colour = tuple[int, int, int]

# wall, wall pattern, floor, floor pattern
LOOKS: dict[str, tuple[Colour, Colour, Colour, Colour]] = {
    "kitchen": ((252, 232, 178), (244, 214, 142), (214, 160, 110), (196, 140, 92)),
    "bathroom": ((176, 224, 236), (148, 206, 224), (226, 236, 240), (190, 206, 214)),
    "bedroom": ((226, 204, 240), (210, 182, 230), (158, 126, 168), (142, 110, 154)),
    "hallway": ((206, 232, 190), (186, 216, 168), (150, 116, 88), (132, 100, 74)),
    "study": ((152, 128, 112), (136, 112, 96), (98, 66, 52), (82, 54, 42)),
    "garden": ((142, 206, 250), (196, 230, 255), (118, 186, 88), (96, 164, 70)),
    "garage": ((186, 188, 194), (168, 170, 178), (126, 128, 134), (108, 110, 118)),
    "lounge": ((246, 192, 176), (236, 172, 154), (138, 62, 70), (120, 50, 58)),
}


def _box(pen: ImageDraw.ImageDraw, box: tuple[float, ...], fill: Colour, round_: int = 5) -> None:
    pen.rounded_rectangle([v * _SMOOTH for v in box], round_ * _SMOOTH, fill, _dark(fill), 3)


def _dark(colour: Colour, share: float = 0.62) -> Colour:
    return (int(colour[0] * share), int(colour[1] * share), int(colour[2] * share))


def _line(
    pen: ImageDraw.ImageDraw, points: tuple[float, ...], fill: Colour, width: int = 2
) -> None:
    pen.line([v * _SMOOTH for v in points], fill, width * _SMOOTH)


def _dot(pen: ImageDraw.ImageDraw, x: float, y: float, r: float, fill: Colour) -> None:
    pen.ellipse([v * _SMOOTH for v in (x - r, y - r, x + r, y + r)], fill, _dark(fill), 2)


# Furniture is drawn with its surface at y = 0 and its middle at x = 0, `w` wide and `h` tall.
Drawer = Callable[[ImageDraw.ImageDraw, float, float, float, float], None]


def _legs(colour: Colour, thick: float, inset: float = 6) -> Drawer:
    def draw(pen: ImageDraw.ImageDraw, x: float, y: float, w: float, h: float) -> None:
        for side in (-1, 1):
            leg = x + side * (w / 2 - inset)
            _box(pen, (leg - 4, y + thick - 2, leg + 4, y + h), _dark(colour, 0.8), 2)
        _box(pen, (x - w / 2, y, x + w / 2, y + thick), colour, 4)

    return draw


def _block(colour: Colour, round_: int = 5) -> Drawer:
    def draw(pen: ImageDraw.ImageDraw, x: float, y: float, w: float, h: float) -> None:
        _box(pen, (x - w / 2, y, x + w / 2, y + h), colour, round_)

    return draw


def _counter(pen: ImageDraw.ImageDraw, x: float, y: float, w: float, h: float) -> None:
    _box(pen, (x - w / 2 + 3, y + 4, x + w / 2 - 3, y + h), (96, 140, 150))
    for side in (-1, 1):
        left = x + side * w / 4 - w / 5
        _box(pen, (left, y + 14, left + w * 0.4, y + h - 5), (122, 168, 176), 3)
        _dot(pen, x + side * 7, y + h / 2 + 4, 2.5, (240, 230, 190))
    _box(pen, (x - w / 2, y, x + w / 2, y + 9), (240, 240, 236), 3)


def _shelf(pen: ImageDraw.ImageDraw, x: float, y: float, w: float, h: float) -> None:
    _box(pen, (x - w / 2, y, x + w / 2, y + h), (122, 78, 44), 2)
    for row in (0, 1):
        top = y + 7 + row * (h - 10) / 2
        low = y + 3 + (row + 1) * (h - 8) / 2
        pen.rectangle([v * _SMOOTH for v in (x - w / 2 + 5, top, x + w / 2 - 5, low)], (70, 42, 24))
        # Empty compartments: whatever stands in them would be counted.
        for share in (0.25, 0.5, 0.75):
            left = x - w / 2 + w * share - 2
            pen.rectangle([v * _SMOOTH for v in (left, top, left + 4, low)], (150, 100, 60))


def _sofa(pen: ImageDraw.ImageDraw, x: float, y: float, w: float, h: float) -> None:
    _box(pen, (x - w / 2 + 6, y, x + w / 2 - 6, y + h - 4), (64, 160, 152), 8)
    _box(pen, (x - w / 2 + 10, y + h * 0.35, x, y + h - 8), (86, 184, 176), 6)
    _box(pen, (x, y + h * 0.35, x + w / 2 - 10, y + h - 8), (86, 184, 176), 6)
    for side in (-1, 1):
        edge = x + side * (w / 2 - 7)
        _box(pen, (edge - 7, y + 8, edge + 7, y + h), (52, 136, 130), 7)


def _bed(pen: ImageDraw.ImageDraw, x: float, y: float, w: float, h: float) -> None:
    _box(pen, (x - w / 2, y + h * 0.3, x + w / 2, y + h), (150, 92, 54), 4)
    _box(pen, (x - w / 2 + 3, y, x + w / 2 - 3, y + h * 0.62), (120, 150, 220), 8)
    _box(pen, (x - w / 2 + 3, y, x - w / 2 + 34, y + h * 0.42), (250, 250, 250), 8)


def _desk(pen: ImageDraw.ImageDraw, x: float, y: float, w: float, h: float) -> None:
    _legs((176, 108, 52), 9)(pen, x, y, w, h)
    _box(pen, (x + w * 0.1, y + 7, x + w / 2 - 3, y + h - 6), (196, 128, 70), 3)
    for row in (0.3, 0.62):
        _dot(pen, x + w * 0.29, y + h * row + 3, 2.5, (250, 220, 120))


def _sink(pen: ImageDraw.ImageDraw, x: float, y: float, w: float, h: float) -> None:
    _box(pen, (x - w * 0.12, y + 16, x + w * 0.12, y + h), (206, 212, 220), 3)
    _box(pen, (x - w / 2, y, x + w / 2, y + 24), (244, 248, 252), 11)
    _line(pen, (x - w / 2 + 10, y + 7, x + w / 2 - 10, y + 7), (150, 190, 220), 3)


def _fridge(pen: ImageDraw.ImageDraw, x: float, y: float, w: float, h: float) -> None:
    _box(pen, (x - w * 0.4, y, x + w * 0.4, y + h), (226, 232, 238), 7)
    _line(pen, (x - w * 0.4 + 2, y + h * 0.4, x + w * 0.4 - 2, y + h * 0.4), (140, 150, 160))
    for top, low in ((0.12, 0.3), (0.5, 0.8)):
        _line(pen, (x + w * 0.3, y + h * top, x + w * 0.3, y + h * low), (110, 120, 130), 3)


def _oven(pen: ImageDraw.ImageDraw, x: float, y: float, w: float, h: float) -> None:
    _box(pen, (x - w / 2 + 4, y, x + w / 2 - 4, y + h), (78, 80, 88), 4)
    _box(pen, (x - w / 2 + 14, y + 18, x + w / 2 - 14, y + h - 5), (250, 160, 60), 4)
    for i in range(4):
        _dot(pen, x - 27 + i * 18, y + 9, 4, (230, 80, 70))


def _cabinet(pen: ImageDraw.ImageDraw, x: float, y: float, w: float, h: float) -> None:
    _box(pen, (x - w / 2 + 2, y, x + w / 2 - 2, y + h), (216, 176, 112), 3)
    third = (w - 16) / 3
    for i in range(3):
        left = x - w / 2 + 6 + i * (third + 2)
        _box(pen, (left, y + 6, left + third, y + h - 5), (232, 198, 142), 2)
        _dot(pen, left + third / 2, y + h / 2, 3, (120, 84, 40))


def _chair(pen: ImageDraw.ImageDraw, x: float, y: float, w: float, h: float) -> None:
    w *= 0.66
    _legs((206, 84, 70), 12, 8)(pen, x, y, w, h)
    _line(pen, (x - w / 2 + 8, y + h * 0.66, x + w / 2 - 8, y + h * 0.66), (150, 54, 44), 3)


def _crate(pen: ImageDraw.ImageDraw, x: float, y: float, w: float, h: float) -> None:
    w *= 0.78
    _box(pen, (x - w / 2, y, x + w / 2, y + h), (206, 160, 100), 2)
    _line(pen, (x - w / 2 + 3, y + 3, x + w / 2 - 3, y + h - 3), (150, 108, 60), 4)
    _line(pen, (x + w / 2 - 3, y + 3, x - w / 2 + 3, y + h - 3), (150, 108, 60), 4)


def _rug(pen: ImageDraw.ImageDraw, x: float, y: float, w: float, h: float) -> None:
    outer = (x - w / 2, y - 12, x + w / 2, y + 22)
    for shrink, colour in ((0, (176, 60, 110)), (9, (240, 190, 90)), (18, (176, 60, 110))):
        box = (outer[0] + shrink, outer[1] + shrink / 3, outer[2] - shrink, outer[3] - shrink / 3)
        pen.ellipse([v * _SMOOTH for v in box], colour, _dark(colour), 2)


def _stool(pen: ImageDraw.ImageDraw, x: float, y: float, w: float, h: float) -> None:
    for side in (-1, 0, 1):
        _line(pen, (x + side * 14, y + 6, x + side * 26, y + h), (96, 66, 130), 5)
    pen.ellipse([v * _SMOOTH for v in (x - w / 3, y - 5, x + w / 3, y + 13)], (150, 110, 196))


def _rack(pen: ImageDraw.ImageDraw, x: float, y: float, w: float, h: float) -> None:
    for side in (-1, 1):
        edge = x + side * (w / 2 - 6)
        _line(pen, (edge, y, edge, y + h), (90, 96, 106), 5)
    for row in range(3):
        level = y + 3 + row * (h - 8) / 2
        _line(pen, (x - w / 2 + 4, level, x + w / 2 - 4, level), (140, 148, 160), 5)


def _bench(pen: ImageDraw.ImageDraw, x: float, y: float, w: float, h: float) -> None:
    _legs((90, 150, 70), 7, 16)(pen, x, y, w, h)
    _box(pen, (x - w / 2, y + 10, x + w / 2, y + 17), (90, 150, 70), 3)


FURNITURE: dict[str, Drawer] = {
    "table": _legs((188, 124, 72), 12),
    "counter": _counter,
    "shelf": _shelf,
    "sofa": _sofa,
    "bed": _bed,
    "desk": _desk,
    "sink": _sink,
    "bench": _bench,
    "fridge": _fridge,
    "oven": _oven,
    "cabinet": _cabinet,
    "chair": _chair,
    "box": _crate,
    "rug": _rug,
    "stool": _stool,
    "rack": _rack,
}


def position(slot: int) -> tuple[int, int]:
    """Where a thing at one of the six slots stands: the middle of its lower edge."""
    return COLUMNS[slot % 3], TOPS[slot // 3]


@lru_cache(maxsize=256)
def room(name: str, layout: tuple[str, ...], view: int) -> Image.Image:
    """An empty room with its furniture, RGB, `MARGIN` larger than the picture on each side."""
    side = SIZE + 2 * MARGIN
    big = Image.new("RGB", (side * _SMOOTH, side * _SMOOTH), LOOKS[name][0])
    pen = ImageDraw.Draw(big)
    _shell(pen, name, side)
    for slot, place in enumerate(layout):
        x, y = position(slot)
        far = slot < 3
        w, h = (112, 48) if far else (128, 64)
        middle, top = x + MARGIN, y + MARGIN
        if place != "rug":
            shadow = (middle - w / 2, top + h - 5, middle + w / 2, top + h + 6)
            pen.ellipse([v * _SMOOTH for v in shadow], _dark(LOOKS[name][2], 0.78))
        FURNITURE[place](pen, middle, top, w, h)
    image = big.resize((side, side), Image.Resampling.LANCZOS)
    decor = atlas.sprite(name, "", 74)
    image.paste(decor, (MARGIN + (22 if view == 0 else SIZE - 96), MARGIN + 34), decor)
    return image


def _shell(pen: ImageDraw.ImageDraw, name: str, side: int) -> None:
    """Wall and floor with a pattern of their own."""
    wall, pattern, floor, lines = LOOKS[name]
    end = WALL_END + MARGIN
    if name in ("kitchen", "bathroom"):
        for x in range(0, side, 40):
            for y in range(0, end, 40):
                if (x + y) // 40 % 2:
                    pen.rectangle([v * _SMOOTH for v in (x, y, x + 40, y + 40)], pattern)
    elif name == "garden":
        for x, y in ((60, 70), (210, 40), (390, 84)):
            for dx in (-22, 0, 22):
                box = (x + dx - 22, y - 12, x + dx + 22, y + 16)
                pen.ellipse([v * _SMOOTH for v in box], pattern)
    else:
        step = {"hallway": 30, "study": 60, "garage": 120}.get(name, 48)
        for x in range(0, side, step):
            pen.rectangle([v * _SMOOTH for v in (x, 0, x + step // 2, end)], pattern)
    pen.rectangle([v * _SMOOTH for v in (0, end, side, side)], floor)
    for row, y in enumerate(range(end, side, 36)):
        _line(pen, (0, y, side, y), lines, 2)
        if name == "garden":
            continue
        for x in range(-40 if row % 2 else 0, side, 80):
            _line(pen, (x, y, x, y + 36), lines, 2)
    pen.rectangle([v * _SMOOTH for v in (0, end - 6, side, end)], _dark(wall, 0.8))
