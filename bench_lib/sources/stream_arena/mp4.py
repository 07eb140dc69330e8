"""How long an MP4 file is, read from its index alone: no decoder, no extraction, any offset.

ISO/IEC 14496-12: boxes of size and type; `moov/trak/mdia` holds the kind of a track (`hdlr`) and
its time scale and length (`mdhd`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

MOST_BOXES = 10_000
"""More than any index has at the levels that are read; a crafted file must not hold us up."""
Box = tuple[bytes, int, int]
"""Type, and where its content starts and ends."""


def length_s(file: BinaryIO, start: int, end: int) -> float | None:
    """Seconds of the longest picture track of the MP4 in bytes `[start, end)` of a file.

    None where the index does not tell (a fragmented file). Raises ValueError where the bytes are no
    MP4, or are cut off before their index.
    """
    found: list[float] = []
    for kind, low, high in _boxes(file, start, end):
        if kind == b"moov":
            found += [
                s for trak in _inside(file, b"trak", low, high) if (s := _track_s(file, trak))
            ]
            return max(found, default=None)
    raise ValueError("has no index (moov): it is no MP4 file, or it is cut short")


def _track_s(file: BinaryIO, trak: Box) -> float | None:
    for _, low, high in _inside(file, b"mdia", *trak[1:]):
        parts = {kind: (first, last) for kind, first, last in _boxes(file, low, high)}
        if b"hdlr" not in parts or b"mdhd" not in parts:
            continue
        if _bytes(file, parts[b"hdlr"][0] + 8, 4) != b"vide":
            continue
        at = parts[b"mdhd"][0]
        long = _bytes(file, at, 1) == b"\1"
        form, skipped = (">IQ", 20) if long else (">II", 12)
        scale, units = struct.unpack(form, _bytes(file, at + skipped, struct.calcsize(form)))
        unknown = units in (0, 2**32 - 1, 2**64 - 1)
        return units / scale if scale and not unknown else None
    return None


def _inside(file: BinaryIO, wanted: bytes, start: int, end: int) -> Iterator[Box]:
    return (box for box in _boxes(file, start, end) if box[0] == wanted)


def _boxes(file: BinaryIO, start: int, end: int) -> Iterator[Box]:
    for _ in range(MOST_BOXES):
        if start + 8 > end:
            return
        size, kind = struct.unpack(">I4s", _bytes(file, start, 8))
        head = 8
        if size == 1:
            head, size = 16, struct.unpack(">Q", _bytes(file, start + 8, 8))[0]
        elif size == 0:
            size = end - start
        if size < head or start + size > end:
            raise ValueError(f"has a broken box at byte {start}: it is no MP4 file, or cut short")
        yield kind, start + head, start + size
        start += size
    raise ValueError(f"has more than {MOST_BOXES} boxes at one level")


def _bytes(file: BinaryIO, at: int, n: int) -> bytes:
    file.seek(at)
    data = file.read(n)
    if len(data) < n:
        raise ValueError(f"ends at byte {at + len(data)}, in the middle of its index")
    return data
