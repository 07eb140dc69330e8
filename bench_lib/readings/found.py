"""The score frames of a run, taken once for all that show them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from bench_lib.score import adaptive, aggregate
from bench_lib.score.instances import Instances
from bench_lib.score.table import records
from bench_lib.tasks import Bench


@dataclass(frozen=True)
class Found:
    """Scores that need no judge, in frames with a row per group and measure."""

    bench: Bench
    main: pd.DataFrame
    capabilities: pd.DataFrame
    decisions: pd.DataFrame
    gates: pd.DataFrame

    @classmethod
    def of(cls, data: Instances) -> Found:
        """All of them, from the rows of a run."""
        return cls(
            data.bench,
            aggregate.task_scores(data),
            aggregate.capability_scores(data),
            adaptive.decision_scores(data),
            adaptive.gate_rates(data),
        )

    def metrics(self) -> dict[str, list[dict[str, Any]]]:
        """The frames as strict JSON: a missing number is null and its note says why."""
        return {
            "tasks": records(self.main),
            "capabilities": records(self.capabilities),
            "decisions": records(self.decisions),
            "gates": records(self.gates),
        }

    def adaptive(self, capability: str) -> bool:
        """Whether the tasks of a capability ask for decisions."""
        return any(t.adaptive for t in self.bench.tasks if t.capability == capability)

    def measured(self, capability: str) -> str:
        """What that line holds."""
        adaptive = self.adaptive(capability)
        return "pooled decision balanced accuracy" if adaptive else "mean accuracy of its tasks"

    def headline(self, capability: str) -> pd.Series:
        """The one line that stands for a capability: its mean accuracy, or the pooled decisions."""
        if self.adaptive(capability):
            return line(self.decisions, adaptive.POOLED, "balanced accuracy")
        return line(self.capabilities, capability)


def line(frame: pd.DataFrame, group: str, measure: str = "") -> pd.Series:
    """The row of a group, and of a measure where it has several."""
    rows = frame[frame["group"] == group]
    return (rows[rows["measure"] == measure] if measure else rows).iloc[0]
