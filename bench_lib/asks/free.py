"""A free question about one's own videos: no key, no score, just an answer at a time."""

from __future__ import annotations

import re

from bench_lib.asks.ask import Ask
from bench_lib.content import digest
from bench_lib.errors import BenchError, nearest
from bench_lib.schema import Candidate, Probe, Session, Trajectory


def free_question(
    trajectories: tuple[Trajectory, ...], question: str, at: str
) -> dict[str, tuple[Ask, ...]]:
    """Ask `question` of each trajectory at `at`: `SESSION SECONDS`, `SESSION MM:SS`, or `SESSION`.

    Without a time it is asked at the session's end, without a session at the end of the last one.
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
    words = at.split()
    if not words:
        last = trajectory.sessions[-1]
        return last, last.duration_s
    known = {session.id: session for session in trajectory.sessions}
    name, time = (at, "") if at in known else (" ".join(words[:-1]), words[-1])
    if name not in known:
        raise BenchError(
            f"parameter at: no session {name!r} in {trajectory.id}; {nearest(name, known)}"
        )
    session = known[name]
    if not time:
        return session, session.duration_s
    if not re.fullmatch(r"(\d+:){0,2}\d+(\.\d+)?", time):
        raise BenchError(f"parameter at: the time must be seconds, MM:SS or HH:MM:SS, not {time!r}")
    seconds = 0.0
    for part in time.split(":"):
        seconds = seconds * 60 + float(part)
    if seconds > session.duration_s:
        raise BenchError(
            f"parameter at: {name} lasts {session.duration_s:.1f} s, not {seconds:g} s"
        )
    return session, seconds
