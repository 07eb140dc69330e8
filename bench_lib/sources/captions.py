"""Speech and caption lines from SRT and WebVTT files."""

from __future__ import annotations

import html
import re
from pathlib import Path

from bench_lib.schema import Caption

_TIME = r"(?:(\d+):)?(\d{1,2}):(\d{1,2})[,.](\d{1,3})"
_CUE = re.compile(rf"{_TIME}\s*-->\s*{_TIME}")
_TAG = re.compile(r"<[^>]*>|\{\\[^}]*\}")


def read(path: Path) -> tuple[Caption, ...]:
    """The cues of a file in the order of their ends; markup removed, empty cues left out."""
    found = []
    text = path.read_text(encoding="utf-8-sig", errors="replace").replace("\r\n", "\n")
    for block in re.split(r"\n\s*\n", text):
        lines = block.strip().split("\n")
        for at, line in enumerate(lines[:2]):
            cue = _CUE.match(line.strip())
            said = " ".join(_TAG.sub("", html.unescape(" ".join(lines[at + 1 :]))).split())
            if cue and said:
                start_s, end_s = _seconds(*cue.groups()[:4]), _seconds(*cue.groups()[4:])
                found.append(Caption(start_s=start_s, end_s=max(start_s, end_s), text=said))
    return tuple(sorted(found, key=lambda c: (c.end_s, c.start_s)))


def _seconds(hours: str | None, minutes: str, seconds: str, fraction: str) -> float:
    whole = int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)
    return whole + int(fraction) / 10 ** len(fraction)
