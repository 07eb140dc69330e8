"""Small worlds and frames for the tests of the dollhouse, made without rendering."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from bench_lib import prompts
from bench_lib.asks import ask
from bench_lib.dollhouse.ideal.observer import respond
from bench_lib.dollhouse.world import library
from bench_lib.dollhouse.world.picture import Picture
from bench_lib.dollhouse.world.world import World
from bench_lib.replies.gate import gate
from bench_lib.replies.parse import Parsed, parse
from bench_lib.schema import Candidate, Probe, Trajectory
from bench_lib.tasks import APM_BENCH

PROMPTS = prompts.load("apm")


@lru_cache(maxsize=64)
def composed(seed: int, name: str = "default") -> tuple[World, Trajectory]:
    """A world and its trajectory."""
    return library.compose(library.find(name), f"test-{name}", seed)


def shown(
    world: World, trajectory: Trajectory, session: str, start_s: float, end_s: float
) -> list[Picture]:
    """What the frames of whole seconds in `[start_s, end_s)` show."""
    index = [s.id for s in trajectory.sessions].index(session)
    film = world.films[index]
    return [film.picture(t) for t in range(film.duration_s) if start_s <= t < end_s]


def cut(probe: Probe) -> float:
    """The end of a half-open stretch that holds what is visible at a probe."""
    return probe.t_s + (1e-6 if probe.closed else 0)


def oracle(
    world: World, trajectory: Trajectory, candidate: Candidate, probe: Probe
) -> list[Picture]:
    """The evidence before the cutoff, and for adaptive tasks the current prefix."""
    adaptive = APM_BENCH.task(candidate.task).adaptive
    order = [s.id for s in trajectory.sessions]
    found: list[Picture] = []
    for moment in candidate.evidence:
        if order.index(moment.session) < order.index(probe.session):
            found += shown(world, trajectory, moment.session, moment.start_s, moment.end_s)
        elif moment.session == probe.session and not adaptive:
            end_s = min(moment.end_s, cut(probe))
            found += shown(world, trajectory, moment.session, moment.start_s, end_s)
    if adaptive:
        found += shown(world, trajectory, probe.session, 0, cut(probe))
    return found


def history(world: World, trajectory: Trajectory, probe: Probe) -> list[Picture]:
    """Everything before the cutoff."""
    found: list[Picture] = []
    for session in trajectory.sessions:
        last = session.id == probe.session
        found += shown(world, trajectory, session.id, 0, cut(probe) if last else 1e9)
        if last:
            break
    return found


def texts(trajectory: Trajectory, candidate: Candidate, probe: Probe) -> tuple[str, ...]:
    """What a method is told at a probe, in order."""
    one, session = ask.Ask(trajectory.id, candidate, probe), trajectory.session(probe.session)
    notes = ask.registrations(APM_BENCH, PROMPTS, one, trajectory.sessions, session)
    query = ask.query(APM_BENCH, PROMPTS, one, session, 0)
    said = [note.text for note in (*notes, *query.notes)]
    return (query.system, *said, query.text)


def told(said: Sequence[str], pictures: Sequence[Picture], contract: str, max_words: int) -> str:
    """The ideal observer's reply to pictures followed by texts."""
    return respond((*pictures, *said), contract, max_words)


def answered(
    trajectory: Trajectory, candidate: Candidate, probe: Probe, pictures: list[Picture]
) -> tuple[Parsed, bool | None]:
    """The ideal observer's parsed reply, and whether it passes the gate."""
    task = APM_BENCH.task(candidate.task)
    reply = told(texts(trajectory, candidate, probe), pictures, task.reply, 2048)
    parsed = parse(task.reply, reply, "".join(o.id for o in candidate.options))
    return parsed, gate(task, probe.polarity, parsed, candidate.answer)
