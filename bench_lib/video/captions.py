"""Speech and caption lines from SRT and WebVTT files, and WebVTT back.

What real files do, YouTube's above all, is taken in: lines that roll (each cue shows the line
before it once more, and a cue of 10 ms ends it), word times and other markup, settings after the
times, notes and styles, cues that overlap, that have no blank line between them or several in them,
whose numbers are missing, and cues without an end or with one before their start. What a file holds
beyond that is counted and said.
"""

from __future__ import annotations

import html
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench_lib.schema import Caption
from bench_lib.texts import encodings

_TIME = r"(-?)(?:(\d+)\s?:\s?)?(\d{1,3})\s?:\s?(\d{1,2})(?:\s?[,.:]\s?(\d{1,9}))?(?!\d)"
_ARROW = r"\s*(?:-{1,3}\s?(?:>|&gt;)|[\u2013\u2014]\s?>|\u2192)\s*"
_CUE = re.compile(rf"\s*(?:\d+[.)]?\s+)?{_TIME}{_ARROW}(?:{_TIME})?")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<\d[\d:.,]*>|\{\\[^}]*\}|[\u200b\u200e\u200f\ufeff]")
_BROKEN = re.compile(r".*\d.*--+>|.*--+>.*\d")
_WORD_TIME = re.compile(r"<\d[\d:.]*>")
DAY_S = 86_400.0
FLASH_S = 0.05
"""Cues that only end a rolling line last 10 ms."""
JOINED_S = 0.025
"""A line rolls on from the cue before when at most so much time lies between them."""


@dataclass(frozen=True)
class Track:
    """The cues of a file in the order of their ends, how it is encoded, and what is odd in it."""

    cues: tuple[Caption, ...]
    encoding: str
    oddities: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Cue:
    start_s: float
    end_s: float
    rows: tuple[str, ...]


def read(path: Path, until_s: float | None = None) -> tuple[Caption, ...]:
    """The cues of a file; see `track`."""
    return track(path, until_s).cues


def track(
    path: Path, until_s: float | None = None, encoding: str = "", otherwise: str = ""
) -> Track:
    """A caption file; markup is removed, and empty cues are left out.

    A cue without an end, or with one before its start, lasts until the next one starts, the last
    one until `until_s`; without that nothing is known of when it was over, and it is left out.
    `encoding` and `otherwise` are those of `texts.encodings.read`. Raises Unreadable.
    """
    text = encodings.read(path, encoding, otherwise)
    odd = [f"damaged characters: {text.lost}"] if text.lost else []
    cues, rolls = _cues(text.text, until_s, odd)
    found, before = [], _Cue(0.0, float("-inf"), ())
    for cue in cues:
        said = " ".join(_fresh(before, cue) if rolls else cue.rows)
        before = cue
        if said:
            found.append(Caption(start_s=cue.start_s, end_s=cue.end_s, text=said))
    ordered = tuple(sorted(found, key=lambda c: (c.end_s, c.start_s)))
    return Track(ordered, str(text), tuple(odd))


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


def _cues(text: str, until_s: float | None, odd: list[str]) -> tuple[list[_Cue], bool]:
    """The cues in file order, and whether their lines roll; `odd` takes what is odd in them."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    # A line that is meant as times and is none parts cues too, or its text would join another's.
    found = [(at, _CUE.match(line)) for at, line in enumerate(lines)]
    places = [(at, cue) for at, cue in found if cue or _BROKEN.match(lines[at])]
    payloads = _payloads(lines, [at for at, _ in places])
    timed = any(_WORD_TIME.search(row) for own in payloads for row in own)
    timings = [
        (_seconds(*cue.groups()[:5]), _seconds(*cue.groups()[5:]) if cue[8] else None, own)
        for (_, cue), own in zip(places, payloads, strict=True)
        if cue
    ]
    cues, counts, flashes = (
        [],
        Counter({"cues without a readable time": len(places) - len(timings)}),
        0,
    )
    for n, (start_s, given_s, own) in enumerate(timings):
        end_s = given_s
        if end_s is not None and end_s < start_s - DAY_S / 2:
            end_s += DAY_S  # a time of day, past midnight
        if end_s is not None and end_s < start_s:
            counts["cues that end before they start (they last until the next)"] += 1
            end_s = None
        if end_s is None:
            end_s = until_s if n + 1 == len(timings) else timings[n + 1][0]
        if end_s is None:
            counts["cues without an end (left out)"] += 1
        elif start_s < 0 and end_s <= 0:
            counts["cues before the recording (left out)"] += 1
        else:
            flashes += given_s is not None and given_s - start_s <= FLASH_S
            rows = [" ".join(html.unescape(_TAG.sub("", row)).split()) for row in own]
            start_s = max(0.0, start_s)
            cues.append(_Cue(start_s, max(start_s, end_s), tuple(row for row in rows if row)))
    odd += [f"{what}: {n}" for what, n in counts.items() if n]
    # Converted to SRT, rolling lines have lost their word times but not the cues that end them.
    return cues, timed or 0 < len(cues) <= 3 * flashes


def _payloads(lines: list[str], at: list[int]) -> list[list[str]]:
    """The rows below each line of times, without the number that stands above the next one.

    WebVTT ends a cue at the first empty row; SRT has empty rows inside cues too.
    """
    between = [
        _trimmed(lines[a:b]) for a, b in zip([0, *(one + 1 for one in at)], at, strict=False)
    ]
    above = [_number(rows) for rows in between]
    web = lines[0].lstrip("\ufeff").startswith("WEBVTT")
    found = []
    for n, one in enumerate(at):
        last = n + 1 == len(at)
        own = lines[one + 1 : None if last else at[n + 1]]
        if web and "" in own:
            found.append(own[: own.index("")])
            continue
        own = _trimmed(own)
        number, mine = _number(own), above[n]
        if number is not None:
            apart = len(own) > 1 and not own[-2].strip()
            follows = number == (n + 2 if mine is None else mine + 1)
            if (apart and follows) if last else (apart or follows or None not in above):
                own = own[:-1]
        found.append(own)
    return found


def _trimmed(rows: list[str]) -> list[str]:
    """Without the empty rows at the end."""
    return rows[: max((n for n, row in enumerate(rows, 1) if row.strip()), default=0)]


def _number(rows: list[str]) -> int | None:
    """What stands in the last row, where that is a number and nothing else."""
    return int(rows[-1]) if rows and rows[-1].strip().isdecimal() and len(rows[-1]) < 10 else None


def _fresh(before: _Cue, cue: _Cue) -> tuple[str, ...]:
    """The rows of a cue that the cue before did not already show."""
    if cue.start_s <= before.end_s + JOINED_S:
        for k in range(min(len(before.rows), len(cue.rows)), 0, -1):
            if before.rows[-k:] == cue.rows[:k]:
                return cue.rows[k:]
    return cue.rows


def _seconds(
    sign: str, hours: str | None, minutes: str, seconds: str, fraction: str | None
) -> float:
    whole = int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)
    unit = 10 ** len(fraction or "")
    t_s = (whole * unit + int(fraction or 0)) / unit
    return -t_s if sign else t_s


def _stamp(t_s: float) -> str:
    ms = round(t_s * 1000)
    return f"{ms // 3_600_000:02d}:{ms // 60_000 % 60:02d}:{ms // 1000 % 60:02d}.{ms % 1000:03d}"
