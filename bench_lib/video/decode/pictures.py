"""Pictures by presentation time, decoded with PyAV: the truth for timestamps, and the default.

Two things need no decoding: whatever precedes the last key frame before the next instant, and
pictures that nothing refers to and nobody wants. What is decoded is bit for bit what decoding
everything gives.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import av
import numpy as np
from av.video.reformatter import VideoReformatter

from bench_lib.video.decode.inspect import check_end, inspect_file
from bench_lib.video.decode.packets import Packets, Unclean
from bench_lib.video.decode.protocol import TOLERANCE_S, VideoError, VideoInfo
from bench_lib.video.decode.scan import Unsteady
from bench_lib.video.decode.upright import Picture
from bench_lib.video.stream import EPSILON_S

PIXELS_PER_THREAD = 400_000
"""Below this a second thread costs more than it brings."""
MAX_THREADS = min(4, os.cpu_count() or 1)
"""A 4K picture is 12 MiB, and each decoding thread holds a few."""


class AvReader:
    """Walks one file forward. `decoded` counts the pictures that came out of the decoder.

    Args:
        file: Path of the video.
        alive: Called whenever presentation time has advanced.
    """

    def __init__(self, file: str, alive: Callable[[], None] = lambda: None) -> None:
        self.file, self._alive = file, alive
        self.served = f"av {av.__version__}"
        self.decoded = 0
        self._info: VideoInfo | None = None
        self._open(jumps=True)

    def _open(self, jumps: bool) -> None:
        self._jumps = jumps
        self._packets = Packets(self.file, self._alive, jumps)
        self._context = self._packets.stream.codec_context
        self._packets.stream.thread_type = "AUTO"
        pixels = self._context.width * self._context.height
        self._context.thread_count = max(1, min(MAX_THREADS, pixels // PIXELS_PER_THREAD))
        self._reformatter = VideoReformatter()
        self._inside: set[float] = set()  # times of pictures fed to the decoder and not yet out
        self._drained = False  # has given out all it held, and takes nothing before a flush
        self._clean_s: float | None = None  # time of the key frame just jumped to
        self._fault: Exception | None = None
        self._newest_s = -np.inf
        self._out: deque[Picture] = deque()
        self._shown: Picture | None = None

    def pictures(self, times: Sequence[float]) -> Iterator[Picture | None]:
        """For each time, in order, the newest picture not later than it; None before the first.

        Args:
            times: Presentation times of the file in seconds, ascending. What is wanted later
                must be among them: the file is walked once.

        Raises:
            VideoError: `truncated` or `corrupt`, at the first time that has no true picture.
        """
        for index, t_s in enumerate(times):
            while True:
                try:
                    self._advance(times, index)
                    break
                except Unsteady:
                    self.close()
                    self._open(self._jumps)
                except Unclean:
                    # Such files (intra refresh) are read from the start; the count tells the price.
                    self.close()
                    self._open(jumps=False)
            self._check(t_s)
            yield self._shown

    def close(self) -> None:
        """Close the file."""
        self._packets.close()

    def _advance(self, times: Sequence[float], index: int) -> None:
        """Decode until `_shown` is the newest picture not later than `times[index]`."""
        limit = times[index] + EPSILON_S
        self._packets.seek(limit)
        while True:
            wanted = self._packets.wanted(limit)
            self._show(limit)
            if self._out or (wanted is not None and self._shown_s() >= wanted):
                return
            # A decoder holds pictures back until it has seen others: if none come, call them out.
            held = wanted is not None and wanted in self._inside
            if (held and self._parting(times, index)) or not self._decode(times, index):
                self._drain()
                self._show(limit)
                return

    def _show(self, limit: float) -> None:
        while self._out and self._out[0].t_s <= limit:
            self._shown = self._out.popleft()

    def _shown_s(self) -> float:
        return self._shown.t_s if self._shown else -np.inf

    def _parting(self, times: Sequence[float], index: int) -> bool:
        """Whether decoding does not go on from here: nothing more is wanted, or a jump is next."""
        if index + 1 == len(times):
            return True
        return self._packets.key_within(times[index] + EPSILON_S, times[index + 1] + EPSILON_S)

    def _decode(self, times: Sequence[float], index: int) -> bool:
        """Decode one more packet; False when there is none."""
        packet = self._packets.pop()
        if packet is None:
            self._fault = self._fault or self._packets.fault
            return False
        t_s = None if packet.pts is None else self._packets.seconds(packet.pts)
        if self._packets.jumped or self._drained:
            self._begin_at(packet, t_s)
        skip = "NONREF" if self._packets.needless(packet, times, index) else "DEFAULT"
        if self._context.skip_frame != skip:
            self._context.skip_frame = skip
        if t_s is not None and not packet.is_discard:
            self._inside.add(t_s)
        try:
            self._take(packet.decode())
        except av.error.FFmpegError as error:
            if self._packets.keyed:
                self._fault = error
                self._packets.stop()
        return True

    def _begin_at(self, packet: Any, t_s: float | None) -> None:
        """Decode anew, from a key frame on."""
        if not packet.is_keyframe or t_s is None:
            raise Unclean
        self._drain()
        self._context.flush_buffers()
        self._out.clear()
        self._drained = False
        self._clean_s = t_s

    def _drain(self) -> None:
        """Get out what the decoder still holds."""
        if self._drained:
            return
        self._drained = True
        with suppress(av.error.FFmpegError):  # a picture that is missed is missed in `_check`
            self._take(self._context.decode(None))
        self._inside.clear()
        if self._clean_s is not None:
            raise Unclean

    def _take(self, frames: Sequence[Any]) -> None:
        for frame in frames:
            self.decoded += 1
            stamp = frame.pts if frame.pts is not None else frame.dts
            if stamp is None:
                raise VideoError("corrupt", self.file, "its pictures carry no timestamps")
            t_s = self._packets.seconds(stamp)
            self._inside = {inside for inside in self._inside if inside > t_s}
            if t_s > self._newest_s:
                self._newest_s = t_s
                self._alive()
            if self._clean_s is not None:
                if t_s < self._clean_s:
                    continue  # leads in from before the jump
                if t_s > self._clean_s or frame.is_corrupt:
                    raise Unclean
                self._clean_s = None
            if t_s >= -EPSILON_S and not frame.is_corrupt:  # damage is guessed over, never alike
                self._out.append(Picture(t_s, frame, self._reformatter, self.file))

    def _check(self, t_s: float) -> None:
        """Raise unless `_shown` is what a complete file would show at `t_s`."""
        shown_s = max(self._shown_s(), 0.0)
        lost = self._packets.newest(t_s + EPSILON_S) > shown_s
        over = self._packets.ended and self._packets.newest(np.inf) <= shown_s
        # A picture lost here and there is bridged for a moment, as players do.
        if lost and (self._fault or t_s > shown_s + TOLERANCE_S):
            told = getattr(self._fault, "strerror", None) or "it is damaged there"
            raise VideoError("corrupt", self.file, f"no picture after {shown_s:.2f} s: {told}")
        if over and not self._out and t_s > shown_s:
            self._info = self._info or inspect_file(self.file, self._alive)
            check_end(self._info, t_s)
