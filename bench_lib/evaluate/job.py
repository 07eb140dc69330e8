"""03_eval from end to end: data, method, asks, plan, execution, results.

The notebook shows; this module does. `Evaluation.open(params)` prepares everything that can fail
early, `plan()` says what the run will cost, `execute()` does what is not done yet.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from bench_lib import methods, prompts, sources
from bench_lib.asks.ask import Ask
from bench_lib.asks.dense import unscored
from bench_lib.asks.free import free_question
from bench_lib.asks.selection import asked_by, select
from bench_lib.engine.answer import Setting
from bench_lib.engine.conditions import Episode, by_session, episodes, foreign
from bench_lib.engine.dialogue import Dialogue
from bench_lib.engine.kept import States
from bench_lib.engine.walk import Walk
from bench_lib.errors import BenchError
from bench_lib.evaluate import work
from bench_lib.exchange import Generation
from bench_lib.memories.method import Method
from bench_lib.opening import chat
from bench_lib.opening.serving import replies_at_once, runs_here, serve
from bench_lib.params.evaluate import EvalParams
from bench_lib.runs.find import find_run
from bench_lib.runs.folder import Run
from bench_lib.runs.identity import Contents, contents
from bench_lib.runs.provenance import accelerators, device_of
from bench_lib.schema import Dataset, Key, Response, Trajectory
from bench_lib.tasks import APM_BENCH, MAX_NEW_TOKENS, Bench
from bench_lib.video.session import mappings


@dataclass
class Evaluation:
    """One method, one condition, one set of asks, one run folder."""

    params: EvalParams
    data: Dataset
    trajectories: tuple[Trajectory, ...]
    asks: dict[str, tuple[Ask, ...]]
    method: Method
    setting: Setting
    run: Run
    undone: str = ""

    @classmethod
    def open(cls, params: EvalParams, notebook: str = "03_eval") -> Evaluation:
        """Load data, method and model, then find the run; BenchError says what cannot work."""
        method = methods.load(params.method, **_method_args(params))
        data = sources.load(params.source, params.data_root, chat.program(params.backbone))
        chosen = sources.choose(data.trajectories, params.trajectories)
        if params.question:
            asks = free_question(chosen, params.question, params.at)
        else:
            asks = select(chosen, params)
        bench = asked_by(asks, params)
        part, whole = params.shard_of()
        own = chosen[part - 1 :: whole]
        method.attach(serve(method, params))
        setting = _setting(params, method, bench)
        present = contents(data.trajectories)
        params = _from_states(params, present)
        around = _around(params, bench, data)
        asked = around.get("order") or [trajectory.id for trajectory in own]
        name = params.name or params.method
        run = Run.open(notebook, name, params.as_dict(), present, asked, **around)
        run.device = _works_on(method, params)
        notes = [getattr(method.served, kind, "") for kind in ("noise", "caveat")]
        run.note(
            source_note=data.note,
            model=getattr(method.served, "id", "none"),
            model_note="; ".join(note for note in (*notes, method.caveat) if note),
            input_class=method.input_class,
            model_identity={**getattr(method.served, "identity", {})},
            method_args={f: getattr(method, f) for f in methods.parameters(type(method))},
            replies_at_once=replies_at_once(method),
            quarantined=[str(problem) for problem in data.problems],
            taken=[[one.what, one.value, one.how] for one in data.taken],
            bench=bench.name,
            generated=data.generated,
            own=data.own,
            program=bool(getattr(method.served, "program", False)),
            prompts=f"{setting.prompts.name} {setting.prompts.digest}",
            **{trait: getattr(method, trait) for trait in ("causal", "watches", "tools")},
        )
        return cls(
            params,
            data,
            own,
            {t.id: asks[t.id] for t in own},
            method,
            setting,
            run,
        )

    @property
    def bench(self) -> Bench:
        """The benchmark whose questions are asked."""
        return self.setting.bench

    def overview(self) -> pd.DataFrame:
        """What will be asked: asks by task and polarity, with candidates."""
        rows = [
            (ask.candidate.task, ask.probe.polarity or unscored(ask.probe.id), ask.candidate.id)
            for asks in self.asks.values()
            for ask in asks
        ]
        frame = pd.DataFrame(rows, columns=["task", "polarity", "candidate"])
        order = [task.code for task in self.bench.tasks if task.code in set(frame["task"])]
        order += [code for code in frame["task"].unique() if code not in order]
        table = frame.pivot_table(
            index="task", columns="polarity", values="candidate", aggfunc="count", fill_value=0
        )
        table["candidates"] = frame.groupby("task")["candidate"].nunique()
        return table.reindex(order)

    def pending(self) -> list[Episode]:
        """The episodes that still have asks without a response."""
        done = self.run.done()
        found: list[Episode] = []
        for trajectory in self.trajectories:
            found += self.episodes(trajectory, self.open_asks(trajectory, done))
        return found

    def open_asks(self, trajectory: Trajectory, done: Container[Key]) -> list[Ask]:
        """What is still to be asked; a dialogue is had again from its start."""
        asks = list(self.asks[trajectory.id])
        left = [ask for ask in asks if ask.key not in done]
        return asks if left and self.bench.dialogue == "shared" else left

    def episodes(self, trajectory: Trajectory, asks: list[Ask]) -> list[Episode]:
        """How asks of one trajectory are fed under this run's condition and mode."""
        params = self.params
        if params.memory == "other":
            return foreign(trajectory, self._other(trajectory), asks)
        condition, recent = params.condition, params.recent
        if params.memory == "empty":
            condition, recent = "recent_sessions", 0
        alone = self.bench.dialogue == "isolated"
        one_each = params.mode == "replay" or (alone and not self.method.forks)
        found = episodes(self.bench, trajectory, asks, condition, recent, one_each)
        if params.states_from:
            return [part for episode in found for part in by_session(episode)]
        return found

    def _other(self, trajectory: Trajectory) -> Trajectory:
        """The trajectory whose sessions stand for another's: the next one of the source."""
        known = [t.id for t in self.data.trajectories]
        if len(known) < 2:
            raise BenchError("memory: other needs a source with at least two trajectories")
        return self.data.trajectories[(known.index(trajectory.id) + 1) % len(known)]

    def plan(self) -> pd.DataFrame:
        """What the rest of this run will take; BenchError where disk or memory is short."""
        from bench_lib.evaluate.plan import plan

        return plan(self)

    def execute(self, progress: bool = True) -> None:
        """Do what is not done yet; the same command after a kill goes on where it stopped.

        `undone` says afterwards what still has no answer.
        """
        self.undone = work.undone(self, work.execute(self, progress))
        self._note_pictures()

    def _note_pictures(self) -> None:
        """Into the manifest: depth and transfer of the videos, and how they became RGB."""
        known = self.run.manifest().get("facts", {}).get("pictures", {})
        sessions = [s for t in self.trajectories for s in (*t.sessions, *t.between)]
        for how, names in mappings(sessions).items():
            known[how] = sorted({*known.get(how, []), *names})
        self.run.note(pictures=known)

    def walk(
        self,
        episode: Episode,
        pool: ThreadPoolExecutor | None = None,
        step: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        """Walk one episode with a fresh trunk."""
        states = States(
            self.run.folder / "states",
            self.params.states if self.params.mode == "stream" else "none",  # type: ignore[arg-type]
            source=find_run(self.params.states_from) / "states"
            if self.params.states_from
            else None,
            form=self.params.state_form,  # type: ignore[arg-type]
        )
        # A store of its own for each walk: what it handed out is in use until the walk is over.
        with frame_store(self.params) as store:
            setting = replace(self.setting, store=store)
            how = self.fresh(), episode, setting, states, self.run.append, pool, step
            if self.bench.dialogue == "shared":
                done = self.run.done()
                answered = {k: r for k, r in self.run.responses().items() if k in done}
                with _tracing(how[0], self.run, episode.trajectory.id):
                    Dialogue(*how, answered=answered).run()
            else:
                Walk(*how).run()
        self.run.sync()

    def fresh(self) -> Method:
        """A method object of its own over the shared model."""
        args = _method_args(self.params)
        return methods.load(self.params.method, **args).attach(self.method.served)

    def responses(self) -> list[Response]:
        """The responses to this evaluation's asks, in order; `not_run` where there is none."""
        found = self.run.responses()
        listed = []
        for trajectory in self.trajectories:
            for ask in self.asks[trajectory.id]:
                listed.append(found.get(ask.key) or _not_run(trajectory, ask))
        return listed


def _tracing(method: Method, run: Run, trajectory: str) -> AbstractContextManager[None]:
    """Where a method's work can be looked at afterwards, its run keeps what there is to see."""
    tracing = getattr(method, "tracing", None)
    return nullcontext() if tracing is None else tracing(run.append, trajectory)


def _works_on(method: Method, params: EvalParams) -> str:
    """What a method's times depend on most: a device of this machine, or a server."""
    kind, _, rest = params.backbone.partition(":")
    if runs_here(method):
        return device_of(str(method.served.device))
    if method.model == "chat" and kind == "endpoint":
        return f"the server at {rest.partition('@')[2]}"
    names, _ = accelerators()
    return names[0] if method.model == "chat" and kind == "vllm" and names else device_of("cpu")


def _around(params: EvalParams, bench: Bench, data: Dataset) -> dict[str, Any]:
    """What more an answer depends on: other turns of its dialogue, whose sessions stand for its."""
    found: dict[str, Any] = {}
    if bench.dialogue == "shared" and (params.tasks or params.limit):
        found["turns"] = [sorted(params.tasks), params.limit]
    if params.memory == "other":
        found["order"] = [trajectory.id for trajectory in data.trajectories]
    return found


def _from_states(params: EvalParams, present: Contents) -> EvalParams:
    """The parameters with the full name of the run whose memories are asked.

    Raises:
        BenchError: there is no such run, or its memories are of other data.
    """
    if not params.states_from:
        return params
    if params.states_from == "latest":
        raise BenchError("states_from: latest could be this very run; give the run's name")
    kept = Run.at(find_run(params.states_from))
    kept.check(present)
    return replace(params, states_from=kept.folder.name)


def _method_args(params: EvalParams) -> dict[str, Any]:
    """The method's arguments with the notebook's own parameters of the same names laid over."""
    cls = methods.find(params.method)
    args = dict(params.method_args)
    for name in ("fps", "max_pixels"):
        value = getattr(params, name)
        if value and name in methods.parameters(cls):
            args[name] = value
    return args


def _setting(params: EvalParams, method: Method, bench: Bench) -> Setting:
    limits = {**MAX_NEW_TOKENS, **params.max_new_tokens}
    known = getattr(method.served, "prompts", "") if bench is APM_BENCH else ""
    if getattr(method.served, "noise", ""):
        # An untrained model never ends its reply; its letters mean nothing at any length.
        limits = {kind: min(48, limit) for kind, limit in limits.items()}
    return Setting(
        bench=bench,
        prompts=prompts.load(params.prompts or known or bench.prompts, base=bench.prompts),
        generation=Generation(
            temperature=params.temperature,
            repetition_penalty=params.repetition_penalty,
            seed=params.seed,
        ),
        max_new_tokens=limits,
        delivery=params.registration_delivery,
        seed=params.seed,
        reader=params.reader,
    )


def frame_store(params: EvalParams) -> AbstractContextManager[Any]:
    """The frame store of these parameters; None inside the block where none is wanted."""
    if params.store == "none":
        return nullcontext()
    from bench_lib import paths
    from bench_lib.video.store import FrameStore

    return FrameStore(paths.cache() / "frames", params.store, int(params.store_gib * 2**30))  # type: ignore[arg-type]


def _not_run(trajectory: Trajectory, ask: Ask) -> Response:
    from bench_lib.engine.answer import failure

    return failure(ask, trajectory.id, "not asked yet", status="not_run")
