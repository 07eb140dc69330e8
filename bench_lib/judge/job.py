"""04_judge from end to end: the replies of one run that pass the gate, and the judge's verdicts.

`Judging.open(params)` finds the run and the judge, `execute()` asks for the verdicts that are
missing. Verdicts lie in the run's own folder, so every report of that run has them from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from bench_lib import paths, prompts
from bench_lib.chat.cache import CachedChat
from bench_lib.errors import BenchError
from bench_lib.evaluate import reading
from bench_lib.exchange import Generation
from bench_lib.opening import chat
from bench_lib.params.readings import JudgeParams
from bench_lib.readings import judged
from bench_lib.readings.benchmark import Benchmark
from bench_lib.readings.material import Material
from bench_lib.runs.find import find_run
from bench_lib.runs.folder import Run
from bench_lib.schema import KEY, Verdict
from bench_lib.score.agreement import scores_of
from bench_lib.score.cases import Case
from bench_lib.score.judge import Outcome, current, judge, judge_name, stored
from bench_lib.score.labels import read_labels

if TYPE_CHECKING:
    from bench_lib.messages.chat import Chat

NO_RUN = "There is no run to judge yet; the first section says how to make one."
FIRST = "papermill notebooks/03_eval.ipynb outputs/03_eval-raw_video.ipynb \\\n    "
FIRST += "-p method raw_video -p backbone ideal -p source dollhouse-small"


def by_rules(materials: Iterable[Material]) -> bool:
    """Let the household's rule judge judge StreamArena's runs that wait for a judge.

    It is a program and costs nothing; runs about other data, and judged ones, are left alone.
    Returns whether it had anything to do.
    """
    waiting = [
        material
        for material in materials
        if material.data_judge
        and not material.bench.gated
        and (material.judged.program or not material.judged.judge)
        and material.scored.rows["unjudged"].any()
    ]
    for material in waiting:
        params = JudgeParams(run=material.run.folder.name, judge=material.data_judge)
        Judging.open(params).execute(progress=False)
    return bool(waiting)


@dataclass
class Judging:
    """One run and one judge. `absent` says why there is nothing to judge."""

    params: JudgeParams
    found: Material | None
    chat: Chat
    absent: str = ""
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    @classmethod
    def open(cls, params: JudgeParams) -> Judging:
        """Find the run and the judge.

        Raises:
            BenchError: no such run, judge, prompt set or file of labels; or the rule judge is asked
                about other data than the dollhouse's.
        """
        model = CachedChat(chat.open(params.judge, **params.judge_args), paths.cache() / "replies")
        if params.labels:
            read_labels(params.labels)
        empty = not any((paths.outputs() / "runs").glob("*/manifest.json"))
        if params.run == "latest" and empty:
            return cls(params, None, model, NO_RUN)
        folder = find_run(params.run)
        if Run(folder, {}).worked_on():
            print(f"a process is at work on {folder.name}: what it answers later is not judged")
        material = reading.reread(folder)
        if material.unread:
            raise BenchError(f"{material.run.folder.name} cannot be judged: {material.unread}")
        if params.variants and not material.bench.variants:
            name = material.bench.name
            raise BenchError(f"variants change nothing that the judge of {name} is sent")
        base = material.bench.rubric
        prompts.load(params.prompts or base, base=base)
        if model.program and params.judge != material.data_judge:
            raise BenchError(
                f"judge {params.judge} knows the answers of data that brings it, not those of "
                f"{material.params.source}; give -p judge endpoint:MODEL@URL"
            )
        return cls(params, material, model)

    @property
    def material(self) -> Material:
        """The run as it is judged."""
        if self.found is None:
            raise BenchError(self.absent)
        return self.found

    @property
    def bench(self) -> Benchmark:
        """The benchmark that the run is about."""
        return self.material.bench

    @property
    def generation(self) -> Generation:
        """How the judge decodes."""
        params = self.params
        return Generation(
            max_new_tokens=params.max_new_tokens, temperature=params.temperature, seed=params.seed
        )

    @property
    def judge(self) -> str:
        """The judge's name in the verdicts."""
        return judge_name(self.chat, self.generation)

    @property
    def prompts(self) -> str:
        """The rubric: the one asked for, or the benchmark's own."""
        return self.params.prompts or self.bench.rubric

    def cases(self, variant: str = "plain") -> list[Case]:
        """What the judge is asked, of the replies or of a variant of them."""
        return judged.cases_of(self.material, self.params.prompts, variant)

    def execute(self, progress: bool = True) -> None:
        """Ask for every missing verdict; the same command goes on where a killed one stopped."""
        if self.absent:
            return
        run, params = self.material.run, self.params
        known = run.manifest().get("facts", {}).get("judges", {})
        self._look(known.get(self.judge, {}))
        about = {
            "model": self.chat.answers_as or known.get(self.judge, {}).get("model", ""),
            "judge": params.judge,
            "program": self.chat.program,
            "prompts": self.prompts,
            "args": params.judge_args,
        }
        run.note(judges={**known, self.judge: about}, judge=self.judge)
        for variant in ("plain", *params.variants):
            self.outcomes[variant] = judge(
                run,
                self.cases(variant),
                self.chat,
                repeats=params.repeats,
                workers=params.workers,
                generation=self.generation,
                progress=progress,
            )
        run.close()
        judges = {verdict.judge for verdict in stored(run)}
        name = self.judge if self.judge in judges else ""
        self.found = replace(self.material, judge=name)
        self.__dict__.pop("verdicts", None)

    def _look(self, before: Mapping[str, Any]) -> None:
        """Look at a server that still has to judge, and hold it to the model it named `before`.

        Raises:
            BenchError: it cannot serve, or names another model now.
        """
        from bench_lib.chat.preflight import preflight, require
        from bench_lib.chat.server import expect

        if not self.params.judge.startswith("endpoint:"):
            return
        for variant in ("plain", *self.params.variants):
            have = sum(v.score is not None for v in self.of(self.judge, variant))
            if have < len(self.cases(variant)) * self.params.repeats:
                expect(self.chat, [before])
                require(preflight(self.chat, max_new_tokens=self.generation.max_new_tokens))
                return

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """All verdicts of the run, of every judge and variant, failed ones too."""
        return stored(self.material.run)

    def of(self, name: str, variant: str = "plain") -> list[Verdict]:
        """The verdicts of a judge on the present replies or on a variant of them."""
        mine = [v for v in self.verdicts if v.judge == name]
        return current(mine, self.cases(variant))

    def labelled(self) -> pd.DataFrame:
        """Human labels beside the judge's scores (rounded means over repeats), one row per label.

        Columns: trajectory (empty where it is none of this run), candidate, probe, annotator,
        human, judge (NaN where it gave none).

        Raises:
            BenchError: a label names no trajectory, and two have a candidate of that id.
        """
        labels = read_labels(self.params.labels)
        named = zip(labels["trajectory"], labels["candidate"], strict=True)
        labels = labels.assign(trajectory=[self._owner(*row) for row in named])
        means = scores_of(self.of(self.judge)).groupby(KEY)["score"].mean().round()
        return labels.merge(means.rename("judge").reset_index(), on=KEY, how="left")

    def _owner(self, trajectory: str, candidate: str) -> str:
        """The trajectory of a labelled candidate."""
        known = self.material.trajectories.values()
        owners = [t.id for t in known if candidate in {c.id for c in t.candidates}]
        if trajectory:
            return trajectory if trajectory in owners else ""
        if len(owners) > 1:
            raise BenchError(
                f"{self.params.labels}: {candidate} is a candidate of {', '.join(owners)}; add a "
                "column trajectory"
            )
        return owners[0] if owners else ""
