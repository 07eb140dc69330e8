"""From question rows to trajectories: a video each, with its questions in time order.

What tells when a question can be answered (due time, evidence) lies in the candidate alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench_lib import paths
from bench_lib.errors import BenchError
from bench_lib.schema import (
    Candidate,
    Moment,
    Probe,
    Problem,
    Reference,
    Registration,
    Session,
    Span,
    Taken,
)
from bench_lib.schema import Trajectory as Record
from bench_lib.sources.stream_arena import rows, videos
from bench_lib.sources.stream_arena.defects import defect
from bench_lib.sources.stream_arena.rows import Fault, Row
from bench_lib.sources.stream_arena.videos import Video
from bench_lib.texts import records

SESSION = "S001"
TWICE = "question occurs twice"


@dataclass
class Told:
    """What is said of a load: questions in all and lost, kinds of faults, captions of videos."""

    asked: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    tracks: list[str] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)

    @property
    def lost(self) -> int:
        """Questions that are left out."""
        return self.faults.total()


Lines = list[tuple[str, Row]]
"""Rows with their places in the file."""


def trajectories(
    root: Path, path: Path, language: str, horizon: bool, problems: list[Problem], told: Told
) -> list[tuple[Record, Video]]:
    """The videos that can be asked about, with their recordings, in the order of the file."""
    about = _meta(root, language, problems)
    listed = videos.manifest(root, problems)
    found = []
    for name, lines in _rows(path, problems, told).items():
        try:
            video = videos.find(root, name, listed)
        except Fault as fault:
            told.faults[fault.kind] += len(lines)
            problems.append(_problem(path, f"{len(lines)} questions on {name}", fault))
            continue
        good = list(_sound(path, lines, video, horizon, problems, told))
        if not good:
            continue
        meta = about.get(name, {})
        language_said, captions, taken = videos.spoken(root, name, video.duration_s, problems)
        told.tracks.append(language_said)
        told.taken.append(taken)
        session = Session(
            id=SESSION,
            index=0,
            spans=(Span(file=str(video.file), start_s=0.0, end_s=video.duration_s),),
            duration_s=video.duration_s,
            captions=captions,
        )
        trajectory = Record(
            id=name,
            source="stream_arena",
            title=str(meta.get("title") or name),
            sessions=(session,),
            candidates=tuple(candidate(row, meta, language) for row in good),
        )
        found.append((trajectory, video))
    return found


def _problem(path: Path, record: str, fault: Fault) -> Problem:
    return Problem(paths.short(path), record, fault.field, repr(fault.value)[:120], fault.reason)


def _meta(root: Path, language: str, problems: list[Problem]) -> dict[str, dict[str, Any]]:
    names = ("video_meta.jsonl", "video_meta.en.jsonl")
    for name in names if language == "zh" else names[::-1]:
        if (root / name).is_file():
            return {row["video_id"]: row for _, row in videos.objects(root / name, problems)}
    return {}


def _rows(path: Path, problems: list[Problem], told: Told) -> dict[str, Lines]:
    """The rows of each video. BenchError where the file cannot be read at all."""
    found: dict[str, Lines] = {}
    places: Counter[str] = Counter()
    try:
        entries = records.entries(path)
    except records.Unreadable as error:
        raise BenchError(f"{paths.short(path)} {error}") from None
    for entry in entries:
        told.asked += 1
        try:
            record = rows.parse(entry)
            name = record["video_id"]
            places[name] += 1
            row = rows.read(record, places[name] - 1)
            _once(row, found.get(name, []))
        except Fault as fault:
            told.faults[fault.kind] += 1
            problems.append(_problem(path, entry.where, fault))
            continue
        found.setdefault(name, []).append((entry.where, row))
    return found


def _once(row: Row, before: Lines) -> None:
    """Raise Fault where a row's number, or all that it asks, has been there before."""
    for where, other in before:
        if other.qid.casefold() == row.qid.casefold():
            raise Fault(TWICE, "qid", row.qid, f"is that of {where} too; number it anew")
        if (other.task, other.ask_s, other.question) == (row.task, row.ask_s, row.question):
            reason = f"is asked at {row.ask_s:g} s in {where} too; leave one out"
            raise Fault(TWICE, "question", row.question, reason)


def _sound(
    path: Path, lines: Lines, video: Video, horizon: bool, problems: list[Problem], told: Told
) -> Iterator[Row]:
    """The rows without a defect, in time order."""
    for where, row in sorted(lines, key=lambda one: one[1].ask_s):
        fault = defect(row, video.duration_s, horizon)
        if fault is None:
            yield row
        else:
            told.faults[fault.kind] += 1
            problems.append(_problem(path, f"{where} ({row.video_id} {row.qid})", fault))


def candidate(row: Row, meta: dict[str, Any], language: str) -> Candidate:
    """A row as a candidate; `references` keeps what scores are broken down by."""
    seen = tuple(
        Moment(session=SESSION, start_s=start_s, end_s=end_s, text=text)
        for start_s, end_s, text in row.evidence
    )
    kept = {
        "answer": row.answer,
        "pattern": row.pattern,
        "domain": row.domain or str(meta.get("domain") or ""),
        "subdomain": row.subdomain or str(meta.get("l2_subdomain") or ""),
        "language": row.language or str(meta.get("language") or language),
    }
    due: tuple[Moment, ...] = ()
    said = None
    if row.ref_s is not None:
        # The due time is exact; what the annotators saw of the event tells how long it lasts.
        own = [m for m in seen if m.start_s <= row.ref_s <= m.end_s]
        end_s, text = (own[0].end_s, own[0].text) if own else (row.ref_s, "")
        due = (Moment(session=SESSION, start_s=row.ref_s, end_s=end_s, text=text),)
        said = Registration(session=SESSION, t_s=row.ask_s, text=row.question)
    probe = Probe(
        id="q",
        session=SESSION,
        t_s=row.ask_s,
        reference=Reference(response=row.answer, reason=row.answer if due else ""),
    )
    return Candidate(
        id=f"{row.video_id}-{row.task}-{row.qid}",
        task=row.task,
        question=row.question,
        evidence=() if due else seen,
        ideal=due,
        registration=said,
        probes=(probe,),
        references={key: text for key, text in kept.items() if text},
    )
