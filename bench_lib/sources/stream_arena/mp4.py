"""How long an MP4 file is, read from its index alone: no decoder, no extraction, any offset.

ISO/IEC 14496-12: boxes of size and type. `moov/mvhd` holds the movie's time scale, `moov/trak/tkhd`
how long a track is shown (its edits summed up), `trak/mdia/hdlr` what kind of track it is.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

MOST_BOXES = 10_000
"""More than any index has at the levels that are read; a crafted file must not hold us up."""
Place = tuple[int, int]


def length_s(file: BinaryIO, start: int, end: int) -> float | None:
    """Seconds of the longest picture track of the MP4 in bytes `[start, end)` of a file.

    None where the index does not tell (a fragmented file). Raises ValueError where the bytes are no
    MP4, or are cut off before their index.
    """
    movie = next(_boxes(file, start, end, b"moov"), None)
    if movie is None:
        raise ValueError("has no index (moov): it is no MP4 file, or it is cut short")
    head = next(_boxes(file, *movie, b"mvhd"), None)
    scale = _field(file, head, 12, 20, ">I", ">I") if head else 0
    if not scale:
        raise ValueError("has no time scale (mvhd) in its index")
    shown = []
    for track in _boxes(file, *movie, b"trak"):
        head = next(_boxes(file, *track, b"tkhd"), None)
        if head and _pictures(file, track):
            units = _field(file, head, 20, 28, ">I", ">Q")
            shown += [units / scale] if units not in (0, 2**32 - 1, 2**64 - 1) else []
    return max(shown, default=None)


def _pictures(file: BinaryIO, track: Place) -> bool:
    kinds = (h for media in _boxes(file, *track, b"mdia") for h in _boxes(file, *media, b"hdlr"))
    return any(_bytes(file, at + 8, 4) == b"vide" for at, _ in kinds)


def _field(file: BinaryIO, box: Place, at: int, at_long: int, form: str, form_long: str) -> int:
    """A number of a box, which lies further behind in the version with 64 bits."""
    if _bytes(file, box[0], 1) == b"\1":
        at, form = at_long, form_long
    (value,) = struct.unpack(form, _bytes(file, box[0] + at, struct.calcsize(form)))
    return int(value)


def _boxes(file: BinaryIO, start: int, end: int, wanted: bytes) -> Iterator[Place]:
    """Where the content of each box of a kind begins and ends."""
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
        if kind == wanted:
            yield start + head, start + size
        start += size
    raise ValueError(f"has more than {MOST_BOXES} boxes at one level")


def _bytes(file: BinaryIO, at: int, n: int) -> bytes:
    file.seek(at)
    data = file.read(n)
    if len(data) < n:
        raise ValueError(f"ends at byte {at + len(data)}, in the middle of its index")
    return data
