"""One session's samples in one file of the frame store: written once, read at any place.

Images one after the other, the sound of each sample behind its image, then an index (JSON) and a
trailer. A pack without its trailer is half-written and never used.
"""

from __future__ import annotations

import errno
import json
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from bench_lib.video.decode.protocol import Stretches, fed, instants, sample_at
from bench_lib.video.stream import StoredFrame

TRAILER = struct.Struct("<QI8s")  # length of the index, its CRC, a magic word
MAGIC = b"frames01"


@dataclass(frozen=True)
class Entry:
    """Where a sample lies: its image in bytes, its sound in 16-bit samples."""

    k: int
    offset: int
    nbytes: int
    sound_offset: int
    sound_length: int


class Pack:
    """A complete pack: its index, read from its end."""

    def __init__(self, path: Path, index: dict[str, Any]) -> None:
        self.path = path
        self.stretches = [(start_s, end_s) for start_s, end_s in index["stretches"]]
        self.entries = [Entry(*entry) for entry in index["entries"]]

    @classmethod
    def read(cls, path: Path) -> Pack | None:
        """The pack at `path`; None where it is half-written or damaged."""
        with path.open("rb") as file:
            trailer = _trailer(file)
            if trailer is None:
                return None
            length, crc = trailer
            file.seek(-TRAILER.size - length, os.SEEK_END)
            data = file.read(length)
        return cls(path, json.loads(data)) if zlib.crc32(data) == crc else None

    def covers(self, stretches: Stretches) -> bool:
        """Whether every stretch lies in what this pack was made for."""
        merged: list[tuple[float, float]] = []
        for start_s, end_s in sorted(self.stretches):
            if merged and start_s <= merged[-1][1]:
                before_s, until_s = merged.pop()
                start_s, end_s = before_s, max(end_s, until_s)
            merged.append((start_s, end_s))
        return all(any(s <= start and end <= e for s, e in merged) for start, end in stretches)

    def walk(
        self, fps: float, stretches: Stretches
    ) -> Iterator[tuple[StoredFrame, NDArray[np.int16]]]:
        """Frames and their sound at the instants of `stretches`, in order."""
        wanted = set(instants(fps, stretches))
        with self.path.open("rb") as file:
            for entry in self.entries:
                if entry.k in wanted:
                    file.seek(entry.sound_offset)
                    data = file.read(2 * entry.sound_length)
                    sound = _within(np.frombuffer(data, np.int16), entry.k, fps, stretches)
                    yield (
                        StoredFrame(entry.k / fps, str(self.path), entry.offset, entry.nbytes),
                        sound,
                    )


def complete(path: Path) -> bool:
    """Whether a file ends like a pack that was finished."""
    with path.open("rb") as file:
        return _trailer(file) is not None


def _trailer(file: BinaryIO) -> tuple[int, int] | None:
    """Length and CRC of the index."""
    size = file.seek(0, os.SEEK_END)
    if size < TRAILER.size:
        return None
    file.seek(size - TRAILER.size)
    length, crc, magic = TRAILER.unpack(file.read(TRAILER.size))
    return (length, crc) if magic == MAGIC and length <= size - TRAILER.size else None


def _within(kept: NDArray[np.int16], k: int, fps: float, stretches: Stretches) -> NDArray[np.int16]:
    """The sound of an instant, silent outside the stretches."""
    sound = np.zeros_like(kept)
    start = sample_at((k - 1) / fps)
    for low, high in fed(start, start + len(kept), stretches):
        sound[low - start : high - start] = kept[low - start : high - start]
    return sound


class PackWriter:
    """A pack in the making. What was added can be read at once; only `commit` makes it count.

    Args:
        path: A new file.
        fps: The grid.
        stretches: What the pack will cover once it is complete.
        room: Asked after every `step_bytes` whether there is room for more.
        step_bytes: See `room`.
    """

    def __init__(
        self,
        path: Path,
        fps: float,
        stretches: Stretches,
        room: Callable[[], bool],
        step_bytes: int,
    ) -> None:
        self.path, self._fps, self._stretches = path, fps, stretches
        self._room, self._step_bytes = room, step_bytes
        self._file: Any = path.open("wb", buffering=0)
        self._entries: list[Entry] = []
        self._at = self._looked_at = 0

    def add(
        self, k: int, image: NDArray[np.uint8] | None, sound: NDArray[np.int16]
    ) -> StoredFrame | None:
        """Keep the sample of instant `k`; without an image it repeats the one before.

        Returns None from the moment when there is no more room: the pack is given up.
        """
        if self._file is None:
            return None
        try:
            if image is None:
                offset, nbytes = self._entries[-1].offset, self._entries[-1].nbytes
            else:
                offset, nbytes = self._write(image), image.nbytes
            self._entries.append(Entry(k, offset, nbytes, self._write(sound), len(sound)))
        except OSError as error:
            self._give_up(error)
            return None
        if self._at - self._looked_at >= self._step_bytes:
            self._looked_at = self._at
            if not self._room():
                self.close()
        return StoredFrame(k / self._fps, str(self.path), offset, nbytes)

    def _write(self, data: NDArray[Any]) -> int:
        """Append; returns the place."""
        at = self._at
        view = memoryview(data.tobytes())
        while view:
            written = self._file.write(view)
            view, self._at = view[written:], self._at + written
        return at

    def commit(self) -> None:
        """The session is complete: write index and trailer, after everything else is on disk."""
        if self._file is None:
            return
        index = {
            "stretches": list(self._stretches),
            "entries": [list(vars(entry).values()) for entry in self._entries],
        }
        data = json.dumps(index).encode()
        data += TRAILER.pack(len(data), zlib.crc32(data), MAGIC)
        try:
            os.fsync(self._file.fileno())
            self._write(np.frombuffer(data, np.uint8))
        except OSError as error:
            self._give_up(error)
        self.close()

    def _give_up(self, error: OSError) -> None:
        """A full disk is no room, and no reason to stop."""
        self.close()
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise error

    def close(self) -> None:
        """Stop writing. Frames handed out stay readable while the store object lives."""
        if self._file is not None:
            self._file.close()
            self._file = None
