"""Lines over two pipes, bounded in time and size: no wait lasts past its limit, whoever holds them.

A process that ended may have left one behind that still holds its pipes open, so the end of the
process counts, not only that of the pipe.
"""

from __future__ import annotations

import math
import os
import selectors
import threading
import time
from collections.abc import Callable
from typing import IO, Any

REPLY_BYTES = 16 * 2**20
"""Longest line, and most of what lies unread."""
LOOK_S = 0.05
"""How often it is looked whether the process has ended, where nothing comes."""
CHUNK = 2**16


class Late(Exception):
    """The time is over."""


class Closed(Exception):
    """The other side has ended, or shut its pipe."""


class Flooded(Exception):
    """The other side wrote more than a reply may hold."""


class Pipe:
    """Both directions of a worker's standard input and output, which must be unbuffered.

    Args:
        into, out: Its standard input and output.
        ended: Whether its process has ended.
    """

    def __init__(self, into: IO[bytes], out: IO[bytes], ended: Callable[[], bool]) -> None:
        self._into, self._out, self._ended = into, out, ended
        self._unread = bytearray()
        self._searched = 0
        self._selector = selectors.DefaultSelector()
        for end in (into, out):
            os.set_blocking(end.fileno(), False)
        self._selector.register(out, selectors.EVENT_READ)

    def send(self, data: bytes, until_s: float) -> None:
        """Write it all, `until_s` of the monotonic clock; raises Late, Closed, Flooded."""
        left = memoryview(data)
        self._selector.register(self._into, selectors.EVENT_WRITE)
        try:
            while left:
                # What the other side writes meanwhile is read: it cannot block on us.
                if self._into in self._step(until_s):
                    left = left[self._write(left[:CHUNK]) :]
        finally:
            self._selector.unregister(self._into)

    def line(self, until_s: float) -> bytes:
        """The next line, without its end; raises what `send` raises."""
        while True:
            at = self._unread.find(b"\n", self._searched)
            if at >= 0:
                found = bytes(self._unread[:at])
                del self._unread[: at + 1]
                self._searched = 0
                return found
            self._searched = len(self._unread)
            self._step(until_s)

    def _step(self, until_s: float) -> set[Any]:
        """Wait for something to happen and read what is there; the ends that are ready."""
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            raise Late
        # The process is looked at first: what it wrote before its end is then there to be read.
        ended = self._ended()
        wait_s = 0.0 if ended else min(LOOK_S, left_s)
        ready = {key.fileobj for key, _ in self._selector.select(wait_s)}
        if self._out in ready:
            self._read()
        elif ended:
            raise Closed
        return ready

    def _read(self) -> None:
        found = os.read(self._out.fileno(), CHUNK)
        if not found:
            raise Closed
        self._unread += found
        if len(self._unread) > REPLY_BYTES:
            raise Flooded

    def _write(self, data: memoryview) -> int:
        try:
            return os.write(self._into.fileno(), data)
        except BlockingIOError:
            return 0
        except OSError:
            raise Closed from None

    def shut(self) -> None:
        """No more requests: the other side reads the end of its input."""
        self._into.close()

    def close(self) -> None:
        """Let both ends go."""
        self.shut()
        self._selector.close()
        self._out.close()


class Words:
    """What is written to standard error: its first and its last bytes, read as they come."""

    FIRST, LAST = 500, 3500

    def __init__(self, end: IO[bytes]) -> None:
        self._end = end
        self._first, self._last = bytearray(), bytearray()
        self._cut = 0
        self._over, self._until_s = threading.Event(), math.inf
        os.set_blocking(end.fileno(), False)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._end, selectors.EVENT_READ)
            while time.monotonic() < self._until_s:
                if selector.select(LOOK_S):
                    found = os.read(self._end.fileno(), CHUNK)
                    if not found:
                        break
                    self._keep(found)
                elif self._over.is_set():
                    break
        self._end.close()

    def _keep(self, found: bytes) -> None:
        room = max(0, self.FIRST - len(self._first))
        self._first += found[:room]
        self._last += found[room:]
        surplus = max(0, len(self._last) - self.LAST)
        del self._last[:surplus]
        self._cut += surplus

    def close(self) -> str:
        """All that was kept, once the process has ended."""
        self._until_s = time.monotonic() + 1.0  # someone who escaped may write on
        self._over.set()
        self._thread.join()
        between = f"\n[... {self._cut:,} bytes ...]\n".encode() if self._cut else b""
        return bytes(self._first + between + self._last).decode("utf-8", "replace").strip()
