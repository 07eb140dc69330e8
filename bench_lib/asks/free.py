"""A free question about one's own videos: no key, no score, just an answer at a time."""

from __future__ import annotations

import re

from bench_lib.asks.ask import Ask
from bench_lib.content import digest
from bench_lib.errors import BenchError, nearest
from bench_lib.schema import Candidate, Probe, Session, Trajectory
from bench_lib.texts import composed

TIME = re.compile(r"\d+(\.\d+)?|(\d+:)?\d+:[0-5]?\d(\.\d+)?", re.ASCII)
ROUNDED_S = 0.5
"""A time may lie so far behind the end: lengths are told in rounded seconds."""


def free_question(
    trajectories: tuple[Trajectory, ...], question: str, at: str
) -> dict[str, tuple[Ask, ...]]:
    """Ask `question` of each trajectory at `at`: `SESSION SECONDS`, `SESSION MM:SS`, or `SESSION`.

    Without a time it is asked at the session's end, without a session at the end of the last one. A
    time alone is one in the only session.
    """
    asks: dict[str, tuple[Ask, ...]] = {}
    for trajectory in trajectories:
        session, t_s = _when(trajectory, at)
        probe = Probe(id="q", session=session.id, t_s=t_s)
        name = f"free-{trajectory.id}-{digest([question, session.id, t_s])}"
        candidate = Candidate(id=name, task="FREE", question=question, probes=(probe,))
        asks[trajectory.id] = (Ask(trajectory.id, candidate, probe),)
    return asks


def _when(trajectory: Trajectory, at: str) -> tuple[Session, float]:
    at, known = composed(at).strip(), {session.id: session for session in trajectory.sessions}
    last = trajectory.sessions[-1]
    if not at:
        return last, last.duration_s
    name, _, time = at.rpartition(" ")
    if at in known:
        name, time = at, ""
    elif not name and TIME.fullmatch(time) and len(known) == 1:
        name = last.id
    elif name.strip() not in known:
        told = f"no session {(name or at).strip()!r} in {trajectory.id}"
        raise BenchError(f"parameter at: {told}; {nearest(name or at, known)}")
    session = known[name.strip()]
    end_s = session.duration_s
    if not time:
        return session, end_s
    if not TIME.fullmatch(time):
        raise BenchError(
            f"parameter at: the time must be seconds, MM:SS or HH:MM:SS, not {time!r}; "
            f"{_lasts(session)}"
        )
    seconds = 0.0
    for part in time.split(":"):
        seconds = seconds * 60 + float(part)
    if seconds > end_s + ROUNDED_S:
        raise BenchError(f"parameter at: {time} lies after the session; {_lasts(session)}")
    return session, min(seconds, end_s)


def _lasts(session: Session) -> str:
    """How long a session is, and what to give."""
    if not session.duration_s:
        return f"{session.id} could not be read; choose another session"
    minutes, seconds = divmod(int(session.duration_s), 60)
    return (
        f"{session.id} lasts {minutes:02d}:{seconds:02d} ({session.duration_s:.1f} s): give a time "
        f"in it, or {session.id!r} alone for its end"
    )
