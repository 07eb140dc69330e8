"""StreamMind as the engine walks it: the laws of time by both stamps, causality, room to watch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from by_contract import Asked, ByContract, entries, monitor_for
from engine_runs import SETTING, asks_of
from synthetic import movie, session

from bench_lib import methods, prompts
from bench_lib.benches.arena.scores import arena_instances
from bench_lib.engine.conditions import episodes
from bench_lib.engine.dialogue import Dialogue
from bench_lib.engine.kept import States
from bench_lib.messages.chat import Frames
from bench_lib.schema import Candidate, Moment, Probe, Registration, Response, Trajectory
from bench_lib.tasks import STREAM_ARENA

ARENA = replace(SETTING, bench=STREAM_ARENA, prompts=prompts.load("arena"))


def watch(number: int, t_s: float, due_s: float) -> Candidate:
    """A case whose instruction says when it will be true; only the scripted model reads that."""
    return Candidate(
        id=f"Pro-{number}",
        task="Pro",
        question="",
        ideal=(Moment(session="S001", start_s=due_s, end_s=due_s + 1),),
        registration=said(t_s, f"from {due_s} on"),
        probes=(Probe(id="q", session="S001", t_s=t_s),),
    )


def said(t_s: float, text: str) -> Registration:
    return Registration(session="S001", t_s=t_s, text=text)


def question(number: int, t_s: float) -> Candidate:
    probe = Probe(id="q", session="S001", t_s=t_s)
    return Candidate(id=f"HR-{number}", task="HR", question=f"question {number}", probes=(probe,))


def told(asked: Asked) -> str:
    return asked.user.split("request:\n")[1]


def seen(asked: Asked) -> str:
    """A digest of every frame that was shown."""
    parts = [p for m in asked.messages for p in m.parts if isinstance(p, Frames)]
    jpegs = b"".join(frame.jpeg for part in parts for frame in part.frames)
    return hashlib.sha256(jpegs + asked.text.encode()).hexdigest()[:12]


def scripted() -> ByContract:
    def front(asked: Asked) -> dict[str, Any]:
        words = told(asked)
        if words.startswith("from "):
            return monitor_for(words)
        return {"action": "answer", "answer": seen(asked)}

    def check(asked: Asked) -> dict[str, Any]:
        due_s = float(asked.text.split("The condition: from ")[1].split()[0])
        hit = asked.frames[-1] >= due_s
        return {"satisfied": hit, "confidence": 1.0, "message": seen(asked)}

    return ByContract(front=front, monitor=check, memory_writer=lambda a: {"text": seen(a)})


def walked(
    folder: Path, items: Iterable[Candidate], seconds: float, how: dict[str, Any], **args: Any
) -> tuple[Trajectory, dict[str, Response], Any]:
    """One video through the dialogue engine."""
    path = movie(folder / "film.mp4", seconds, **how)
    trajectory = Trajectory(
        id="film", source="folder", sessions=(session(path, 0, seconds),), candidates=tuple(items)
    )
    [episode] = episodes(STREAM_ARENA, trajectory, asks_of(trajectory))
    records: list[tuple[str, Any]] = []
    method = methods.load("streammind", **args).attach(scripted())
    states = States(Path("nowhere"), "none")
    keep = lambda kind, record: records.append((kind, record))  # noqa: E731
    Dialogue(method, episode, ARENA, states, keep).run()
    return trajectory, {r.candidate: r for kind, r in records if kind == "responses"}, method


# Ticks every 2 s from the instruction on; due times a quarter of a second beside the frames.
@pytest.mark.parametrize(
    ("latency_s", "cycle_s", "observed", "delivered"), [(1.0, 2, 1.0, 0.5), (3.0, 4, 0.5, 0.0)]
)
def test_share_on_time_by_both_stamps(
    tmp_path: Path, latency_s: float, cycle_s: int, observed: float, delivered: float
) -> None:
    dues = [10 + phase / 2 + 0.25 for phase in range(2 * cycle_s)]
    items = [watch(n, 2.0, due_s) for n, due_s in enumerate(dues)]
    latency = {"monitor": latency_s}
    trajectory, found, _ = walked(tmp_path, items, 24, {}, latency_s=latency)
    for stamp, share in (("observed", observed), ("delivered", delivered)):
        rows = arena_instances([trajectory], found.values(), [], bench=STREAM_ARENA, stamp=stamp)
        assert (rows.rows["timing"] == "on time").mean() == share, stamp


def test_neither_the_future_nor_the_due_time_reaches_the_agent(tmp_path: Path) -> None:
    items = [question(1, 5.0), watch(2, 6.0, 9.0), question(3, 8.0), question(4, 13.0)]

    def run(name: str, own: list[Candidate] = items, **how: Any) -> dict[str, str]:
        _, found, _ = walked(tmp_path / name, own, 20, how)
        return {key: r.raw_text for key, r in found.items()}

    base = run("a")
    later = [
        c.model_copy(update={"ideal": (Moment(session="S001", start_s=11.0, end_s=12.0),)})
        if c.ideal
        else c
        for c in items
    ]
    assert run("b", later) == base
    changed = run("c", changed_from_s=11.0)
    same = {key: changed[key] == base[key] for key in base}
    assert same == {"HR-1": True, "Pro-2": True, "HR-3": True, "HR-4": False}
    past = run("d", changed_from_s=1.0)
    assert not any(past[key] == base[key] for key in base)


def test_cases_that_nobody_waits_for_make_room(tmp_path: Path) -> None:
    """Twelve silent cases, at most seven of them waited for at a time."""

    def silent(step_s: float) -> list[str]:
        items = [
            watch(n, 2.0 + step_s * n, 4.0 + step_s * n).model_copy(
                update={"registration": said(2.0 + step_s * n, "from 1e9 on")}
            )
            for n in range(12)
        ]
        _, found, method = walked(tmp_path / str(step_s), items, 11 * step_s + 40, {})
        assert all(r.status == "ok" and "alert_s" not in r.timings for r in found.values())
        assert not method.stream.monitors
        return [e.body["what"] for e in entries(method, "monitor")]

    assert silent(5.0).count("refused") == 0
    assert silent(1.0).count("refused") == 4  # the control: too many at once
