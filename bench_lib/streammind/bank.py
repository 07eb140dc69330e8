"""The memory bank: what the log says at an instant, M_t = (micro, macro, super events, G_t, F_t).

A bank is a fold of log entries, so any past state can be rebuilt: `Bank.at(entries, t_s)` takes in
only what had happened and been recorded by then (Eq. 19). The trunk keeps one bank up to date; each
query builds its own, so taking in an entry costs the same however much is known. Limits of events,
entities and frames are the memory writer's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from bench_lib.streammind.entities import normal
from bench_lib.streammind.log import Entry
from bench_lib.streammind.timeline import Place, Timeline

_PLACED = re.compile(
    r"(?:(?:is|are|was|now|located|placed|put|left|lying|lies|standing|stands|sitting|sits|resting"
    r"|rests|hanging|hangs|kept|stored) )*(?:at|in|inside|into|within|on|onto|on top of|under)"
    r"|(?:is |now )*(?:held|carried|worn) by"
)
"""Relations that say where a thing is: in one place, and on, in or with one thing, at a time."""
ONGOING_S = 15.0
"""A relation seen again within so many seconds is the same occurrence."""


@dataclass
class Event:
    """A micro, macro or super event; `closed` tells why it ended, empty while it goes on."""

    id: str
    start_s: float
    end_s: float
    texts: list[str] = field(default_factory=list)
    children: tuple[str, ...] = ()
    entities: list[str] = field(default_factory=list)
    frames: list[str] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)
    closed: str = ""

    @property
    def text(self) -> str:
        """What happened, in words."""
        return "\n".join(t for t in self.texts if t)


@dataclass
class Entity:
    """A node of the graph. `attributes` are (name, value, since) in the order of recording.

    `now` has the latest value of each, `held` what the lists hold, to be found at once.
    """

    id: str
    type: str
    name: str
    first_s: float
    last_s: float
    aliases: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str, float]] = field(default_factory=list)
    frames: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    now: dict[str, str] = field(default_factory=dict)
    held: set[tuple[str, str]] = field(default_factory=set, repr=False)

    @property
    def names(self) -> list[str]:
        """The name and its aliases."""
        return [self.name, *self.aliases]

    def add(self, what: str, keys: Iterable[str]) -> None:
        """Put to the list of that name what it does not hold yet."""
        held: list[str] = getattr(self, what)
        for key in keys:
            if (what, key) not in self.held:
                self.held.add((what, key))
                held.append(key)


@dataclass
class Relation:
    """A typed edge and the stretch in which it was seen; `ended` where another one replaced it."""

    src: str
    label: str
    dst: str
    start_s: float
    end_s: float
    event: str
    ended: bool = False


@dataclass(frozen=True)
class Turn:
    """One turn of the dialogue."""

    role: str
    text: str
    t_s: float
    qid: str = ""


class Bank:
    """What is known; see the module.

    `upto` counts the log entries that were taken in, `end_s` is when the last of them ends.
    """

    def __init__(self) -> None:
        self.upto = 0
        self.places: tuple[Place, ...] = ()
        self.micros: dict[str, Event] = {}
        self.macros: dict[str, Event] = {}
        self.supers: dict[str, Event] = {}
        self.entities: dict[str, Entity] = {}
        self.relations: list[Relation] = []
        self.turns: list[Turn] = []
        self.facts: list[tuple[float, str]] = []
        self.names: dict[tuple[str, str], str] = {}
        self.end_s = 0.0
        self._newest: dict[tuple[str, str, str], Relation] = {}
        self._placed: dict[tuple[str, bool], dict[str, list[Relation]]] = {}

    @classmethod
    def at(cls, entries: Iterable[Entry], t_s: float) -> Bank:
        """The state at an instant: what had happened and been recorded by then."""
        bank = cls()
        for entry in entries:
            if entry.known_at(t_s):
                bank.take(entry)
        return bank

    @property
    def timeline(self) -> Timeline:
        """The clocks of the sessions so far."""
        return Timeline(self.places, self.end_s)

    def take(self, entry: Entry) -> None:
        """Take in one more entry; kinds that say nothing about the world are passed over."""
        self.upto += 1
        self.end_s = max(self.end_s, entry.end_s)
        reader = getattr(self, f"_{entry.kind}", None)
        if reader is not None:
            reader(entry, entry.body)

    def _session(self, entry: Entry, body: Mapping[str, Any]) -> None:
        place = Place(body["id"], body["index"], entry.start_s, body["wall_s"])
        self.places = (*self.places, place)

    def _fragment(self, entry: Entry, body: Mapping[str, Any]) -> None:
        event = self.micros.setdefault(
            body["event"], Event(body["event"], entry.start_s, entry.end_s)
        )
        event.start_s = min(event.start_s, entry.start_s)
        event.end_s = max(event.end_s, entry.end_s)
        event.texts.append(body["text"])
        event.statuses.append(body["status"])
        event.entities += [e for e in body["entities"] if e not in event.entities]
        event.frames += [f for f in body["frames"] if f not in event.frames]

    def _micro(self, entry: Entry, body: Mapping[str, Any]) -> None:
        self.micros[body["event"]].closed = body["reason"]

    def _macro(self, entry: Entry, body: Mapping[str, Any]) -> None:
        self.macros[body["id"]] = _summary(entry, body, self.micros)

    def _super(self, entry: Entry, body: Mapping[str, Any]) -> None:
        self.supers[body["id"]] = _summary(entry, body, self.macros)

    def _entity(self, entry: Entry, body: Mapping[str, Any]) -> None:
        # The dictionary's order is that of the last sighting: recent ones are found at once.
        known = self.entities.pop(body["id"], None)
        if known is None:
            known = Entity(body["id"], body["type"], body["name"], entry.start_s, entry.end_s)
        self.entities[known.id] = known
        known.last_s = max(known.last_s, entry.end_s)
        for name in (body["name"], *body["aliases"]):
            self.names.setdefault((known.type, normal(name)), known.id)
            if name != known.name:
                known.add("aliases", [name])
        for name, value in body["attributes"].items():
            if known.now.get(name) != value:
                known.attributes.append((name, value, entry.start_s))
            known.now[name] = value
        known.add("frames", body["frames"])
        known.add("events", [body["event"]] if body["event"] else [])

    @property
    def begun_s(self) -> float:
        """When the session under way began: before it lies what may be days ago."""
        return self.places[-1].offset_s if self.places else -math.inf

    def recent(self, since_s: float) -> list[Entity]:
        """Entities seen since an instant of this session, the newest first.

        It costs no more than what it gives.
        """
        since_s = max(since_s, self.begun_s)
        return list(takewhile(lambda e: e.last_s >= since_s, reversed(self.entities.values())))

    def _relation(self, entry: Entry, body: Mapping[str, Any]) -> None:
        src, label, dst = body["src"], body["label"], body["dst"]
        edge = self._newest.get((src, label, dst))
        if edge is not None and not edge.ended and self._goes_on(edge, entry.start_s):
            edge.end_s = max(edge.end_s, entry.end_s)
            return
        edge = Relation(src, label, dst, entry.start_s, entry.end_s, body["event"])
        self._newest[src, label, dst] = edge
        self.relations.append(edge)
        if _PLACED.fullmatch(" ".join(label.casefold().split())):
            self._place(edge)

    def _goes_on(self, edge: Relation, start_s: float) -> bool:
        """Whether a sighting belongs to the same occurrence."""
        return edge.end_s >= self.begun_s and start_s - edge.end_s <= ONGOING_S

    def _place(self, edge: Relation) -> None:
        """A thing was seen somewhere: where it was seen before, it is no longer.

        What the same look saw holds together, as do a place and a thing in it.
        """
        target = self.entities.get(edge.dst)
        in_place = target is not None and target.type == "place"
        here = self._placed.setdefault((edge.src, in_place), {})
        for dst in [dst for dst in here if dst != edge.dst]:
            stay = []
            for other in here.pop(dst):
                other.ended = other.end_s < edge.end_s
                stay += [] if other.ended else [other]
            if stay:
                here[dst] = stay
        here.setdefault(edge.dst, []).append(edge)

    def _turn(self, entry: Entry, body: Mapping[str, Any]) -> None:
        self.turns.append(Turn(body["role"], body["text"], entry.start_s, body["qid"]))

    def _fact(self, entry: Entry, body: Mapping[str, Any]) -> None:
        self.facts.append((entry.end_s, body["text"]))


def _summary(entry: Entry, body: Mapping[str, Any], below: Mapping[str, Event]) -> Event:
    children = [below[key] for key in body["children"] if key in below]
    return Event(
        body["id"],
        entry.start_s,
        entry.end_s,
        [body["text"]],
        tuple(body["children"]),
        list(dict.fromkeys(e for child in children for e in child.entities)),
        list(dict.fromkeys(f for child in children for f in child.frames)),
        [body["status"]],
        body["reason"],
    )


def dialogue(turns: Iterable[Turn], characters: int, most: int | None = None) -> list[Turn]:
    """The newest turns within a number of characters, and of turns where that is limited."""
    kept: list[Turn] = []
    for turn in reversed(list(turns)):
        characters -= len(turn.text)
        if characters < 0 or (most is not None and len(kept) >= most):
            break
        kept.append(turn)
    return kept[::-1]
