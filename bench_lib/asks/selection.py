"""Which asks a run puts: of the chosen tasks, up to a limit, all of one benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench_lib.asks.ask import Ask
from bench_lib.asks.dense import dense
from bench_lib.errors import BenchError
from bench_lib.params.evaluate import EvalParams
from bench_lib.schema import Trajectory
from bench_lib.tasks import Bench, bench_of, task_of


def select(trajectories: tuple[Trajectory, ...], params: EvalParams) -> dict[str, tuple[Ask, ...]]:
    """The asks of the chosen tasks, at most `limit` candidates a task over all trajectories."""
    taken: dict[str, int] = {}
    chosen: dict[str, tuple[Ask, ...]] = {}
    for trajectory in trajectories:
        asks: list[Ask] = []
        for candidate in trajectory.candidates:
            if params.tasks and candidate.task not in params.tasks:
                continue
            taken[candidate.task] = taken.get(candidate.task, 0) + 1
            if params.limit and taken[candidate.task] > params.limit:
                continue
            more = dense(task_of(candidate.task), trajectory, candidate, params.probe_every_s)
            for probe in (*candidate.probes, *more):
                closed = {"inclusive": True, "exclusive": False}.get(params.cutoff, probe.closed)
                put = probe.model_copy(update={"closed": closed})
                asks.append(Ask(trajectory.id, candidate, put))
        chosen[trajectory.id] = tuple(asks)
    if not any(chosen.values()):
        what = f"of the tasks {params.tasks} " if params.tasks else ""
        raise BenchError(
            f"nothing to ask: the chosen trajectories hold no candidate {what}; to ask about "
            "videos without candidates give -p question '...' -p at 'SESSION SECONDS'"
        )
    return chosen


def asked_by(asks: Mapping[str, Sequence[Ask]], params: EvalParams) -> Bench:
    """The one benchmark that all asks belong to; BenchError for two, or for what it lacks."""
    found = {
        bench_of(a.candidate.task).name: bench_of(a.candidate.task)
        for own in asks.values()
        for a in own
    }
    if len(found) > 1:
        raise BenchError(f"the source mixes {' and '.join(found)}: choose tasks of one with tasks")
    bench = next(iter(found.values()))
    if bench.dialogue == "shared":
        refused = {"condition": "standard", "memory": "own", "states_from": "", "mode": "stream"}
        for name, only in refused.items():
            if getattr(params, name) != only:
                raise BenchError(
                    f"{name}: {getattr(params, name)} has no meaning for {bench.name}, where all "
                    "questions of a video share one dialogue"
                )
    return bench
