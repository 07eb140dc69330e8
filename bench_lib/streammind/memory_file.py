"""The memory as one SQLite file, to be opened with any SQLite tool.

    meta(key, value)      JSON values: version of the form, identity of who saved it, digest, state
    log(version, kind, start_s, end_s, recorded_s, body)     the entries in order, body as JSON
    frame(id, t_s, refs, jpeg)                               the key frames

A run's memories share files of rows (the last two tables) in a folder beside them: `meta` names
them in order.

Kinds and what their bodies hold (times in stream seconds):
    session      id, index, wall_s                  a session's second 0
    fragment     event, text, status, seen_s, frames, entities    one tick of the memory writer
    micro        event, reason                      a micro event has ended
    macro super  id, children, text, status, reason
    entity       id, type, name, aliases, attributes, frames, event      seen (again)
    relation     src, label, dst, event             fact   text
    frame frame_out   id                            kept, dropped
    turn         role, text, qid                    of the dialogue
    monitor      what (started, refused, cancelled, ended, not active), id, condition, mode
    alert        monitor, qid, observed_s, satisfied, confidence, message, frame, error
    check_failed as alert                           rejected   worker, raw, error
    unheard      error                              sound that could not be transcribed
    skip         worker                             a tick that found its worker busy
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sqlite3
from collections import deque
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench_lib.errors import BenchError
from bench_lib.measure import count
from bench_lib.state.packs import ENOUGH, PACKS, RECORD, Shelf, read
from bench_lib.streammind.bank import Bank
from bench_lib.streammind.clock import Lockstep
from bench_lib.streammind.contracts import Wish
from bench_lib.streammind.log import Entry, Log
from bench_lib.streammind.memory_writer import Writing
from bench_lib.streammind.monitor import Alert, Monitor
from bench_lib.streammind.stream import Stream
from bench_lib.video.picture import Picture

NAME = "memory.sqlite"
FORM = 2
_SCHEMA = """
PRAGMA page_size = 1024;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE log (version INTEGER PRIMARY KEY, kind TEXT NOT NULL, start_s REAL NOT NULL,
  end_s REAL NOT NULL, recorded_s REAL NOT NULL, body TEXT NOT NULL);
CREATE TABLE frame (id TEXT PRIMARY KEY, t_s REAL NOT NULL, refs INTEGER NOT NULL,
  jpeg BLOB NOT NULL);
"""


def save(
    stream: Stream, folder: Path, identity: Mapping[str, Any], shelf: Shelf | None = None
) -> None:
    """Write a trunk between sessions. The ring is empty then and is not kept.

    With a `shelf` the rows go to a file of their own there, new ones alone, and the memory names
    its files in order; counts as `bench_lib.state.walk.save` does.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    path.unlink(missing_ok=True)
    entries = stream.entries()
    store = stream.store
    frames = [(f.id, f.t_s, store.refs[f.id], f.jpeg) for f in store.frames.values()]
    parts, done, known = _earlier(shelf, entries, frames)
    rows = list(enumerate(entries[done:], done + 1))
    new = [frame for frame in frames if frame[0] not in known]
    if shelf is not None:
        part = _part(shelf.packs, rows, new)
        parts[part.name] = {"bytes": part.stat().st_size, "frames": [f[0] for f in new]}
        rows, new = [], []
    meta = {
        "form": FORM,
        "identity": identity,
        "digest": _digest(entries, frames),
        "parts": list(parts),
        "frames": [(key, refs) for key, _, refs, _ in frames],
        "state": {
            "now_s": stream.clock.now_s,
            "writing": asdict(stream.writing),
            "monitors": [_packed(m) for m in stream.monitors.values()],
            "monitors_ever": stream.monitors_ever,
            "alerts": [asdict(a) for a in stream.alerts],
            "skipped": dict(stream.skipped),
        },
    }
    _write(path, meta, rows, new)
    if shelf is not None:
        # What `packs.sweep` reads, and the next state.
        record = {"packs": parts, "entries": len(entries), "log": _digest(entries, [])}
        (folder / RECORD).write_text(json.dumps(record))
    own = sum(p.stat().st_size for p in folder.iterdir())
    written = parts[part.name]["bytes"] if shelf is not None else 0
    count("state_bytes_written", own + written)
    count("state_bytes_on_disk", own + sum(part["bytes"] for part in parts.values()))


def _earlier(
    shelf: Shelf | None, entries: list[Entry], frames: list[Any]
) -> tuple[dict[str, Any], int, set[str]]:
    """Files of the state before that stay, the entries and the frames that they hold.

    None where the log does not begin with theirs, or where less than half of their frames is left.
    """
    before = read(shelf.before) if shelf is not None and shelf.before else {}
    parts = before.get("packs", {})
    held = [key for part in parts.values() for key in part["frames"]]
    left = {frame[0] for frame in frames} & set(held)
    whole = shelf is not None and all((shelf.packs / name).exists() for name in parts)
    if not parts or not whole or len(left) < len(held) * ENOUGH:
        return {}, 0, set()
    if before["log"] != _digest(entries[: before["entries"]], []):
        return {}, 0, set()
    return dict(parts), before["entries"], set(held)


def _part(packs: Path, rows: list[Any], frames: list[Any]) -> Path:
    """A file of rows among the packs, named by its content."""
    packs.mkdir(parents=True, exist_ok=True)
    temporary = packs / f"{os.getpid()}.part"
    temporary.unlink(missing_ok=True)
    _write(temporary, {}, rows, frames)
    name = hashlib.sha256(temporary.read_bytes()).hexdigest()[:16]
    return temporary.rename(packs / f"{name}.sqlite")


def _write(path: Path, meta: Mapping[str, Any], rows: list[Any], frames: list[Any]) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(_SCHEMA)
        db.executemany(
            "INSERT INTO meta VALUES (?, ?)",
            [(key, json.dumps(value, sort_keys=True)) for key, value in meta.items()],
        )
        db.executemany(
            "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)",
            [(at, e.kind, e.start_s, e.end_s, e.recorded_s, _body(e)) for at, e in rows],
        )
        db.executemany("INSERT INTO frame VALUES (?, ?, ?, ?)", frames)


def load(stream: Stream, folder: Path, identity: Mapping[str, Any]) -> None:
    """Fill a fresh trunk from a file and those it names.

    Raises:
        BenchError: a file is missing or damaged, or another method or model wrote it.
    """
    path = folder / NAME
    if not path.exists():
        raise BenchError(f"no saved memory in {folder}: {NAME} is missing")
    try:
        meta, entries, held = _rows(path)
        for name in meta.get("parts", ()):
            part = folder.parent / PACKS / name
            if not part.exists():
                raise BenchError(f"{part} is missing, which {path} needs; delete the folder")
            _, more, frames = _rows(part)
            entries, held = [*entries, *more], held | frames
    except (sqlite3.DatabaseError, ValueError) as error:
        raise BenchError(f"{path} is damaged ({error}); delete the folder") from None
    known = json.loads(json.dumps(dict(identity), sort_keys=True))
    if meta.get("form") != FORM or meta.get("identity") != known:
        raise BenchError(f"{path} was saved by {meta.get('identity')}, not by {known}")
    kept = [(key, held[key][0], refs, held[key][1]) for key, refs in meta["frames"] if key in held]
    if meta["digest"] != _digest(entries, kept):
        raise BenchError(f"{path} is damaged: its digest differs; delete the folder")
    stream.log, stream._bank = Log(entries), Bank.at(entries, math.inf)
    for key, t_s, refs, jpeg in kept:
        stream.store.frames[key], stream.store.refs[key] = Picture(t_s, jpeg), refs
    _restore(stream, meta["state"])


def _rows(path: Path) -> tuple[dict[str, Any], list[Entry], dict[str, tuple[float, bytes]]]:
    """What a file holds: facts, entries in order, instants and pictures of frames."""
    with closing(sqlite3.connect(path)) as db:
        meta = {k: json.loads(v) for k, v in db.execute("SELECT key, value FROM meta")}
        rows = db.execute("SELECT kind, start_s, end_s, recorded_s, body FROM log ORDER BY version")
        entries = [Entry(k, a, b, r, json.loads(body)) for k, a, b, r, body in rows]
        frames = {k: (t_s, jpeg) for k, t_s, jpeg in db.execute("SELECT id, t_s, jpeg FROM frame")}
    return meta, entries, frames


def seed_of(folder: Path) -> int:
    """The seed of a saved memory's run; raises BenchError where there is none to be read."""
    path = folder / NAME
    if not path.exists():
        raise BenchError(f"no saved memory in {folder}: {NAME} is missing")
    try:
        with closing(sqlite3.connect(path)) as db:
            row = db.execute("SELECT value FROM meta WHERE key = 'identity'").fetchone()
        return int(json.loads(row[0])["seed"])
    except (sqlite3.DatabaseError, ValueError, KeyError, TypeError) as error:
        raise BenchError(f"{path} is damaged ({error}); delete the folder") from None


def _restore(stream: Stream, state: Mapping[str, Any]) -> None:
    if isinstance(stream.clock, Lockstep):
        stream.clock.now_s = state["now_s"]
    writing: dict[str, Any] = {
        key: tuple(tuple(v) if isinstance(v, list) else v for v in value)
        if isinstance(value, list)
        else value
        for key, value in state["writing"].items()
    }
    stream.writing = Writing(**writing)
    stream.monitors = {m["id"]: _unpacked(m, stream) for m in state["monitors"]}
    stream.monitors_ever = state["monitors_ever"]
    stream.alerts = [Alert(**a) for a in state["alerts"]]
    stream.skipped.update(state["skipped"])


def _packed(m: Monitor) -> dict[str, Any]:
    plain = {k: getattr(m, k) for k in ("id", "qid", "since_s", "next_s", "checks", "fired_s")}
    texts = {"frames": list(m.frames), "summaries": list(m.summaries)}
    return {**plain, **texts, "wish": m.wish.model_dump()}


def _unpacked(packed: Mapping[str, Any], stream: Stream) -> Monitor:
    s = stream.settings
    kept = {
        "wish": Wish.model_validate(packed["wish"]),
        "frames": deque(packed["frames"], s.monitor_records),
        "summaries": deque(packed["summaries"], s.monitor_summaries),
    }
    return Monitor(**{**packed, **kept})


def _body(entry: Entry) -> str:
    return json.dumps(entry.body, sort_keys=True, ensure_ascii=False)


def _digest(entries: list[Entry], frames: list[Any]) -> str:
    found = hashlib.sha256()
    for entry in entries:
        found.update(entry.line().encode() + b"\n")
    for key, t_s, refs, jpeg in frames:
        found.update(repr((key, t_s, refs)).encode() + jpeg)
    return found.hexdigest()
