"""The six tools over the memory. The bank they read is cut at the query time by the runtime.

`time_window(start, end)` micro events of a stretch; `find_entity(text, k)` entities by name, alias
and attribute; `search_events(text, k)` micro events by words; `events_of(entity)`; `frames_of
(entity)`; `traverse(entity, hops, labels)` the graph around an entity. A stretch of time narrows
the last three as well.

Hyper-parameter (C.5, Recall Worker): `recall_results` 5, the default and the most of a ranked tool.
Limits of ours: events take at most `room` characters, the oldest being told by the macro or super
event that sums them up, and left out where that is too long too; `EDGES` relations, the nearest and
of those the newest; `FRAMES` frames, evenly spread. What is left out is said, with the way to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from bench_lib.memories.frame_window import thin
from bench_lib.search.text_index import TextIndex
from bench_lib.streammind.bank import Bank, Entity, Event, Relation
from bench_lib.streammind.contracts import RecallCall
from bench_lib.streammind.entities import relevance
from bench_lib.streammind.timeline import Timeline
from bench_lib.video.picture import instant

LEAST = 0.3
"""Relevance from which an entity is found."""
ROOM = 24_000
EDGES = 200
FRAMES = 64
NARROWER = "give a shorter stretch of time to have them"


@dataclass(frozen=True)
class Found:
    """What a tool returned: lines of text, and the ids of entities and frames in them."""

    lines: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The lines."""
        return "\n".join(self.lines) or "(nothing was found)"


class Tools:
    """The tools over one bank."""

    def __init__(self, bank: Bank, results: int) -> None:
        self.bank, self.results = bank, results
        self.time = Timeline(bank.places, bank.end_s)

    def call(self, call: RecallCall, room: int = ROOM) -> Found:
        """Run a call; ValueError says what is wrong with it."""
        k = min(call.k or self.results, self.results)
        if call.tool == "find_entity":
            return self.find_entity(call.text, k)
        if call.tool == "search_events":
            return self.search_events(call.text, k, room)
        start_s = self.time.read(call.start)
        end_s = math.inf if call.end is None else self.time.read(call.end)
        if call.tool == "time_window":
            return self.time_window(start_s, end_s, room)
        entity = self._known(call.entity)
        if call.tool == "events_of":
            return self.events_of(entity, start_s, end_s, room)
        if call.tool == "frames_of":
            return self.frames_of(entity, start_s, end_s)
        return self.traverse(entity, call.hops, call.labels, start_s, end_s)

    def _known(self, key: str) -> Entity:
        if key not in self.bank.entities:
            raise ValueError(f"there is no entity {key!r}: find_entity gives ids")
        return self.bank.entities[key]

    def time_window(self, start_s: float, end_s: float = math.inf, room: int = ROOM) -> Found:
        """Micro events that overlap a stretch, in time order; until now by default."""
        return self._events(self.bank.micros.values(), start_s, end_s, room)

    def find_entity(self, text: str, k: int) -> Found:
        """The entities whose names, aliases or attributes fit best, newest first among equals."""
        scored = [
            (relevance(text, [*e.names, *e.now.values()]), e.last_s, e)
            for e in self.bank.entities.values()
        ]
        scored = [item for item in scored if item[0] >= LEAST]
        best = [e for _, _, e in sorted(scored, key=lambda item: (-item[0], -item[1], item[2].id))]
        return self._entities(best[:k])

    def search_events(self, text: str, k: int, room: int = ROOM) -> Found:
        """The micro events whose descriptions match the words best, shown in time order."""
        keys = self._index.search(text, k)
        return self._events((self.bank.micros[key] for key in keys), room=room)

    @cached_property
    def _index(self) -> TextIndex:
        return TextIndex((e.id, e.text) for e in self.bank.micros.values())

    def events_of(
        self, entity: Entity, start_s: float = 0.0, end_s: float = math.inf, room: int = ROOM
    ) -> Found:
        """The events of a stretch that involve an entity, in time order."""
        known = (self.bank.micros[key] for key in entity.events if key in self.bank.micros)
        return self._events(known, start_s, end_s, room)

    def frames_of(self, entity: Entity, start_s: float = 0.0, end_s: float = math.inf) -> Found:
        """The key frames of an entity in a stretch."""
        there = [frame for frame in entity.frames if start_s <= instant(frame) <= end_s]
        shown = [there[at] for at in thin(len(there), FRAMES)]
        lines = [f"[{frame}] {entity.name}" for frame in shown]
        lines += _left_out(len(there) - len(shown), "frames between these")
        return Found(tuple(lines), (entity.id,), tuple(shown))

    def traverse(
        self,
        entity: Entity,
        hops: int,
        labels: Sequence[str] = (),
        start_s: float = 0.0,
        end_s: float = math.inf,
    ) -> Found:
        """Relations up to some steps away, both directions, each once, in time order."""
        front, seen = {entity.id}, {entity.id}
        edges: dict[int, Relation] = {}
        left = 0
        for _ in range(hops):
            reached = {
                at: edge
                for key in front
                for at, edge in self._around.get(key, ())
                if at not in edges
                and (not labels or edge.label in labels)
                and edge.start_s <= end_s
                and edge.end_s >= start_s
            }
            newest = sorted(reached, key=lambda at: (reached[at].end_s, at))
            left = max(0, len(newest) - (EDGES - len(edges)))
            edges |= {at: reached[at] for at in newest[left:]}
            front = {key for at in newest[left:] for key in (reached[at].src, reached[at].dst)}
            front -= seen
            seen |= front
            if left or not front:
                break
        order = sorted(edges, key=lambda at: (edges[at].start_s, at))
        lines = [*_left_out(left, "relations"), *(self._edge(edges[at]) for at in order)]
        return Found(tuple(lines), tuple(sorted(seen)))

    @cached_property
    def _around(self) -> Mapping[str, list[tuple[int, Relation]]]:
        """The relations of each entity with their numbers."""
        found: dict[str, list[tuple[int, Relation]]] = {}
        for at, edge in enumerate(self.bank.relations):
            for key in {edge.src, edge.dst}:
                found.setdefault(key, []).append((at, edge))
        return found

    def _events(
        self,
        events: Iterable[Event],
        start_s: float = 0.0,
        end_s: float = math.inf,
        room: int = ROOM,
    ) -> Found:
        there = [e for e in events if e.end_s >= start_s and e.start_s <= end_s]
        there.sort(key=lambda e: (e.start_s, e.id))
        for above in (self._above(self.bank.macros), self._above(self.bank.supers)):
            there = self._summed_up(there, above, room)
        size = sum(map(self._size, there))
        left = 0
        while size > room and left < len(there) - 1:
            size -= self._size(there[left])
            left += 1
        shown = there[left:]
        told = (clipped(self._event(e), room) for e in shown)
        lines = [*_left_out(left, "earlier events"), *told]
        entities = dict.fromkeys(key for e in shown for key in e.entities)
        frames = dict.fromkeys(key for e in shown for key in e.frames)
        return Found(tuple(lines), tuple(entities), tuple(frames))

    def _above(self, level: Mapping[str, Event]) -> Mapping[str, Event]:
        """What sums an event up, by the event's id."""
        return {child: e for e in level.values() if e.text for child in e.children}

    def _summed_up(
        self, events: Sequence[Event], above: Mapping[str, Event], room: int
    ) -> list[Event]:
        """The same with the oldest ones summed up, as far as there is no room for them."""
        size = sum(map(self._size, events))
        told: list[Event] = []
        for key, group in groupby(events, lambda e: above[e.id].id if e.id in above else e.id):
            own = list(group)
            less = sum(map(self._size, own))
            parent = above.get(own[0].id)
            if size > room and parent is not None and self._size(parent) < less:
                assert parent.id == key
                own = [parent]
            size += sum(map(self._size, own)) - less
            told += own
        return told

    def _size(self, event: Event) -> int:
        return len(self._event(event)) + 1

    def _event(self, e: Event) -> str:
        return f"[{e.id} {self.time.span(e.start_s, e.end_s)}] {e.text or '(nothing was written)'}"

    def _entities(self, entities: Sequence[Entity]) -> Found:
        frames = dict.fromkeys(key for e in entities for key in e.frames)
        return Found(
            tuple(map(self._entity, entities)), tuple(e.id for e in entities), tuple(frames)
        )

    def _entity(self, e: Entity) -> str:
        also = f", also {', '.join(e.aliases)}" if e.aliases else ""
        now = "; ".join(f"{name}: {value}" for name, value in e.now.items())
        seen = self.time.span(e.first_s, e.last_s)
        return f"[{e.id}] {e.name} ({e.type}{also}) {now}, seen {seen}, {len(e.events)} events"

    def _edge(self, edge: Relation) -> str:
        src, dst = (
            self.bank.entities[k].name if k in self.bank.entities else k
            for k in (edge.src, edge.dst)
        )
        ended = ", no longer" if edge.ended else ""
        span = self.time.span(edge.start_s, edge.end_s)
        return f"{src} [{edge.src}] {edge.label} {dst} [{edge.dst}] ({span}{ended})"


def _left_out(n: int, what: str) -> list[str]:
    return [f"({n} {what} are left out: {NARROWER})"] if n else []


def clipped(text: str, most: int) -> str:
    """The begin of a text that is too long, and how much is missing."""
    cut = len(text) - most
    return text if cut <= 0 else f"{text[:most]} ({cut:,} characters more)"


def named(bank: Bank, keys: Sequence[str], most: int = 20) -> str:
    """Entities by id and name, for calls of a later round."""
    return ", ".join(f"[{k}] {bank.entities[k].name}" for k in keys[:most] if k in bank.entities)
