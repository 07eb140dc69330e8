"""What a report is made from: a run's records, and the data they are about where it can be had.

A report covers the whole run: every ask of the present selection over all shards, and whatever an
earlier selection of the same run has answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from bench_lib.asks.dense import densely, unscored
from bench_lib.measure import MEMORY
from bench_lib.params.evaluate import EvalParams
from bench_lib.runs.folder import Run
from bench_lib.schema import Key, Response, Trajectory
from bench_lib.tasks import OBSERVED, Bench

if TYPE_CHECKING:
    from bench_lib.asks.ask import Ask
    from bench_lib.readings.benchmark import Benchmark
    from bench_lib.readings.found import Found
    from bench_lib.readings.judged import Judged
    from bench_lib.score.instances import Instances

OUTCOMES = ("passed", "failed", "unparsed", "answered", "refused", "error", "not_run")
"""What can become of an ask, in the order of every table and figure; they never merge."""
MISSING = ("error", "not_run")
TIMINGS = (
    "prefix_s", "decode_s", *(f"{kind}_s" for kind in MEMORY), "tail_s", "preparation_s",
    "generation_s", "ttft_query_s", "ttft_prep_s", "ttft_e2e_s", "total_s",
)  # fmt: skip


@dataclass(frozen=True)
class Material:
    """A run and its data. `unread` says why the data is not there, empty where it is.

    `generated`, `own` and `data_judge` are what the source says of its data (`schema.Dataset`).

    `judge` names whose verdicts count; empty means the judge that judged last. `stamp` says by
    which of its stamps an alert is scored (see `tasks.STAMPS`).
    """

    run: Run
    params: EvalParams
    bench: Benchmark
    trajectories: Mapping[str, Trajectory] = field(default_factory=dict)
    asks: Mapping[Key, tuple[Trajectory, Ask]] = field(default_factory=dict)
    unread: str = ""
    generated: bool = False
    own: bool = False
    data_judge: str = ""
    judge: str = ""
    stamp: str = OBSERVED

    @property
    def label(self) -> str:
        """What the run is called: its own name, else its method's."""
        return self.params.name or self.params.method

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
        return self.bench.rows(self, self.judged.verdicts, self.stamp)

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
        return self.bench.found(self)

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
