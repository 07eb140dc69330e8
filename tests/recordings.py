"""Recordings as recorders and copiers leave them: joined, with stray times, turned, edited."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

BEFORE = 5000
"""Milliseconds by which packets are decoded before they are shown, so that strays may go back."""


def strays(by: dict[int, int]) -> Callable[[int, Any], None]:
    """For `barcode.write`: shift packets, by their place in decoding order, by milliseconds."""

    def stamped(n: int, packet: Any) -> None:
        packet.dts -= BEFORE
        packet.pts += by.get(n, 0)

    return stamped


def joined(target: Path, *parts: Path) -> Path:
    """Files one behind the other, as `cat` does."""
    target.write_bytes(b"".join(part.read_bytes() for part in parts))
    return target


def boxes(data: bytes, start: int, end: int) -> list[tuple[bytes, int, int]]:
    """Kind, start and end of each box of an MP4 file."""
    found = []
    while start < end:
        size, kind = struct.unpack(">I4s", data[start : start + 8])
        found.append((kind, start, start + size))
        start += size
    return found


def _inside(data: bytes, path: Sequence[bytes]) -> list[tuple[int, int]]:
    """The boxes on the way to the first one of a path."""
    places, start, end = [], 0, len(data)
    for kind in path:
        start, end = next((s, e) for k, s, e in boxes(data, start, end) if k == kind)
        places.append((start, end))
        start += 8
    return places


def turned(file: Path, a: float, b: float, c: float, d: float) -> Path:
    """Write a display matrix into the first track of an MP4 file."""
    data = bytearray(file.read_bytes())
    start, _ = _inside(data, (b"moov", b"trak", b"tkhd"))[-1]
    numbers = [*(round(n * 65_536) for n in (a, b)), 0, *(round(n * 65_536) for n in (c, d))]
    struct.pack_into(">9i", data, start + 48, *numbers, 0, 0, 0, 1 << 30)
    file.write_bytes(data)
    return file


def edited(file: Path, *edits: tuple[float, float]) -> Path:
    """Give an MP4 file, its index at its end, an edit list of (seconds, from second) entries.

    From second -1 means that nothing is shown.
    """
    data = file.read_bytes()
    (moov, _), (mvhd, _) = _inside(data, (b"moov", b"mvhd"))
    movie_scale = struct.unpack(">I", data[mvhd + 20 : mvhd + 24])[0]
    *_, (mdhd, _) = _inside(data, (b"moov", b"trak", b"mdia", b"mdhd"))
    scale = struct.unpack(">I", data[mdhd + 20 : mdhd + 24])[0]
    _, (trak, _), (edts, end) = _inside(data, (b"moov", b"trak", b"edts"))
    entries = b"".join(
        struct.pack(
            ">IiI", round(long_s * movie_scale), -1 if at_s < 0 else round(at_s * scale), 1 << 16
        )
        for long_s, at_s in edits
    )
    elst = struct.pack(">I4sII", 16 + len(entries), b"elst", 0, len(edits)) + entries
    new = struct.pack(">I4s", 8 + len(elst), b"edts") + elst
    out = bytearray(data[:edts] + new + data[end:])
    for box in (moov, trak):
        size = struct.unpack(">I", out[box : box + 4])[0]
        struct.pack_into(">I", out, box, size + len(new) - (end - edts))
    file.write_bytes(out)
    return file
