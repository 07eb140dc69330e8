"""StreamArena's object: every answer is right or wrong, a proactive one must come in time too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from bench_lib.benches.arena import acts, cards, figures, story_page, tables
from bench_lib.benches.arena.scores import arena_instances, found
from bench_lib.benches.arena.story import Story
from bench_lib.prompts import PromptSet
from bench_lib.readings import missing
from bench_lib.readings.benchmark import Benchmark
from bench_lib.readings.found import Found
from bench_lib.readings.material import Material
from bench_lib.report import figures as common
from bench_lib.report.sections import Listing, Piece, Section
from bench_lib.report.tables import work
from bench_lib.report.time_tables import spent
from bench_lib.schema import Key, Response, Verdict
from bench_lib.score.cases import Case, arena_cases
from bench_lib.score.instances import Instances
from bench_lib.tasks import REACTIVE, STAMPS, STREAM_ARENA


@dataclass(frozen=True)
class Arena(Benchmark):
    """See the module and `Benchmark`."""

    rubric: ClassVar[str] = "judge_arena"
    shown_in: ClassVar[str] = "08_streamarena"
    needs_data: ClassVar[bool] = True

    @property
    def groups(self) -> tuple[str, ...]:
        """The capabilities, and the reactive ones pooled."""
        return (*self.capabilities, REACTIVE)

    def rows(self, material: Material, verdicts: Iterable[Verdict], stamp: str) -> Instances:
        """See `Benchmark.rows`."""
        keys = {r.key for r in material.responses}
        kept = [r for r in material.responses if r.status != "not_run"]
        return arena_instances(
            material.trajectories.values(), kept, verdicts, bench=self, stamp=stamp, asked=keys
        )

    def found(self, material: Material) -> Found:
        """See `Benchmark.found`."""
        return found(material.scored, material.unsupported)

    def cases(self, material: Material, texts: PromptSet, variant: Any = "plain") -> list[Case]:
        """Every answer, and every alert that is on time by one of its stamps."""
        asked = [self.rows(material, (), stamp).rows for stamp in STAMPS]
        keys = {key for rows in asked for key in _keys(rows[rows["asks_judge"].astype(bool)])}
        return arena_cases(material.trajectories.values(), material.responses, keys, texts)

    def right(self, rows: pd.DataFrame) -> pd.Series:
        """What the judge said; an alert out of time is wrong."""
        return rows["value"]

    def for_judge(self, rows: pd.DataFrame) -> pd.Series:
        """Readable answers, and alerts in time."""
        return rows["asks_judge"].astype(bool)

    def picked(self, material: Material) -> list[tuple[str, Response]]:
        """See `cards`."""
        return cards.chosen(material)

    def outcomes_by_key(self, material: Material) -> Mapping[Key, str]:
        """What the judge made of them."""
        return cards.outcomes(material)

    def scores(self, material: Material) -> Iterator[Piece]:
        """Accuracy, drawn and as a table; and what judges these answers where nobody has."""
        name = material.label
        yield figures.accuracy({name: material})
        yield tables.capabilities(material)
        waiting = missing.unjudged({name: material})
        if waiting:
            yield Listing("What judges these answers", "\n".join(waiting))

    def outcomes(self, material: Material) -> Iterator[Piece]:
        """By capability."""
        yield tables.outcomes(material)

    def strata(self, material: Material) -> Iterator[Piece]:
        """Gap, wait, and what is asked."""
        yield tables.strata({material.label: material})

    def acts(self, material: Material) -> Sequence[Section]:
        """Searches, alerts in time, and what an agent remembered and saw."""
        runs = {material.label: material}
        timing: list[Piece] = [acts.timings(runs)]
        if "Pro" not in material.unsupported:
            timing += [figures.timeline(material), acts.cases(material)]
        return (
            Section("Tools", acts.TOOLS, (acts.tools(runs),)),
            Section("Proactive timing", acts.TIMING, tuple(timing)),
            *story_page.sections(Story.of(material, material.label)),
        )

    def remembering(self, material: Material) -> Iterator[Piece]:
        """State at each question, and times of clips."""
        yield [figures.state(material), common.clip_times(material)]

    def answering(self, material: Material) -> Iterator[Piece]:
        """First tokens, waits and counted work."""
        yield common.first_token(material)
        yield acts.latency({material.label: material})
        yield spent(material)
        yield work(material)

    def given(self, material: Material, verdicts: Sequence[Verdict]) -> Iterator[Piece]:
        """The verdicts by capability."""
        yield tables.verdicts(material, verdicts)

    def unusable(self, material: Material) -> Iterator[Piece]:
        """Answers without a verdict."""
        yield tables.unjudged(material)


def _keys(rows: pd.DataFrame) -> Iterator[Key]:
    names = zip(rows["trajectory"], rows["candidate"], rows["probe"], strict=True)
    return ((str(a), str(b), str(c)) for a, b, c in names)


BENCH = Arena.of(STREAM_ARENA)
