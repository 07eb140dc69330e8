"""What readers of runs need of a benchmark, beside what the engine needs (`tasks.Bench`).

A benchmark is one object, found by its name in `bench_lib.benches`; no reader asks which one it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from bench_lib.prompts import PromptSet
from bench_lib.schema import Key, Response, Verdict
from bench_lib.score.cases import Case
from bench_lib.score.instances import Instances
from bench_lib.tasks import Bench

if TYPE_CHECKING:
    from bench_lib.readings.found import Found
    from bench_lib.readings.material import Material


@dataclass(frozen=True)
class Benchmark(Bench, ABC):
    """A benchmark with its rows, scores, judge and the sections of its pages.

    Class attributes: `rubric`, the prompt set of its judge; `gated`, whether a deterministic gate
    comes before the judge, so that decisions and quality have scores of their own; `variants`,
    whether its judge can be audited on changed replies; `verdicts_are`, what a judge gives;
    `groups`, the scores that an ablation compares; `shown_in`, the notebook that sets its runs side
    by side; `needs_data`, whether records alone, without the data, tell nothing.

    Methods that return pieces return what `report.sections` shows: tables, figures, listings.
    """

    rubric: ClassVar[str]
    gated: ClassVar[bool] = False
    variants: ClassVar[bool] = False
    verdicts_are: ClassVar[str] = "verdicts"
    shown_in: ClassVar[str] = "09_compare"
    needs_data: ClassVar[bool] = False

    @property
    def groups(self) -> tuple[str, ...]:
        """The scores that an ablation compares, in order."""
        return self.capabilities

    @abstractmethod
    def rows(self, material: Material, verdicts: Iterable[Verdict], stamp: str) -> Instances:
        """A row per ask whose key is known, under these verdicts and this stamp of alerts."""

    @abstractmethod
    def found(self, material: Material) -> Found:
        """The score frames of a run."""

    @abstractmethod
    def cases(self, material: Material, texts: PromptSet, variant: Any = "plain") -> list[Case]:
        """What a judge is asked about a run."""

    @abstractmethod
    def right(self, rows: pd.DataFrame) -> pd.Series:
        """1, 0 or NaN for each row: was it answered, or decided, as it should be."""

    @abstractmethod
    def for_judge(self, rows: pd.DataFrame) -> pd.Series:
        """Which rows a judge is asked about."""

    @abstractmethod
    def picked(self, material: Material) -> list[tuple[str, Response]]:
        """The asks that a page shows up close, and why; none twice."""

    def outcomes_by_key(self, material: Material) -> Mapping[Key, str]:
        """What became of asks where that is not what the records alone say."""
        return {}

    @abstractmethod
    def scores(self, material: Material) -> Iterable[Any]:
        """Pieces: the main scores of a run."""

    @abstractmethod
    def outcomes(self, material: Material) -> Iterable[Any]:
        """Pieces: what became of each ask."""

    @abstractmethod
    def strata(self, material: Material) -> Iterable[Any]:
        """Pieces: what the scores hang on."""

    def acts(self, material: Material) -> Sequence[Any]:
        """Sections: what the method did; none for a benchmark that asks for no acts."""
        return ()

    @abstractmethod
    def remembering(self, material: Material) -> Iterable[Any]:
        """Pieces: what the memory holds and takes."""

    @abstractmethod
    def answering(self, material: Material) -> Iterable[Any]:
        """Pieces: what answers take."""

    def given(self, material: Material, verdicts: Sequence[Verdict]) -> Iterable[Any]:
        """Pieces: the verdicts of a judge, where no gate comes before it."""
        return ()

    def unusable(self, material: Material) -> Iterable[Any]:
        """Pieces: what could not be judged, by kind, where no gate comes before the judge."""
        return ()
