"""From a candidate and one of its probes to what is said to the method, and when.

Implements the table of APM-Bench's protocol, section 5.1: what is sent at a session's start, at a
registration, at an interval's opening, and at the cutoff.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench_lib.exchange import Note, Query
from bench_lib.prompts import PromptSet
from bench_lib.schema import Candidate, Key, Probe, Session, clock
from bench_lib.tasks import Bench, task_of

WAITING_S = 30.0


@dataclass(frozen=True)
class Ask:
    """One runtime instance: a candidate of a trajectory at one of its probes."""

    trajectory: str
    candidate: Candidate
    probe: Probe

    @property
    def key(self) -> Key:
        """What identifies it in every file of a run."""
        return self.trajectory, self.candidate.id, self.probe.id

    @property
    def deadline_s(self) -> float | None:
        """Of an instruction to speak up: when nobody waits any longer. None for other asks.

        StreamArena ends a case 30 s after its due time; a method never learns of either.
        """
        if not task_of(self.candidate.task).watches:
            return None
        return self.candidate.ideal[0].start_s + WAITING_S


def moment(session: Session, t_s: float) -> str:
    """An instant for people: wall clock where the session has one, else time in the session."""
    if session.wall_start_s is not None:
        return clock(session.wall_start_s + t_s)
    return f"{int(t_s) // 3600:02d}:{int(t_s) // 60 % 60:02d}:{int(t_s) % 60:02d}"


def registrations(
    bench: Bench, prompts: PromptSet, ask: Ask, fed: Sequence[Session], session: Session
) -> tuple[Note, ...]:
    """What the wearer said for this candidate before its probe.

    `fed` are the sessions in the order in which the method gets them; what was said in a session
    that is not among them is not there. `session` is the probe's.
    """
    task, candidate = bench.task(ask.candidate.task), ask.candidate
    if task.reply == "adaptive_choice":
        text = prompts.render("era_start", question=candidate.question, options=_options(candidate))
        return (noted(fed.index(session), 0.0, text, session),)
    said = candidate.registration
    if said is None:
        return ()
    text = prompts.render("registration", text=said.text)
    return tuple(
        noted(position, said.t_s, text, session)
        for position, session in enumerate(fed)
        if session.id == said.session
    )


def query(bench: Bench, prompts: PromptSet, ask: Ask, session: Session, position: int) -> Query:
    """The request at the cutoff; `notes` holds only the marker of an interval task."""
    candidate, probe = ask.candidate, ask.probe
    task = bench.task(candidate.task)
    letters = "|".join(option.id for option in candidate.options)
    start = moment(session, probe.interval[0]) if probe.interval else ""
    text = candidate.question
    if task.reply != "free":
        text = prompts.render(
            _template(task.code, task.reply, candidate),
            clock=moment(session, probe.t_s),
            start=start,
            question=candidate.question,
            options=_options(candidate),
            letters=letters,
        )
    marker: tuple[Note, ...] = ()
    if probe.interval:
        opening = prompts.render("interval", start=start)
        marker = (noted(position, probe.interval[0], opening, session),)
    return Query(
        text=text,
        session=position,
        cutoff_s=probe.t_s,
        closed=probe.closed,
        system=prompts.render("system") if task in bench.tasks else "",
        contract=task.reply,
        options=candidate.options,
        notes=marker,
    )


def _template(code: str, reply: str, candidate: Candidate) -> str:
    if reply != "choice":
        return code.lower()
    if "availability" in candidate.references:
        return "choice_availability"
    return "choice_STU" if code == "STU" else "choice"


def _options(candidate: Candidate) -> str:
    return "\n".join(f"{option.id}. {option.text}" for option in candidate.options)


def noted(position: int, t_s: float, text: str, session: Session) -> Note:
    """A note at an instant of a session, which is the `position`-th that is fed."""
    wall_s = None if session.wall_start_s is None else session.wall_start_s + t_s
    return Note(position, t_s, text, wall_s)
