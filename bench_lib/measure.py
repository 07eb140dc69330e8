"""Exact counts of work, and the seconds it takes.

Code that works calls `count`; whoever measures opens a `counting` block. The active counter is a
context variable, so threads that serve different trajectories never mix. `timing` adds up seconds
by kind of work.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar

NAMES = (
    "source_frames_decoded",
    "frames_sampled",
    "frames_observed",
    "frames_encoded",
    "tokens_prefilled",
    "decode_steps",
    "model_calls",
)
"""Counters that every report knows; methods may add their own (evicted, merged, retrieved, ...)."""

MEMORY = ("observe", "session_start", "session_end", "notes")
"""Kinds of work that make a memory; `preparation` and `generation` follow where a question is put.

Clips that are taken in, with what is said unasked of them; the two ends of a session; and all that
the memory is told: registrations, turns, instructions to watch.
"""
_active: ContextVar[tuple[Counter[str], ...]] = ContextVar("_active", default=())
_ahead: ContextVar[tuple[tuple[int, list[float]], ...]] = ContextVar("_ahead", default=())


def count(name: str, n: int = 1) -> None:
    """Add `n` to the counter `name` of every open `counting` block of this thread."""
    for counter in _active.get():
        counter[name] += int(n)


@contextmanager
def counting(alone: bool = False) -> Iterator[Counter[str]]:
    """Collect what `count` reports while the block is open.

    Blocks nest: an outer one sees what its inner ones count, unless an inner one is `alone`.
    """
    counter: Counter[str] = Counter()
    token = _active.set((counter,) if alone else (*_active.get(), counter))
    try:
        yield counter
    finally:
        _active.reset(token)


@contextmanager
def timing(kind: str, *spent: MutableMapping[str, float]) -> Iterator[None]:
    """Add the seconds of the block to `kind` in each of `spent`, those of kept replies included."""
    ahead = [0.0]
    token = _ahead.set((*_ahead.get(), (threading.get_ident(), ahead)))
    begun = time.perf_counter()
    try:
        yield
    finally:
        took_s = time.perf_counter() - begun + ahead[0]
        _ahead.reset(token)
        for one in spent:
            one[kind] = one.get(kind, 0.0) + took_s


def passed(seconds: float) -> None:
    """Count seconds that a kept reply took when it was made to this thread's `timing` blocks.

    Calls of other threads overlap with each other; nobody knows by how much.
    """
    for thread, ahead in _ahead.get():
        if thread == threading.get_ident():
            ahead[0] += seconds
