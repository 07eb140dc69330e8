"""06_ablations from end to end: systems by conditions, from runs that are there.

Nothing is run from here; only the household's rule judge judges runs of StreamArena that wait.
A run counts when every parameter that identifies it is the one asked for; where there is none, its
command is printed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bench_lib import paths
from bench_lib.comparing import read
from bench_lib.errors import BenchError
from bench_lib.judging import by_rules
from bench_lib.params import EvalParams
from bench_lib.params_scores import AblationParams
from bench_lib.report.command import command
from bench_lib.report.data import Material
from bench_lib.runs import Run, identity, last_written
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
    known = [(p.parent, _identity(p.parent)) for p in home.glob("*/manifest.json")]
    chosen: dict[tuple[str, str], Path] = {}
    for place, params in wanted.items():
        asked = _plain(identity(params.as_dict()))
        same = [folder for folder, own in known if _same(own, asked)]
        if same:
            chosen[place] = max(same, key=last_written)
    found, left = {}, []
    for place, folder in chosen.items():
        materials, why = read([folder], judge)
        left += why
        if materials:
            found[place] = materials[0]
    return found, left


def _identity(folder: Path) -> dict[str, Any]:
    return _plain(dict(Run(folder, {}).manifest().get("identity", {})))


def _plain(ident: dict[str, Any]) -> dict[str, Any]:
    """As a manifest holds it, without versions, and without what a condition does not read."""
    ident = json.loads(paths.homeless(json.dumps(ident, default=str)))
    own = {k: v for k, v in ident.items() if k != "versions"}
    if own.get("condition") != "recent_sessions":
        own.pop("recent", None)
    return own


def _same(own: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """Whether a run is the one asked for; a parameter it does not know yet had its default."""
    default = EvalParams().as_dict()
    return bool(own) and all(own.get(k, default[k]) == v for k, v in asked.items())
