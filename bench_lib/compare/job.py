"""09_compare from end to end: any runs beside any published rows, and what sets them apart."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from bench_lib import backbones, benches, methods, paths
from bench_lib.errors import BenchError, nearest
from bench_lib.evaluate import reading
from bench_lib.params.readings import CompareParams
from bench_lib.readings import times
from bench_lib.readings.benchmark import Benchmark
from bench_lib.readings.material import Material
from bench_lib.readings.origins import codes, devices
from bench_lib.runs.find import answered_once, find_run, last_written
from bench_lib.score import compare, published
from bench_lib.score.instances import Instances
from bench_lib.tasks import APM_BENCH

NO_RUNS = "There is no run to compare yet; the last section but one prints commands that make some."
PATTERN = "*?["


@dataclass
class Comparison:
    """Runs by label, in the order asked for; `left_out` says which could not be read, and why.

    `absent` says why nothing can be compared.
    """

    params: CompareParams
    materials: dict[str, Material]
    left_out: tuple[str, ...] = ()
    absent: str = ""
    _marks: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def open(cls, params: CompareParams) -> Comparison:
        """Find and read the runs.

        Raises:
            BenchError: a name that no run has, an ambiguous one, or an unknown published row.
        """
        published.choose(params.published)
        folders, unanswered = find_runs(params.runs)
        found, left = read(folders, params.judge)
        found, others = _of_one(found)
        left += [*unanswered, *others]
        made = cls(params, labelled(found), tuple(left), "" if found else NO_RUNS)
        if params.reference:
            made.reference  # noqa: B018 - an unknown one is an error now, not in the last cell
        return made

    @property
    def bench(self) -> Benchmark:
        """The benchmark that the runs are about, APM-Bench where there is none."""
        return next((m.bench for m in self.materials.values()), benches.find(APM_BENCH.name))

    @cached_property
    def runs(self) -> dict[str, Instances]:
        """The rows of each run, by label."""
        return {label: material.scored for label, material in self.materials.items()}

    @cached_property
    def scores(self) -> pd.DataFrame:
        """All scores in one long table, of runs and of published rows (`score.compare.beside`)."""
        return compare.beside(self.runs, self.params.published)

    @cached_property
    def systems(self) -> list[tuple[str, str]]:
        """`system` and `origin` of the rows of every table, runs first."""
        pairs = self.scores[["system", "origin"]].drop_duplicates()
        return [(str(system), str(origin)) for system, origin in pairs.to_numpy()]

    @property
    def reference(self) -> str:
        """The label of the run that is drawn in every panel and that others are held against."""
        wanted, labels = self.params.reference, list(self.materials)
        if not labels:
            return ""
        if not wanted:
            return labels[0]
        names = {label: m.run.folder.name for label, m in self.materials.items()}
        hits = [x for x in labels if x == wanted or names[x].startswith(wanted)]
        if len(hits) != 1:
            raise BenchError(
                f"reference {wanted!r} is not one of the runs; {nearest(wanted, labels)}"
            )
        return hits[0]

    def shown(self, system: str, origin: str) -> str:
        """A system's name for people: published ones as the paper prints them."""
        if origin == "run":
            return system
        method, _, protocol = system.partition("/")
        plain = protocol in ("", "none", "specialised")
        return published.method_name(method) + ("" if plain else f", {protocol.replace('_', ' ')}")

    def marks(self, label: str) -> tuple[str, ...]:
        """Why a run's numbers cannot be held against the papers'; empty where they can."""
        if label not in self._marks:
            self._marks[label] = marks(self.materials[label])
        return self._marks[label]

    @cached_property
    def settings(self) -> pd.DataFrame:
        """Parameters and versions that are not the same in all runs; a column per run."""
        columns = {label: _settings(m) for label, m in self.materials.items()}
        frame = pd.DataFrame(columns, dtype=object).fillna("")
        return frame[frame.nunique(axis=1) > 1] if len(columns) > 1 else frame.iloc[:0]

    @cached_property
    def revisions(self) -> dict[str, list[str]]:
        """Code that gave the answers, by run."""
        return {label: list(codes(material)) for label, material in self.materials.items()}

    def cost(self, label: str) -> dict[str, float]:
        """Mean times, bytes per hour and mean peak bytes; NaN where none.

        `ttft_s`, `full_s` (request to complete reply) and `rtf` as the paper defines them,
        `_stream` as a stream meets them. `shared` is
        1 where times were taken while trajectories, replies or processes shared a device.
        """
        from bench_lib.report import caveats, tables

        material = self.materials[label]
        peaks = tables.peaks(material)
        waits = times.derived(material)
        return {
            "ttft_s": float(waits["ttft_paper_s"].mean()),
            "ttft_stream_s": float(waits["ttft_prep_s"].mean()),
            "full_s": float(waits["full_paper_s"].mean()),
            "full_stream_s": float(waits["total_s"].mean()),
            "rtf": float(waits["rtf"].mean()),
            "rtf_stream": float(waits["rtf_stream"].mean()),
            "shared": float(bool(list(caveats.shared_times(material)))),
            "n": float(len(waits)),
            "bytes_per_hour": float(peaks["bytes_per_hour"].mean()),
            "peak_bytes": float(peaks["peak_bytes"].mean()),
            "trajectories": float(len(peaks)),
        }


def find_runs(wanted: list[str]) -> tuple[list[Path], list[str]]:
    """Run folders by name, unique prefix, `latest` or pattern, each once, in the order asked for.

    A pattern may match nothing; its matches come oldest first, without attempts that got no answer:
    the second list names those.
    """
    home = paths.outputs() / "runs"
    known = {path.parent.name: path.parent for path in home.glob("*/manifest.json")}
    found: dict[str, Path] = {}
    left: dict[str, str] = {}
    for name in wanted:
        if any(sign in name for sign in PATTERN):
            hits = sorted((p for n, p in known.items() if fnmatchcase(n, name)), key=last_written)
            found |= {path.name: path for path in hits if answered_once(path)}
            left |= {path.name: f"{path.name}: it holds no answer" for path in hits}
        else:
            path = find_run(name)
            found[path.name] = path
    return list(found.values()), [why for name, why in left.items() if name not in found]


def _of_one(found: list[Material]) -> tuple[list[Material], list[str]]:
    """Runs of the first benchmark that is compared here, and why the others are not shown."""
    here = [m for m in found if m.bench.shown_in == "09_compare"]
    left = [
        f"{m.run.folder.name}: it is about {m.bench.name}; {m.bench.shown_in} shows such runs side "
        "by side"
        for m in found
        if m not in here
    ]
    kept = [m for m in here if m.bench == here[0].bench]
    left += [
        f"{m.run.folder.name}: it is about {m.bench.name}, the others about {kept[0].bench.name}: "
        "name runs of one benchmark"
        for m in here
        if m not in kept
    ]
    return kept, left


def read(folders: list[Path], judge: str = "") -> tuple[list[Material], list[str]]:
    """The material of each folder, and why the others were left out."""
    found, left = [], []
    for folder in folders:
        try:
            material = reading.reread(folder)
            if material.unread:
                raise BenchError(material.unread)
            if judge:
                material = replace(material, judge=judge)
            material.scored.rows.empty  # noqa: B018 - records that cannot be read are found here
            found.append(material)
        except BenchError as error:
            left.append(f"{folder.name}: {error}")
    return found, left


def labelled(found: list[Material]) -> dict[str, Material]:
    """Runs by the shortest label that tells them apart: name, condition, source, digest."""
    parts = [
        (
            m.params.name or m.params.method,
            "" if m.params.condition == "standard" else _condition(m),
            m.params.source,
            m.run.folder.name.rpartition("-")[2],
        )
        for m in found
    ]
    labels = [", ".join(filter(None, own[:2])) for own in parts]
    for level in (2, 3):
        counts = Counter(labels)
        labels = [
            f"{label}, {own[level]}" if counts[label] > 1 else label
            for label, own in zip(labels, parts, strict=True)
        ]
    return dict(zip(labels, found, strict=True))


def _condition(material: Material) -> str:
    params = material.params
    words = params.condition.replace("_", " ")
    return f"{words} {params.recent}" if params.condition == "recent_sessions" else words


def marks(material: Material) -> tuple[str, ...]:
    """What makes a run's numbers other than those a paper prints for its method."""
    params, facts = material.params, material.facts
    model = str(facts.get("model", ""))
    args = facts.get("method_args", params.method_args)
    left = sum(r.status in ("error", "not_run") for r in material.responses)
    found = [
        "generated data" if material.generated else "",
        "own videos" if material.own else "",
        "ideal observer" if facts.get("program") else "",
        "toy model" if backbones.homemade(model) else "",
        "no model" if model in ("none", "") else "",
        "stock weights" if args.get("weights") == "stock" else "",
        _thinned(params.method, str(facts.get("input_class", ""))),
        f"prompts {params.prompts}" if params.prompts not in ("", material.bench.prompts) else "",
        "" if params.condition == "standard" else _condition(material),
        f"memory {params.memory}" if params.memory != "own" else "",
        f"cutoff {params.cutoff}" if params.cutoff != "protocol" else "",
        _scaled(params.method, args),
        "a part of the data" if params.limit or params.tasks or params.trajectories else "",
        f"{left:,} asks without a reply" if left else "",
        _judge(material),
    ]
    return tuple(mark for mark in found if mark)


def _judge(material: Material) -> str:
    rows = material.scored.rows
    if not material.bench.for_judge(rows).any():
        return ""
    if rows["unjudged"].any():
        return "unjudged"
    if material.judged.program:
        return "rule judge"
    return f"judge akin to the model ({material.judged.kin})" if material.judged.kin else ""


def _thinned(method: str, input_class: str) -> str:
    """Where a streaming method was run over a thinned prefix; raw_video is thinned by design."""
    by_design = method in methods.available() and methods.load(method).input_class == "thinned"
    return "thinned replay" if input_class == "thinned" and not by_design else ""


def _scaled(method: str, args: dict[str, Any]) -> str:
    """Settings of the method that are neither its defaults nor those of a preset of the paper."""
    if method not in methods.available():
        return "method no longer here"
    default = methods.load(method)
    usual = {name: getattr(default, name) for name in methods.parameters(type(default))}
    preset = paths.root() / "params" / f"03_eval.apm-{method}.yaml"
    if preset.exists():
        usual |= (yaml.safe_load(preset.read_text(encoding="utf-8")) or {}).get("method_args", {})
    own = [
        f"{name} {value} ({usual[name]})"
        for name, value in args.items()
        if name in usual
        and name not in ("weights", "form")
        and _plain(value) != _plain(usual[name])
    ]
    return f"scaled: {', '.join(own)}" if own else ""


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _settings(material: Material) -> dict[str, str]:
    manifest = material.manifest
    own = {k: v for k, v in manifest.get("identity", {}).items() if k != "versions"}
    args = own.pop("method_args", {}) or {}
    own |= {f"method_args.{name}": value for name, value in args.items()}
    own |= {name: getattr(material.params, name) for name in ("limit", "tasks", "trajectories")}
    versions = manifest.get("identity", {}).get("versions", {})
    own |= {f"version of {name}": value for name, value in versions.items()}
    own |= {
        "model": material.facts.get("model", ""),
        "prompt texts": material.facts.get("prompts", ""),
        "input": material.facts.get("input_class", ""),
        "judge": material.judged.judge,
        "code": ", ".join(codes(material)),
        "times on": ", ".join(devices(material)),
    }
    return {name: paths.short(str(value)) for name, value in own.items()}
