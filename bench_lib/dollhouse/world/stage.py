"""From a shot to layers: a still background, and a moving part that is pasted on each frame."""

from __future__ import annotations

from dataclasses import dataclass

from PIL import Image, ImageDraw

from bench_lib.dollhouse.world import atlas, rooms
from bench_lib.dollhouse.world.camera import Shot
from bench_lib.dollhouse.world.picture import HAND, THOUGHT, Group
from bench_lib.dollhouse.world.rooms import MARGIN, SIZE

_FAR, _NEAR, _HELD = 66, 82, 82
_REST = (224, 426)
"""Where the wearer's hands are: the middle of the lower edge of what they hold."""


@dataclass(frozen=True)
class Layers:
    """`still` is larger than the picture by its margin; `moving` travels from `start` to `end`.

    Positions are those of the moving part's upper left corner in the picture.
    """

    still: Image.Image
    moving: Image.Image | None
    start: tuple[int, int]
    end: tuple[int, int]


def layers(shot: Shot) -> Layers:
    """Draw a shot."""
    picture = shot.picture
    still = rooms.room(picture.room, shot.layout, shot.view).copy()
    acting = None if picture.acting is None else picture.groups[picture.acting]
    if picture.person:
        sprite = atlas.sprite(picture.person, "", 92)
        x = SIZE - 104 if shot.view == 0 else 12
        still.paste(sprite, (MARGIN + x, MARGIN + 24), sprite)
    for group in sorted(picture.placed(), key=lambda g: g.slot):
        if group is not acting:
            _stand(still, group)
    if picture.sign:
        _hang(still, picture.sign)
    if acting and acting.slot == THOUGHT:
        return Layers(still, *_thought(acting, picture.action))
    if not picture.action:
        return Layers(still, None, (0, 0), (0, 0))
    hands = _hands(acting, picture.action)
    x, y = _REST[0] - hands.width // 2, _REST[1] - hands.height
    if acting and acting.slot < HAND:
        at = rooms.position(acting.slot)
        there = (at[0] - hands.width // 2, at[1] - hands.height + 26)
        path = (there, (x, y)) if picture.action == "take" else ((x, y), there)
        return Layers(still, hands, *path)
    return Layers(still, hands, (x, y), (x, y))


def _stand(canvas: Image.Image, group: Group) -> None:
    """Draw a group on its furniture, with a badge for its state."""
    x, y = rooms.position(group.slot)
    size, n = (_FAR if group.slot < 3 else _NEAR), group.item.n
    if n > 1:
        size = size * 3 // 5
    step = size + 2
    for i in range(n):
        row, column = divmod(i, 2)
        in_row = 1 if n == 3 and row == 1 else min(n, 2)
        left = x + (column * step - in_row * step // 2) + 1
        top = y - size - row * (size - 6)
        sprite = atlas.sprite(group.item.kind, group.item.colour, size)
        canvas.paste(sprite, (MARGIN + left, MARGIN + top), sprite)
    if group.state:
        badge = atlas.badge(group.state, 28 if size < _NEAR else 32)
        canvas.paste(badge, (MARGIN + x + size // 2 - 10, MARGIN + y - size - 6), badge)


def _hang(canvas: Image.Image, line: str) -> None:
    """A board on the wall."""
    mask = Image.fromarray(atlas.text(line, 38))
    width = mask.width + 26
    left, top = MARGIN + SIZE // 2 - width // 2, MARGIN + 40
    pen = ImageDraw.Draw(canvas)
    pen.rounded_rectangle((left, top, left + width, top + 56), 7, (250, 248, 238), (70, 50, 40), 4)
    canvas.paste((24, 20, 28), (left + 13, top + 9), mask)


def _hands(acting: Group | None, action: str) -> Image.Image:
    """The wearer's hands with the thing and the tool of an act."""
    tool = atlas.sprite(action, "", 58)
    if acting and acting.slot < HAND:
        part = Image.new("RGBA", (150, 118))
        thing = atlas.sprite(acting.item.kind, acting.item.colour, _HELD)
        grip = atlas.sprite("grip", "", 56)
        part.alpha_composite(thing, (32, 6))
        part.alpha_composite(grip, (2, 60))
        part.alpha_composite(tool.resize((44, 44)), (104, 40))
        if acting.state:
            part.alpha_composite(atlas.badge(acting.state, 32), (0, 2))
        return part
    part = Image.new("RGBA", (200, 118))
    part.alpha_composite(atlas.sprite("hands", "", 84), (58, 34))
    if acting:
        thing = atlas.sprite(acting.item.kind, acting.item.colour, _HELD)
        part.alpha_composite(thing, (59, 0))
        if acting.state:
            part.alpha_composite(atlas.badge(acting.state, 32), (26, 2))
        part.alpha_composite(tool, (142, 14))
    else:
        part.alpha_composite(atlas.sprite(action, "", 72), (64, 2))
    return part


def _thought(group: Group, action: str) -> tuple[Image.Image, tuple[int, int], tuple[int, int]]:
    """The bubble of what is sought."""
    part = Image.new("RGBA", (190, 118))
    pen = ImageDraw.Draw(part)
    pen.ellipse((30, 2, 188, 96), (255, 255, 255, 236), (90, 90, 110, 255), 3)
    for x, y, r in ((30, 92, 11), (12, 108, 7)):
        pen.ellipse((x - r, y - r, x + r, y + r), (255, 255, 255, 236), (90, 90, 110, 255), 2)
    thing = atlas.sprite(group.item.kind, group.item.colour, 76)
    part.alpha_composite(thing, (52, 10))
    part.alpha_composite(atlas.sprite(action, "", 50), (126, 26))
    at = (140, 306)
    return part, at, at
