"""A walk over StreamArena's items on the short film, as a dialogue engine would do it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from arena_walk import GENERATION, arena, clips, info, right

from bench_lib import methods
from bench_lib.dollhouse.ideal.observer import IdealChat
from bench_lib.exchange import Alert, Note, Query
from bench_lib.memories.method import Method
from bench_lib.messages.chat import Chat
from bench_lib.schema import Candidate
from bench_lib.tasks import WINDOW

FILM_S = 150


def walked(
    name: str, chat: Chat | None = None, tasks: Sequence[str] = (), **args: Any
) -> tuple[Method, dict[str, str], dict[str, Alert]]:
    """The method after the film, its answers, and the first alert of each watch."""
    world, trajectory = arena(FILM_S)
    film = world.films[0]
    method = methods.load(name, **args).attach(chat or IdealChat())
    method.reset("t", 42)
    chosen = [c for c in trajectory.candidates if not tasks or c.task in tasks]
    due = sorted(
        (c for c in chosen if method.watches or c.task != "Pro"),
        key=lambda c: (c.probes[0].t_s, c.id),
    )
    answers: dict[str, str] = {}
    first: dict[str, Alert] = {}
    method.begin_session(info(film))
    for clip in clips(film, frames=method.clip_frames, fps=method.fps):
        while due and due[0].probes[0].t_s < clip.frames[-1].t_s:
            candidate = due.pop(0)
            t_s = candidate.probes[0].t_s
            if candidate.task == "Pro":
                method.observe(clip.until(t_s, True))
                method.watch(Note(0, t_s, candidate.question), candidate.id)
                clip = clip.after(t_s, True)
                continue
            branch = method.branch()
            branch.observe(clip.until(t_s, True))
            query = Query(candidate.question, 0, t_s)
            answers[candidate.id] = branch.respond(query, GENERATION).text
        method.observe(clip)
        for alert in method.alerts(clip.frames[-1].t_s):
            if alert.key not in first:
                first[alert.key] = alert
                method.unwatch(alert.key)
    return method, answers, first


def share(
    name: str, chat: Chat | None = None, tasks: Sequence[str] = (), **args: Any
) -> dict[str, float]:
    """Right answers, and watches with a right first alert on time, over all of a task."""
    _, answers, first = walked(name, chat, tasks, **args)
    hits: dict[str, list[bool]] = defaultdict(list)
    for candidate in arena(FILM_S)[1].candidates:
        if candidate.id in answers:
            hits[candidate.task].append(right(candidate, answers[candidate.id]))
        elif (
            candidate.task == "Pro" and methods.load(name).watches and "Pro" in (tasks or ("Pro",))
        ):
            hits["Pro"].append(on_time(candidate, first.get(candidate.id)))
    return {task: sum(h) / len(h) for task, h in hits.items()}


def on_time(candidate: Candidate, alert: Alert | None) -> bool:
    """Whether a first alert is right and lies in the window of Eq. 9."""
    if alert is None:
        return False
    late_s = alert.observed_s - candidate.ideal[0].start_s
    return -WINDOW.early_s <= late_s <= WINDOW.late_s and right(candidate, alert.text)
