"""Recorded video as a causal stream of samples on a fixed grid.

`open_session` yields, for every instant k / fps inside the stretches asked for, the newest picture
whose presentation timestamp is not later, and the sound that ends there. Decoding goes on ahead in
a process of its own (`decode`), so that no file can take the caller down or hold it up.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from bench_lib.errors import BenchError, nearest
from bench_lib.video.decode.client import Message, ask_once
from bench_lib.video.decode.feed import Feed
from bench_lib.video.decode.images import decoded
from bench_lib.video.decode.protocol import Stretches, VideoError, VideoInfo
from bench_lib.video.pack import Pack, PackWriter
from bench_lib.video.store import FrameStore, again
from bench_lib.video.stream import ArrayFrame, Frame, Size

if TYPE_CHECKING:
    from bench_lib.schema import Session

__all__ = [
    "Sample",
    "SessionStream",
    "VideoError",
    "VideoInfo",
    "inspect",
    "mappings",
    "open_session",
    "session_bytes",
]

TIMEOUT_S = 30.0
_known: dict[tuple[str, int, int], VideoInfo] = {}


def inspect(file: Path | str, timeout_s: float = TIMEOUT_S) -> VideoInfo:
    """What a file is: read once per content (path, size, modification time).

    Raises:
        VideoError: `missing`, `empty`, `corrupt`, `no_video`, `timeout` or `crashed`.
    """
    path = str(file)
    try:
        status = Path(path).stat()
        key = (path, status.st_size, status.st_mtime_ns)
    except OSError:
        key = (path, 0, 0)  # the worker says what is wrong with it
    if key not in _known:
        info = ask_once({"kind": "inspect", "file": path}, path, timeout_s)["info"]
        _known[key] = VideoInfo(
            **{**info, "size": tuple(info["size"]), "notes": tuple(info["notes"])}
        )
    return _known[key]


def mappings(sessions: Iterable[Session]) -> dict[str, list[str]]:
    """Codec and way to RGB, with the names of the files, of those inspected so far."""
    files = {span.file for session in sessions for span in session.spans}
    found: dict[str, set[str]] = {}
    for info in list(_known.values()):
        if info.file in files:
            found.setdefault(f"{info.codec}: {info.mapping}", set()).add(Path(info.file).name)
    return {how: sorted(names) for how, names in sorted(found.items())}


def session_bytes(session: Session) -> int:
    """Bytes of a session's recorded files; of a file cut by a span, its share of the duration."""
    total = 0.0
    for span in session.spans:
        info = inspect(span.file)
        share = (span.end_s - span.start_s) / info.duration_s if info.duration_s else 1.0
        total += info.nbytes * min(1.0, share)
    return round(total)


@dataclass(frozen=True)
class Sample:
    """One instant of a session.

    Attributes:
        t_s: The instant, k / fps.
        frame: What is to be seen at it.
        audio: Where asked for, the sound of `[t_s - 1 / fps, t_s)`: 16 kHz mono in [-1, 1), silent
            before the session's start and outside the stretches. Consecutive samples join without
            gap or overlap.
    """

    t_s: float
    frame: Frame
    audio: NDArray[np.float32] | None = None


class SessionStream(ABC):
    """The samples of one pass over a session, in order. Close it, or use it as a context manager.

    Attributes:
        decoded_frames: Source frames decoded for what was yielded so far; 0 from a frame store.
        decode_s: CPU seconds of the decoding process for it.
        served: Who served: `av 18.1.0`, `decord 0.6.0`, both, or `store`.
    """

    decoded_frames: int = 0
    decode_s: float = 0.0
    served: str = ""

    @abstractmethod
    def __iter__(self) -> Iterator[Sample]:
        """Yield the samples. Raises VideoError where the pictures stop."""

    @abstractmethod
    def close(self) -> None:
        """Stop reading and give everything back; may be called again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_session(
    session: Session,
    fps: float,
    stretches: Stretches,
    size: Size | None = None,
    audio: bool = False,
    reader: str = "pyav",
    store: FrameStore | None = None,
    timeout_s: float = TIMEOUT_S,
) -> SessionStream:
    """Start a pass over a session.

    Args:
        session: Its spans say which stretches of which files it is made of, in order; on the
            session's clock they follow each other without a gap.
        fps: The grid: instants are k / fps after the session's start.
        stretches: What is fed: half-open, ascending, in session seconds.
        size: Height and width that pictures are resized to; None keeps them as they are.
        audio: Whether samples bring sound.
        reader: `pyav`, or `decord` where it agrees with PyAV on the file.
        store: Where samples are kept for the next pass.
        timeout_s: How long decoding may go on without presentation time advancing.

    Returns:
        A stream of samples. An instant without a picture (before a file's first one) yields none.
        While iterating it raises VideoError where pictures stop, after the good ones.
    """
    if not fps > 0:
        raise BenchError(f"fps must be positive, not {fps}")
    if reader not in ("pyav", "decord"):
        raise BenchError(f"unknown reader {reader!r}; {nearest(reader, ('pyav', 'decord'))}")
    spans = [(span.file, span.start_s, span.end_s) for span in session.spans]
    if not spans:
        raise BenchError(f"session {session.id} has no recorded file: give it at least one span")
    writer = None
    if store:
        with contextlib.suppress(OSError):  # the decoding process says what is wrong with it
            key = store.key(spans, fps, size, audio)
            pack = store.find(key, stretches)
            if pack:
                return _Stored(pack, fps, stretches)
            writer = store.begin(key, fps, stretches)
    request = {
        "kind": "stream",
        "spans": spans,
        "fps": fps,
        "stretches": list(stretches),
        "size": size,
        "audio": audio,
        "reader": reader,
        "form": store.form if store else "",
    }
    return _Decoded(request, timeout_s, writer)


def _sound(samples: NDArray[np.int16]) -> NDArray[np.float32] | None:
    return samples.astype(np.float32) / np.float32(32_768) if len(samples) else None


class _Decoded(SessionStream):
    """A pass that decodes; with `writer`, what it decodes is kept."""

    def __init__(
        self, request: dict[str, Any], timeout_s: float, writer: PackWriter | None
    ) -> None:
        self._fps: float = request["fps"]
        self._form: str = request["form"]
        self._writer = writer
        self._feed = Feed(request, request["spans"][0][0], timeout_s)
        self._samples = self._walk()

    def __iter__(self) -> Iterator[Sample]:
        return self._samples

    def _walk(self) -> Iterator[Sample]:
        frame: Frame | None = None
        for message in self._feed:
            head = message.head
            if "decoded" in head:
                self.decoded_frames, self.decode_s = head["decoded"], head["cpu_s"]
                self.served = head["served"]
            if head["kind"] == "error":
                raise VideoError(head["error"], head["file"], head["reason"])
            if head["kind"] == "sample":
                frame = self._frame(message, frame)
                yield Sample(frame.t_s, frame, _sound(message.sound))
        if self._writer:
            self._writer.commit()

    def _frame(self, message: Message, before: Frame | None) -> Frame:
        """The frame of a message; without a picture it shows the one before."""
        k, shape = message.head["k"], message.head["shape"]
        if self._writer:
            image = None if shape is None else message.body
            stored = self._writer.add(k, image, message.sound)
            if stored:
                return stored
        if shape is None:
            assert before is not None
            return again(before, k / self._fps)
        pixels = decoded(message.body) if self._form else message.body.reshape(shape)
        return ArrayFrame(k / self._fps, pixels)

    def close(self) -> None:
        self._feed.close()
        if self._writer:
            self._writer.close()

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # it never started
            self.close()


class _Stored(SessionStream):
    """A pass over a pack of the frame store."""

    served = "store"

    def __init__(self, pack: Pack, fps: float, stretches: Stretches) -> None:
        self._samples = (
            Sample(frame.t_s, frame, _sound(sound)) for frame, sound in pack.walk(fps, stretches)
        )

    def __iter__(self) -> Iterator[Sample]:
        return self._samples

    def close(self) -> None:
        self._samples.close()
