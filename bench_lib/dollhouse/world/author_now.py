"""Real-time Perception: what is done, how many, what it reads, how things stand to each other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from bench_lib.dollhouse.world import sentences as s
from bench_lib.dollhouse.world.author_recall import other_signs
from bench_lib.dollhouse.world.camera import Event
from bench_lib.dollhouse.world.draft import Desk, Draft
from bench_lib.dollhouse.world.grammar import RELATIONS, Item
from bench_lib.dollhouse.world.words import CLOTH, CRAFTS, MAKES, NOTICES


def _events(desk: Desk) -> list[Event]:
    return [e for e in desk.chronicle.events if e.end_s - e.start_s > desk.brief.settle_s]


def acr(desk: Desk) -> Iterator[Draft | None]:
    """The act in the wearer's hands; wrong options are acts of the same class at other times."""
    while True:
        family = desk.pick((CRAFTS, tuple(MAKES)))
        done = [e for e in _events(desk) if e.act and e.act.item and e.act.action in family]
        act, *wrong = desk.shuffled(list(dict.fromkeys(e.act for e in done)))[:4] or [None]
        if len(wrong) < 3:
            yield None
            continue
        event = desk.pick([e for e in done if e.act == act])
        t_s = desk.during(event)
        text = desk.chronicle.told(event)
        evidence = (desk.moment(event, t_s, text),)
        yield desk.ask("ACR", (event.film, t_s), s.DoingNow(), act, wrong, evidence)


def ct(desk: Desk) -> Iterator[Draft | None]:
    """How many things of a kind: totals are uniform in 1 to 4 or 5 to 8, which are the options."""
    house = desk.chronicle.world.house
    while True:
        if not house.collections:
            yield None
            continue
        kind = desk.pick(sorted({i.kind for i in house.collections}))
        those = [i for i in house.collections if i.kind == kind]
        spot = house.spots[those[0]]
        rooms = [e for e in _events(desk) if spot and e.room == spot.room]
        events = [e for e in rooms if not (e.act and e.act.item and e.act.item.kind == kind)]
        # People wear clothes, which are not counted.
        events = [e for e in events if not (kind in CLOTH and e.person)]
        loose = [i for i in house.singles if i.kind == kind]
        if not events or loose:
            yield None
            continue
        event = desk.pick(events)
        t_s = desk.during(event)
        total = sum(i.n for i in those)
        options = range(1, 5) if total < 5 else range(5, 9)
        wrong = [n for n in options if n != total]
        evidence = (desk.moment(event, t_s),)
        yield desk.ask("CT", (event.film, t_s), s.HowManyNow(kind), total, wrong, evidence)


def ocr(desk: Desk) -> Iterator[Draft | None]:
    """The sign in view."""
    while True:
        events = [e for e in _events(desk) if e.sign and e.sign.split()[0] in NOTICES]
        if not events:
            yield None
            continue
        event = desk.pick(events)
        t_s = desk.during(event)
        fact = s.Sign(event.wall_s, event.room, event.sign)
        evidence = (desk.moment(event, t_s, fact.say()),)
        wrong = other_signs(desk, event.sign)
        yield desk.ask("OCR", (event.film, t_s), s.SignNow(), event.sign, wrong, evidence)


def stu(desk: Desk) -> Iterator[Draft | None]:
    """How two things stand to each other, and what stands beside a thing, as the wearer sees it."""
    while True:
        # The relation comes first, then a view that shows it: all four are right equally often.
        relation = desk.pick(RELATIONS)
        for event in desk.shuffled(_events(desk)):
            standing = _standing(desk, event)
            pairs = [
                (a, b)
                for a, b in permutations(standing, 2)
                if _relation(standing[a], standing[b]) == relation
            ]
            if pairs:
                yield _stu(desk, event, relation, standing, desk.pick(pairs))
                break
        else:
            yield None


def _stu(
    desk: Desk,
    event: Event,
    relation: str,
    standing: dict[Item, tuple[int, int]],
    pair: tuple[Item, Item],
) -> Draft | None:
    one, other = pair
    t_s = desk.during(event)
    at, evidence = (event.film, t_s), (desk.moment(event, t_s),)
    if desk.rng.random() < 0.5:
        wrong = [r for r in RELATIONS if r != relation]
        return desk.ask("STU", at, s.RelationNow(one, other), relation, wrong, evidence)
    fitting = [a for a in standing if _relation(standing[a], standing[other]) == relation]
    if len(fitting) > 1:
        return None
    # Collections name their number: they would stand out among the options.
    singles = desk.chronicle.world.house.singles
    if one not in singles:
        return None
    here = [i for i in desk.shuffled(list(standing)) if i not in pair and i in singles]
    rest = [i for i in desk.shuffled(singles) if i not in pair]
    return desk.ask("STU", at, s.BesideNow(relation, other), one, here + rest, evidence)


def _standing(desk: Desk, event: Event) -> dict[Item, tuple[int, int]]:
    """Single things in view with column and row as seen from the side the room is filmed from."""
    house, chronicle = desk.chronicle.world.house, desk.chronicle
    view = chronicle.world.films[event.film].shots[event.shot].view
    found = {}
    for item in house.spots:
        spot = chronicle.state(item, event.wall_s)[0]
        moving = event.act is not None and event.act.item == item
        if spot and spot.room == event.room and not moving:
            slot = house.slot(spot, view)
            found[item] = (slot % 3, slot // 3)
    return found


def _relation(one: tuple[int, int], other: tuple[int, int]) -> str:
    """The relation of two places, empty where none of the four holds; row 0 is far, row 1 near."""
    if one[1] == other[1] and one[0] != other[0]:
        return "left of" if one[0] < other[0] else "right of"
    if one[0] == other[0] and one[1] != other[1]:
        return "in front of" if one[1] > other[1] else "behind"
    return ""
