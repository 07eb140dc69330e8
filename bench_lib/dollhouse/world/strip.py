"""The code strip: a frame's draw list as black and white cells at the picture's lower edge.

Three rows of 64 cells hold 192 bits: version 2, scramble seed 8, day 5, second of the day 17, room
3, person 3, action 5, acting group 3, sign 8, six groups of 20 (kind 6, colour 3, place 4, state 2,
slot 3, number 2) and a checksum of 18. All after the seed is scrambled by a stream of that seed, so
that cells can hardly be learned. Nothing else is in it: no id, no session, nothing that is not
drawn. At 448 px a cell is 7 x 7 px; it is read from the picture at any size.
"""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from bench_lib.dollhouse.world.grammar import Item
from bench_lib.dollhouse.world.picture import MOST_GROUPS, THOUGHT, Group, Picture
from bench_lib.dollhouse.world.words import (
    ACTIONS,
    COLOURS,
    KINDS,
    NUMBERS,
    PEOPLE,
    PLACES,
    ROOMS,
    SIGN_WORDS,
    STATES,
)

ROWS, CELLS, VERSION = 3, 64, 2
HEIGHT = ROWS / CELLS
"""The strip's height as a share of the picture's width at the usual square format."""
_BODY = (5, 17, 3, 3, 5, 3, 8) + (6, 3, 4, 2, 3, 2) * MOST_GROUPS
_CLEAR, _CHECK = 10, 18
_NO_KIND, _NO_ACTING = 63, 7
_ACTIONS = ("", *ACTIONS)
_PEOPLE = ("", *PEOPLE)
_SIGNS = ("", *(f"{w}{n}" for w in SIGN_WORDS for n in ("", *(f" {n}" for n in NUMBERS))))
_DAY_S = 86_400


def _streams() -> NDArray[np.bool_]:
    """Scramble streams of all 256 seeds."""
    bits = [
        np.random.default_rng((48, seed)).random(ROWS * CELLS - _CLEAR) < 0.5 for seed in range(256)
    ]
    return np.stack(bits)


_STREAMS = _streams()


def encode(picture: Picture, seed: int) -> NDArray[np.bool_]:
    """The cells `[3, 64]` of a picture; raises ValueError for what does not fit in."""
    day, second = divmod(picture.wall_s, _DAY_S)
    values = [
        day,
        second,
        ROOMS.index(picture.room),
        _PEOPLE.index(picture.person),
        _ACTIONS.index(picture.action),
        _NO_ACTING if picture.acting is None else picture.acting,
        _SIGNS.index(picture.sign),
    ]
    if len(picture.groups) > MOST_GROUPS:
        raise ValueError(f"a picture holds at most {MOST_GROUPS} groups, not {len(picture.groups)}")
    for group in picture.groups:
        values += [
            KINDS.index(group.item.kind),
            COLOURS.index(group.item.colour),
            PLACES.index(group.place) if group.place else 0,
            1 + STATES[group.item.kind].index(group.state) if group.state else 0,
            group.slot,
            group.item.n - 1,
        ]
    values += [_NO_KIND, 0, 0, 0, 0, 0] * (MOST_GROUPS - len(picture.groups))
    body = "".join(_bits(v, n) for v, n in zip(values, _BODY, strict=True))
    body += _bits(zlib.crc32(body.encode()) & (1 << _CHECK) - 1, _CHECK)
    clear = _bits(VERSION, 2) + _bits(seed & 255, 8)
    cells = np.array([c == "1" for c in clear + body])
    cells[_CLEAR:] ^= _STREAMS[seed & 255]
    return cells.reshape(ROWS, CELLS)


def _bits(value: int, width: int) -> str:
    text = format(value, f"0{width}b")
    if value < 0 or len(text) > width:
        raise ValueError(f"{value} does not fit into {width} bits of the code strip")
    return text


def decode(pixels: NDArray[np.uint8]) -> Picture | None:
    """Read the strip of a picture `[height, width, 3]`; None where there is none to be read."""
    cells = _cells(pixels)
    if cells is None:
        return None
    version = int("".join("01"[int(b)] for b in cells[:2]), 2)
    seed = int("".join("01"[int(b)] for b in cells[2:_CLEAR]), 2)
    if version != VERSION:
        return None
    plain = "".join("01"[int(b)] for b in cells[_CLEAR:] ^ _STREAMS[seed])
    body, check = plain[:-_CHECK], plain[-_CHECK:]
    if int(check, 2) != zlib.crc32(body.encode()) & (1 << _CHECK) - 1:
        return None
    values, at = [], 0
    for width in _BODY:
        values.append(int(body[at : at + width], 2))
        at += width
    try:
        return _picture(values)
    except IndexError:
        return None


def _cells(pixels: NDArray[np.uint8]) -> NDArray[np.bool_] | None:
    """The 192 cells; None where the lower edge has no clear black and white."""
    height, width = pixels.shape[:2]
    tall = HEIGHT * height
    top = height - tall
    if tall < ROWS or width < CELLS:
        return None
    grey = pixels[int(top) :].astype(np.float32).mean(axis=2)
    # Sums over exact cell areas: integrate, then difference at fractional borders.
    sums = np.pad(grey.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    margin = 0.25
    rows = np.arange(ROWS) * tall / ROWS + top - int(top)
    columns = np.arange(CELLS) * width / CELLS
    low_y, high_y = rows + margin * tall / ROWS, rows + (1 - margin) * tall / ROWS
    low_x, high_x = columns + margin * width / CELLS, columns + (1 - margin) * width / CELLS
    area = (high_y - low_y)[:, None] * (high_x - low_x)[None]
    means = (
        _at(sums, high_y, high_x)
        - _at(sums, low_y, high_x)
        - _at(sums, high_y, low_x)
        + _at(sums, low_y, low_x)
    ) / area
    low, high = np.quantile(means, [0.1, 0.9])
    if high - low < 60:
        return None
    return (means > (low + high) / 2).ravel()


def _at(
    sums: NDArray[np.float32], y: NDArray[np.float64], x: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Bilinear values of an integral image at all pairs of `y` and `x`."""
    y0, x0 = np.floor(y).astype(int), np.floor(x).astype(int)
    y1, x1 = np.minimum(y0 + 1, sums.shape[0] - 1), np.minimum(x0 + 1, sums.shape[1] - 1)
    fy, fx = (y - y0)[:, None], (x - x0)[None]
    top = sums[y0][:, x0] * (1 - fx) + sums[y0][:, x1] * fx
    low = sums[y1][:, x0] * (1 - fx) + sums[y1][:, x1] * fx
    return top * (1 - fy) + low * fy


def _picture(values: list[int]) -> Picture:
    day, second, room, person, action, acting, sign = values[:7]
    groups = []
    for at in range(7, len(values), 6):
        kind, colour, place, state, slot, n = values[at : at + 6]
        if kind == _NO_KIND:
            continue
        name = KINDS[kind]
        groups.append(
            Group(
                Item(COLOURS[colour], name, n + 1),
                ("", *STATES.get(name, ()))[state],
                PLACES[place] if slot < THOUGHT - 1 else "",
                slot,
            )
        )
    if acting != _NO_ACTING and acting >= len(groups):
        raise IndexError(acting)
    return Picture(
        day * _DAY_S + second,
        ROOMS[room],
        tuple(groups),
        _ACTIONS[action],
        None if acting == _NO_ACTING else acting,
        _PEOPLE[person],
        _SIGNS[sign],
    )
