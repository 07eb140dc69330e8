"""Registered-Condition Response and Proactive Reminder: what the wearer asked to be reminded of."""

from __future__ import annotations

from collections.abc import Iterator

from bench_lib.dollhouse.world import sentences as s
from bench_lib.dollhouse.world.draft import Desk, Draft, reference
from bench_lib.dollhouse.world.grammar import Act, Condition
from bench_lib.dollhouse.world.probes import heartbeats, windows
from bench_lib.dollhouse.world.words import ACTIONS, CRAFTS
from bench_lib.schema import Probe, Registration


def conditions(desk: Desk, film: int) -> list[Condition]:
    """Conditions that come true in a film."""
    events = desk.chronicle.world.films[film].events
    handled = {e.act.item for e in events if e.act}
    found = [Condition(person=e.person, room=e.room) for e in events if e.person]
    found += [Condition(sign=e.sign) for e in events if e.sign.split()[:1] and " " in e.sign]
    found += [Condition(act=e.act) for e in events if e.act and e.act.action in CRAFTS]
    for item in desk.chronicle.world.house.singles:
        if item not in handled and any(desk.chronicle.in_view(item, e) for e in events):
            found.append(Condition(item=item))
    return list(dict.fromkeys(found))


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
        yield _rcr(desk, film)


def _rcr(desk: Desk, film: int) -> Draft | None:
    events = desk.chronicle.world.films[film].events
    condition = desk.pick(conditions(desk, film) or [Condition()])
    settle = desk.brief.settle_s
    first = next((e for e in events if desk.chronicle.holds(condition, e)), None)
    if first is None or first.start_s < 5 * settle or desk.chronicle.help_due(first):
        return None
    said_s = int(desk.rng.integers(0, first.start_s // 2))
    registration, response = _registered(desk, condition, film, said_s)
    t_s = desk.during(first)
    free = [
        t
        for t in range(said_s + settle, events[-1].end_s)
        if not desk.chronicle.holds(condition, desk.chronicle.at(film, t))
        and not desk.chronicle.help_due(desk.chronicle.at(film, t))
    ]
    negatives = heartbeats(desk, film, t_s, free, s.NotYet(condition))
    if not negatives:
        return None
    holds = s.Holds(condition)
    positive = Probe(
        id="p0",
        session=desk.sessions[film],
        t_s=float(t_s),
        polarity="positive",
        reference=reference(response, holds),
    )
    evidence = (desk.moment(first, t_s, holds.say()),)
    return Draft(
        "RCR",
        (positive, *negatives),
        evidence=evidence,
        ideal=(desk.moment(first),),
        registration=registration,
        references={"reason": holds.say()},
    )


def prm(desk: Desk) -> Iterator[Draft | None]:
    """A reminder asked for in an earlier session, due in a later one."""
    while True:
        film = int(desk.rng.integers(1, desk.films))
        yield _prm(desk, film)


def _prm(desk: Desk, film: int) -> Draft | None:
    chronicle = desk.chronicle
    condition = desk.pick(conditions(desk, film) or [Condition()])
    since = int(desk.rng.integers(film))
    t_s = int(desk.rng.integers(chronicle.world.films[since].duration_s))
    later = [e for e in chronicle.events if (e.film, e.start_s) > (since, t_s)]
    first = next((e for e in later if chronicle.holds(condition, e)), None)
    already = chronicle.holds(condition, chronicle.at(since, t_s))
    if first is None or first.film != film or already or chronicle.help_due(first):
        return None
    registration, response = _registered(desk, condition, since, t_s)
    holds = s.Holds(condition)
    silent = s.NotYet(condition)
    probes = windows(
        desk,
        first,
        lambda e: chronicle.holds(condition, e),
        reference(response, holds),
        reference(None, silent),
    )
    if probes is None:
        return None
    return Draft(
        "PRM",
        probes,
        evidence=(desk.moment(first, probes[0].t_s, holds.say()),),
        ideal=(desk.moment(first),),
        registration=registration,
        references={"trigger_match_reason": holds.say()},
    )
