"""folder: a user's own videos.

    DATA_ROOT/
        kitchen_week/                a trajectory
            trajectory.json          optional: title, participant, sessions
            monday.mp4 tuesday.mp4   its sessions in the order of their names
            monday.srt               optional captions beside a video (.srt or .vtt)
            candidates.jsonl         optional: one schema.Candidate a line

`trajectory.json` may hold `title`, `participant` and `sessions`, a list of objects with `video` (a
file name, or several recorded in one go), and optionally `id` and `wall_start` ("DAY2 10:03:12").
Without it each video is a session named after its file. Times in candidates are seconds in their
session. A video that cannot be read stays in the list and costs the probes of its session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench_lib import paths
from bench_lib.errors import BenchError
from bench_lib.schema import Candidate, Caption, Dataset, Problem, Session, Span, Trajectory
from bench_lib.texts import records
from bench_lib.video import captions
from bench_lib.video.session import VideoError, inspect

VIDEOS = {".mp4", ".mov", ".mkv", ".webm", ".avi", ".m4v"}
_WALL = re.compile(r"DAY(\d+) (\d{1,2}):(\d{2}):(\d{2})$")


def load(data_root: str) -> Dataset:
    """Read every trajectory folder below `data_root`."""
    root = Path(data_root).expanduser()
    if not data_root or not root.is_dir():
        raise BenchError(
            f"data_root {data_root!r} is no folder; give the folder that holds one folder per "
            "trajectory, each with its session videos"
        )
    homes = sorted(p for p in root.iterdir() if p.is_dir() and not p.name.startswith("."))
    trajectories, problems = [], []
    for home in homes:
        try:
            trajectory, faults = _trajectory(home)
        except _Fault as fault:
            problems.append(fault.problem)
            continue
        problems += faults
        trajectories.append(trajectory)
    if not trajectories:
        reason = f" ({problems[0]})" if problems else ""
        raise BenchError(
            f"no trajectory below {paths.short(root)}: no folder holds a video{reason}"
        )
    return Dataset(tuple(trajectories), tuple(problems))


class _Fault(Exception):
    def __init__(self, file: Path, record: str, field: str, value: Any, reason: str) -> None:
        super().__init__(reason)
        self.problem = Problem(paths.short(file), record, field, repr(value), reason)


def _trajectory(home: Path) -> tuple[Trajectory, list[Problem]]:
    about = home / "trajectory.json"
    described: dict[str, Any] = {}
    if about.exists():
        try:
            described = records.value(about)
        except records.Unreadable as error:
            raise _Fault(about, "file", "JSON", "", str(error)) from None
    listed = described.get("sessions")
    if listed is None:
        names = sorted(p.name for p in home.iterdir() if p.suffix.lower() in VIDEOS)
        listed = [{"video": name} for name in names]
    if not listed:
        raise _Fault(home, "folder", "videos", sorted(VIDEOS), "holds no video")
    sessions = tuple(_session(home, about, i, entry) for i, entry in enumerate(listed))
    problems: list[Problem] = []
    trajectory = Trajectory(
        id=home.name,
        source="folder",
        title=str(described.get("title", home.name)),
        participant=str(described.get("participant", "")),
        sessions=sessions,
        candidates=tuple(_candidates(home / "candidates.jsonl", problems)),
    )
    return trajectory, problems


def _session(home: Path, about: Path, index: int, entry: dict[str, Any]) -> Session:
    videos = entry.get("video")
    names = [videos] if isinstance(videos, str) else videos
    if not names or not all(isinstance(name, str) for name in names):
        raise _Fault(about, f"session {index}", "video", videos, "needs a file name, or a list")
    spans, lines, at_s = [], [], 0.0
    for name in names:
        file = home / name
        try:
            info = inspect(file)
            start_s, end_s = info.first_s, info.last_s
            end_s = max(end_s, info.first_s + info.duration_s)
        except VideoError:
            # The engine meets the same error when it opens the file, and says so at each probe.
            start_s = end_s = 0.0
        spans.append(Span(file=str(file.resolve()), start_s=start_s, end_s=end_s))
        lines += _spoken(file, at_s)
        at_s += end_s - start_s
    return Session(
        id=str(entry.get("id", Path(names[0]).stem)),
        index=index,
        spans=tuple(spans),
        duration_s=at_s,
        wall_start_s=_wall(about, index, entry.get("wall_start")),
        captions=tuple(lines),
    )


def _spoken(video: Path, at_s: float) -> list[Caption]:
    for suffix in (".srt", ".vtt"):
        path = video.with_suffix(suffix)
        if path.exists():
            return [
                Caption(start_s=c.start_s + at_s, end_s=c.end_s + at_s, text=c.text)
                for c in captions.read(path)
            ]
    return []


def _wall(about: Path, index: int, text: Any) -> float | None:
    if text is None:
        return None
    found = _WALL.match(str(text))
    if not found:
        reason = 'must look like "DAY2 10:03:12"'
        raise _Fault(about, f"session {index}", "wall_start", text, reason)
    day, hours, minutes, seconds = map(int, found.groups())
    return (day - 1) * 86_400.0 + hours * 3600 + minutes * 60 + seconds


def _candidates(path: Path, problems: list[Problem]) -> Iterator[Candidate]:
    if not path.exists():
        return
    name = paths.short(path)
    try:
        entries = records.entries(path)
    except records.Unreadable as error:
        problems.append(Problem(name, "file", "JSON", "", str(error)))
        return
    for entry in entries:
        if entry.fault:
            shown = repr(entry.text)[:80]
            problems.append(Problem(name, entry.where, entry.field, shown, entry.fault))
            continue
        try:
            yield Candidate.model_validate(entry.value)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"])) or "JSON"
            value = repr(first["input"])[:80]
            problems.append(Problem(name, entry.where, field, value, first["msg"]))
