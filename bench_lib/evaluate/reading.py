"""A run folder, or a run at work, as a reading: with its benchmark, its data and its asks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench_lib import benches, paths, sources
from bench_lib.asks.free import free_question
from bench_lib.asks.selection import asked_by, select
from bench_lib.errors import BenchError
from bench_lib.opening import chat
from bench_lib.params.evaluate import EvalParams
from bench_lib.readings.material import Material
from bench_lib.runs.folder import Run
from bench_lib.runs.identity import contents
from bench_lib.schema import Dataset
from bench_lib.tasks import APM_BENCH

if TYPE_CHECKING:
    from bench_lib.evaluate.job import Evaluation


def gather(evaluation: Evaluation) -> Material:
    """The material of an evaluation at this moment."""
    return _material(evaluation.run, evaluation.params, evaluation.data)


def reread(folder: Path) -> Material:
    """The material of a run folder; without its data where that cannot be loaded any more."""
    run = Run.at(folder)
    try:
        params = EvalParams(**run.params)
    except TypeError as error:
        raise BenchError(f"{paths.short(folder)}: made by another version: {error}") from None
    root = params.data_root
    if root and not root.startswith("~") and not Path(root).is_absolute():
        root = str(paths.root() / root)  # the manifest keeps places relative to the project
    try:
        data = sources.load(params.source, root, chat.program(params.backbone))
        run.check(contents(data.trajectories))
        return _material(run, params, data)
    except BenchError as error:
        facts = run.manifest().get("facts", {})
        known = facts.get("bench", APM_BENCH.name)
        bench = benches.find(known)
        generated, own = bool(facts.get("generated")), bool(facts.get("own"))
        return Material(run, params, bench, unread=str(error), generated=generated, own=own)


def _material(run: Run, params: EvalParams, data: Dataset) -> Material:
    known = {trajectory.id: trajectory for trajectory in data.trajectories}
    chosen = sources.choose(known.values(), params.trajectories)
    if params.question:
        asks = free_question(chosen, params.question, params.at)
    else:
        asks = select(chosen, params)
    by_key = {ask.key: (known[name], ask) for name, own in asks.items() for ask in own}
    bench = benches.find(asked_by(asks, params).name)
    return Material(
        run,
        params,
        bench,
        trajectories=known,
        asks=by_key,
        generated=data.generated,
        own=data.own,
        data_judge=data.judge,
    )
