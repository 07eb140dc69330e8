"""The six tools over the memory. The bank they read is cut at the query time by the runtime.

`time_window(start, end)` micro events of a stretch; `find_entity(text, k)` entities by name, alias
and attribute; `search_events(text, k)` micro events by words; `events_of(entity)`; `frames_of
(entity)`; `traverse(entity, hops, labels)` the graph around an entity.

Hyper-parameter (C.5, Recall Worker): `recall_results` 5, the default and the most of a ranked tool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench_lib.search.text_index import TextIndex
from bench_lib.streammind.bank import Bank, Entity, Event, Relation
from bench_lib.streammind.contracts import RecallCall
from bench_lib.streammind.entities import relevance
from bench_lib.streammind.timeline import Timeline

LEAST = 0.3
"""Relevance from which an entity is found."""


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
        self.time = Timeline(bank.places)
        self._index: TextIndex | None = None

    def call(self, call: RecallCall) -> Found:
        """Run a call; ValueError says what is wrong with it."""
        k = min(call.k or self.results, self.results)
        if call.tool == "time_window":
            end_s = None if call.end is None else self.time.read(call.end)
            return self.time_window(self.time.read(call.start), end_s)
        if call.tool == "find_entity":
            return self.find_entity(call.text, k)
        if call.tool == "search_events":
            return self.search_events(call.text, k)
        if call.tool == "events_of":
            return self.events_of(self._known(call.entity))
        if call.tool == "frames_of":
            return self.frames_of(self._known(call.entity))
        return self.traverse(self._known(call.entity), call.hops, call.labels)

    def _known(self, key: str) -> Entity:
        if key not in self.bank.entities:
            raise ValueError(f"there is no entity {key!r}: find_entity gives ids")
        return self.bank.entities[key]

    def time_window(self, start_s: float, end_s: float | None = None) -> Found:
        """Micro events that overlap a stretch, in time order; until now by default."""
        return self._events(
            [
                e
                for e in self.bank.micros.values()
                if e.end_s >= start_s and (end_s is None or e.start_s <= end_s)
            ]
        )

    def find_entity(self, text: str, k: int) -> Found:
        """The entities whose names, aliases or attributes fit best, newest first among equals."""
        scored = [
            (relevance(text, [*e.names, *e.now.values()]), e.last_s, e)
            for e in self.bank.entities.values()
        ]
        scored = [item for item in scored if item[0] >= LEAST]
        best = [e for _, _, e in sorted(scored, key=lambda item: (-item[0], -item[1], item[2].id))]
        return self._entities(best[:k])

    def search_events(self, text: str, k: int) -> Found:
        """The micro events whose descriptions match the words best, shown in time order."""
        if self._index is None:
            self._index = TextIndex((e.id, e.text) for e in self.bank.micros.values())
        keys = self._index.search(text, k)
        return self._events([self.bank.micros[key] for key in keys])

    def events_of(self, entity: Entity) -> Found:
        """All events that involve an entity."""
        return self._events([self.bank.micros[k] for k in entity.events if k in self.bank.micros])

    def frames_of(self, entity: Entity) -> Found:
        """All key frames of an entity."""
        lines = [f"[{frame}] {entity.name}" for frame in entity.frames]
        return Found(tuple(lines), (entity.id,), tuple(entity.frames))

    def traverse(self, entity: Entity, hops: int, labels: Sequence[str] = ()) -> Found:
        """Relations up to some steps away, both directions, each once."""
        front, seen, edges = {entity.id}, {entity.id}, []
        for _ in range(hops):
            reached: set[str] = set()
            for edge in self.bank.relations:
                if labels and edge.label not in labels:
                    continue
                if (edge.src in front or edge.dst in front) and edge not in edges:
                    edges.append(edge)
                    reached |= {edge.src, edge.dst}
            front = reached - seen
            seen |= reached
            if not front:
                break
        edges.sort(key=lambda edge: edge.start_s)
        return Found(tuple(map(self._edge, edges)), tuple(sorted(seen)))

    def _events(self, events: Sequence[Event]) -> Found:
        events = sorted(events, key=lambda e: (e.start_s, e.id))
        lines = [
            f"[{e.id} {self.time.span(e.start_s, e.end_s)}] {e.text or '(nothing was written)'}"
            for e in events
        ]
        entities = dict.fromkeys(key for e in events for key in e.entities)
        frames = dict.fromkeys(key for e in events for key in e.frames)
        return Found(tuple(lines), tuple(entities), tuple(frames))

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


def named(bank: Bank, keys: Sequence[str], most: int = 20) -> str:
    """Entities by id and name, for calls of a later round."""
    return ", ".join(f"[{k}] {bank.entities[k].name}" for k in keys[:most] if k in bank.entities)
