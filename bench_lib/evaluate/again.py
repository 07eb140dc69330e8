"""Asks put a second time: how often a run gives the same reply twice, measured and not promised.

Served models differ from run to run at temperature 0 and a fixed seed, because sums are ordered by
what else is in the batch. A share of the asks goes through the whole way again, memory included,
past every kept reply; what comes back lies in `repeats.*.jsonl` and counts in no score.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tqdm.auto import tqdm

from bench_lib.asks.ask import Ask
from bench_lib.chat.cache import CachedChat
from bench_lib.content import digest
from bench_lib.engine.kept import States
from bench_lib.engine.walk import Walk
from bench_lib.errors import BenchError
from bench_lib.opening.serving import POOL, replies_at_once
from bench_lib.schema import SCORABLE, Key, Response

if TYPE_CHECKING:
    from bench_lib.evaluate.job import Evaluation
from bench_lib.readings.repeats import KIND


def ask_again(job: Evaluation, progress: bool = True) -> None:
    """Put `repeat` of the answered asks a second time; what was put again already stays.

    Raises:
        BenchError: the asks share one dialogue, where one alone would be another question.
    """
    if not job.params.repeat:
        return
    if job.setting.bench.dialogue == "shared":
        raise BenchError("repeat: questions that share one dialogue cannot be asked one by one")
    chosen = _chosen(job)
    for trajectory in tqdm(job.trajectories, desc="asked again", disable=not progress):
        asks = [ask for ask in job.asks[trajectory.id] if ask.key in chosen]
        with ExitStack() as stack:
            lock = job.run.locked(f"trajectory {trajectory.id}", wait=False)
            if not asks or not stack.enter_context(lock):
                continue
            # At once, as far as the method allows, so that other requests are beside each.
            together = replies_at_once(job.method) > 1
            pool = stack.enter_context(ThreadPoolExecutor(POOL)) if together else None
            for episode in job.episodes(trajectory, asks):
                method = job.fresh()
                if isinstance(method.served, CachedChat):
                    method.attach(method.served.chat)
                states = States(job.run.folder / "states", "none")

                def emit(kind: str, record: Any) -> None:
                    if kind == "responses" and record.status in SCORABLE:
                        job.run.append(KIND, record)

                Walk(method, episode, job.setting, states, emit, pool).run()
    job.run.sync()


def _chosen(job: Evaluation) -> set[Key]:
    """Keys that are still to be put again: the first of all answered ones by their digest."""
    found = job.run.responses()
    asks: list[Ask] = [ask for own in job.asks.values() for ask in own]
    keys = [a.key for a in asks if a.key in found and found[a.key].status in SCORABLE]
    first = sorted(keys, key=digest)[: job.params.repeat]
    return set(first) - {Response.model_validate(r).key for r in job.run.read(KIND)}
