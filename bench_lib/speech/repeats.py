"""Recognition that repeats itself: what a recogniser does on noise, music and silence.

Such text is kept, once, behind a mark that says so: nobody reads it as speech unwarned.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bench_lib.speech.windows import Heard, Listen

TIMES, TIMES_LONG, LONG = 6, 4, 8
"""Nobody says a word six times over, or a phrase of eight letters four times, in a few seconds."""
LEAST = 12
"""A run of fewer letters is let pass; letters of scripts without spaces count twice."""
COMPRESSES = 2.4
"""Text that packs better than this is no speech (Whisper's own limit), from `PACKED` bytes on."""
PACKED = 100
WINDOWS = 3
"""The same text in so many windows in a row; each further one is marked."""


def flagged(text: str) -> str:
    """The text, or where it repeats itself what it repeats, marked."""
    letters = [(at, c) for at, c in enumerate(text.casefold()) if c.isalnum() or _combines(c)]
    said = "".join(c for _, c in letters)
    best, unit = 0, (0, 0)
    for start, width, times in _runs(said):
        if width * times > best:
            best, unit = width * times, (start, width)
            found = times
    if best:
        start, width = unit
        shown = text[letters[start][0] : letters[start + width - 1][0] + 1]
        return f"[recognition repeats itself {found} times: {shown}]"
    data = text.encode()
    if len(data) >= PACKED and len(data) > COMPRESSES * len(zlib.compress(data)):
        return f"[recognition repeats itself: {text[:40]}...]"
    return text


def wary(listen: Listen) -> Listen:
    """A recogniser whose repetitions are marked."""

    def heard(samples: NDArray[np.float32]) -> str:
        return flagged(listen(samples))

    return heard


def across(heard: Iterable[Heard]) -> list[Heard]:
    """What was heard, marked where one text goes on from window to window."""
    found: list[Heard] = []
    row, last = 0, Heard(0.0, float("-inf"), "", 0.0)
    for one in heard:
        goes_on = one.text == last.text and one.start_s - last.end_s < 1e-3
        row = row + 1 if goes_on else 1
        marked = row > WINDOWS and not one.text.startswith("[")
        told = f"[recognition repeats itself in {row} windows: {one.text}]"
        found.append(replace(one, text=told) if marked else one)
        last = one
    return found


def _combines(character: str) -> bool:
    return unicodedata.category(character).startswith("M")


def _runs(said: str) -> Iterable[tuple[int, int, int]]:
    """Where a unit stands several times in a row: its place, its length, how often."""
    for found in re.finditer(r"(.{1,60}?)\1{3,}", said):
        unit, times = found[1], len(found[0]) // len(found[1])
        weight = sum(2 if ord(c) > 0x2E80 else 1 for c in unit)
        enough = TIMES_LONG if weight >= LONG else TIMES
        digits = unit.isdecimal() and len(unit) == 1
        if times >= enough and weight * times >= LEAST and not digits:
            yield found.start(), len(unit), times
