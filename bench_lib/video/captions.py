"""Speech and caption lines from SRT and WebVTT files, and WebVTT back.

What real files do, YouTube's above all, is taken in: lines that roll (each cue shows the line
before it once more, and a cue of 10 ms ends it), word times and other markup, blank rows inside a
cue, settings after the times, notes and styles, cues that overlap, and cues without an end.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench_lib.schema import Caption

_TIME = r"(?:(\d+):)?(\d{1,2}):(\d{1,2})[,.](\d{1,3})"
_CUE = re.compile(rf"\s*{_TIME}\s*-->\s*(?:{_TIME})?")
_TAG = re.compile(r"<[^>]*>|\{\\[^}]*\}|[\u200b\u200e\u200f\ufeff]")
_WORD_TIME = re.compile(r"<\d[\d:.]*>")
FLASH_S = 0.05
"""Cues that only end a rolling line last 10 ms."""
JOINED_S = 0.025
"""A line rolls on from the cue before when at most so much time lies between them."""


@dataclass(frozen=True)
class _Cue:
    start_s: float
    end_s: float
    rows: tuple[str, ...]


def read(path: Path, until_s: float | None = None) -> tuple[Caption, ...]:
    """The cues of a file in the order of their ends; markup removed, empty cues left out.

    A cue without an end lasts until the next one starts, the last one until `until_s`; without that
    nothing is known of when it was over, and it is left out.
    """
    cues, rolls = _cues(path.read_text(encoding="utf-8-sig", errors="replace"), until_s)
    found, before = [], _Cue(0.0, float("-inf"), ())
    for cue in cues:
        said = " ".join(_fresh(before, cue) if rolls else cue.rows)
        before = cue
        if said:
            found.append(Caption(start_s=cue.start_s, end_s=cue.end_s, text=said))
    return tuple(sorted(found, key=lambda c: (c.end_s, c.start_s)))


def write(path: Path, cues: Iterable[Caption], note: str = "") -> None:
    """A WebVTT file of cues in their order, whole or not at all; times are kept to 1 ms."""
    blocks = ["WEBVTT", *([f"NOTE {' '.join(note.split())}"] if note else [])]
    for cue in cues:
        times = f"{_stamp(cue.start_s)} --> {_stamp(cue.end_s)}"
        blocks.append(f"{times}\n{html.escape(' '.join(cue.text.split()), quote=False)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    part.replace(path)


def _cues(text: str, until_s: float | None) -> tuple[list[_Cue], bool]:
    """The cues in file order, and whether their lines roll."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    places = [(at, cue) for at, line in enumerate(lines) if (cue := _CUE.match(line))]
    starts = [_seconds(*cue.groups()[:4]) for _, cue in places]
    found, flashes, timed = [], 0, False
    for n, (at, cue) in enumerate(places):
        last = n + 1 == len(places)
        own = _payload(lines[at + 1 : None if last else places[n + 1][0]])
        timed = timed or any(_WORD_TIME.search(row) for row in own)
        if cue[6] is not None:
            end_s = _seconds(*cue.groups()[4:])
        elif last and until_s is None:
            continue
        else:
            end_s = until_s if last and until_s is not None else starts[n + 1]
        rows = [" ".join(html.unescape(_TAG.sub("", row)).split()) for row in own]
        flashes += end_s - starts[n] <= FLASH_S
        found.append(_Cue(starts[n], max(starts[n], end_s), tuple(r for r in rows if r)))
    # Converted to SRT, rolling lines have lost their word times but not the cues that end them.
    return found, timed or 0 < len(found) <= 3 * flashes


def _payload(lines: list[str]) -> list[str]:
    """The rows of a cue: up to the first empty line, and without the next cue's number."""
    if "" in lines:
        return lines[: lines.index("")]
    if len(lines) > 1 and lines[-1].strip().isdecimal() and not lines[-2].strip():
        return lines[:-1]  # rows of blanks part the cues of this file
    return lines


def _fresh(before: _Cue, cue: _Cue) -> tuple[str, ...]:
    """The rows of a cue that the cue before did not already show."""
    if cue.start_s <= before.end_s + JOINED_S:
        for k in range(min(len(before.rows), len(cue.rows)), 0, -1):
            if before.rows[-k:] == cue.rows[:k]:
                return cue.rows[k:]
    return cue.rows


def _seconds(hours: str | None, minutes: str, seconds: str, fraction: str) -> float:
    whole = int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)
    unit = 10 ** len(fraction)
    return (whole * unit + int(fraction)) / unit


def _stamp(t_s: float) -> str:
    ms = round(t_s * 1000)
    return f"{ms // 3_600_000:02d}:{ms // 60_000 % 60:02d}:{ms // 1000 % 60:02d}.{ms % 1000:03d}"
