"""APM-Bench: choice questions with a key, and decisions that a gate holds before a judge grades."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from bench_lib.asks.dense import is_dense
from bench_lib.prompts import PromptSet
from bench_lib.readings.benchmark import Benchmark
from bench_lib.readings.found import Found
from bench_lib.readings.material import Material
from bench_lib.report import analysis, analysis_tables, figures, tables, time_tables
from bench_lib.report.score_table import scores
from bench_lib.report.sections import Folded, Piece
from bench_lib.schema import Key, Response, Verdict
from bench_lib.score.adaptive import DECISIONS
from bench_lib.score.aggregate import OVERALL
from bench_lib.score.cases import Case, apm_cases
from bench_lib.score.instances import Instances, instances
from bench_lib.tasks import APM_BENCH, Task

Wanted = Callable[[Response, Task], bool]


@dataclass(frozen=True)
class Keyed(Benchmark):
    """A benchmark whose replies are held against a key or a polarity; see `Benchmark`."""

    rubric: ClassVar[str] = "judge_apm"
    gated: ClassVar[bool] = True
    variants: ClassVar[bool] = True
    verdicts_are: ClassVar[str] = "gated judge scores"

    @property
    def groups(self) -> tuple[str, ...]:
        """Capabilities, decisions before those that need a judge, and the overall score."""
        adaptive = {task.capability for task in self.tasks if task.adaptive}
        plain = [name for name in self.capabilities if name not in adaptive]
        if not adaptive:
            return (*plain, OVERALL)
        return (*plain, DECISIONS, *sorted(adaptive), OVERALL)

    def rows(self, material: Material, verdicts: Iterable[Verdict], stamp: str) -> Instances:
        """See `Benchmark.rows`; free and dense asks have no key."""
        answered = [r for r in material.responses if self.task(r.task).reply != "free"]
        answered = [r for r in answered if not is_dense(r.probe)]
        keys = {r.key for r in answered}
        # What was not run yet has a row of its own without a record.
        found = [r for r in answered if r.status != "not_run"]
        return instances(material.trajectories.values(), found, verdicts, bench=self, asked=keys)

    def found(self, material: Material) -> Found:
        """See `Benchmark.found`."""
        return Found.of(material.scored)

    def cases(self, material: Material, texts: PromptSet, variant: Any = "plain") -> list[Case]:
        """Its adaptive replies that pass the gate."""
        known = [r for r in material.responses if self.task(r.task).reply != "free"]
        return apm_cases(material.trajectories.values(), known, self, texts, variant)

    def right(self, rows: pd.DataFrame) -> pd.Series:
        """The answer, or the decision of an adaptive ask."""
        return rows["correct"].fillna(rows["decided"])

    def for_judge(self, rows: pd.DataFrame) -> pd.Series:
        """Adaptive replies that passed the gate."""
        return rows["adaptive"].astype(bool) & (rows["passed"] == 1)

    def picked(self, material: Material) -> list[tuple[str, Response]]:
        """One of each kind that occurs: the first in task order, then by name."""
        order = {task.code: i for i, task in enumerate(self.tasks)}
        ranked = sorted(material.responses, key=lambda r: (order.get(r.task, 99), *r.key))
        found: list[tuple[str, Response]] = []
        used: set[Key] = set()
        for why, wanted in CHOICES:
            for response in ranked:
                if response.key not in used and wanted(response, self.task(response.task)):
                    found.append((why, response))
                    used.add(response.key)
                    break
        return found

    def scores(self, material: Material) -> Iterator[Piece]:
        """The score table, and what is reached without any video."""
        yield scores(material)
        yield analysis_tables.baselines(material)

    def outcomes(self, material: Material) -> Iterator[Piece]:
        """By task and polarity."""
        yield figures.outcomes(material)
        yield Folded("The same as a table", tables.statuses(material))

    def strata(self, material: Material) -> Iterator[Piece]:
        """Strata, unreadable replies by history, intervals, repeats."""
        first, *rest = analysis.of(material)
        yield first
        yield analysis.format_failures(material)
        yield from rest

    def remembering(self, material: Material) -> Iterator[Piece]:
        """Growth, kinds and tokens, and the peaks."""
        yield figures.memory_figures(material)
        yield Folded("Peak state by trajectory", tables.state(material))

    def answering(self, material: Material) -> Iterator[Piece]:
        """Times and counted work."""
        yield figures.time_figures(material)
        yield time_tables.times(material)
        yield time_tables.spent(material)
        yield tables.work(material)


CHOICES: tuple[tuple[str, Wanted], ...] = (
    ("A right answer", lambda r, t: not t.adaptive and r.passed is True),
    ("A wrong answer", lambda r, t: not t.adaptive and r.passed is False and _read(r)),
    ("A moment to speak, met", lambda r, t: r.polarity == "positive" and r.passed is True),
    ("A moment to speak, missed", lambda r, t: r.polarity == "positive" and _failed(r)),
    ("A moment for silence, kept", lambda r, t: r.polarity == "negative" and r.passed is True),
    ("A moment for silence, broken", lambda r, t: r.polarity == "negative" and _failed(r)),
    ("A reply that could not be parsed", lambda r, t: r.status == "unparsed"),
    ("A free question", lambda r, t: t.reply == "free" and _read(r)),
    ("A refusal", lambda r, t: r.status == "refused"),
    ("An error", lambda r, t: r.status == "error"),
)
"""What is shown up close."""


def _read(response: Response) -> bool:
    return response.status in ("ok", "repaired")


def _failed(response: Response) -> bool:
    return response.passed is False and _read(response)


BENCH = Keyed.of(APM_BENCH)
