"""06_ablations from end to end: systems by conditions, from runs that are there.

Nothing is run from here; only the household's rule judge judges runs of StreamArena that wait.
A run counts when every parameter that identifies it is the one asked for; where there is none, its
command is printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bench_lib import paths, sources
from bench_lib.compare.job import read
from bench_lib.errors import BenchError
from bench_lib.judge.job import by_rules
from bench_lib.opening import chat
from bench_lib.params.evaluate import EvalParams
from bench_lib.params.readings import AblationParams
from bench_lib.readings.benchmark import Benchmark
from bench_lib.readings.material import Material
from bench_lib.report.command import command
from bench_lib.runs.find import last_written
from bench_lib.runs.folder import Run
from bench_lib.runs.identity import Contents, about, contents, identity, same
from bench_lib.score.instances import Instances

SYSTEMS: Mapping[str, Mapping[str, Any]] = {
    "raw_video": {"method": "raw_video"},
    "text_summary": {"method": "text_summary"},
    "simplestream": {"method": "simplestream"},
}
"""What is compared by default: two memory protocols of APM-Bench, and no memory."""
STANDARD = "standard"
AVAILABILITY, ORIGINAL = "availability", "original"
NO_RUNS = "No run of these systems and conditions is there yet; the first section prints commands."


@dataclass
class Ablation:
    """The runs of each system by condition; also `availability` and `original` where asked for."""

    params: AblationParams
    wanted: dict[tuple[str, str], EvalParams]
    found: dict[tuple[str, str], Material]
    left_out: tuple[str, ...] = ()

    @classmethod
    def open(cls, params: AblationParams) -> Ablation:
        """Look for every run; BenchError for parameters that no run of 03_eval can have."""
        wanted = {}
        for name, own in (params.systems or SYSTEMS).items():
            for condition in params.conditions:
                more = {"source": params.source, **conditioned(condition)}
                wanted[name, condition] = _evaluation(params, name, own, more)
            if params.availability:
                more = {"source": params.availability, "condition": "recent_sessions"}
                more["recent"] = params.recent
                wanted[name, AVAILABILITY] = _evaluation(params, name, own, more)
                more = {"source": params.original, "condition": STANDARD}
                wanted[name, ORIGINAL] = _evaluation(params, name, own, more)
        found, left = _look(wanted, params.judge)
        if not params.judge and by_rules(found.values()):
            found, left = _look(wanted, params.judge)
        return cls(params, wanted, found, tuple(left))

    @property
    def absent(self) -> str:
        """Why there is nothing to show, empty where there is something."""
        return "" if self.found else NO_RUNS

    @property
    def bench(self) -> Benchmark:
        """The benchmark that the runs are about."""
        return next(iter(self.found.values())).bench

    @cached_property
    def systems(self) -> list[str]:
        """Names of the systems in the order given."""
        return list(dict.fromkeys(system for system, _ in self.wanted))

    def scored(self, system: str, condition: str) -> Instances | None:
        """The rows of a run, None where it is missing."""
        material = self.found.get((system, condition))
        return None if material is None else material.scored

    @cached_property
    def missing(self) -> list[str]:
        """A command for every run that is not there, and for what an interrupted one lacks."""
        commands = []
        for (system, condition), params in self.wanted.items():
            material = self.found.get((system, condition))
            if material is None or any(
                r.status in ("error", "not_run") for r in material.responses
            ):
                title = f"{system}-{condition}".replace(" ", "_").replace("/", "_")
                commands.append(command("03_eval", params, f"outputs/03_eval-{title}.ipynb"))
        return commands


def conditioned(text: str) -> dict[str, Any]:
    """`recent_sessions 2` as the parameters of 03_eval."""
    name, _, k = text.partition(" ")
    if not k:
        return {"condition": name}
    if name != "recent_sessions" or not k.isdecimal():
        raise BenchError(f"condition {text!r}: only recent_sessions takes a number of sessions")
    return {"condition": name, "recent": int(k)}


def _evaluation(
    params: AblationParams, name: str, own: Mapping[str, Any], more: Mapping[str, Any]
) -> EvalParams:
    given = {"backbone": params.backbone, **params.shared, **own, **more}
    given.setdefault("name", "" if name == given["method"] else name)
    try:
        return EvalParams(**given)
    except TypeError as error:
        raise BenchError(f"system {name!r}: {error}") from None


def _look(
    wanted: Mapping[tuple[str, str], EvalParams], judge: str
) -> tuple[dict[tuple[str, str], Material], list[str]]:
    """The newest run of each; several processes and versions may have made it."""
    home = paths.outputs() / "runs"
    known = [Run(path.parent, {}) for path in home.glob("*/manifest.json")]
    kept = [(run, _plain(run.manifest().get("identity", {}))) for run in known]
    sets: dict[tuple[str, str, str], Contents | None] = {}
    chosen: dict[tuple[str, str], Path] = {}
    for place, params in wanted.items():
        turns = {"turns": [sorted(params.tasks), params.limit]}
        turns = turns if params.tasks or params.limit else {}
        asked = {**_plain(identity(params.as_dict())), **turns}
        same_params = [run for run, own in kept if own and same({**turns, **own}, asked)]
        which = params.source, params.data_root, params.backbone
        if same_params and which not in sets:
            sets[which] = _present(*which)
        of_data = [run.folder for run in same_params if _about(run, sets[which])]
        if of_data:
            chosen[place] = max(of_data, key=last_written)
    found, left = {}, []
    for place, folder in chosen.items():
        materials, why = read([folder], judge)
        left += why
        if materials:
            found[place] = materials[0]
    return found, left


def _plain(ident: Mapping[str, Any]) -> dict[str, Any]:
    """Without versions, which may differ."""
    return {k: v for k, v in ident.items() if k != "versions"}


def _present(source: str, data_root: str, model: str) -> Contents | None:
    """What a source's data is known by; None where it cannot be read, which reading a run tells."""
    try:
        return contents(sources.load(source, data_root, chat.program(model)).trajectories)
    except BenchError:
        return None


def _about(run: Run, present: Contents | None) -> bool:
    return present is None or about(run.contents(), present)
