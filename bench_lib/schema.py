"""Records: what a source yields and what a run writes. No pixels, no tensors, no model.

Times are seconds. `*_s` inside a session counts from the session's start (second 0 is the start of
its first span); `wall_*_s` counts from 00:00 of the source's day 1. Intervals are half-open: start
included, end excluded (APM-Bench protocol, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Polarity = Literal["positive", "negative"]
Decision = Literal["INTERVENE", "SILENT"]
Status = Literal["ok", "repaired", "unparsed", "refused", "error", "not_run"]
Key = tuple[str, str, str]
"""Trajectory, candidate and probe: what names an ask in every record, as `KEY` names its columns.

A candidate's id alone names nothing: the folders of two trajectories may use the same ids.
"""
KEY = ["trajectory", "candidate", "probe"]
SCORABLE: tuple[Status, ...] = ("ok", "repaired", "unparsed", "refused")
"""Statuses that count in scores; the others are missing and never counted as wrong. A refusal, by
the server or in words that say nothing else, is what the method did: it passes nowhere."""
RETRIED: tuple[Status, ...] = ("error", "not_run")
"""Statuses that the same command tries to mend."""
CENSORED = "right-censored: the video ends before the case does"
"""The one error that no other try can mend."""


class Record(BaseModel):
    """A frozen record that refuses unknown fields and non-finite numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Span(Record):
    """A stretch `[start_s, end_s)` of a video file, in the file's presentation time."""

    file: str
    start_s: float
    end_s: float


class Caption(Record):
    """A line of speech or description; it exists for a method once `end_s` has passed."""

    start_s: float
    end_s: float
    text: str


class Session(Record):
    """One continuous recording. `wall_start_s` is None where the source has no clock."""

    id: str
    index: int
    spans: tuple[Span, ...]
    duration_s: float
    wall_start_s: float | None = None
    captions: tuple[Caption, ...] = ()


class Option(Record):
    """An answer option of a multiple-choice question."""

    id: str
    text: str


class Moment(Record):
    """An annotated interval of a session: evidence, or an ideal window for a response."""

    session: str
    start_s: float
    end_s: float
    text: str = ""


class Registration(Record):
    """An instruction of the user, given at a stated time and to be honoured later."""

    session: str
    t_s: float
    text: str


class Reference(Record):
    """Reference texts for the judge; they never reach a method."""

    response: str = ""
    reason: str = ""


class Probe(Record):
    """One timed decision point; with its candidate it makes one runtime instance (one model call).

    `closed` says whether the frame at exactly `t_s` belongs to the visible prefix. `interval` is
    the announced half-open window of MPA, PRM and TPG, which ends at `t_s`.

    `glance` names what stands out in the newest visible frame (`{"hands": "wait"}`). It never
    reaches a method: baselines use it that see nothing else.
    """

    id: str
    session: str
    t_s: float
    closed: bool = True
    polarity: Polarity | None = None
    interval: tuple[float, float] | None = None
    reference: Reference = Reference()
    glance: dict[str, str] = Field(default_factory=dict)


class Candidate(Record):
    """One annotated question or assistance case. `references` holds further texts for the judge."""

    id: str
    task: str
    question: str = ""
    options: tuple[Option, ...] = ()
    answer: str | None = None
    evidence: tuple[Moment, ...] = ()
    ideal: tuple[Moment, ...] = ()
    registration: Registration | None = None
    probes: tuple[Probe, ...]
    references: dict[str, str] = Field(default_factory=dict)


class Trajectory(Record):
    """Ordered sessions of one wearer around related activities, with their candidates.

    `between` is recorded footage that lies between the sessions and that no candidate needs; only
    the raw lifelong condition feeds it. Its `index` is that of the session it precedes.
    """

    id: str
    source: str
    sessions: tuple[Session, ...]
    candidates: tuple[Candidate, ...] = ()
    title: str = ""
    participant: str = ""
    between: tuple[Session, ...] = ()

    def session(self, session_id: str) -> Session:
        """The session of that id (KeyError when there is none)."""
        for session in self.sessions:
            if session.id == session_id:
                return session
        raise KeyError(session_id)


class Response(Record):
    """What one runtime instance gave. Failures are statuses, never guessed letters or zeros.

    `passed` is the deterministic gate (None when there is nothing to check or no scorable reply).
    `stop` tells why generation ended: `end`, `length` (cut at its token limit) or empty.
    `timings` are seconds, `counters` exact counts of work, `missing_sessions` the sessions that
    could not be read and are therefore absent from the memory that answered.
    """

    trajectory: str
    session: str
    candidate: str
    probe: str
    task: str
    polarity: Polarity | None = None
    cutoff_s: float
    closed: bool
    status: Status
    raw_text: str = ""
    option: str | None = None
    decision: Decision | None = None
    text: str = ""
    reason: str = ""
    repairs: tuple[str, ...] = ()
    passed: bool | None = None
    stop: str = ""
    error: str = ""
    timings: dict[str, float] = Field(default_factory=dict)
    counters: dict[str, int] = Field(default_factory=dict)
    state_bytes: dict[str, int] = Field(default_factory=dict)
    missing_sessions: tuple[str, ...] = ()

    @property
    def key(self) -> Key:
        """The ask it answers."""
        return self.trajectory, self.candidate, self.probe

    @property
    def final(self) -> bool:
        """Whether the same command asks no more."""
        return self.status not in RETRIED or self.error == CENSORED


class Verdict(Record):
    """A judge's view of one response that passed the gate; `score` is None when it failed.

    `digest` is that of everything the judge was sent, so that a changed reply, rubric or reference
    is judged anew; `repeat` counts from 0. `rejected` holds raw replies that broke the contract.
    """

    trajectory: str
    candidate: str
    probe: str
    judge: str
    repeat: int = 0
    digest: str = ""
    score: int | None = None
    checks: dict[str, str] = Field(default_factory=dict)
    issues: tuple[str, ...] = ()
    justification: str = ""
    raw_text: str = ""
    rejected: tuple[str, ...] = ()
    usage: dict[str, int] = Field(default_factory=dict)
    error: str = ""

    @property
    def key(self) -> Key:
        """The ask whose reply is judged."""
        return self.trajectory, self.candidate, self.probe


def clock(wall_s: float | None) -> str:
    """Wall time as `DAY2 10:03:12`; empty where there is no clock."""
    if wall_s is None:
        return ""
    day, rest = divmod(int(wall_s), 86_400)
    return f"DAY{day + 1} {rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"


@dataclass(frozen=True)
class Problem:
    """Why a record was left out, or mended: file, record, field, its value, what is wrong."""

    file: str
    record: str
    field: str
    value: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}: {self.record}: {self.field} = {self.value}: {self.reason}"


@dataclass(frozen=True)
class Taken:
    """How a source took a file, an order or whatever else could have been taken otherwise."""

    what: str
    value: str
    how: str


@dataclass(frozen=True)
class Dataset:
    """What a source yields.

    `note` is said in every report's header when it is not empty, `taken` in the plan and in the
    report.

    `generated`: it was made by a program, its scores are no paper's. `own`: a user's own videos.
    `judge` names the judge that it brings, a program that knows its answers.
    """

    trajectories: tuple[Trajectory, ...]
    problems: tuple[Problem, ...] = ()
    note: str = ""
    taken: tuple[Taken, ...] = ()
    generated: bool = False
    own: bool = False
    judge: str = ""
