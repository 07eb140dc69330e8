"""What passes between a decoding process and its caller: records, errors, framed messages.

A request is one line of JSON on the worker's standard input. A message back is an eight-byte
header (lengths of both parts), a JSON object with a `kind`, and a payload of raw bytes.
"""

from __future__ import annotations

import stat
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench_lib import paths
from bench_lib.errors import BenchError
from bench_lib.stream import Size

Kind = Literal["missing", "empty", "corrupt", "truncated", "no_video", "timeout", "crashed"]
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
        first_s: When the first picture that is shown begins.
        last_s: When the last picture begins.
        duration_s: From `first_s` to the end of the picture track; of a truncated file, to the end
            its container claims.
        fps: Average pictures a second. For display only: never turn an index into a time with it.
        codec: Name of the picture codec.
        rotation_deg: Counter-clockwise turn that makes a stored picture upright.
        has_audio: Whether there is a sound track.
        nbytes: Size of the file.
        truncated: Whether pictures and sound end more than `TOLERANCE_S` before the claimed end.
    """

    file: str
    size: Size
    first_s: float
    last_s: float
    duration_s: float
    fps: float
    codec: str
    rotation_deg: int
    has_audio: bool
    nbytes: int
    truncated: bool = False


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
