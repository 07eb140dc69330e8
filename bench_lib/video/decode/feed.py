"""The answers to one request, read ahead of the consumer within a bound of memory."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

from bench_lib.video.decode.client import Message, Worker, WorkerDied, borrow, give_back
from bench_lib.video.decode.protocol import VideoError

QUEUE_BYTES = 64 * 2**20
"""What lies decoded and not yet taken, at most; two samples are always let in."""


class Feed:
    """The messages of one request, read by a thread into a queue that is bounded in bytes.

    Args:
        request: What to ask; see `decode.Stream`.
        file: The first file; the one at hand is named in the error when the process dies.
        timeout_s: How long presentation time may stand still.
    """

    def __init__(self, request: dict[str, Any], file: str, timeout_s: float) -> None:
        self._file, self._timeout_s = file, timeout_s
        self._ready: deque[Message | WorkerDied] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._closed = self._over = False
        self._worker: Worker | None = borrow()
        self._request = {**request, "timeout_s": timeout_s}
        self._thread = threading.Thread(
            target=self._read, args=(self._worker,), name="video-feed", daemon=True
        )
        self._thread.start()

    def _read(self, worker: Worker) -> None:
        try:
            worker.ask(self._request)
            while not self._closed:
                message = worker.receive(self._timeout_s)
                if message.head["kind"] == "alive":
                    self._file = message.head.get("file", self._file)
                    continue
                if message.head["kind"] in ("done", "error"):
                    with self._changed:
                        if self._closed:  # `close` has killed it, however far it had come
                            break
                        self._worker = None  # from here on it may be another stream's
                    give_back(worker)
                    self._put(message)
                    return
                self._put(message)
        except WorkerDied as death:
            self._put(death)
        except Exception as error:
            # Whatever it is, say it: the consumer waits for a word.
            self._put(WorkerDied(f"its answer cannot be read ({type(error).__name__}: {error})"))
        worker.end()

    def _put(self, message: Message | WorkerDied) -> None:
        size = message.nbytes if isinstance(message, Message) else 0
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or len(self._ready) < 2 or self._bytes + size <= QUEUE_BYTES
            )
            self._ready.append(message)
            self._bytes += size
            self._changed.notify_all()

    def __iter__(self) -> Iterator[Message]:
        """Messages up to and with `done` or `error`. Raises VideoError if the process dies."""
        while not self._over:
            with self._changed:
                self._changed.wait_for(lambda: self._ready)
                message = self._ready.popleft()
                if isinstance(message, Message):
                    self._bytes -= message.nbytes
                self._changed.notify_all()
            if isinstance(message, WorkerDied):
                self._over = True
                raise VideoError(message.kind, self._file, str(message))
            self._over = message.head["kind"] in ("done", "error")
            yield message

    @property
    def ready_bytes(self) -> int:
        """Bytes that wait to be taken."""
        return self._bytes

    def close(self) -> None:
        """Stop. A process that is not done yet is killed; nothing is left behind."""
        with self._changed:
            self._closed = True
            if self._worker is not None:
                self._worker.kill()
            self._changed.notify_all()
        self._thread.join()
        self._ready.clear()
