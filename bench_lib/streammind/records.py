"""From a writer's tick to log entries: key frames, entities, relations, closings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bench_lib.streammind.bank import Bank
from bench_lib.streammind.contracts import SeenEntity
from bench_lib.streammind.entities import match, normal
from bench_lib.streammind.frame_store import FrameStore
from bench_lib.streammind.memory_writer import Closing, Tick
from bench_lib.streammind.settings import Settings

Write = Callable[[str, float, float, Mapping[str, Any]], None]
"""Record an entry now: kind, start_s, end_s, body; the bank has taken it in on return."""


def write_tick(tick: Tick, bank: Bank, store: FrameStore, settings: Settings, write: Write) -> None:
    """Record all that a tick brought."""
    for closing in tick.before:
        _close(closing, write)
    frames = _frames(tick, store, write)
    names: dict[str, str] = {}
    for seen in tick.reply.entities:
        _entity(seen, tick, bank, settings, frames, names, write)
    write(
        "fragment",
        tick.start_s,
        tick.end_s,
        {
            "event": tick.event,
            "text": tick.reply.text.strip(),
            "status": tick.status,
            "seen_s": tick.seen_s,
            "frames": list(dict.fromkeys(frames[k.id] for k in tick.reply.key_frames)),
            "entities": list(dict.fromkeys(names.values())),
        },
    )
    for edge in tick.reply.relations:
        src, dst = (
            names.get(normal(name))
            or _entity(SeenEntity(name=name), tick, bank, settings, frames, names, write)
            for name in (edge.src, edge.dst)
        )
        body = {"src": src, "label": edge.label, "dst": dst, "event": tick.event}
        write("relation", tick.start_s, tick.end_s, body)
    for fact in tick.reply.facts:
        write("fact", tick.end_s, tick.end_s, {"text": fact})
    for closing in tick.after:
        _close(closing, write)


def _frames(tick: Tick, store: FrameStore, write: Write) -> dict[str, str]:
    """Keep the cited frames; under which id each is found."""
    text_bearing = {k.id for k in tick.reply.key_frames if k.text}
    cited = {k.id for k in tick.reply.key_frames}
    cited |= {key for e in tick.reply.entities for key in e.frames}
    found: dict[str, str] = {}
    for frame in tick.shown:
        if frame.id in cited:
            key, new = store.keep(frame, tick.end_s, frame.id in text_bearing)
            found[frame.id] = key
            if new:
                write("frame", frame.t_s, frame.t_s, {"id": key})
    for key in store.evict():
        write("frame_out", tick.end_s, tick.end_s, {"id": key})
    return found


def _entity(
    seen: SeenEntity,
    tick: Tick,
    bank: Bank,
    settings: Settings,
    frames: Mapping[str, str],
    names: dict[str, str],
    write: Write,
) -> str:
    """Record an entity as a known one or a new one; its id. `names` are those of this tick."""
    key, doubtful = _known(seen, tick, bank, settings, names)
    if key is None:
        key = f"e{len(bank.entities) + 1}"
    body = {
        "id": key,
        "name": seen.name,
        "type": bank.entities[key].type if key in bank.entities else seen.type,
        "aliases": list(seen.aliases),
        "attributes": dict(seen.attributes),
        "frames": list(dict.fromkeys(frames[f] for f in seen.frames if f in frames)),
        "event": tick.event,
    }
    write("entity", tick.start_s, tick.end_s, body)
    names[normal(seen.name)] = key
    for other in doubtful:
        edge = {"src": key, "label": "possibly same", "dst": other, "event": tick.event}
        write("relation", tick.start_s, tick.end_s, edge)
    return key


def _known(
    seen: SeenEntity, tick: Tick, bank: Bank, settings: Settings, names: Mapping[str, str]
) -> tuple[str | None, list[str]]:
    """Exactly the same name first, whenever it was; then near ones seen lately."""
    types = [seen.type] if seen.type != "other" else ["other", "object", "person", "place", "group"]
    for kind in types:
        found = bank.names.get((kind, normal(seen.name)))
        if found is not None:
            return found, []
    recent = bank.recent(tick.end_s - settings.entity_recent_s)
    taken = set(names.values())
    # What the same tick already names otherwise is there beside it: two things, not one.
    candidates = [(e.id, e.names) for e in recent if e.type == seen.type and e.id not in taken]
    key, doubtful = match([seen.name, *seen.aliases], candidates, seen.type, settings.same_entity)
    return key, ([] if key else doubtful)


def _close(closing: Closing, write: Write) -> None:
    if closing.level == "micro":
        body: dict[str, Any] = {"event": closing.id, "reason": closing.reason}
    else:
        body = {
            "id": closing.id,
            "children": list(closing.children),
            "text": closing.text,
            "status": closing.status,
            "reason": closing.reason,
        }
    write(closing.level, closing.start_s, closing.end_s, body)
