"""Decoding processes as their caller sees them: started, watched, reused, ended.

A process of its own, because a decoder can crash, leak, or spin while it holds the interpreter
lock. It is a plain subprocess: nothing of the caller's main module is imported again, so scripts
without a main guard and notebooks work alike.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_lib import paths
from bench_lib.video.decode.protocol import HEADER, Kind, VideoError

COMMAND = [sys.executable, "-m", "bench_lib.video.decode.process"]
PIPE_BYTES = 2**20
IDLE_LIMIT = 2
"""Idle processes kept; one takes 0.15 s to start and 50 MB."""


@dataclass(frozen=True)
class Message:
    """A message of the worker: its JSON part, and the sound and picture of a sample."""

    head: dict[str, Any]
    sound: NDArray[np.int16]
    body: NDArray[np.uint8]

    @property
    def nbytes(self) -> int:
        """Bytes of payload."""
        return self.sound.nbytes + self.body.nbytes


class WorkerDied(Exception):
    """The process ended, was ended, or said nothing for too long."""

    def __init__(self, reason: str, kind: Kind = "crashed") -> None:
        super().__init__(reason)
        self.kind = kind


class Worker:
    """One decoding process."""

    def __init__(self) -> None:
        self._errors: Any = tempfile.TemporaryFile()  # noqa: SIM115 - `end` closes it
        places = [str(paths.root()), os.environ.get("PYTHONPATH", "")]
        self.process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in places if p)},
        )
        assert self.process.stdout is not None
        self._out = self.process.stdout
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with contextlib.suppress(OSError):  # more than an unprivileged user may have
                fcntl.fcntl(self._out, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)

    def ask(self, request: dict[str, Any]) -> None:
        """Send a request. Raises WorkerDied."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
        except OSError:
            raise self._died() from None

    def receive(self, timeout_s: float) -> Message:
        """The next message. Raises WorkerDied when it says nothing for `timeout_s`."""
        head_bytes, body_bytes = HEADER.unpack(self._read(HEADER.size, timeout_s).tobytes())
        head = json.loads(self._read(head_bytes, timeout_s).tobytes())
        sound = self._read(2 * head.get("sound", 0), timeout_s).view(np.int16)
        return Message(head, sound, self._read(body_bytes - sound.nbytes, timeout_s))

    def _read(self, nbytes: int, timeout_s: float) -> NDArray[np.uint8]:
        data = np.empty(nbytes, np.uint8)
        view, done = data.data, 0
        while done < nbytes:
            if not self._poll.poll(timeout_s * 1000):
                self.end()
                raise WorkerDied(f"made no progress for {timeout_s:g} s", "timeout")
            try:
                got = self._out.readinto(view[done:])  # type: ignore[attr-defined]
            except (OSError, ValueError):
                got = 0
            if not got:
                raise self._died()
            done += got
        return data

    def _died(self) -> WorkerDied:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1)
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        code = self.process.returncode or 0
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        self.end()
        if code == -signal.SIGALRM:  # its own timer
            return WorkerDied("made no progress", "timeout")
        told = f"signal {-code}" if code < 0 else f"status {code}"
        if code > 0 and lines:
            told += f", {lines[-1]}"
        return WorkerDied(f"the decoding process ended ({told})")

    @property
    def usable(self) -> bool:
        """Whether it is there to be asked."""
        return self.process.poll() is None

    def kill(self) -> None:
        """End it; whoever reads from it sees the end. May be called from any thread."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    def end(self) -> None:
        """Kill it and leave nothing behind; may be called again, by the thread that reads."""
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # stuck in the kernel, say on a disk
            self.process.wait(5)
        for pipe in (self.process.stdin, self.process.stdout, self._errors):
            if pipe is not None:
                pipe.close()


_lock = threading.Lock()
_idle: list[Worker] = []
_living: weakref.WeakSet[Worker] = weakref.WeakSet()


def borrow() -> Worker:
    """An idle process, or a new one."""
    with _lock:
        while _idle:
            worker = _idle.pop()
            if worker.usable:
                return worker
            worker.end()
    worker = Worker()
    _living.add(worker)
    return worker


def give_back(worker: Worker) -> None:
    """Keep a process that has answered its request for the next one."""
    with _lock:
        if len(_idle) < IDLE_LIMIT:
            _idle.append(worker)
            return
    worker.end()


def end_idle() -> None:
    """End the processes that wait for work."""
    with _lock:
        while _idle:
            _idle.pop().end()


@atexit.register
def _end_all() -> None:
    for worker in list(_living):
        worker.kill()


def _forked() -> None:
    """A forked child must not talk to its parent's workers."""
    global _lock
    _lock = threading.Lock()
    _idle.clear()
    _living.clear()


os.register_at_fork(after_in_child=_forked)


def ask_once(request: dict[str, Any], file: str, timeout_s: float) -> dict[str, Any]:
    """One request with one answer. Raises VideoError."""
    worker = borrow()
    try:
        worker.ask({**request, "timeout_s": timeout_s})
        head: dict[str, Any] = {"kind": "alive"}
        while head["kind"] == "alive":
            head = worker.receive(timeout_s).head
    except WorkerDied as death:
        raise VideoError(death.kind, file, str(death)) from None
    except BaseException:  # interrupted: it is still at work on this request
        worker.end()
        raise
    give_back(worker)
    if head["kind"] == "error":
        raise VideoError(head["error"], head["file"], head["reason"])
    return head
