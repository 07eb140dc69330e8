"""Registered-Condition Response and Proactive Reminder: what the wearer asked to be reminded of.

Some moments of a film are chosen at which something of one kind can be seen (someone, a sign, an
act, a thing). What is registered comes true at one of them, whichever chance takes.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench_lib.dollhouse.world import sentences as s
from bench_lib.dollhouse.world.camera import Event
from bench_lib.dollhouse.world.draft import Desk, Draft, reference
from bench_lib.dollhouse.world.grammar import Act, Condition
from bench_lib.dollhouse.world.probes import ends, heartbeat, settled, window
from bench_lib.dollhouse.world.words import ACTIONS, CRAFTS
from bench_lib.schema import Registration

KINDS = ("person", "sign", "act", "item")
_TRIES = 12


def conditions(desk: Desk, film: int) -> list[Condition]:
    """Conditions that come true in a film."""
    found = [desk.chronicle.conditions(e) for e in desk.chronicle.world.films[film].events]
    return list(dict.fromkeys(c for kind in KINDS for shown in found for c in shown[kind]))


def _registered(
    desk: Desk, condition: Condition, film: int, t_s: int
) -> tuple[Registration, s.Remind]:
    """The wearer's words, about a random act on a thing of the household, and the reminder."""
    item = desk.pick(desk.chronicle.world.house.singles)
    act = Act(desk.pick([a for a in CRAFTS if item.kind in ACTIONS[a]] or ["take"]), item)
    text = s.Register(condition, act).say()
    return Registration(session=desk.sessions[film], t_s=float(t_s), text=text), s.Remind(act)


def rcr(desk: Desk) -> Iterator[Draft | None]:
    """A reminder asked for in this session, due when its condition can be seen."""
    while True:
        film = int(desk.rng.integers(desk.films))
        yield _first_of(desk, "RCR", film, film)


def prm(desk: Desk) -> Iterator[Draft | None]:
    """A reminder asked for in an earlier session, due in a later one."""
    while True:
        film = int(desk.rng.integers(1, desk.films))
        yield _first_of(desk, "PRM", film, int(desk.rng.integers(film)))


def _first_of(desk: Desk, task: str, film: int, since: int) -> Draft | None:
    kind = desk.pick(KINDS)
    return next(filter(None, (_draft(desk, task, film, since, kind) for _ in range(_TRIES))), None)


def _draft(desk: Desk, task: str, film: int, since: int, kind: str) -> Draft | None:
    here = task == "RCR"
    until = desk.chronicle.world.films[since].duration_s * (3 if here else 5) // 5
    said = (since, int(desk.rng.integers(until)))
    fresh = {
        e: new
        for e in desk.chronicle.world.films[film].events
        if (film, e.start_s) > said
        and settled(desk, e)
        and (here or ends(desk, e))
        and (new := _fresh(desk, said, e, kind))
    }
    low, high = desk.brief.negatives
    events = desk.shuffled(list(fresh))[: 1 + int(desk.rng.integers(low, high + 1))]
    if len(events) <= low:
        return None
    times = {e: desk.during(e) if here else int(desk.pick(ends(desk, e))) for e in events}
    shown = {e: [e] if here else _within(desk, film, t_s) for e, t_s in times.items()}
    fitting = {
        e: [c for c in fresh[e] if not any(_holds(desk, c, shown[o]) for o in events if o != e)]
        for e in events
    }
    if not all(fitting.values()):
        return None
    event = events[0]
    condition = desk.pick(fitting[event])
    registration, response = _registered(desk, condition, *said)
    holds, silent = s.Holds(condition), s.NotYet(condition)
    make = heartbeat if here else window
    probes = [make(desk, film, times[event], "p0", reference(response, holds))]
    for i, other in enumerate(events[1:]):
        probes.append(make(desk, film, times[other], f"n{i}", reference(None, silent)))
    first = desk.chronicle.since_when(condition, event)
    return Draft(
        task,
        tuple(probes),
        evidence=(desk.moment(first, times[event], holds.say()),),
        ideal=(desk.moment(first, event.end_s),),
        registration=registration,
        references={"reason" if here else "trigger_match_reason": holds.say()},
    )


def _within(desk: Desk, film: int, t_s: int) -> list[Event]:
    """The events that the longest window which ends at an instant can show."""
    start_s = t_s - max(desk.brief.windows_s)
    events = desk.chronicle.world.films[film].events
    return [e for e in events if e.end_s > start_s and e.start_s < t_s]


def _holds(desk: Desk, condition: Condition, events: list[Event]) -> bool:
    return any(e in events for e in desk.chronicle.held(condition))


def _fresh(desk: Desk, said: tuple[int, int], event: Event, kind: str) -> list[Condition]:
    """What holds at an event and, up to then, has not held since an instant."""
    chronicle, found = desk.chronicle, []
    now = chronicle.at(*said)
    for condition in chronicle.conditions(event)[kind]:
        first = chronicle.since_when(condition, event)
        start = (first.film, first.start_s)
        held = chronicle.held(condition)
        if (
            start > said
            and now not in held
            and not any(said < (e.film, e.start_s) < start for e in held)
        ):
            found.append(condition)
    return found
