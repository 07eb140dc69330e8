"""What people write about their videos: trajectory.json and candidates.jsonl."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, ValidationError

from bench_lib import paths
from bench_lib.errors import BenchError
from bench_lib.schema import Candidate, Problem, Record
from bench_lib.sources.folder.names import DAY_S
from bench_lib.texts import Unreadable, composed, encodings, records

_WALL = re.compile(r"DAY([1-9]\d*) ([01]?\d|2[0-3]):([0-5]\d):([0-5]\d(?:\.\d+)?)")


class Fault(Exception):
    """What keeps a trajectory from being read."""

    def __init__(self, file: Path, record: str, field: str, value: Any, reason: str) -> None:
        super().__init__(reason)
        self.problem = Problem(paths.short(file), record, field, repr(value)[:120], reason)


class Entry(Record):
    """A session as described: its video, or several recorded in one go, and what is known of it."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    video: str | tuple[str, ...]
    id: str = ""
    wall_start: str = ""
    captions: str = ""
    encoding: str = ""

    @property
    def videos(self) -> tuple[str, ...]:
        """Names of its files, relative to the folder."""
        return (self.video,) if isinstance(self.video, str) else self.video

    @property
    def wall_s(self) -> float | None:
        """Its start in seconds since 00:00 of day 1; None where it is not told."""
        return wall_s(self.wall_start)


class About(Record):
    """trajectory.json; without `sessions` each video is one."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    title: str = ""
    participant: str = ""
    sessions: tuple[Entry, ...] | None = None


def about(path: Path | None) -> About:
    """What trajectory.json says, nothing where there is none. Raises Fault."""
    if path is None:
        return About()
    try:
        told = About.model_validate(records.value(path))
    except Unreadable as error:
        raise Fault(path, "file", "JSON", "", str(error)) from None
    except ValidationError as error:
        field, value, reason = _first(error)
        raise Fault(path, "file", field, value, reason) from None
    for n, entry in enumerate(told.sessions or ()):
        names = "".join([*entry.videos, entry.captions])
        if not entry.videos or not all(entry.videos) or "\0" in names:
            reason = "needs a file name, or a list of them"
            raise Fault(path, f"session {n}", "video", entry.video, reason)
        try:
            wall_s(entry.wall_start)
            encodings.known(entry.encoding or "utf-8")
        except (ValueError, BenchError) as error:
            value = entry.wall_start if isinstance(error, ValueError) else entry.encoding
            raise Fault(path, f"session {n}", "wall_start, encoding", value, str(error)) from None
    return told


def wall_s(text: str) -> float | None:
    """Seconds since 00:00 of day 1; None for an empty text. Raises ValueError."""
    if not text:
        return None
    found = _WALL.fullmatch(text)
    if not found:
        raise ValueError('wall_start must look like "DAY2 10:03:12"')
    day, hours, minutes, seconds = found.groups()
    return (int(day) - 1) * DAY_S + int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def candidates(path: Path | None, problems: list[Problem]) -> Iterator[Candidate]:
    """The candidates of a file; each that cannot be read is a problem."""
    if path is None:
        return
    name = paths.short(path)
    try:
        entries = records.entries(path)
    except Unreadable as error:
        problems.append(Problem(name, "file", "JSON", "", str(error)))
        return
    for entry in entries:
        if entry.fault:
            shown = repr(entry.text)[:80]
            problems.append(Problem(name, entry.where, entry.field, shown, entry.fault))
            continue
        try:
            yield Candidate.model_validate(_composed(entry.value))
        except ValidationError as error:
            field, value, reason = _first(error)
            problems.append(Problem(name, entry.where, field, repr(value)[:80], reason))


def _first(error: ValidationError) -> tuple[str, Any, str]:
    first = error.errors()[0]
    return ".".join(map(str, first["loc"])) or "JSON", first["input"], first["msg"]


def _composed(found: Any, name: str = "") -> Any:
    """A record with its ids in the form in which names are compared."""
    if isinstance(found, dict):
        return {key: _composed(one, key) for key, one in found.items()}
    if isinstance(found, list):
        return [_composed(one) for one in found]
    return composed(found) if isinstance(found, str) and name in ("id", "session") else found
