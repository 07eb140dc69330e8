"""Probes of adaptive candidates.

Positive and negative probes share all that is not the matter itself: window lengths are drawn from
one list, and no probe of any task lies where some other unasked help would be due.
"""

from __future__ import annotations

from collections.abc import Callable

from bench_lib.dollhouse.camera import Event
from bench_lib.dollhouse.draft import Desk, reference
from bench_lib.dollhouse.grammar import Sentence
from bench_lib.schema import Polarity, Probe, Reference


def heartbeats(desk: Desk, film: int, times: list[int], reason: Sentence) -> list[Probe]:
    """Silent probes at some of the possible times."""
    low, high = desk.brief.negatives
    n = min(len(times), int(desk.rng.integers(low, high + 1)))
    chosen = sorted(desk.shuffled(times)[:n])
    return [
        Probe(
            id=f"n{i}",
            session=desk.sessions[film],
            t_s=float(t),
            polarity="negative",
            reference=reference(None, reason),
        )
        for i, t in enumerate(chosen)
    ]


def windows(
    desk: Desk, event: Event, due: Callable[[Event], bool], yes: Reference, no: Reference
) -> tuple[Probe, ...] | None:
    """One window that ends while `event` is seen, and silent ones; None where they do not fit.

    Both kinds draw their length first, from the same list, and then a place for it; only films long
    enough before the event for the longest window are used, so that length tells nothing.
    """
    film, brief = event.film, desk.brief
    longest = max(brief.windows_s)
    ends = [
        t
        for t in range(event.start_s + brief.settle_s, event.end_s + 1)
        if t >= longest and not _touched(desk, film, t - longest, event.start_s, due)
    ]
    if not ends:
        return None
    found = [_window(desk, film, int(desk.pick(ends)), "p0", "positive", yes)]
    quiet = [
        t
        for t in range(longest, desk.chronicle.world.films[film].duration_s + 1)
        if not _touched(desk, film, t - longest, t, due)
    ]
    low, high = brief.negatives
    n = int(desk.rng.integers(low, high + 1))
    for i, t in enumerate(sorted(desk.shuffled(quiet)[:n])):
        found.append(_window(desk, film, t, f"n{i}", "negative", no))
    return tuple(found) if len(found) > 1 else None


def _touched(desk: Desk, film: int, start: int, end: int, due: Callable[[Event], bool]) -> bool:
    """Whether anything is due during `[start, end)`."""
    events = [e for e in desk.chronicle.world.films[film].events if e.start_s < end > start]
    events = [e for e in events if e.end_s > start]
    return any(due(e) or desk.chronicle.help_due(e) for e in events)


def _window(
    desk: Desk, film: int, t_s: int, name: str, polarity: Polarity, texts: Reference
) -> Probe:
    lengths = desk.brief.windows_s
    length = desk.pick(lengths)
    if desk.brief.leak == "length":
        length = min(lengths) if polarity == "positive" else max(lengths)
    return Probe(
        id=name,
        session=desk.sessions[film],
        t_s=float(t_s),
        closed=False,
        polarity=polarity,
        interval=(float(t_s - length), float(t_s)),
        reference=texts,
    )
