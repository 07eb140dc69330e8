"""What an author asks of a world: the event log and the household's history, never pictures."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection
from itertools import pairwise

from bench_lib.dollhouse.world.camera import Event
from bench_lib.dollhouse.world.grammar import Act, Condition, Item, Sentence, Spot
from bench_lib.dollhouse.world.sentences import Did, ItIs, NextStep, Usually
from bench_lib.dollhouse.world.words import CRAFTS, CUES, NOTICES, RECIPES
from bench_lib.dollhouse.world.world import World

_NOTICES = [[word] for word in NOTICES]


class Chronicle:
    """Look-ups in time order over one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.events = world.events
        self._starts = [(e.film, e.start_s) for e in self.events]
        self._viewed: dict[tuple[Item, int, int], bool] = {}
        self._shown: dict[Item, list[Event]] = {}
        self._held: dict[Condition, dict[Event, None]] = {}
        self._conditions: dict[tuple[int, int], dict[str, list[Condition]]] = {}
        self._helps: dict[tuple[int, int], tuple[Sentence, list[Event]] | None] = {}
        self._changes: dict[Item, tuple[list[int], list[tuple[Spot | None, str]]]] = {}
        for change in world.house.history:
            times, values = self._changes.setdefault(change.item, ([], []))
            times.append(change.wall_s)
            values.append((change.spot, change.state))

    def state(self, item: Item, wall_s: int) -> tuple[Spot | None, str]:
        """Where a thing is and in what state; what happens at that very second has happened."""
        times, values = self._changes[item]
        return values[bisect_right(times, wall_s) - 1]

    def in_view(self, item: Item, event: Event) -> bool:
        """Whether a thing stands in the room, and not in the hand, during an event."""
        key = (item, event.film, event.shot)
        if key not in self._viewed:
            self._viewed[key] = self._in_view(item, event)
        return self._viewed[key]

    def _in_view(self, item: Item, event: Event) -> bool:
        if event.act and event.act.item == item and event.act.action not in ("put", "seek"):
            return event.act.action == "take"
        spot = None if item in self.world.house.lost else self.state(item, event.wall_s)[0]
        return spot is not None and spot.room == event.room

    def seen_at(self, item: Item, event: Event) -> Spot | None:
        """Where a thing is seen during an event, None where it is not, or taken from there."""
        return self.state(item, event.wall_s)[0] if self.in_view(item, event) else None

    def shown(self, item: Item) -> list[Event]:
        """The events that show a thing: in view, or in the hand."""
        if item not in self._shown:
            self._shown[item] = [
                e
                for e in self.events
                if self.in_view(item, e)
                or (e.act is not None and e.act.item == item and e.act.action != "seek")
            ]
        return self._shown[item]

    def before(self, film: int, t_s: float) -> list[Event]:
        """Events that have begun by an instant of a film."""
        return self.events[: bisect_right(self._starts, (film, t_s))]

    def at(self, film: int, t_s: float) -> Event:
        """The event whose frames are seen at an instant."""
        events = self.world.films[film].events
        return next((e for e in events if e.start_s <= t_s < e.end_s), events[-1])

    def once(self, film: int, t_s: float) -> list[Event]:
        """Events of acts with a thing that were done exactly once by then."""
        events = [e for e in self.before(film, t_s) if e.act and e.act.item]
        times = Counter(e.act for e in events)
        moved = ("take", "put", "seek")
        return [e for e in events if e.act and times[e.act] == 1 and e.act.action not in moved]

    def told(self, event: Event) -> str:
        """An act in words, as someone who sees it would say it."""
        act = acts(event)
        state = self.state(act.item, event.wall_s)[1] if act.item else ""
        return Did(event.wall_s, event.room, act, state).say()

    def holds(self, condition: Condition, event: Event) -> bool:
        """Whether a condition can be seen to hold during an event."""
        if condition.person:
            return (event.person, event.room) == (condition.person, condition.room)
        if condition.sign:
            return event.sign == condition.sign
        if condition.item:
            return self.in_view(condition.item, event)
        return event.act == condition.act

    def held(self, condition: Condition) -> Collection[Event]:
        """The events during which a condition can be seen to hold, in order."""
        if condition not in self._held:
            held = (e for e in self.events if self.holds(condition, e))
            self._held[condition] = dict.fromkeys(held)
        return self._held[condition]

    def conditions(self, event: Event) -> dict[str, list[Condition]]:
        """What can be seen to hold during an event: someone, a sign, an act, things not handled."""
        key = (event.film, event.shot)
        if key not in self._conditions:
            notice = event.sign.split()[:1] in _NOTICES
            done = event.act is not None and event.act.action in CRAFTS
            handled = {e.act.item for e in self.world.films[event.film].events if e.act}
            things = [i for i in self.world.house.singles if i not in handled]
            self._conditions[key] = {
                "person": [Condition(person=event.person, room=event.room)] * bool(event.person),
                "sign": [Condition(sign=event.sign)] * notice,
                "act": [Condition(act=event.act)] * done,
                "item": [Condition(item=i) for i in things if self.in_view(i, event)],
            }
        return self._conditions[key]

    def since_when(self, condition: Condition, event: Event) -> Event:
        """The first event of the film from which on a condition has held until an event."""
        events, held = self.world.films[event.film].events, self.held(condition)
        at = event.shot
        while at > 0 and events[at - 1] in held:
            at -= 1
        return events[at]

    def cue(self, event: Event) -> bool:
        """Whether this is a moment of the kind at which unasked help can be due."""
        return event.act is not None and event.act.action in CUES

    def help_due(self, event: Event) -> tuple[Sentence, list[Event]] | None:
        """The unasked help that earlier events give reason for, with those events."""
        key = (event.film, event.shot)
        if key not in self._helps:
            self._helps[key] = self._help(event)
        return self._helps[key]

    def _help(self, event: Event) -> tuple[Sentence, list[Event]] | None:
        act = event.act
        if act is None:
            return None
        if act.action == "seek" and act.item:
            return self._sought(act.item, event)
        if act.action == "wait":
            return self._next_step(event) if event.sign in RECIPES else self._habit(event)
        return None

    def _past(self, event: Event) -> list[Event]:
        return self.events[: bisect_left(self._starts, (event.film, event.start_s))]

    def _sought(self, item: Item, event: Event) -> tuple[Sentence, list[Event]] | None:
        if self.in_view(item, event):
            return None
        seen = [e for e in self._past(event) if self.in_view(item, e)]
        if not seen:
            return None
        spot = self.state(item, seen[-1].wall_s)[0]
        assert spot is not None
        return ItIs(item, spot), [seen[-1]]

    def _next_step(self, event: Event) -> tuple[Sentence, list[Event]] | None:
        steps = [e for e in self._past(event) if e.sign == event.sign and _step(e)]
        if not steps:
            return None
        last = steps[-1]
        for one, two in self._pairs(steps):
            if one.act == last.act and two.act:
                shown = [e for e in steps if e.film == one.film and _visit(self, e, one)]
                return NextStep(event.sign, two.act), _unique([*shown, *self._run(last, steps)])
        return None

    def _run(self, last: Event, steps: list[Event]) -> list[Event]:
        """The steps of the newest visit up to its last one."""
        return [e for e in steps if e.film == last.film and _visit(self, e, last)]

    def _habit(self, event: Event) -> tuple[Sentence, list[Event]] | None:
        past = self._past(event)
        if not past or not _step(past[-1]) or past[-1].film != event.film:
            return None
        first = past[-1].act
        pairs = [(a, b) for a, b in self._pairs(past) if a.act == first and _step(b)]
        counts = Counter(b.act for _, b in pairs)
        if not counts:
            return None
        act, n = counts.most_common(1)[0]
        if n < 2 or act is None:
            return None
        return Usually(act), [e for a, b in pairs if b.act == act for e in (a, b)]

    def _pairs(self, events: list[Event]) -> list[tuple[Event, Event]]:
        """Neighbours that follow each other without a shot between."""
        return [
            (a, b)
            for a, b in pairwise(events)
            if a.film == b.film and a.shot + 1 == b.shot and a.room == b.room
        ]


def _step(event: Event) -> bool:
    act = event.act
    return bool(act and act.item and act.action not in ("seek", "take", "put"))


def _visit(chronicle: Chronicle, one: Event, two: Event) -> bool:
    """Whether two events of a film lie in one visit: no other room between them."""
    low, high = sorted((one.shot, two.shot))
    between = chronicle.world.films[one.film].events[low : high + 1]
    return all(e.room == one.room for e in between)


def _unique(events: list[Event]) -> list[Event]:
    return list(dict.fromkeys(events))


def acts(event: Event) -> Act:
    """The act of an event that has one."""
    assert event.act is not None
    return event.act
