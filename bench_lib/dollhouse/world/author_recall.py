"""Cross-session Understanding: Episodic Recall, Entity State Tracking, Temporal Reasoning."""

from __future__ import annotations

from collections.abc import Iterator

from bench_lib.dollhouse.world import sentences as s
from bench_lib.dollhouse.world.camera import Event
from bench_lib.dollhouse.world.chronicle import acts
from bench_lib.dollhouse.world.draft import Desk, Draft
from bench_lib.dollhouse.world.grammar import Spot
from bench_lib.dollhouse.world.words import ACTIONS, CRAFTS, NOTICES, NUMBERS, PEOPLE, STATES
from bench_lib.dollhouse.world.world import DAY_S

_EARLY = 0.3
"""Things are asked about early in a film, while few of them have come into view again."""


def er(desk: Desk) -> Iterator[Draft | None]:
    """Who was there, what was it, what did it read: one moment of an earlier session."""
    while True:
        yield desk.pick((_who_with, _what_did, _sign_on))(desk)


def _who_with(desk: Desk) -> Draft | None:
    at = desk.later()
    events = [e for e in desk.chronicle.once(*at) if e.film < at[0] and e.person]
    if not events:
        return None
    event = desk.pick(events)
    others = desk.shuffled([p for p in PEOPLE if p != event.person])
    fact = s.Met(event.wall_s, event.room, event.person)
    evidence = desk.moments([event], {event: desk.chronicle.told(event) + " " + fact.say()})
    return desk.ask("ER", at, s.WhoWith(acts(event)), event.person, others, evidence)


def _what_did(desk: Desk) -> Draft | None:
    at = desk.later()
    past = desk.chronicle.before(*at)
    done = [e for e in past if e.film < at[0] and e.act and e.act.action in CRAFTS]
    if not done:
        return None
    event = desk.pick(done)
    action, day = acts(event).action, event.wall_s // DAY_S
    same = [
        e
        for e in past
        if e.act and (e.act.action, e.room, e.wall_s // DAY_S) == (action, event.room, day)
    ]
    item = acts(event).item
    if len(same) > 1 or item is None:
        return None
    wrong = desk.items(ACTIONS[action], [item])
    question = s.WhatDid(action, event.room, day + 1)
    return desk.ask(
        "ER", at, question, item, wrong, desk.moments([event], {event: desk.chronicle.told(event)})
    )


def _sign_on(desk: Desk) -> Draft | None:
    at = desk.later()
    past = desk.chronicle.before(*at)
    shown = [e for e in past if e.film < at[0] and e.sign and e.sign.split()[0] in NOTICES]
    if not shown:
        return None
    event = desk.pick(shown)
    day = event.wall_s // DAY_S
    there = [e for e in past if e.sign and (e.room, e.wall_s // DAY_S) == (event.room, day)]
    if len({e.sign for e in there}) > 1:
        return None
    fact = s.Sign(event.wall_s, event.room, event.sign)
    evidence = desk.moments([event], {event: fact.say()})
    question = s.SignOn(event.room, day + 1)
    return desk.ask("ER", at, question, event.sign, other_signs(desk, event.sign), evidence)


def other_signs(desk: Desk, sign: str) -> list[str]:
    """Three signs that with the right one make a square of two words and two numbers."""
    word, number = sign.split()
    other = desk.pick([w for w in NOTICES if w != word])
    second = desk.pick([n for n in NUMBERS if str(n) != number])
    return [f"{word} {second}", f"{other} {number}", f"{other} {second}"]


def est(desk: Desk) -> Iterator[Draft | None]:
    """Where a thing is, which of four things is in a state."""
    while True:
        yield desk.pick((_where_last, _which_last))(desk)


def _where_last(desk: Desk) -> Draft | None:
    at = desk.later(_EARLY)
    house, chronicle = desk.chronicle.world.house, desk.chronicle
    moved = {e.act.item for e in chronicle.before(*at) if e.act and e.act.action == "put"}
    things = [i for i in house.singles if i in moved] or house.singles
    item = desk.pick(things if desk.rng.random() < 0.7 else house.singles)
    seen = chronicle.last_seen(item, *at)
    spot = chronicle.state(item, chronicle.at(*at).wall_s)[0]
    if seen is None or spot is None or seen.film >= at[0]:
        return None
    if any(e.act and e.act.item == item for e in chronicle.before(*at) if e.film == at[0]):
        return None
    places = [Spot(p, r) for r, layout in house.layout.items() for p in layout]
    wrong = desk.shuffled([p for p in places if p != spot])
    evidence = desk.moments([seen], {seen: s.ItIs(item, spot).say()})
    return desk.ask("EST", at, s.WhereLast(item), spot, wrong, evidence)


def _which_last(desk: Desk) -> Draft | None:
    at = desk.later(_EARLY)
    house, chronicle = desk.chronicle.world.house, desk.chronicle
    pair = desk.pick(tuple(dict.fromkeys(STATES.values())))
    state = desk.pick(pair)
    known = []
    for item in house.singles:
        if STATES.get(item.kind) == pair:
            event = _last_known(desk, item, at)
            if event and event.film < at[0]:
                known.append((item, event, chronicle.state(item, event.wall_s)[1]))
    yes = [k for k in known if k[2] == state]
    no = desk.shuffled([k for k in known if k[2] != state])[:3]
    if not yes or len(no) < 3:
        return None
    right = desk.pick(yes)
    evidence = desk.moments([k[1] for k in (right, *no)], {})
    return desk.ask("EST", at, s.WhichLast(state), right[0], [k[0] for k in no], evidence)


def _last_known(desk: Desk, item: object, at: tuple[int, int]) -> Event | None:
    """The newest event that shows a thing's state: in view, or in the hand."""
    for event in desk.chronicle.before(*at)[::-1]:
        acting = event.act is not None and event.act.item == item and event.act.action != "seek"
        if acting or desk.chronicle.in_view(item, event):  # type: ignore[arg-type]
            return event
    return None


def tr(desk: Desk) -> Iterator[Draft | None]:
    """Which act came first, last, or next: moments of two or more sessions."""
    while True:
        yield desk.pick((_extreme, _next_after))(desk)


def _four(desk: Desk, at: tuple[int, int], n: int) -> list[Event]:
    events = [e for e in desk.chronicle.once(*at) if e.film < at[0]]
    chosen = desk.shuffled(events)[:n]
    if len(chosen) < n or (at[0] > 1 and len({e.film for e in chosen}) < 2):
        return []
    return sorted(chosen, key=lambda e: (e.film, e.start_s))


def _extreme(desk: Desk) -> Draft | None:
    at = desk.later()
    events = _four(desk, at, 4)
    if not events:
        return None
    last = bool(desk.rng.integers(2))
    right = events.pop(-1 if last else 0)
    evidence = desk.moments([right, *events], {e: desk.chronicle.told(e) for e in (right, *events)})
    question = s.LastOf() if last else s.FirstOf()
    wrong = [acts(e) for e in desk.shuffled(events)]
    return desk.ask("TR", at, question, acts(right), wrong, evidence)


def _next_after(desk: Desk) -> Draft | None:
    at = desk.later()
    events = _four(desk, at, 5)
    if not events:
        return None
    after = int(desk.rng.integers(0, 4))
    anchor, right = events[after], events[after + 1]
    rest = [e for e in events if e not in (anchor, right)]
    evidence = desk.moments(events, {e: desk.chronicle.told(e) for e in events})
    wrong = [acts(e) for e in desk.shuffled(rest)]
    return desk.ask("TR", at, s.NextAfter(acts(anchor)), acts(right), wrong, evidence)
