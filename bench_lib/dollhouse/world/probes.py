"""Probes of adaptive candidates: one of several moments of a kind is the one to speak at.

The moments are chosen first, and each must be fit to be either kind of probe; which of them it is
decides chance. So neither its time nor its order among them nor what stands out then tells.
"""

from __future__ import annotations

from bench_lib.dollhouse.world.camera import Event
from bench_lib.dollhouse.world.draft import Desk
from bench_lib.schema import Polarity, Probe, Reference


def settled(desk: Desk, event: Event) -> bool:
    """Whether an event lasts long enough to be asked about, and no unasked help can be due then."""
    return event.end_s - event.start_s > desk.brief.settle_s and not desk.chronicle.cue(event)


def ends(desk: Desk, event: Event) -> list[int]:
    """Where the announced window of a probe at an event may end, whatever its length.

    None where an earlier moment at which unasked help could be due lies in the longest window.
    """
    longest = max(desk.brief.windows_s)
    film = desk.chronicle.world.films[event.film].events
    before = [e for e in film if event.start_s - longest < e.end_s <= event.start_s]
    if any(desk.chronicle.cue(e) for e in before):
        return []
    return list(range(max(longest, event.start_s + desk.brief.settle_s), event.end_s + 1))


def heartbeat(desk: Desk, film: int, t_s: int, name: str, texts: Reference) -> Probe:
    """A probe given as a single time; `name` begins with the letter of its polarity."""
    return Probe(
        id=name,
        session=desk.sessions[film],
        t_s=float(t_s),
        polarity=_polarity(name),
        reference=texts,
    )


def window(desk: Desk, film: int, t_s: int, name: str, texts: Reference) -> Probe:
    """A probe at the end of an announced window; both kinds draw its length from one list."""
    lengths = desk.brief.windows_s
    length = desk.pick(lengths)
    if desk.brief.leak == "length":
        length = min(lengths) if _polarity(name) == "positive" else max(lengths)
    return Probe(
        id=name,
        session=desk.sessions[film],
        t_s=float(t_s),
        closed=False,
        polarity=_polarity(name),
        interval=(float(t_s - length), float(t_s)),
        reference=texts,
    )


def _polarity(name: str) -> Polarity:
    return "positive" if name.startswith("p") else "negative"
