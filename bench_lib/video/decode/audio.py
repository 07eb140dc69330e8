"""Sound as 16 kHz mono, addressed by sample on a clock of seconds.

Second 0 is sample 0; sample i covers `[i, i + 1) / 16000`. Where a file has no sound there is
silence. Samples are 16 bits wide on their way, so that a stored pass equals the first one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from bench_lib.video.decode.files import best_audio, opened
from bench_lib.video.decode.inspect import clock_of
from bench_lib.video.decode.protocol import SpanTuple, VideoError, sample_at
from bench_lib.video.decode.scan import Unsteady, packets
from bench_lib.video.stream import SAMPLE_RATE

Samples = NDArray[np.int16]
SLACK = SAMPLE_RATE // 100
"""Timestamps of packets are rounded; the sound is continuous until they disagree by 10 ms."""
SEEK = 2 * SAMPLE_RATE
PREROLL_S = 0.5
"""A sound decoder needs a few packets before its output is right."""


class Track:
    """The sound of one file, read forward."""

    def __init__(self, file: str, alive: Callable[[], None] = lambda: None) -> None:
        self.file = file
        self._alive = alive
        self.passed = 0
        self._open()

    def _open(self) -> None:
        self._container: Any = opened(self.file)
        self._stream: Any = best_audio(self._container)
        self._clock = clock_of(self.file, self._alive)
        self._restart()

    def _restart(self) -> None:
        self._chunks: deque[tuple[int, Samples]] = deque()
        self._end = None if self._stream else 0  # sample after the last decoded one
        self._resampler = av.AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)
        self._frames = self._decoded() if self._stream else iter(())
        self._ended = self._stream is None

    def read(self, start: int, stop: int) -> Samples:
        """Samples `[start, stop)`; calls go forward. Raises VideoError `corrupt`."""
        self.passed = stop
        sound = np.zeros(stop - start, np.int16)
        if self._stream and start - (self._end or 0) > SEEK:
            self._seek(start)
        while not self._ended and (self._end is None or self._end < stop):
            try:
                self._decode()
            except Unsteady:  # its times are known now: once more, from its start
                self.close()
                self._open()
        while self._chunks and self._chunks[0][0] + len(self._chunks[0][1]) <= start:
            self._chunks.popleft()
        for first, chunk in self._chunks:
            low, high = max(first, start), min(first + len(chunk), stop)
            if low < high:
                sound[low - start : high - start] = chunk[low - first : high - first]
        return sound

    def close(self) -> None:
        """Close the file."""
        self._container.close()

    def _decoded(self) -> Iterator[Any]:
        incoming = packets(self._container, self._stream, self.file, self._alive, self._clock)
        return (frame for packet in incoming for frame in packet.decode())

    def _seek(self, start: int) -> None:
        if self._clock and self._clock.stamps:
            return  # decode up to it
        goal_s = max(0.0, start / SAMPLE_RATE - PREROLL_S)
        try:
            self._container.seek(int(goal_s / self._stream.time_base), stream=self._stream)
        except av.error.FFmpegError:
            return  # no way to seek: decode up to it
        self._restart()

    def _decode(self) -> None:
        try:
            frame = next(self._frames, None)
        except av.error.FFmpegError as error:
            at_s = (self._end or 0) / SAMPLE_RATE
            told = f"its sound cannot be decoded after {at_s:.2f} s ({error.strerror})"
            raise VideoError("corrupt", self.file, told) from None
        if frame is None:
            self._ended = True
        self._alive()
        for piece in self._resampled(frame):
            samples = piece.to_ndarray().reshape(-1)
            first = self._end
            if piece.pts is not None:
                stamped = round(piece.pts * piece.time_base * SAMPLE_RATE)
                if first is None or abs(stamped - first) > SLACK:
                    first = stamped
            if first is not None and len(samples):
                self._chunks.append((first, samples))
                self._end = first + len(samples)

    def _resampled(self, frame: Any) -> list[Any]:
        try:
            return self._resampler.resample(frame)
        except ValueError:  # the track changes its rate or layout here
            pieces = self._resampler.resample(None)
            self._resampler = av.AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)
            return [*pieces, *self._resampler.resample(frame)]


class SessionSound:
    """The sound of a session: its spans joined on the session's clock."""

    def __init__(self, spans: Sequence[SpanTuple], alive: Callable[[], None]) -> None:
        self._spans: list[tuple[int, int, int, str]] = []  # session samples, file sample, file
        self._alive = alive
        self._track: Track | None = None
        at_s = 0.0
        for file, start_s, end_s in spans:
            stop_s = at_s + end_s - start_s
            self._spans.append((sample_at(at_s), sample_at(stop_s), sample_at(start_s), file))
            at_s = stop_s

    def read(self, start: int, stop: int) -> Samples:
        """Samples `[start, stop)` of the session; silence before its start and after its end."""
        sound = np.zeros(stop - start, np.int16)
        for first, end, file_first, file in self._spans:
            low, high = max(first, start), min(end, stop)
            if low < high:
                shift = file_first - first
                sound[low - start : high - start] = self._open(file, low + shift).read(
                    low + shift, high + shift
                )
        return sound

    def _open(self, file: str, start: int) -> Track:
        if self._track is None or self._track.file != file or start < self._track.passed:
            self.close()
            self._track = Track(file, self._alive)
        return self._track

    def close(self) -> None:
        """Close the open file, if any."""
        if self._track is not None:
            self._track.close()
            self._track = None
