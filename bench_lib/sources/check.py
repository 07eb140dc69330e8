"""Rules that every record must keep, whatever source it comes from.

From APM-Bench's protocol: times lie inside their sessions, evidence precedes the cutoff, one option
is right, a registration precedes its probes, ids are unique also when case and Unicode form are
ignored: those of candidates within their trajectory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bench_lib.errors import BenchError
from bench_lib.schema import Candidate, Problem, Trajectory
from bench_lib.tasks import Task, bench_of
from bench_lib.texts import folded

SLACK_S = 0.5
"""Annotated times may exceed a video's measured length by this much."""
Fault = tuple[str, object, str]


def check(
    trajectories: Iterable[Trajectory],
) -> tuple[tuple[Trajectory, ...], tuple[Problem, ...]]:
    """Trajectories without their faulty candidates, and why each was left out."""
    kept: list[Trajectory] = []
    problems: list[Problem] = []
    seen: dict[str, str] = {}
    for trajectory in trajectories:
        faults = list(_trajectory(trajectory, seen))
        problems += [_problem(trajectory, f"trajectory {trajectory.id}", f) for f in faults]
        if faults:
            continue
        good, asked = [], dict[str, str]()
        for candidate in trajectory.candidates:
            fault = next(_candidate(trajectory, candidate, asked), None)
            if fault is None:
                good.append(candidate)
            else:
                problems.append(_problem(trajectory, f"candidate {candidate.id}", fault))
        kept.append(trajectory.model_copy(update={"candidates": tuple(good)}))
    return tuple(kept), tuple(problems)


def _problem(trajectory: Trajectory, record: str, fault: Fault) -> Problem:
    field, value, reason = fault
    return Problem(f"{trajectory.source}:{trajectory.id}", record, field, repr(value), reason)


def _trajectory(trajectory: Trajectory, seen: dict[str, str]) -> Iterator[Fault]:
    yield from _unique("trajectory", trajectory.id, seen)
    if not trajectory.sessions:
        yield "sessions", (), "a trajectory needs at least one session"
    ids = [folded(session.id) for session in trajectory.sessions]
    for session in trajectory.sessions:
        if ids.count(folded(session.id)) > 1:
            yield "sessions.id", session.id, "occurs more than once"
    ends_s = float("-inf")
    for session in trajectory.sessions:
        if session.wall_start_s is None:
            continue
        if session.wall_start_s < ends_s - SLACK_S:
            yield "sessions.wall_start_s", session.wall_start_s, "overlaps the session before"
        ends_s = session.wall_start_s + session.duration_s


def _candidate(
    trajectory: Trajectory, candidate: Candidate, seen: dict[str, str]
) -> Iterator[Fault]:
    try:
        task = bench_of(candidate.task).task(candidate.task)
    except BenchError as error:
        yield "task", candidate.task, str(error)
        return
    yield from _unique("candidate", candidate.id, seen)
    yield from _options(task, candidate)
    yield from _probes(trajectory, task, candidate)
    yield from _evidence(trajectory, candidate)


def _unique(kind: str, name: str, seen: dict[str, str]) -> Iterator[Fault]:
    key = f"{kind} {folded(name)}"
    if key in seen:
        yield "id", name, f"occurs twice (as {seen[key]!r}), case and Unicode form ignored"
    seen.setdefault(key, name)


def _options(task: Task, candidate: Candidate) -> Iterator[Fault]:
    ids = [option.id for option in candidate.options]
    texts = [option.text.strip().casefold() for option in candidate.options]
    if "choice" not in task.reply:
        return
    if not candidate.question.strip():
        yield "question", candidate.question, "is empty"
    if len(ids) < 2:
        yield "options", ids, "needs at least two options"
    if len(set(ids)) != len(ids) or any(not (len(i) == 1 and "A" <= i <= "Z") for i in ids):
        yield "options.id", ids, "must be different single capital letters"
    if len(set(texts)) != len(texts):
        yield "options.text", texts, "two options say the same"
    if candidate.answer not in ids:
        yield "answer", candidate.answer, f"is none of {ids}"


def _probes(trajectory: Trajectory, task: Task, candidate: Candidate) -> Iterator[Fault]:
    sessions = {session.id: session for session in trajectory.sessions}
    if not candidate.probes:
        yield "probes", (), "needs at least one"
    ids = [probe.id for probe in candidate.probes]
    if len(set(ids)) != len(ids):
        yield "probes.id", ids, "occur more than once"
    polarity: dict[tuple[str, float], set[str]] = {}
    for probe in candidate.probes:
        if probe.session not in sessions:
            yield "probes.session", probe.session, f"is none of {sorted(sessions)}"
            return
        duration_s = sessions[probe.session].duration_s
        if duration_s and not 0 <= probe.t_s <= duration_s + SLACK_S:
            yield "probes.t_s", probe.t_s, f"lies outside its session of {duration_s:.3f} s"
        if task.adaptive != (probe.polarity is not None):
            yield "probes.polarity", probe.polarity, f"does not fit the task {task.code}"
        if task.interval and probe.interval is None:
            yield "probes.interval", None, f"the task {task.code} needs one"
        if probe.interval and not 0 <= probe.interval[0] < probe.interval[1] == probe.t_s:
            yield "probes.interval", probe.interval, "must begin before and end at the probe's time"
        polarity.setdefault((probe.session, probe.t_s), set()).add(str(probe.polarity))
        yield from _registration(trajectory, task, candidate, probe.session, probe.t_s)
    for where, kinds in polarity.items():
        if len(kinds) > 1:
            yield "probes", where, "is both a positive and a negative probe"


def _registration(
    trajectory: Trajectory, task: Task, candidate: Candidate, session: str, t_s: float
) -> Iterator[Fault]:
    said = candidate.registration
    if said is None:
        if task.registers:
            yield "registration", None, f"the task {task.code} needs one"
        return
    order = [s.id for s in trajectory.sessions]
    if said.session not in order:
        yield "registration.session", said.session, f"is none of {order}"
    elif (order.index(said.session), said.t_s) > (order.index(session), t_s):
        yield "registration.t_s", said.t_s, f"is later than the probe at {t_s} s of {session}"


def _evidence(trajectory: Trajectory, candidate: Candidate) -> Iterator[Fault]:
    order = {session.id: i for i, session in enumerate(trajectory.sessions)}
    decisive = [p for p in candidate.probes if p.polarity != "negative"]
    cutoff = max(((order[p.session], p.t_s) for p in decisive), default=None)
    for moment in candidate.evidence:
        if moment.session not in order:
            yield "evidence.session", moment.session, f"is none of {sorted(order)}"
        elif moment.end_s < moment.start_s:
            yield "evidence", (moment.start_s, moment.end_s), "ends before it starts"
        elif cutoff and (order[moment.session], moment.end_s) > (cutoff[0], cutoff[1] + SLACK_S):
            yield "evidence.end_s", moment.end_s, f"lies after the cutoff, {cutoff[1]} s"
