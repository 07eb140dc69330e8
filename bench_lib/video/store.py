"""Sampled frames kept on disk, so that the next pass over a session decodes nothing.

A session is one file (`pack`). Its key names the content of the recorded files (size, modification
time, digests of the first and last MiB), the spans, the grid and the size of the frames.

A frame handle is a place in a pack, so thousands of them cost nothing; therefore a store object
holds a lease on every pack it has handed frames of, and nobody evicts those while it lives. The
folder may be shared by any number of processes, and each may be killed at any moment.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import threading
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from bench_lib import paths
from bench_lib.content import ends
from bench_lib.errors import BenchError
from bench_lib.video.decode.images import Form
from bench_lib.video.decode.protocol import SpanTuple, Stretches
from bench_lib.video.pack import Pack, PackWriter, complete
from bench_lib.video.stream import ArrayFrame, Frame, Size, StoredFrame

VERSION = 1
STEP_BYTES = 8 * 2**20
"""How much is written between two looks at the limit."""


def again(frame: Frame, t_s: float) -> Frame:
    """The same picture at a later instant."""
    assert isinstance(frame, ArrayFrame | StoredFrame)
    return replace(frame, t_s=t_s)


def content(file: str) -> str:
    """What identifies a recorded file: modification time, size, digest of both ends."""
    return f"{Path(file).stat().st_mtime_ns}.{ends(file)}"


class FrameStore:
    """Packs in a folder, at most `limit_bytes` of them; the least recently used go first.

    Args:
        folder: Made when missing; nothing else may live in it.
        form: `lossless` keeps exact pixels (WebP), `jpeg` keeps JPEG of quality 90. Every pass
            gives the pixels of the form, the first one included.
        limit_bytes: When all packs are in use and the limit is reached, further sessions are
            decoded without being kept.
    """

    def __init__(self, folder: Path, form: Form = "lossless", limit_bytes: int = 20 * 2**30):
        if form not in ("lossless", "jpeg"):
            raise BenchError(f"unknown form {form!r} of a frame store; known: lossless, jpeg")
        self.folder, self.form, self.limit_bytes = Path(folder), form, limit_bytes
        self._step_bytes = min(STEP_BYTES, limit_bytes // 16)
        self._lease_path = self.folder / f"{uuid.uuid4().hex}.lease"
        self._mine = threading.Lock()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._locked():  # nobody may find the lease before it is locked
                self._lease = self._lease_path.open("w")
                fcntl.flock(self._lease, fcntl.LOCK_EX)
        except OSError as error:
            raise BenchError(
                f"the frame store cannot use {paths.short(folder)} ({error.strerror}): move it "
                "with BENCH_CACHE to a disk that can be written and locked, or set store to none"
            ) from None

    def key(self, spans: Sequence[SpanTuple], fps: float, size: Size | None, audio: bool) -> str:
        """The key of a session's samples. Raises OSError for an unreadable file."""
        recorded = [(content(file), start_s, end_s) for file, start_s, end_s in spans]
        parts = [VERSION, self.form, recorded, fps, size, audio]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

    def find(self, key: str, stretches: Stretches) -> Pack | None:
        """A complete pack that covers `stretches`; it counts as used now."""
        with self._locked():
            for path in sorted(self.folder.glob(f"{key}.*.pack")):
                pack = Pack.read(path)
                if pack and pack.covers(stretches):
                    self._hold(path)
                    os.utime(path)
                    return pack
        return None

    def begin(self, key: str, fps: float, stretches: Stretches) -> PackWriter | None:
        """A new pack, or None where there is no room."""
        with self._locked():
            self._reap()
            if not self._make_room():
                return None
            path = self.folder / f"{key}.{uuid.uuid4().hex[:8]}.pack"
            self._hold(path)
            return PackWriter(path, fps, stretches, self.room, self._step_bytes)

    def room(self) -> bool:
        """Whether the limit allows another step, after evicting what may be evicted."""
        with self._locked():
            return self._make_room()

    def close(self) -> None:
        """Give up the lease: frames handed out before may vanish from now on."""
        if not self._lease.closed:
            self._lease_path.unlink(missing_ok=True)
            self._lease.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # __init__ refused
            self.close()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """One at a time, over threads and processes; the lock dies with its holder."""
        with self._mine, (self.folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _hold(self, path: Path) -> None:
        self._lease.write(f"{path.name}\n")
        self._lease.flush()

    def _held(self) -> set[str]:
        """Names of packs that some living store object holds."""
        names: set[str] = set()
        for path in self.folder.glob("*.lease"):
            with contextlib.suppress(FileNotFoundError), path.open() as lease:
                if path != self._lease_path:
                    try:
                        fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        path.unlink()  # its owner is gone
                        continue
                    except BlockingIOError:
                        pass
                names.update(lease.read().split())
        return names

    def _reap(self) -> None:
        """Remove what killed writers left."""
        held = self._held()
        for path in self.folder.glob("*.pack"):
            if path.name not in held and not complete(path):
                path.unlink()

    def _make_room(self) -> bool:
        packs = [(path, path.stat()) for path in self.folder.glob("*.pack")]
        total = sum(status.st_size for _, status in packs)
        limit = self.limit_bytes - self._step_bytes
        if total > limit:
            held = self._held()
            for path, status in sorted(packs, key=lambda pack: pack[1].st_mtime_ns):
                if total > limit and path.name not in held:
                    path.unlink()
                    total -= status.st_size
        return total <= limit
