"""Giving up a call that nobody waits for any more: backends look here between chunks of a reply."""

from __future__ import annotations

import threading
from contextvars import ContextVar

from bench_lib.messages.chat import ChatError

_stop: ContextVar[threading.Event | None] = ContextVar("_stop", default=None)


class Abandoned(ChatError):
    """Nobody waits for this call any more."""


def watch(stop: threading.Event) -> None:
    """From now on, calls of this context end once `stop` is set."""
    _stop.set(stop)


def check() -> None:
    """Raise Abandoned where nobody waits for the call of this context."""
    stop = _stop.get()
    if stop is not None and stop.is_set():
        raise Abandoned("the call was given up: nobody waits for it")
