"""08_streamarena from end to end: StreamArena's runs side by side, and what an agent did in them.

Without names of runs the household's are made: StreamMind and two baselines under the ideal
observer. Its replies are judged by the rule judge at once, so that one command gives numbers; runs
about other data wait for 04_judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from bench_lib.benches.arena.story import Story
from bench_lib.compare.job import find_runs, labelled, read
from bench_lib.errors import BenchError, nearest
from bench_lib.evaluate.job import Evaluation
from bench_lib.judge.job import by_rules
from bench_lib.params.evaluate import EvalParams
from bench_lib.params.readings import ArenaParams
from bench_lib.readings.material import Material
from bench_lib.score import published

SYSTEMS: Mapping[str, Mapping[str, Any]] = {
    "streammind": {"method": "streammind", "method_args": {"search": "corpus:dollhouse"}},
    "offline_mllm": {
        "method": "offline_mllm",
        "method_args": {"search": "corpus:dollhouse", "max_frames": 64},
    },
    "aura": {"method": "aura"},
}
"""What is run where no run is named: the agent, a replay with searches, and one that can watch."""
HERE = "08_streamarena"
NO_RUNS = "No run of StreamArena's questions is there; leave `runs` empty to make the household's."


@dataclass
class Arena:
    """Runs by label, in the order asked for; `jobs` are those that this notebook makes itself.

    `absent` says why there is nothing to show.
    """

    params: ArenaParams
    jobs: tuple[Evaluation, ...] = ()
    materials: dict[str, Material] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    absent: str = ""

    @classmethod
    def open(cls, params: ArenaParams) -> Arena:
        """Find the runs, or open those to be made.

        Raises:
            BenchError: a name that no run has, an unknown published row, or a bad parameter.
        """
        published.choose(params.published, "streamarena")
        made = cls(params)
        if not params.runs:
            made.jobs = tuple(Evaluation.open(own) for own in wanted(params).values())
        made.read()
        return made

    def execute(self, progress: bool = True) -> None:
        """Make what is to be made and is not there, then judge what the rule judge can."""
        for job in self.jobs:
            job.execute(progress)
        self.read()
        if not self.params.judge and by_rules(self.materials.values()):
            self.read()

    def read(self) -> None:
        """Read all runs again from their folders."""
        folders, unanswered = find_runs(self.params.runs)
        found, left = read([job.run.folder for job in self.jobs] or folders, self.params.judge)
        left += unanswered
        kept = [replace(m, stamp=self.params.stamp) for m in found if m.bench.shown_in == HERE]
        others = [m for m in found if m.bench.shown_in != HERE]
        left += [f"{m.run.folder.name}: it is about {m.bench.name}" for m in others]
        self.materials, self.left_out = labelled(kept), tuple(left)
        self.absent = "" if kept else NO_RUNS

    @cached_property
    def explored(self) -> str:
        """Label of the run whose work is shown: the one asked for, else the first that kept it."""
        from bench_lib.streammind import trace

        if self.params.explore:
            for label, material in self.materials.items():
                name = material.run.folder.name
                if label == self.params.explore or name.startswith(self.params.explore):
                    return label
            known = list(self.materials)
            raise BenchError(
                f"explore {self.params.explore!r} is not one of the runs; "
                f"{nearest(self.params.explore, known)}"
            )
        return next((x for x, m in self.materials.items() if trace.traced(m.run)), "")

    @property
    def story(self) -> Story:
        """The video and question of that run that the parameters choose."""
        if not self.explored:
            return Story(absent="No run here has kept the calls of an agent's workers.")
        material = self.materials[self.explored]
        return Story.of(material, self.explored, self.params.trajectory, self.params.question)


def wanted(params: ArenaParams) -> dict[str, EvalParams]:
    """The runs to be made, by name."""
    found = {}
    for name, own in (params.systems or SYSTEMS).items():
        given = {"source": params.source, "backbone": params.backbone, **params.shared, **own}
        given.setdefault("name", "" if name == given["method"] else name)
        try:
            found[name] = EvalParams(**given)
        except TypeError as error:
            raise BenchError(f"system {name!r}: {error}") from None
    return found
