"""Doing what is not done yet: trajectories one after another or at once, beside other processes.

A trajectory is walked by the process that holds its lock, which the operating system releases when
that process ends. So a process that has done its own share looks again at what others held.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tqdm.auto import tqdm

from bench_lib import sources
from bench_lib.engine.conditions import Episode
from bench_lib.evaluate.again import ask_again
from bench_lib.opening.serving import POOL, replies_at_once, runs_here

if TYPE_CHECKING:
    from bench_lib.evaluate.job import Evaluation


class Stopped(BaseException):
    """Ends a thread at its next clip after the run was interrupted; not a failure of a method."""


def execute(job: Evaluation, progress: bool) -> list[str]:
    """Walk what is not done, and what others leave; ids of trajectories that others still hold."""
    job.run.begin()
    with job.run.at_work():
        held = _pass(job, job.pending(), progress)
        while held:
            # A neighbour that has ended or died since has let go of what it held.
            left = [episode for episode in job.pending() if episode.trajectory.id in held]
            still = _pass(job, left, progress)
            if len(still) == len(held):
                break
            held = still
        job.run.sync()
        ask_again(job, progress)
    return held


def undone(job: Evaluation, held: list[str]) -> str:
    """What has no answer after all, in a sentence; empty where nothing is missing."""
    found = job.responses()
    left = Counter(r.status for r in found if not r.final)
    if not left:
        return ""
    words = {"error": "ended in an error", "not_run": "not asked"}
    told = ", ".join(f"{n:,} {words[status]}" for status, n in left.items())
    by = f"; another process holds {', '.join(held)}" if held else ""
    return (
        f"{left.total():,} of {len(found):,} asks have no answer ({told}){by}: the same command "
        "goes on with them"
    )


def _pass(job: Evaluation, waiting: list[Episode], progress: bool) -> list[str]:
    """Walk these episodes; ids of trajectories that another process holds."""
    total_s = sum(feed.duration_s for episode in waiting for feed in episode.feeds)
    by_trajectory: dict[str, list[Episode]] = {}
    for episode in waiting:
        by_trajectory.setdefault(episode.trajectory.id, []).append(episode)
    threads = 1 if runs_here(job.method) else job.params.workers
    lock, stop = threading.Lock(), threading.Event()
    groups = list(by_trajectory.values())
    with tqdm(total=round(total_s), unit="s", desc="video", disable=not progress) as bar:

        def step(seconds: float) -> None:
            if stop.is_set():
                raise Stopped
            with lock:
                bar.update(seconds)

        if threads == 1:
            return [name for group in groups for name in _trajectory(job, group, step)]
        with ThreadPoolExecutor(threads) as pool:
            jobs = [pool.submit(_trajectory, job, group, step) for group in groups]
            try:
                return [name for one in jobs for name in one.result()]
            except BaseException:
                # The other threads stop at their next clip, and what they did is kept.
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise


def _trajectory(job: Evaluation, group: list[Episode], step: Callable[[float], None]) -> list[str]:
    """Walk a trajectory's episodes; returns its id where another process holds it."""
    name = group[0].trajectory.id
    with ExitStack() as stack:
        if not stack.enter_context(job.run.locked(f"trajectory {name}", wait=False)):
            return [name]
        trajectory = sources.prepare(group[0].trajectory)
        # Another process may have finished it between the listing and the lock.
        asks = job.open_asks(trajectory, job.run.done())
        pool = None
        if replies_at_once(job.method) > 1:
            pool = stack.enter_context(ThreadPoolExecutor(POOL))
        for episode in job.episodes(trajectory, asks):
            job.walk(episode, pool, step)
    return []
