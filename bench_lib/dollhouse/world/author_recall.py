"""Cross-session Understanding: Episodic Recall, Entity State Tracking, Temporal Reasoning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from bench_lib.dollhouse.world import sentences as s
from bench_lib.dollhouse.world.camera import Event
from bench_lib.dollhouse.world.chronicle import acts
from bench_lib.dollhouse.world.draft import Desk, Draft
from bench_lib.dollhouse.world.grammar import Item, Spot
from bench_lib.dollhouse.world.words import ACTIONS, CRAFTS, NOTICES, NUMBERS, STATES
from bench_lib.dollhouse.world.world import DAY_S

_EARLY = 0.15
"""Things are asked about early in a film, while few of them have come into view again."""
_TRIES = 60
"""Draws in vain after which a world has no more to give."""


def er(desk: Desk) -> Iterator[Draft | None]:
    """Who was there, what was it, what did it read: one moment of an earlier session."""
    while True:
        yield desk.pick((_who_with, _what_did, _sign_on))(desk)


def _who_with(desk: Desk) -> Draft | None:
    at = desk.later()
    events = [e for e in desk.chronicle.once(*at) if e.film < at[0] and e.person]
    # All four were met: one that never was could be told from the others without the act.
    person, *others = desk.shuffled(sorted({e.person for e in events}))[:4] or [""]
    if len(others) < 3:
        return None
    event = desk.pick([e for e in events if e.person == person])
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
    """Where a thing is, which of four things is in a state.

    Whoever knows where or how a thing was first, or mostly, must not be right more often than by
    chance: the turns see to it, and each waits until the world gives a new draft for it.
    """
    stays, changes = desk.shuffled((True, *[False] * 4)), desk.shuffled((True, True, False))
    asked: set[tuple[str, str]] = set()
    turn, failed = int(desk.rng.integers(2)), 0
    while failed < _TRIES:
        kind, turns = ((_where_last, stays), (_which_last, changes))[turn % 2]
        draft = kind(desk, turns[0])
        turn, failed = turn + 1, failed + 1
        if draft and (draft.question, draft.options[0]) not in asked:
            asked.add((draft.question, draft.options[0]))
            turns.append(turns.pop(0))
            failed = 0
            yield draft


def _where_last(desk: Desk, stays: bool) -> Draft | None:
    """A thing that has been in one place only, or in several and least often in the last."""
    at = desk.later(_EARLY)
    house, chronicle = desk.chronicle.world.house, desk.chronicle
    past = chronicle.before(*at)
    # Where the wearer has been in this session the thing is not: such a place is no option.
    here = {e.room for e in past if e.film == at[0]}
    found = []
    for item in house.singles:
        shown = [e for e in chronicle.shown(item) if (e.film, e.start_s) <= at]
        if not shown or shown[-1].film == at[0]:
            continue
        seen = [(e, spot) for e in shown if (spot := chronicle.seen_at(item, e))]
        if seen and not {spot.room for _, spot in seen} & here:
            rivals = _rivals(seen)
            if (len({spot for _, spot in seen}) == 1) if stays else rivals:
                found.append((item, *seen[-1], rivals))
    if not found:
        return None
    item, event, spot, rivals = desk.pick(found)
    places = [Spot(p, r) for r, layout in house.layout.items() if r not in here for p in layout]
    wrong = rivals[:3] + desk.shuffled([p for p in places if p != spot])
    evidence = desk.moments([event], {event: s.ItIs(item, spot).say()})
    return desk.ask("EST", at, s.WhereLast(item), spot, wrong, evidence)


def _rivals(seen: list[tuple[Event, Spot]]) -> list[Spot]:
    """Other places of a thing, its first one first; none where its last one is no worse a guess."""
    times, lengths = Counter[Spot](), Counter[Spot]()
    for event, spot in seen:
        times[spot] += 1
        lengths[spot] += event.end_s - event.start_s
    first, last = seen[0][1], seen[-1][1]
    oftener = [p for p in times if times[p] >= times[last] and lengths[p] > lengths[last]]
    if first == last or not oftener:
        return []
    return [p for p in dict.fromkeys((first, *oftener, *times)) if p != last]


def _which_last(desk: Desk, changed: bool) -> Draft | None:
    """Of four things one is in a state; that one, and others, may have been in the other before."""
    at = desk.later(_EARLY)
    found = []
    for pair in dict.fromkeys(STATES.values()):
        known = _known(desk, pair, at)
        for state in pair:
            yes = [k for k in known if k.now == state and (k.first != state) == changed]
            no = desk.shuffled([k for k in known if k.now != state])
            # Where the right one was first seen like that, one of the wrong ones was too.
            no.sort(key=lambda k: k.first != state)
            if yes and len(no) > 2 and (changed or no[0].first == state):
                found.append((state, desk.pick(yes), [no[0], *desk.shuffled(no[1:])[:2]]))
    if not found:
        return None
    state, right, no = desk.pick(found)
    evidence = desk.moments([k.event for k in (right, *no)], {})
    return desk.ask("EST", at, s.WhichLast(state), right.item, [k.item for k in no], evidence)


@dataclass(frozen=True)
class _Known:
    """A thing, the state it was first seen in, and the newest event that showed one."""

    item: Item
    first: str
    now: str
    event: Event


def _known(desk: Desk, pair: tuple[str, str], at: tuple[int, int]) -> list[_Known]:
    """Things with these states, in view or in the hand before this session, and not in it."""
    chronicle, found = desk.chronicle, []
    for item in chronicle.world.house.singles:
        if STATES.get(item.kind) != pair:
            continue
        shown = [e for e in chronicle.shown(item) if (e.film, e.start_s) <= at]
        if shown and shown[-1].film < at[0]:
            states = [chronicle.state(item, e.wall_s)[1] for e in (shown[0], shown[-1])]
            found.append(_Known(item, states[0], states[1], shown[-1]))
    return found


def tr(desk: Desk) -> Iterator[Draft | None]:
    """Which act came first, last, or next: moments of two or more sessions."""
    while True:
        yield desk.pick((_extreme, _next_after))(desk)


def _four(desk: Desk, at: tuple[int, int], n: int) -> list[Event]:
    """Acts on different things: those on one are mostly near in time."""
    events = [e for e in desk.chronicle.once(*at) if e.film < at[0]]
    chosen = list({acts(e).item: e for e in desk.shuffled(events)}.values())[:n]
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
