"""What a report is made from: a run's records, and the data they are about where it can be had.

A report covers the whole run: every ask of the present selection over all shards, and whatever an
earlier selection of the same run has answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from bench_lib import paths
from bench_lib.asks.dense import densely, is_dense, unscored
from bench_lib.benches.arena.scores import arena_instances
from bench_lib.errors import BenchError
from bench_lib.params.evaluate import EvalParams
from bench_lib.runs.folder import Run
from bench_lib.runs.identity import contents
from bench_lib.schema import Key, Response, Trajectory, Verdict
from bench_lib.tasks import APM_BENCH, BENCHES, OBSERVED, STREAM_ARENA, Bench

if TYPE_CHECKING:
    from bench_lib.asks.ask import Ask
    from bench_lib.evaluate.job import Evaluation
    from bench_lib.readings.found import Found
    from bench_lib.readings.judged import Judged
    from bench_lib.score.instances import Instances

OUTCOMES = ("passed", "failed", "unparsed", "answered", "refused", "error", "not_run")
"""What can become of an ask, in the order of every table and figure; they never merge."""
MISSING = ("refused", "error", "not_run")
TIMINGS = (
    "prefix_s", "observe_s", "decode_s", "tail_s", "ttft_query_s", "ttft_prep_s", "ttft_e2e_s",
    "total_s",
)  # fmt: skip


@dataclass(frozen=True)
class Material:
    """A run and its data. `unread` says why the data is not there, empty where it is.

    `judge` names whose verdicts count; empty means the judge that judged last. `stamp` says by
    which of its stamps an alert is scored (see `score.arena`).
    """

    run: Run
    params: EvalParams
    bench: Bench = APM_BENCH
    trajectories: Mapping[str, Trajectory] = field(default_factory=dict)
    asks: Mapping[Key, tuple[Trajectory, Ask]] = field(default_factory=dict)
    unread: str = ""
    judge: str = ""
    stamp: str = OBSERVED

    @property
    def arena(self) -> bool:
        """Whether the run is one of StreamArena, whose questions share a dialogue."""
        return self.bench is STREAM_ARENA

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The run's manifest at the time of reading."""
        return self.run.manifest()

    @property
    def facts(self) -> dict[str, Any]:
        """What the run noted about itself."""
        return dict(self.manifest.get("facts", {}))

    @cached_property
    def responses(self) -> tuple[Response, ...]:
        """One response per ask, `not_run` where there is none; then those beyond the selection."""
        from bench_lib.engine.answer import failure

        found = self.run.responses()
        listed = [
            found.get(key) or failure(ask, trajectory.id, "not asked yet", status="not_run")
            for key, (trajectory, ask) in self.asks.items()
        ]
        beyond = [response for key, response in found.items() if key not in self.asks]
        rest = sorted(beyond, key=lambda r: r.key)
        return (*listed, *rest)

    @cached_property
    def judged(self) -> Judged:
        """The verdicts on the present replies, of one judge."""
        from bench_lib.readings.judged import judged

        return judged(self)

    @cached_property
    def scored(self) -> Instances:
        """What every score is taken from: a row per ask whose key is known."""
        from bench_lib.score.instances import instances

        if self.arena:
            return self.arena_rows(self.judged.verdicts, self.stamp)
        answered = [r for r in self.responses if self.bench.task(r.task).reply != "free"]
        answered = [r for r in answered if not is_dense(r.probe)]
        keys = {r.key for r in answered}
        # What was not run yet has a row of its own without a record.
        found = [r for r in answered if r.status != "not_run"]
        return instances(
            self.trajectories.values(), found, self.judged.verdicts, bench=self.bench, asked=keys
        )

    def arena_rows(self, verdicts: Iterable[Verdict], stamp: str) -> Instances:
        """A row per question of StreamArena, under these verdicts and this stamp of alerts."""
        keys = {r.key for r in self.responses}
        found = [r for r in self.responses if r.status != "not_run"]
        return arena_instances(
            self.trajectories.values(), found, verdicts, bench=self.bench, stamp=stamp, asked=keys
        )

    @cached_property
    def timed(self) -> Instances:
        """Every adaptive ask, dense ones of the present step among them; for timing, not scores."""
        from bench_lib.score.instances import instances

        adaptive = [r for r in self.responses if self.bench.task(r.task).adaptive]
        known = [
            densely(self.bench, trajectory, self.params.probe_every_s)
            for trajectory in self.trajectories.values()
        ]
        probes = {(t.id, c.id, p.id) for t in known for c in t.candidates for p in c.probes}
        adaptive = [r for r in adaptive if r.key in probes]
        keys = {r.key for r in adaptive}
        found = [r for r in adaptive if r.status != "not_run"]
        return instances(known, found, bench=self.bench, asked=keys)

    @cached_property
    def found(self) -> Found:
        """The score frames, those of a judge among them where it has judged."""
        from bench_lib.readings.found import ArenaFound, Found

        if self.arena:
            return ArenaFound.of(self.scored, self.unsupported)
        return Found.of(self.scored)

    @property
    def unsupported(self) -> tuple[str, ...]:
        """Codes of the tasks that the method has no ability for."""
        watches = self.facts.get("watches", True)
        return tuple(t.code for t in self.bench.tasks if t.watches and not watches)

    @cached_property
    def sessions(self) -> tuple[dict[str, Any], ...]:
        """One record per session of each episode; of repeated ones the longest, then the newest."""
        found: dict[tuple[str, str, str], dict[str, Any]] = {}
        for record in self.run.read("sessions"):
            key = record["trajectory"], record["episode"], record["session"]
            if key not in found or record["duration_s"] >= found[key]["duration_s"]:
                found[key] = record
        return tuple(
            sorted(found.values(), key=lambda r: (r["trajectory"], r["episode"], r["position"]))
        )

    @cached_property
    def repeated_sessions(self) -> int:
        """Session records beyond one each: work done again after a restart or for later asks."""
        return len(self.run.read("sessions")) - len(self.sessions)

    @cached_property
    def answers(self) -> pd.DataFrame:
        """`responses` as a table: identity, task, outcome, timings in seconds (NaN where none)."""
        rows = [_row(self.bench, response) for response in self.responses]
        return pd.DataFrame(rows, columns=[*COLUMNS, *TIMINGS])

    @cached_property
    def stretches(self) -> pd.DataFrame:
        """`sessions` as a table: hours, bytes and tokens at each session of each episode."""
        rows = [
            {
                "trajectory": record["trajectory"],
                "episode": record["episode"],
                "session": record["session"],
                "number": record["position"] + 1,
                "duration_s": record["duration_s"],
                "prior_s": record["prior_s"],
                "prior_bytes": stored(record["prior_bytes"]) + record["note_bytes"],
                "tokens_kept": record["tokens_kept"],
                "tokens_seen": record["tokens_seen"],
            }
            for record in self.sessions
        ]
        return pd.DataFrame(rows, columns=SESSION_COLUMNS)


def stored(sizes: Mapping[str, int]) -> int:
    """Bytes of a state; weights that learn are shown by kind and not counted (APM-Bench, B.3)."""
    return sum(size for kind, size in sizes.items() if kind != "weights")


COLUMNS = (
    "trajectory", "session", "candidate", "probe", "task", "capability", "adaptive", "polarity",
    "status", "outcome", "passed", "decision", "cut",
)  # fmt: skip
SESSION_COLUMNS = (
    "trajectory", "episode", "session", "number", "duration_s", "prior_s", "prior_bytes",
    "tokens_kept", "tokens_seen",
)  # fmt: skip


def _row(bench: Bench, response: Response) -> dict[str, Any]:
    task = bench.task(response.task)
    return {
        "trajectory": response.trajectory,
        "session": response.session,
        "candidate": response.candidate,
        "probe": response.probe,
        "task": task.code,
        "capability": task.capability,
        "adaptive": task.adaptive,
        "polarity": response.polarity or unscored(response.probe),
        "status": response.status,
        "outcome": outcome(response),
        "passed": response.passed,
        "decision": response.decision,
        "cut": response.stop == "length",
        **{name: response.timings.get(name) for name in TIMINGS},
    }


def outcome(response: Response) -> str:
    """One of `OUTCOMES`; `answered` is a reply without a key to hold it against."""
    if response.status not in ("ok", "repaired"):
        return response.status
    return {True: "passed", False: "failed", None: "answered"}[response.passed]


def gather(evaluation: Evaluation) -> Material:
    """The material of an evaluation at this moment."""
    return _material(evaluation.run, evaluation.params, evaluation.data.trajectories)


def reread(folder: Path) -> Material:
    """The material of a run folder; without its data where that cannot be loaded any more."""
    from bench_lib import sources

    run = Run.at(folder)
    try:
        params = EvalParams(**run.params)
    except TypeError as error:
        raise BenchError(f"{paths.short(folder)}: made by another version: {error}") from None
    root = params.data_root
    if root and not root.startswith("~") and not Path(root).is_absolute():
        root = str(paths.root() / root)  # the manifest keeps places relative to the project
    try:
        data = sources.load(params.source, root, params.backbone)
        run.check(contents(data.trajectories))
        return _material(run, params, data.trajectories)
    except BenchError as error:
        known = run.manifest().get("facts", {}).get("bench", APM_BENCH.name)
        bench = next((b for b in BENCHES if b.name == known), APM_BENCH)
        return Material(run, params, bench, unread=str(error))


def _material(run: Run, params: EvalParams, trajectories: Iterable[Trajectory]) -> Material:
    from bench_lib import sources
    from bench_lib.asks.free import free_question
    from bench_lib.asks.selection import asked_by, select

    known = {trajectory.id: trajectory for trajectory in trajectories}
    chosen = sources.choose(known.values(), params.trajectories)
    if params.question:
        asks = free_question(chosen, params.question, params.at)
    else:
        asks = select(chosen, params)
    by_key = {ask.key: (known[name], ask) for name, own in asks.items() for ask in own}
    bench = asked_by(asks, params)
    return Material(run, params, bench, trajectories=known, asks=by_key)
