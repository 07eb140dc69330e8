"""Exact counts of work. Code that works calls `count`; whoever measures opens a `counting` block.

The active counter is a context variable, so threads that serve different trajectories never mix.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
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

_active: ContextVar[tuple[Counter[str], ...]] = ContextVar("_active", default=())


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
