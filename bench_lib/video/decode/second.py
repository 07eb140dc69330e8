"""Pictures through decord, for files on which it agrees with PyAV; the others are left to PyAV.

decord counts pictures, and PyAV's timestamps say when each is shown (decord drops the start
offset). Its seeking is never used: it takes a key frame's place in decoding order for its place in
presentation order and lands on other pictures in fragmented, variable-rate and open-group files
without saying so. What it decodes it decodes in sequence; long jumps are PyAV's.

It reads a file whole to open it, decodes every picture, and holds on to some memory of each (2 KiB,
and a queue of whole pictures): hence PyAV is the default.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_lib.video.decode.files import best_video, opened
from bench_lib.video.decode.inspect import check_end, clock_of, inspect_file
from bench_lib.video.decode.packets import SEEK_S
from bench_lib.video.decode.pictures import AvReader
from bench_lib.video.decode.protocol import VideoError, VideoInfo
from bench_lib.video.stream import EPSILON_S

LOOK_S = 1.0
GRID = 16
ENOUGH = 4
"""Pictures that differ, and vivid colours, of which no two are the same to three bits."""


@dataclass
class DecordPicture:
    """A picture as decord gives it: RGB, upright because only unrotated files are served."""

    t_s: float
    array: NDArray[np.uint8]

    def pixels(self) -> NDArray[np.uint8]:
        """See `pictures.Picture.pixels`."""
        return self.array


class DecordReader:
    """See `pictures.AvReader`. After an error of decord's, PyAV goes on in its place."""

    def __init__(self, file: str, times: list[float], alive: Callable[[], None]) -> None:
        import decord

        self.file = file
        self.served = f"decord {decord.__version__}"
        self.video = decord.VideoReader(file, num_threads=1)
        self._keys = [int(place) for place in self.video.get_key_indices()]
        self._times, self._alive = times, alive
        self._position = 0
        self._info: VideoInfo | None = None
        self._fallback: AvReader | None = None
        self.first = self._at(0)

    @property
    def decoded(self) -> int:
        """Pictures decoded so far."""
        return self._position + (self._fallback.decoded if self._fallback else 0)

    def pictures(self, times: Sequence[float]) -> Iterator[Any]:
        """See `pictures.AvReader.pictures`."""
        from decord import DECORDError

        shown: DecordPicture | None = None
        for index, t_s in enumerate(times):
            at = bisect_right(self._times, t_s + EPSILON_S) - 1
            try:
                if at >= self._position:
                    if self._times[at] - self._times[self._position] > SEEK_S:
                        raise _Far
                    shown = self._at(at)
                elif at == 0:
                    shown = self.first
            except (_Far, DECORDError, RuntimeError):
                self._fallback = AvReader(self.file, self._alive)
                self.served += f", {self._fallback.served}"
                yield from self._fallback.pictures(times[index:])
                return
            if t_s > self._times[-1]:
                self._info = self._info or inspect_file(self.file)
                check_end(self._info, t_s)
            yield shown

    def _at(self, at: int) -> DecordPicture:
        """Decode on to picture `at`."""
        while True:
            key = bisect_right(self._keys, self._position)
            # A skip that reaches a key frame would seek: stop in front of it.
            stop = min(at, self._keys[key] - 1) if key < len(self._keys) else at
            if stop > self._position:
                self.video.skip_frames(stop - self._position)
            array = self.video.next().asnumpy()
            self._position = max(stop, self._position) + 1
            self._alive()
            if self._position > at:
                return DecordPicture(self._times[at], array)

    def close(self) -> None:
        """Close the file."""
        self.video = None
        if self._fallback:
            self._fallback.close()


class _Far(Exception):
    """The next picture lies far ahead."""


def agreeing(file: str, alive: Callable[[], None]) -> DecordReader | None:
    """A decord reader if it agrees with PyAV on this file, else None.

    Compared: number and times of pictures, and pixels, one picture a second until `Told` has seen
    enough of them (decord gives other colours for 10 bits, and garbles what is to be turned).
    """
    try:
        from decord import DECORDError
    except ImportError:  # not built for this platform
        return None
    info, clock = inspect_file(file, alive), clock_of(file, alive)
    if info.rotation_deg or info.mirrored or info.bits != 8 or (clock and clock.stamps):
        return None
    stamps: list[int] = []
    with opened(file) as container:
        stream = best_video(container, file)
        base = stream.time_base
        for packet in container.demux(stream):
            if packet.pts is None or not packet.size:
                continue
            if packet.is_discard or packet.pts < 0:
                return None
            stamps.append(packet.pts)
            alive()
    times = [stamp * base.numerator / base.denominator for stamp in sorted(stamps)]
    try:
        reader = DecordReader(file, times, alive)
        theirs = reader.video.get_frame_timestamp(range(len(reader.video)))[:, 0]
        step_s = 1e-3 + np.abs(theirs) * 2e-7  # single precision: a step of 1 ms at four hours
        same = len(theirs) == len(times) and bool(
            np.all(np.abs(theirs + times[0] - np.asarray(times)) < step_s)
        )
        if same and _same_pictures(reader, AvReader(file, alive), times):
            return DecordReader(file, times, alive)
    except (DECORDError, RuntimeError, IndexError):
        pass
    return None


def _same_pictures(one: DecordReader, two: AvReader, times: Sequence[float]) -> bool:
    """Whether two readers give the same pixels; both are closed."""
    told = Told()
    at_s = [*np.arange(times[0], times[-1], LOOK_S), times[-1]]
    try:
        for ours, theirs in zip(one.pictures(at_s), two.pictures(at_s), strict=True):
            if ours is None or theirs is None:
                return False
            pixels = theirs.pixels()
            if not np.array_equal(ours.pixels(), pixels):
                return False
            if told.enough(pixels):
                break
    except VideoError:  # PyAV goes as far as the pictures are good
        return False
    else:
        return True
    finally:
        one.close()
        two.close()


class Told:
    """What the pictures seen so far tell of a reader: a flat or a grey one hides wrong colours."""

    def __init__(self) -> None:
        self._pictures: set[bytes] = set()
        self._colours: set[bytes] = set()

    def enough(self, pixels: NDArray[np.uint8]) -> bool:
        """Add a picture; whether several that differ, and several colours, were among them."""
        rows, cols = (max(1, side // GRID) for side in pixels.shape[:2])
        coarse = pixels[rows // 2 :: rows, cols // 2 :: cols] >> 5
        self._pictures.add(coarse.tobytes())
        vivid = coarse[np.ptp(coarse, 2) >= 2]
        self._colours.update(colour.tobytes() for colour in vivid)
        return len(self._pictures) >= ENOUGH and len(self._colours) >= ENOUGH
