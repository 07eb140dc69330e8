"""The decoding process, driven through its standard streams.

Started as `python -m bench_lib.video.decode.process`.

It does one request at a time and says at least once a second that presentation time advances. A
decoder that spins, even one that holds the interpreter lock, is ended by the kernel's timer.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO

import numpy as np

from bench_lib.video.decode.audio import SessionSound
from bench_lib.video.decode.images import encoded
from bench_lib.video.decode.inspect import inspect_file
from bench_lib.video.decode.pictures import AvReader
from bench_lib.video.decode.protocol import (
    HEADER,
    SpanTuple,
    Stretches,
    VideoError,
    fed,
    instants,
    sample_at,
)
from bench_lib.video.stream import EPSILON_S, Size, resized

ALIVE_S = 1.0
STRETCH = 1.5
"""The caller's own watch comes first; the timer is for processes whose caller is gone."""


class Wire:
    """Sends messages; between them the timer runs."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._sent_s = 0.0
        self.limit_s = 0.0

    def send(self, message: dict[str, Any], *payload: memoryview) -> None:
        """Send one message; while the caller does not read, no time passes."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        head = json.dumps(message).encode()
        self._out.write(HEADER.pack(len(head), sum(part.nbytes for part in payload)) + head)
        for part in payload:
            if part.nbytes:
                self._out.write(part.cast("B"))
        self._out.flush()
        self._sent_s = time.monotonic()
        self.wind()

    def wind(self) -> None:
        """Start the timer anew; at zero the process ends (default action of SIGALRM)."""
        signal.setitimer(signal.ITIMER_REAL, self.limit_s * STRETCH)

    def alive(self) -> None:
        """Presentation time has advanced."""
        if time.monotonic() - self._sent_s > ALIVE_S:
            self.send({"kind": "alive"})
        else:
            self.wind()


@dataclass(frozen=True)
class Run:
    """Instants `ks` that one walk through a file serves, and their times in the file."""

    file: str
    ks: list[int]
    times: list[float]


def runs(spans: Sequence[SpanTuple], fps: float, stretches: Stretches) -> Iterator[Run]:
    """Split the instants of a session by file, in order. Spans that follow on share a walk."""
    at_s = [0.0]
    for _, start_s, end_s in spans:
        at_s.append(at_s[-1] + end_s - start_s)
    run: Run | None = None
    span = 0
    for k in instants(fps, stretches):
        while span < len(spans) and k / fps >= at_s[span + 1] - EPSILON_S:
            span += 1
        if span == len(spans):
            break
        file, start_s, _ = spans[span]
        file_s = start_s + k / fps - at_s[span]
        if run is None or run.file != file or file_s < run.times[-1]:
            if run:
                yield run
            run = Run(file, [], [])
        run.ks.append(k)
        run.times.append(file_s)
    if run:
        yield run


class Stream:
    """One pass over a session."""

    def __init__(self, request: dict[str, Any], wire: Wire) -> None:
        self.spans: list[SpanTuple] = [(f, s, e) for f, s, e in request["spans"]]
        self.fps: float = request["fps"]
        self.stretches: Stretches = [(s, e) for s, e in request["stretches"]]
        height, width = request["size"] or (0, 0)
        self.size: Size | None = (height, width) if height else None
        self.form: str = request["form"]
        self.reader: str = request["reader"]
        self.wire = wire
        self.decoded = 0
        self.begun_s = time.process_time()
        self.served: dict[str, None] = {}
        self.sound = SessionSound(self.spans, wire.alive) if request["audio"] else None

    def counts(self) -> dict[str, Any]:
        """Work so far: source frames decoded, CPU seconds, who served."""
        spent_s = time.process_time() - self.begun_s
        return {"decoded": self.decoded, "cpu_s": spent_s, "served": ", ".join(self.served)}

    def work(self) -> None:
        """Send every sample, then `done`. Raises VideoError where the pictures stop."""
        spans, fault = self._readable()
        try:
            for run in runs(spans, self.fps, self.stretches):
                self._walk(run)
        finally:
            if self.sound:
                self.sound.close()
        if fault:
            raise fault
        self.wire.send({"kind": "done", **self.counts()})

    def _readable(self) -> tuple[list[SpanTuple], VideoError | None]:
        """The spans before the first one that is empty because its file cannot be read."""
        for index, (file, start_s, end_s) in enumerate(self.spans):
            if end_s <= start_s:
                try:
                    inspect_file(file, self.wire.alive)
                except VideoError as fault:
                    return self.spans[:index], fault
        return self.spans, None

    def _walk(self, run: Run) -> None:
        self.wire.send({"kind": "alive", "file": run.file})
        reader = self._open(run.file)
        before, last = self.decoded, None
        try:
            for k, picture in zip(run.ks, reader.pictures(run.times), strict=True):
                self.decoded = before + reader.decoded
                self.served |= dict.fromkeys(reader.served.split(", "))
                if picture is not None:
                    self._send(k, None if picture is last else picture)
                    last = picture
        finally:
            self.decoded = before + reader.decoded
            reader.close()

    def _open(self, file: str) -> Any:
        if self.reader == "decord":
            from bench_lib.video.decode.second import agreeing

            reader = agreeing(file, self.wire.alive)
            if reader:
                return reader
        return AvReader(file, self.wire.alive)

    def _send(self, k: int, picture: Any) -> None:
        """Send a sample; without a picture it repeats the one before."""
        shape, body = None, memoryview(b"")
        if picture is not None:
            pixels = np.ascontiguousarray(resized(picture.pixels(), self.size))
            shape = pixels.shape
            body = memoryview(encoded(pixels, self.form)) if self.form else pixels.data
        sound = self._heard(k)
        message = {"kind": "sample", "k": k, "shape": shape, "sound": len(sound), **self.counts()}
        self.wire.send(message, sound.data, body)

    def _heard(self, k: int) -> np.ndarray:
        """Sound of `[(k - 1) / fps, k / fps)`, silent outside the stretches."""
        if self.sound is None:
            return np.zeros(0, np.int16)
        start, stop = sample_at((k - 1) / self.fps), sample_at(k / self.fps)
        sound = np.zeros(stop - start, np.int16)
        for low, high in fed(start, stop, self.stretches):
            sound[low - start : high - start] = self.sound.read(low, high)
        return sound


def serve(lines: BinaryIO, wire: Wire) -> None:
    """Answer requests until the input ends."""
    for line in lines:
        request = json.loads(line)
        wire.limit_s = request["timeout_s"]
        wire.wind()
        stream: Stream | None = None
        try:
            if request["kind"] == "inspect":
                wire.send(
                    {"kind": "info", "info": asdict(inspect_file(request["file"], wire.alive))}
                )
            else:
                stream = Stream(request, wire)
                stream.work()
        except VideoError as error:
            counts = stream.counts() if stream else {}
            about = {"error": error.kind, "file": error.file, "reason": error.reason}
            wire.send({"kind": "error", **about, **counts})
        signal.setitimer(signal.ITIMER_REAL, 0)


def main() -> None:
    """Serve on the process's own streams; what libraries print goes to standard error."""
    out = os.fdopen(os.dup(1), "wb", buffering=1 << 16)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupted notebook cell closes its stream
    try:
        serve(sys.stdin.buffer, Wire(out))
    except BrokenPipeError:
        os._exit(0)  # the caller is gone, and with it whoever would read of it


if __name__ == "__main__":
    main()
