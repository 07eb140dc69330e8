"""Pictures by presentation time, decoded with PyAV: the truth for timestamps, and the default.

A picture is wanted when it is the newest one at some instant. Packets are read a little ahead of
the decoder, so that it is known which pictures are wanted before anything is decoded. Then two
things need no decoding: whatever precedes the last key frame before the next instant, and pictures
that nothing refers to and nobody wants. What is decoded is bit for bit what decoding everything
gives.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import av
import numpy as np
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from bench_lib.decode_inspect import (
    best_video,
    check_end,
    inspect_file,
    opened,
    quarter_turns,
)
from bench_lib.decode_protocol import TOLERANCE_S, VideoError, VideoInfo
from bench_lib.stream import EPSILON_S

LOOK_AHEAD_BYTES = 32 * 2**20
LOOK_AHEAD_PACKETS = 4096
SEEK_S = 10.0
"""Shorter jumps read through the packets between; longer ones ask the container's index first."""
PIXELS_PER_THREAD = 400_000
"""Below this a second thread costs more than it brings."""
MAX_THREADS = min(4, os.cpu_count() or 1)
"""A 4K picture is 12 MiB, and each decoding thread holds a few."""


@dataclass
class Picture:
    """A decoded picture; colours are converted when they are asked for, once."""

    t_s: float
    frame: Any
    reformatter: VideoReformatter

    def pixels(self) -> NDArray[np.uint8]:
        """Upright RGB, `[height, width, 3]`, 8 bits."""
        rgb = self.reformatter.reformat(self.frame, format="rgb24").to_ndarray()
        return np.ascontiguousarray(np.rot90(rgb, quarter_turns(self.frame)))


class _Unclean(Exception):
    """A key frame did not decode by itself, so what follows it cannot be trusted."""


class AvReader:
    """Walks one file forward. `decoded` counts the pictures that came out of the decoder.

    Args:
        file: Path of the video.
        alive: Called whenever presentation time has advanced.
    """

    def __init__(self, file: str, alive: Callable[[], None] = lambda: None) -> None:
        self.file = file
        self.served = f"av {av.__version__}"
        self.decoded = 0
        self._alive = alive
        self._jumps = True
        self._info: VideoInfo | None = None
        self._probe: Any = None
        self._container: Any = None
        self._open()

    def _open(self) -> None:
        self._close_container()
        self._container = opened(self.file)
        self._stream = best_video(self._container, self.file)
        self._context = self._stream.codec_context
        self._stream.thread_type = "AUTO"
        pixels = self._context.width * self._context.height
        self._context.thread_count = max(1, min(MAX_THREADS, pixels // PIXELS_PER_THREAD))
        self._base = self._stream.time_base
        self._reformatter = VideoReformatter()
        self._packets: Iterator[Any] = self._container.demux(self._stream)
        self._pending: deque[Any] = deque()  # read, not yet decoded, in decoding order
        self._pending_bytes = 0
        self._known: list[float] = []  # times of pictures that may still be shown, sorted
        self._read_s = -np.inf  # no later packet has an earlier decoding time
        self._newest_s = self._taken_s = -np.inf
        self._keyed = False  # a cut recording may begin with pictures that lack their key frame
        self._ended = self._drained = False
        self._fault: Exception | None = None
        self._fed = False  # since the decoder was last flushed
        self._clean_s: float | None = None  # time of the key frame just jumped to
        self._out: deque[Picture] = deque()
        self._shown: Picture | None = None

    def pictures(self, times: Sequence[float]) -> Iterator[Picture | None]:
        """For each time, in order, the newest picture not later than it; None before the first.

        Args:
            times: Presentation times of the file in seconds, ascending; the same object may not
                be walked twice with earlier times.

        Raises:
            VideoError: `truncated` or `corrupt`, at the first time that has no true picture.
        """
        for index, t_s in enumerate(times):
            try:
                self._advance(times, index)
            except _Unclean:
                # Such files (intra refresh) are read from the start; the count tells the price.
                self._jumps = False
                self._open()
                self._advance(times, index)
            self._check(t_s)
            yield self._shown

    def close(self) -> None:
        """Close the file."""
        self._close_container()
        if self._probe is not None:
            self._probe.close()
            self._probe = None

    def _close_container(self) -> None:
        if self._container is not None:
            self._container.close()
            self._container = None

    def _advance(self, times: Sequence[float], index: int) -> None:
        """Decode until `_shown` is the newest picture not later than `times[index]`."""
        limit = times[index] + EPSILON_S
        if self._jumps and not self._ended and limit - max(self._read_s, 0.0) > SEEK_S:
            self._seek(limit)
        while True:
            self._look_ahead(limit)
            wanted = self._wanted(limit)
            while self._out and self._out[0].t_s <= limit:
                self._shown = self._out.popleft()
            if self._out or (wanted is not None and self._shown_s() >= wanted):
                return
            if not self._decode(times, index):
                return

    def _seconds(self, stamp: int) -> float:
        return stamp * self._base.numerator / self._base.denominator

    def _shown_s(self) -> float:
        return self._shown.t_s if self._shown else -np.inf

    def _seek(self, limit: float) -> None:
        """Go to the last key frame before `limit` if that lies ahead of all that was read."""
        if self._probe is None:
            self._probe = opened(self.file)
        stream = best_video(self._probe, self.file)
        for back_s in (0.0, 4.0, 16.0):  # formats without an index land roughly
            goal = int((limit - back_s) / self._base)
            try:
                self._probe.seek(goal, stream=stream)
                first = next(p for p in self._probe.demux(stream) if p.pts is not None)
            except (av.error.FFmpegError, StopIteration):
                return
            t_s = self._seconds(first.pts)
            if t_s <= limit and first.is_keyframe:
                if t_s > max(self._newest_s, self._read_s):
                    self._restart_at(t_s)
                    self._container.seek(goal, stream=self._stream)
                    self._packets = self._container.demux(self._stream)
                return

    def _restart_at(self, t_s: float) -> None:
        """Forget everything before the key frame at `t_s`, which is decoded next."""
        if self._fed:
            with suppress(av.error.FFmpegError):  # what it holds is shown at no instant
                self._take(self._context.decode(None))
            self._context.flush_buffers()
        self._pending.clear()
        self._pending_bytes = 0
        self._out.clear()
        self._known = self._known[bisect_left(self._known, t_s) :]
        self._fed = self._drained = False
        self._clean_s = t_s

    def _look_ahead(self, limit: float) -> None:
        """Read packets until all pictures up to `limit` are known, within bounds."""
        while (
            not self._ended
            and self._read_s <= limit
            and self._pending_bytes < LOOK_AHEAD_BYTES
            and len(self._pending) < LOOK_AHEAD_PACKETS
        ):
            self._read(limit)

    def _read(self, limit: float) -> None:
        try:
            packet = next(self._packets)
        except StopIteration:
            self._ended = True
            return
        except av.error.FFmpegError as error:
            self._ended, self._fault = True, error
            return
        if not packet.size:
            return
        if packet.dts is not None:
            self._read_s = self._seconds(packet.dts)
        if packet.pts is not None:
            t_s = self._seconds(packet.pts)
            if t_s > self._newest_s:
                self._newest_s = t_s
                self._alive()
            self._keyed = self._keyed or packet.is_keyframe
            if self._keyed and not packet.is_discard and t_s >= -EPSILON_S:
                insort(self._known, t_s)
            skippable = self._fed or self._pending
            if packet.is_keyframe and self._jumps and skippable and self._shown_s() < t_s <= limit:
                self._restart_at(t_s)
        self._pending.append(packet)
        self._pending_bytes += packet.size

    def _wanted(self, limit: float) -> float | None:
        """Time of the picture to show at `limit`, where that is known."""
        if not self._ended and self._read_s <= limit:
            return None
        at = bisect_right(self._known, limit)
        del self._known[: max(0, at - 1)]
        return self._known[0] if at else None

    def _decode(self, times: Sequence[float], index: int) -> bool:
        """Decode one more packet; False when nothing is left."""
        if not self._pending and not self._ended:
            self._read(-np.inf)
        if not self._pending:
            if self._ended and not self._drained:
                self._drain()
                return bool(self._out)
            return not self._ended
        packet = self._pending.popleft()
        self._pending_bytes -= packet.size
        if packet.is_corrupt and self._is_last():
            if packet.pts is not None and self._seconds(packet.pts) in self._known:
                self._known.remove(self._seconds(packet.pts))
            return True  # the file ends within it
        skip = "NONREF" if self._needless(packet, times, index) else "DEFAULT"
        if self._context.skip_frame != skip:
            self._context.skip_frame = skip
        self._fed = True
        try:
            frames = packet.decode()
        except av.error.FFmpegError as error:
            if self._keyed:
                self._ended, self._fault = True, error
                self._pending.clear()
            return True
        self._take(frames)
        return True

    def _is_last(self) -> bool:
        if not self._pending and not self._ended:
            self._read(-np.inf)
        return self._ended and not self._pending

    def _needless(self, packet: Any, times: Sequence[float], index: int) -> bool:
        """Whether at every instant to come a later picture than this packet's is shown."""
        if packet.pts is None or packet.is_keyframe:
            return False
        t_s = self._seconds(packet.pts)
        at = bisect_left(times, t_s - EPSILON_S, lo=index)
        later = bisect_right(self._known, t_s)
        return at == len(times) or (
            later < len(self._known) and self._known[later] <= times[at] + EPSILON_S
        )

    def _drain(self) -> None:
        """At the end, get out what the decoder still holds."""
        self._drained = True
        try:
            self._take(self._context.decode(None))
        except av.error.FFmpegError as error:
            self._fault = self._fault or error

    def _take(self, frames: Sequence[Any]) -> None:
        for frame in frames:
            self.decoded += 1
            stamp = frame.pts if frame.pts is not None else frame.dts
            if stamp is None:
                raise VideoError("corrupt", self.file, "its pictures carry no timestamps")
            t_s = self._seconds(stamp)
            if t_s > self._taken_s:
                self._taken_s = t_s
                self._alive()
            if self._clean_s is not None:
                if t_s < self._clean_s:
                    continue  # leads in from before the jump
                if t_s > self._clean_s or frame.is_corrupt:
                    raise _Unclean
                self._clean_s = None
            if t_s >= -EPSILON_S and not frame.is_corrupt:  # damage is guessed over, never alike
                self._out.append(Picture(t_s, frame, self._reformatter))

    def _check(self, t_s: float) -> None:
        """Raise unless `_shown` is what a complete file would show at `t_s`."""
        shown_s = max(self._shown_s(), 0.0)
        at = bisect_right(self._known, t_s + EPSILON_S)
        lost = at > 0 and self._known[at - 1] > shown_s
        # A picture lost here and there is bridged for a moment, as players do.
        if lost and (self._fault or t_s > shown_s + TOLERANCE_S):
            told = getattr(self._fault, "strerror", None) or "it is damaged there"
            raise VideoError("corrupt", self.file, f"no picture after {shown_s:.2f} s: {told}")
        if self._ended and not self._out and t_s > shown_s:
            self._info = self._info or inspect_file(self.file)
            check_end(self._info, t_s)
