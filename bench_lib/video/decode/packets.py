"""The undecoded side of a video: packets read ahead, so that it is known what need not be decoded.

A picture is wanted when it is the newest one at some instant. Packets come in decoding order and
say when their pictures are shown; once one comes whose decoding time lies behind an instant, all
pictures up to that instant are known.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import av
import numpy as np

from bench_lib.video.decode.files import best_video, opened
from bench_lib.video.decode.inspect import clock_of
from bench_lib.video.decode.scan import packets
from bench_lib.video.stream import EPSILON_S

LOOK_AHEAD_BYTES = 32 * 2**20
LOOK_AHEAD_PACKETS = 4096
SEEK_S = 10.0
"""Shorter jumps read through the packets between; longer ones ask the container's index first."""


class Unclean(Exception):
    """A key frame does not stand by itself, or is not where it should be: jumps cannot be used."""


class Packets:
    """The packets of one file's picture track, from the front.

    Args:
        file: Path of the video.
        alive: Called whenever presentation time has advanced.
        jumps: Whether packets may be passed over, up to a key frame.

    Attributes:
        stream: PyAV's stream.
        ended: Whether all packets were read.
        jumped: Whether packets were passed over just before the one handed out last.
        keyed: Whether a key frame was read; before the first one nothing can be decoded well.
        fault: The error that ended reading, if any.
    """

    def __init__(self, file: str, alive: Callable[[], None], jumps: bool) -> None:
        self.file, self._alive, self._jumps = file, alive, jumps
        self._container = opened(file)
        self.stream = best_video(self._container, file)
        self._base = self.stream.time_base
        self._clock = clock_of(file, alive)
        self._seeks = jumps and not (self._clock and self._clock.stamps)
        self._incoming = self._demuxed()
        self._probe: Any = None
        self._pending: deque[Any] = deque()  # read, not yet handed out
        self._pending_bytes = 0
        self._keys: deque[float] = deque()  # times of key frames among them
        self._known: list[float] = []  # times of pictures that may still be shown, sorted
        self._passed_s = self._newest_s = -np.inf  # by decoding time, by presentation time
        self.ended = self._gap = self.jumped = self.keyed = False
        self.fault: Exception | None = None

    def close(self) -> None:
        """Close the file."""
        self._container.close()
        if self._probe is not None:
            self._probe.close()

    def seconds(self, stamp: int) -> float:
        """A timestamp of the stream in seconds, correctly rounded."""
        return stamp * self._base.numerator / self._base.denominator

    def pop(self) -> Any:
        """The next packet in decoding order; None at the end."""
        if not self._pending:
            self._read()
        if not self._pending:
            return None
        packet = self._pending.popleft()
        self._pending_bytes -= packet.size
        if self._is_key(packet):
            self._keys.popleft()
        if packet.is_corrupt and self._at_end():
            self._forget(packet)  # the file ends within it
            return None
        self.jumped, self._gap = self._gap, False
        return packet

    def stop(self) -> None:
        """Nothing more is handed out."""
        self.ended = True
        self._drop()

    def wanted(self, limit: float) -> float | None:
        """Time of the picture to show at `limit`, None where that cannot be known in advance.

        What need not be decoded for it, nor for anything later, is passed over.
        """
        self._skip_to_key(limit)
        while self._reading() and self._passed_s <= limit:
            self._read()
            self._skip_to_key(limit)
        if not self.ended and self._passed_s <= limit:
            return None
        at = bisect_right(self._known, limit)
        del self._known[: max(0, at - 1)]
        return self._known[0] if at else None

    def newest(self, limit: float) -> float:
        """Time of the newest known picture that is not later than `limit`, or minus infinity."""
        at = bisect_right(self._known, limit)
        return self._known[at - 1] if at else -np.inf

    def key_within(self, after: float, limit: float) -> bool:
        """Whether the next picture wanted, at `limit`, is reached by a jump."""
        while self._reading() and self._passed_s <= limit:
            if self._keys and after < self._keys[-1] <= limit:
                break
            self._read()
        return self._jumps and any(after < key <= limit for key in self._keys)

    def seek(self, limit: float) -> None:
        """Go to the last key frame before `limit` if it lies far behind all that was read.

        Raises Unclean when the file does not go where its own index says.
        """
        if not self._seeks or self.ended or limit - max(self._passed_s, 0.0) <= SEEK_S:
            return
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
            t_s = self.seconds(first.pts)
            if t_s <= limit and first.is_keyframe:
                if t_s > max(self._newest_s, self._passed_s):
                    self._go(goal)
                return

    def needless(self, packet: Any, times: Sequence[float], index: int) -> bool:
        """Whether a later picture than this one is shown at every instant from `index` on."""
        t_s = self._time(packet)
        if t_s is None or packet.is_keyframe:
            return False
        at = bisect_left(times, t_s - EPSILON_S, lo=index)
        later = bisect_right(self._known, t_s)
        return at == len(times) or (
            later < len(self._known) and self._known[later] <= times[at] + EPSILON_S
        )

    def _is_key(self, packet: Any) -> bool:
        """Whether it has a place among the times of key frames; what is cut off has none."""
        return packet.is_keyframe and packet.pts is not None and not packet.is_discard

    def _time(self, packet: Any) -> float | None:
        return None if packet.pts is None else self.seconds(packet.pts)

    def _reading(self) -> bool:
        """Whether there is more, and room for it."""
        full = self._pending_bytes >= LOOK_AHEAD_BYTES or len(self._pending) >= LOOK_AHEAD_PACKETS
        return not self.ended and not full

    def _at_end(self) -> bool:
        if not self._pending:
            self._read()
        return self.ended and not self._pending

    def _forget(self, packet: Any) -> None:
        t_s = self._time(packet)
        if t_s in self._known:
            self._known.remove(t_s)  # type: ignore[arg-type]

    def _skip_to_key(self, limit: float) -> None:
        """Pass over what precedes the last key frame that is not later than `limit`."""
        if not self._jumps or not self._keys or self._keys[0] > limit:
            return
        passed = 0
        while len(self._keys) > 1 and self._keys[1] <= limit:
            self._keys.popleft()
            passed += 1
        key_s = self._keys[0]
        while passed or not self._is_key(self._pending[0]):
            packet = self._pending.popleft()
            passed -= self._is_key(packet)
            self._pending_bytes -= packet.size
            self._gap = True
        self._known = self._known[bisect_left(self._known, key_s) :]

    def _demuxed(self) -> Iterator[Any]:
        return packets(self._container, self.stream, self.file, self._alive, self._clock)

    def _go(self, goal: int) -> None:
        try:
            self._container.seek(goal, stream=self.stream)
        except av.error.FFmpegError:
            raise Unclean from None
        self._incoming = self._demuxed()
        self._drop()
        self._known.clear()
        self._gap = True

    def _drop(self) -> None:
        self._pending.clear()
        self._pending_bytes = 0
        self._keys.clear()

    def _read(self) -> None:
        """Read one packet of the track, if there is one."""
        while not self.ended:
            try:
                packet = next(self._incoming)
            except StopIteration:
                self.ended = True
            except av.error.FFmpegError as error:
                self.ended, self.fault = True, error
            else:
                if packet.size:
                    self._keep(packet)
                    return

    def _keep(self, packet: Any) -> None:
        self._pending.append(packet)
        self._pending_bytes += packet.size
        if packet.dts is not None and not packet.is_discard:
            self._passed_s = self.seconds(packet.dts)
        t_s = self._time(packet)
        if t_s is None:
            return
        if t_s > self._newest_s:
            self._newest_s = t_s
            self._alive()
        self.keyed = self.keyed or packet.is_keyframe
        if self._is_key(packet):
            self._keys.append(t_s)
        if self.keyed and not packet.is_discard and t_s >= -EPSILON_S:
            insort(self._known, t_s)
