"""Dense probing: asks at a fixed step, to see when a system would have spoken.

Annotated probes are few and well chosen; what an assistant does all day is only seen by asking all
day. Dense asks have no polarity and no reference, so they enter no score: they time the first
intervention and count interventions an hour.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench_lib.schema import Candidate, Probe, Trajectory
from bench_lib.tasks import Bench, Task


def dense(task: Task, trajectory: Trajectory, candidate: Candidate, every_s: float) -> list[Probe]:
    """Probes every `every_s` seconds of an adaptive candidate, in time order; none for 0.

    They lie inside the announced intervals where the task has them, else in each session with an
    annotated probe: from its start, or from the registration where that lies in it, to its end.
    """
    if not (task.adaptive and every_s > 0):
        return []
    found = []
    for session, name, start_s, end_s, announced in _stretches(task, trajectory, candidate):
        steps = int((end_s - start_s) / every_s - 1e-9)
        for step in range(1, steps + 1):
            t_s = round(start_s + step * every_s, 6)
            found.append(
                Probe(
                    id=f"{mark(every_s)}{name}-{t_s:g}",
                    session=session,
                    t_s=t_s,
                    closed=not announced,
                    interval=(start_s, t_s) if announced else None,
                )
            )
    return found


def densely(bench: Bench, trajectory: Trajectory, every_s: float) -> Trajectory:
    """The same trajectory, with these probes after the annotated ones of each candidate."""
    candidates = []
    for candidate in trajectory.candidates:
        more = dense(bench.task(candidate.task), trajectory, candidate, every_s)
        candidates.append(candidate.model_copy(update={"probes": (*candidate.probes, *more)}))
    return trajectory.model_copy(update={"candidates": tuple(candidates)})


def mark(every_s: float) -> str:
    """What the ids of these probes begin with, and no annotated one's."""
    return f"every{every_s:g}s-"


def is_dense(probe_id: str) -> bool:
    """Whether a probe is one of these, of any step."""
    step = probe_id.partition("s-")[0].removeprefix("every")
    return probe_id.startswith("every") and "s-" in probe_id and step[:1].isdigit()


def unscored(probe_id: str) -> str:
    """What a probe without a polarity is called: `dense`, or `question`."""
    return "dense" if is_dense(probe_id) else "question"


def _stretches(
    task: Task, trajectory: Trajectory, candidate: Candidate
) -> Iterator[tuple[str, str, float, float, bool]]:
    """Session, a name, start, end, and whether the start is announced."""
    if task.interval:
        for probe in candidate.probes:
            if probe.interval is not None:
                yield (probe.session, probe.id, *probe.interval, True)
        return
    said = candidate.registration
    for name in dict.fromkeys(probe.session for probe in candidate.probes):
        start_s = said.t_s if said is not None and said.session == name else 0.0
        yield name, name, start_s, trajectory.session(name).duration_s, False
