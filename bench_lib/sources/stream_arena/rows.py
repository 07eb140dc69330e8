"""Question rows of StreamArena, in the paper's fields or in those of the released files.

    paper                     released            here
    video_id                  video_id            video_id
    -                         qid                 qid; the row's place among its video's, from 0
    capability                qtype               task
    question, answer          question, answer
    query_time                ask_sec             ask_s
    evidence of Pro           ref_sec             ref_s, when a watch is due
    evidence                  evidence_ts_sec     evidence
    monitoring_horizon        horizon_sec         horizon_s
    reasoning_pattern         -                   pattern
    domain                    in video_meta       domain
    l2_subdomain              in video_meta       subdomain

`evidence` is a list of `{t_start, t_end, description}`; `evidence_ts_sec` a list of seconds and of
`[start, end]` pairs, where the list `[0, ask_sec]` is one span: a cumulative count asks about all
that has been. Further fields are left alone.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from bench_lib.errors import nearest
from bench_lib.tasks import STREAM_ARENA
from bench_lib.texts.records import Entry

PAPER = ("capability", "query_time", "evidence", "monitoring_horizon")
MARKS = ("capability", "query_time", "monitoring_horizon")
"""Fields of the paper's that a released row cannot have; not all of its names are published."""
RELEASED = ("qtype", "ask_sec", "ref_sec", "evidence_ts_sec", "horizon_sec")
CODES = {task.code.casefold(): task.code for task in STREAM_ARENA.tasks}
VIDEO_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
QID = re.compile(r"[A-Za-z0-9_.-]{1,32}")
Stretch = tuple[float, float, str]


class Fault(Exception):
    """What is wrong with a row, and its `kind`, by which faults are counted."""

    def __init__(self, kind: str, field: str, value: Any, reason: str) -> None:
        super().__init__(reason)
        self.kind, self.field, self.value, self.reason = kind, field, value, reason


@dataclass(frozen=True)
class Row:
    """A question as annotated. Times are seconds of the video; `evidence` is in time order."""

    video_id: str
    qid: str
    task: str
    question: str
    answer: str
    ask_s: float
    ref_s: float | None
    evidence: tuple[Stretch, ...]
    horizon_s: float | None
    pattern: str
    domain: str
    subdomain: str
    language: str
    fields: dict[str, str]
    """How this row's shape calls `ask`, `ref`, `evidence` and `horizon`."""


def parse(entry: Entry) -> dict[str, Any]:
    """A record as an object that says which video it is about. Raises Fault."""
    record = entry.value
    if not isinstance(record, dict):
        reason = entry.fault or "is no JSON object"
        raise Fault("unparsable row", entry.field, entry.text[:60], reason)
    name = record.get("video_id")
    if not isinstance(name, str) or not VIDEO_ID.fullmatch(name):
        reason = "must be a YouTube id: letters, digits, _ and -"
        raise Fault("unparsable row", "video_id", name, reason)
    return record


def read(record: dict[str, Any], place: int) -> Row:
    """A row from its object; `place` numbers it where it has no qid. Raises Fault."""
    released = _shape(record)
    names = dict(zip(("task", "ask", "ref", "evidence", "horizon"), RELEASED, strict=True))
    if not released:
        task, ask, evidence, horizon = PAPER
        names = {"task": task, "ask": ask, "ref": evidence, "evidence": evidence}
        names["horizon"] = horizon
    task = _task(record, names["task"])
    ask_s = _time(record.get(names["ask"]), names["ask"])
    seen = _points(record, ask_s) if released else _stretches(record)
    ref_s = None
    if task == "Pro" and released:
        ref_s = _time(record.get("ref_sec"), "ref_sec")
    elif task == "Pro":
        if not seen:
            raise Fault("unparsable row", "evidence", [], "of a Pro row must say when it is due")
        ref_s = seen[0][0]
    span = record.get(names["horizon"])
    return Row(
        video_id=record["video_id"],
        qid=_qid(record, place, released),
        task=task,
        question=_text(record, "question"),
        answer=_text(record, "answer"),
        ask_s=ask_s,
        ref_s=ref_s,
        evidence=seen,
        horizon_s=None if span is None else _number(span, names["horizon"]),
        pattern=_text(record, "reasoning_pattern", ""),
        domain=_text(record, "domain", ""),
        subdomain=_text(record, "l2_subdomain", ""),
        language=_text(record, "language", ""),
        fields=names,
    )


def _shape(record: dict[str, Any]) -> bool:
    """Whether a record has the released fields; not the paper's."""
    paper = [name for name in MARKS if name in record]
    released = [name for name in RELEASED if name in record]
    if paper and released:
        reason = "mixes the paper's fields and the released ones; a row has one shape"
        raise Fault("unparsable row", "fields", [*paper, *released], reason)
    if not paper and not released:
        reason = f"has neither the paper's fields ({', '.join(PAPER)}) nor the released ones"
        raise Fault("unparsable row", "fields", sorted(record), f"{reason} ({', '.join(RELEASED)})")
    return bool(released)


def _task(record: dict[str, Any], field: str) -> str:
    code = record.get(field)
    if not isinstance(code, str) or code.casefold() not in CODES:
        raise Fault("unparsable row", field, code, nearest(str(code), CODES.values()))
    return CODES[code.casefold()]


def _qid(record: dict[str, Any], place: int, released: bool) -> str:
    qid = record.get("qid", None if released else place)
    if isinstance(qid, int) and not isinstance(qid, bool) and qid >= 0:
        return f"{qid:02d}"
    if isinstance(qid, str) and QID.fullmatch(qid):
        return qid
    raise Fault("unparsable row", "qid", qid, "must be a number, or letters, digits, _ . and -")


def _text(record: dict[str, Any], field: str, default: str | None = None) -> str:
    value = record.get(field)
    if value is None and default is not None:
        return default
    if not isinstance(value, str) or (default is None and not value.strip()):
        raise Fault("unparsable row", field, value, "must be a text that is not empty")
    return value


def _number(value: Any, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Fault("unparsable row", field, value, "must be a number of seconds")
    return float(value)


def _time(value: Any, field: str) -> float:
    if _number(value, field) < 0:
        raise Fault("unparsable row", field, value, "must not be negative")
    return float(value)


def _stretches(record: dict[str, Any]) -> tuple[Stretch, ...]:
    listed = record.get("evidence")
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        reason = "must be a list of {t_start, t_end, description}"
        raise Fault("unparsable row", "evidence", listed, reason)
    found = []
    for at, one in enumerate(listed):
        start_s, end_s = (_time(one.get(k), f"evidence[{at}].{k}") for k in ("t_start", "t_end"))
        found.append(_stretch(start_s, end_s, f"evidence[{at}]", _text(one, "description", "")))
    return tuple(sorted(found))


def _points(record: dict[str, Any], ask_s: float) -> tuple[Stretch, ...]:
    field = "evidence_ts_sec"
    listed = record.get(field)
    if listed is None:
        return ()
    if not isinstance(listed, list):
        listed = [listed]
    if len(listed) == 2 and listed == [0, ask_s]:
        listed = [listed]
    found = []
    for at, one in enumerate(listed):
        ends = one if isinstance(one, list) else [one, one]
        if len(ends) != 2:
            raise Fault("unparsable row", f"{field}[{at}]", one, "must be a second or [start, end]")
        start_s, end_s = (_time(end, f"{field}[{at}]") for end in ends)
        found.append(_stretch(start_s, end_s, f"{field}[{at}]"))
    return tuple(sorted(found))


def _stretch(start_s: float, end_s: float, field: str, text: str = "") -> Stretch:
    if end_s < start_s:
        raise Fault("unparsable row", field, [start_s, end_s], "ends before it starts")
    return start_s, end_s, text
