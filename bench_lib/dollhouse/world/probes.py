"""Probes of adaptive candidates.

Positive and negative probes share all that is not the matter itself: window lengths are drawn from
one list, and no probe of any task lies where some other unasked help would be due.
"""

from __future__ import annotations

from collections.abc import Callable

from bench_lib.dollhouse.world.camera import Event
from bench_lib.dollhouse.world.draft import Desk, reference
from bench_lib.dollhouse.world.grammar import Sentence
from bench_lib.schema import Polarity, Probe, Reference


def heartbeats(
    desk: Desk, film: int, positive_s: int, times: list[int], reason: Sentence
) -> list[Probe]:
    """Silent probes at some of the possible times."""
    return [
        Probe(
            id=f"n{i}",
            session=desk.sessions[film],
            t_s=float(t),
            polarity="negative",
            reference=reference(None, reason),
        )
        for i, t in enumerate(_spread(desk, positive_s, times))
    ]


def _spread(desk: Desk, middle_s: int, times: list[int]) -> list[int]:
    """Some of the times, before and after a middle with equal chance, so that late is no hint."""
    low, high = desk.brief.negatives
    sides = [desk.shuffled([t for t in times if (t > middle_s) == later]) for later in (0, 1)]
    chosen = []
    for _ in range(int(desk.rng.integers(low, high + 1))):
        side = sides[int(desk.rng.integers(2))] or sides[0] or sides[1]
        if side:
            chosen.append(side.pop())
    return sorted(chosen)


def windows(
    desk: Desk, event: Event, due: Callable[[Event], bool], yes: Reference, no: Reference
) -> tuple[Probe, ...] | None:
    """One window that ends while `event` is seen, and silent ones; None where they do not fit.

    Both kinds draw their length from one list. Only places that could take the longest window are
    used, so that length tells nothing.
    """
    film, longest = event.film, max(desk.brief.windows_s)
    events = desk.chronicle.world.films[film].events
    busy = [e for e in events if due(e) or desk.chronicle.help_due(e)]

    def quiet(start: int, end: int) -> bool:
        return not any(e.start_s < end and e.end_s > start for e in busy)

    ends = [
        t
        for t in range(max(longest, event.start_s + desk.brief.settle_s), event.end_s + 1)
        if quiet(t - longest, event.start_s)
    ]
    if not ends:
        return None
    end_s = int(desk.pick(ends))
    idle = [t for t in range(longest, events[-1].end_s + 1) if quiet(t - longest, t)]
    found = [_window(desk, film, end_s, "p0", "positive", yes)]
    for i, t in enumerate(_spread(desk, end_s, idle)):
        found.append(_window(desk, film, t, f"n{i}", "negative", no))
    return tuple(found) if len(found) > 1 else None


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
