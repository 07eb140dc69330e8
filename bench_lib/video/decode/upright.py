"""Decoded pictures as upright RGB of 8 bits, and what is done to them for that.

A display matrix maps a stored point (p, q) to (a p + c q, b p + d q). Of all matrices the eight
that leave the picture on its grid are followed, as ffmpeg and players follow them. Colours go
through the file's own matrix and range; code values of PQ and HLG are kept as they are.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any

import av
import numpy as np
from av.video.reformatter import Colorspace, VideoReformatter
from numpy.typing import NDArray

from bench_lib.video.decode.protocol import VideoError

ALMOST = math.sin(math.radians(1.0))
"""Encoders round; ffmpeg too takes less than a degree for none."""
TRANSFERS = {
    1: "bt709", 4: "gamma22", 5: "gamma28", 6: "smpte170m", 7: "smpte240m", 8: "linear",
    9: "log100", 10: "log316", 11: "iec61966-2-4", 12: "bt1361e", 13: "iec61966-2-1",
    14: "bt2020-10", 15: "bt2020-12", 16: "smpte2084", 17: "smpte428", 18: "arib-std-b67",
}  # fmt: skip
"""Names of ffmpeg for the code points of H.273; what is not here is `unknown`."""
HDR = {16: "PQ", 18: "HLG"}
MATRICES = {
    0: "gbr", 1: "bt709", 4: "fcc", 5: "bt470bg", 6: "smpte170m", 7: "smpte240m", 9: "bt2020nc"
}  # fmt: skip
RESERVED = 3
"""Some VP9 encoders write it and mean nothing by it."""
REFUSED = {8: "ycgco", 10: "bt2020c", 11: "smpte2085", 14: "ictcp"}


@dataclass
class Picture:
    """A decoded picture of a file; its colours are converted when they are asked for."""

    t_s: float
    frame: Any
    reformatter: VideoReformatter
    file: str = ""

    def pixels(self) -> NDArray[np.uint8]:
        """Upright RGB, `[height, width, 3]`, 8 bits. Raises VideoError `corrupt`."""
        try:
            matrix = Colorspace.DEFAULT if self.frame.colorspace == RESERVED else None
            rgb = self.reformatter.reformat(
                self.frame, format="rgb24", src_colorspace=matrix, dst_colorspace=matrix
            )
            return turn_of(self.frame).upright(rgb.to_ndarray())
        except ValueError as error:
            raise VideoError("corrupt", self.file, str(error)) from None
        except (OSError, av.error.FFmpegError) as error:
            told = f"its colours cannot be converted ({error.strerror})"
            raise VideoError("corrupt", self.file, told) from None


def bits(frame: Any) -> int:
    """Bits of a component as stored."""
    return max(component.bits for component in frame.format.components)


def transfer(frame: Any) -> str:
    """Ffmpeg's name of the transfer function, `unknown` where the file states none."""
    return TRANSFERS.get(frame.color_trc, "unknown")


def mapping(frame: Any) -> str:
    """How stored values become RGB of 8 bits, in words. Raises ValueError where they cannot."""
    stored, matrix = bits(frame), frame.colorspace
    if frame.format.is_rgb:
        words = ["RGB as stored"]
    elif matrix in REFUSED:
        raise ValueError(f"its colours are stored as {REFUSED[matrix]}, which is not read here")
    elif matrix in MATRICES:
        words = [f"RGB by matrix {MATRICES[matrix]}"]
    else:
        words = ["RGB by matrix bt601, as the file states none"]
    full = frame.color_range == 2 or frame.format.name.startswith("yuvj")
    words.append("full range" if full or frame.format.is_rgb else "limited range")
    words.append("8 bits" if stored == 8 else f"{stored} bits reduced to 8")
    name = transfer(frame)
    if frame.color_trc in HDR:
        words.append(f"transfer {name} ({HDR[frame.color_trc]}) left as it is, not mapped to SDR")
    else:
        words.append(f"transfer {name}")
    return ", ".join(words)


@dataclass(frozen=True)
class Turn:
    """What makes a stored picture upright: quarter turns counter-clockwise, then a mirror."""

    quarters: int = 0
    mirrored: bool = False

    def upright(self, pixels: NDArray[Any]) -> NDArray[np.uint8]:
        """The picture `[height, width, 3]` as it is meant to be seen."""
        turned = np.rot90(pixels, self.quarters)
        return np.ascontiguousarray(turned[:, ::-1] if self.mirrored else turned)


def turn_of(frame: Any) -> Turn:
    """The turn of a decoded frame. Raises ValueError for a matrix that leaves the grid."""
    for data in frame.side_data:
        if data.type.name == "DISPLAYMATRIX":
            return turn(struct.unpack("=9i", bytes(data)))
    return Turn()


def turn(matrix: tuple[int, ...]) -> Turn:
    """The turn of a matrix of nine numbers. Raises ValueError for one that leaves the grid."""
    a, b, _, c, d = (n / 65_536 for n in matrix[:5])
    across, down = math.hypot(a, c), math.hypot(b, d)  # what becomes of width and height
    if not any((a, b, c, d)):
        return Turn()  # left unset; players show such files as stored
    if across and down:
        a, b, c, d = a / across, b / down, c / across, d / down
        if max(abs(b), abs(c)) < ALMOST:
            mirrored = (a < 0) != (d < 0)
            return Turn(2 if d < 0 else 0, mirrored)
        if max(abs(a), abs(d)) < ALMOST:
            # (p, q) to (c q, b p): transposed, then flipped where a factor is negative.
            mirrored = (b < 0) == (c < 0)
            return Turn(1 if b < 0 else 3, mirrored)
    shown = ", ".join(f"{n / 65_536:g}" for n in (*matrix[:2], *matrix[3:5]))
    raise ValueError(f"its display matrix ({shown}) is no turn or mirror by right angles")
