"""What passes between a decoding process and its caller: records, errors, framed messages.

A request is one line of JSON on the worker's standard input. A message back is an eight-byte
header (lengths of both parts), a JSON object with a `kind`, and a payload of raw bytes.
"""

from __future__ import annotations

import math
import stat
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench_lib import paths
from bench_lib.errors import BenchError
from bench_lib.video.stream import EPSILON_S, SAMPLE_RATE, Size

Kind = Literal["missing", "empty", "corrupt", "truncated", "no_video", "timeout", "crashed"]
SpanTuple = tuple[str, float, float]
"""A file and the stretch of it, in its presentation time."""
Stretches = Sequence[tuple[float, float]]
HEADER = struct.Struct("<II")
TOLERANCE_S = 1.0
"""How far a video may end before its container, or a span, says; more is a truncated file."""

_ADVICE: dict[str, str] = {
    "missing": "check the path",
    "empty": "copy or record it again",
    "corrupt": "copy it again, or re-encode it with ffmpeg",
    "truncated": "copy it again, or shorten what is asked of it",
    "no_video": "give a file with a picture track",
    "timeout": "re-encode it with ffmpeg, or leave it out",
    "crashed": "check free memory; if it happens again, re-encode the file or leave it out",
}


class VideoError(BenchError):
    """A recorded file that cannot be used; the message names the file and what to do.

    Attributes:
        kind: `missing` (no such file, or unreadable), `empty` (no bytes), `corrupt` (no decoder
            can read it), `truncated` (pictures end before they should), `no_video` (only sound),
            `timeout` (no progress within the limit), `crashed` (the decoding process died).
    """

    def __init__(self, kind: Kind, file: Path | str, reason: str) -> None:
        super().__init__(f"{paths.short(file)}: {reason}; {_ADVICE[kind]}")
        self.kind: Kind = kind
        self.file = str(file)
        self.reason = reason


@dataclass(frozen=True)
class VideoInfo:
    """What a file says of itself, and what was found. Times are the file's presentation time.

    Attributes:
        file: Path as given.
        size: Height and width of the upright picture, in pixels.
        zero_s: The zero of captions beside it: that of its own timeline; in formats whose clocks
            start anywhere (transport streams), its start.
        first_s: When the first picture that is shown begins.
        last_s: When the last picture begins.
        duration_s: From `first_s` to the end of the picture track, where the last picture is over;
            of a truncated file, to the end its container claims.
        fps: Average pictures a second. For display only: never turn an index into a time with it.
        codec: Name of the picture codec.
        rotation_deg: Counter-clockwise turn that makes a stored picture upright.
        mirrored: Whether it is then mirrored left to right.
        bits: Bits of a colour component as stored.
        transfer: ffmpeg's name of the transfer function: `smpte2084` is PQ, `arib-std-b67` HLG.
        mapping: How the stored values become RGB of 8 bits.
        has_audio: Whether there is a sound track.
        nbytes: Size of the file.
        truncated: Whether pictures and sound end more than `TOLERANCE_S` before the claimed end.
        created: When it was recorded, in the file's own words; empty where it does not say.
        notes: What had to be put right in its times, each a short clause.
    """

    file: str
    size: Size
    zero_s: float
    first_s: float
    last_s: float
    duration_s: float
    fps: float
    codec: str
    rotation_deg: int
    mirrored: bool
    bits: int
    transfer: str
    mapping: str
    has_audio: bool
    nbytes: int
    truncated: bool = False
    created: str = ""
    notes: tuple[str, ...] = ()


def check_file(file: str) -> int:
    """Bytes of a regular, readable file; raises VideoError `missing` or `empty`."""
    try:
        status = Path(file).stat()
        if stat.S_ISREG(status.st_mode):  # opening a pipe would wait for its writer
            Path(file).open("rb").close()
    except FileNotFoundError:
        raise VideoError("missing", file, "there is no such file") from None
    except OSError as error:
        raise VideoError("missing", file, f"cannot be opened ({error.strerror})") from None
    if not stat.S_ISREG(status.st_mode):
        raise VideoError("missing", file, "is not a regular file")
    if status.st_size == 0:
        raise VideoError("empty", file, "has no bytes")
    return status.st_size


def instants(fps: float, stretches: Stretches) -> Iterator[int]:
    """Every k with k / fps inside one of the half-open stretches, in order."""
    last = -1
    for start_s, end_s in stretches:
        k = max(last + 1, math.ceil((start_s - EPSILON_S) * fps))
        while k / fps < end_s - EPSILON_S:
            if k / fps >= start_s - EPSILON_S:
                yield k
                last = k
            k += 1


def sample_at(t_s: float) -> int:
    """The sound sample that begins at an instant."""
    return round(t_s * SAMPLE_RATE)


def fed(start: int, stop: int, stretches: Stretches) -> Iterator[tuple[int, int]]:
    """The parts of the sound samples `[start, stop)` that lie inside the stretches."""
    for start_s, end_s in stretches:
        low, high = max(start, sample_at(start_s)), min(stop, sample_at(end_s))
        if low < high:
            yield low, high
