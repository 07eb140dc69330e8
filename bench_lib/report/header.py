"""The head of a report: what ran, on what, when, and the few figures one looks for first."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench_lib import paths
from bench_lib.readings import times
from bench_lib.readings.found import Found
from bench_lib.readings.material import MISSING, Material
from bench_lib.readings.origins import devices
from bench_lib.report import tables
from bench_lib.report.score_table import why_missing
from bench_lib.report.spans import busy_s, spans
from bench_lib.report.text import DASH, duration, percent, plural, size
from bench_lib.report.theme import colour
from bench_lib.runs.provenance import code_of

INPUT = {
    "incremental": "incremental: every clip is taken in once",
    "window": "window: the newest frames are worked on at each probe",
    "thinned": "thinned: the whole prefix is thinned and worked on at each probe",
}
MANY = 24
"""Above so many arguments of a method only those are shown that were given."""
CONDITION = {
    "standard": "standard: every session, once, in order",
    "oracle": "oracle: only the annotated evidence",
    "raw_lifelong": "raw lifelong: the sessions and all footage between them",
    "recent_sessions": "recent sessions: an empty memory and the {recent} sessions before",
}


@dataclass(frozen=True)
class Header:
    """Title, one line below it, and named facts in groups."""

    title: str
    line: str
    facts: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    changed: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Tile:
    """A number to see first: its name, itself, and what it counts or why it is missing."""

    name: str
    value: str
    below: str
    colour: str = ""


def header(material: Material) -> Header:
    """What ran, on what, when."""
    params, facts = material.params, material.facts
    args = facts.get("method_args", params.method_args)
    rest = len(args)
    if rest > MANY:
        args = params.method_args
    shown = ", ".join(f"{name} {_plain(value)}" for name, value in args.items())
    rest -= len(args)
    shown += (
        f"{'; ' if shown else ''}{rest} others at their defaults (manifest.json)" if rest else ""
    )
    total = len(material.responses)
    done = sum(r.status not in MISSING for r in material.responses)
    left = sum(not r.final for r in material.responses)
    state = "not complete" if left else "complete"
    line = f"{plural(done, 'ask')} of {total:,} answered, {state} · {params.condition} condition"
    condition = CONDITION[params.condition].format(recent=params.recent)
    what = (
        ("method", params.method),
        ("its arguments", shown or "none"),
        ("input", INPUT.get(facts.get("input_class", ""), "not recorded")),
        ("model", _model(material)),
        ("condition", condition),
        ("source", params.source),
        ("mode", params.mode),
    )
    return Header(
        f"{params.name or params.method} on {params.source}",
        line.replace("_", " "),
        (("What ran", what), ("On what", _machine(material)), ("When", _when(material))),
        tuple((name, _plain(value)) for name, value in params.changed().items()),
    )


def _model(material: Material) -> str:
    served = material.facts.get("model", "not recorded")
    asked = material.params.backbone
    return "none" if served == "none" else served if asked in served else f"{asked} ({served})"


def _machine(material: Material) -> tuple[tuple[str, str], ...]:
    processes = material.manifest.get("processes", [])
    versions = processes[-1]["versions"] if processes else {}
    known = ", ".join(f"{name} {value}" for name, value in versions.items() if value)
    return (
        ("machine", _distinct([p["machine"] for p in processes])),
        ("device", ", ".join(devices(material)) or DASH),
        ("driver, CUDA", _distinct([_cuda(p) for p in processes])),
        ("precision", f"{material.params.dtype}, attention {material.params.attention}"),
        ("video reader", _served(material)),
        ("Python", _distinct([p["python"] for p in processes])),
        ("versions", known),
    )


def _cuda(process: Mapping[str, Any]) -> str:
    found = process.get("driver"), process.get("cuda")
    return ", ".join(map(str, filter(None, found))) or "none"


def _served(material: Material) -> str:
    served = dict.fromkeys(r["served"] for r in material.sessions if r["served"])
    return ", ".join(served) or f"{material.params.reader} (asked for)"


def _when(material: Material) -> tuple[tuple[str, str], ...]:
    processes = material.manifest.get("processes", [])
    intervals = spans(material.run.folder)
    fed_s = float(material.stretches["duration_s"].sum()) if len(material.stretches) else 0.0
    last = (
        time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(max(e for _, e in intervals)))
        if intervals
        else DASH
    )
    return (
        ("started", min((p["started"] for p in processes), default=DASH)),
        ("last record", last),
        ("time at work", duration(busy_s(intervals)) if intervals else DASH),
        ("video fed", duration(fed_s)),
        ("processes", f"{len(processes):,}"),
        ("code", _distinct([code_of(p) for p in processes])),
        ("run", material.run.folder.name),
    )


def tiles(material: Material) -> list[Tile]:
    """The numbers one looks for first; a dash and a reason where there is none."""
    done = sum(r.status not in MISSING for r in material.responses)
    made = [Tile("replies", f"{done:,}", f"of {plural(len(material.responses), 'ask')}")]
    made += scores(material)
    alone = material.bench.dialogue == "shared"
    return [*made, _largest(material) if alone else _peak(material), _wait(material)]


def scores(material: Material) -> list[Tile]:
    """The headline of each capability; none where the data is not there."""
    if material.unread:
        return []
    return [_score(material.found, name) for name in material.bench.capabilities]


def _score(found: Found, capability: str) -> Tile:
    line = found.headline(capability)
    if math.isnan(line["value"]):
        return Tile(capability, DASH, why_missing(line), colour(capability))
    groups = plural(line["clusters"], "trajectory", "trajectories")
    below = f"{found.measured(capability)}, n {line['n']:,}, {groups}"
    return Tile(capability, f"{percent(line['value'])} %", below, colour(capability))


def _peak(material: Material) -> Tile:
    found = tables.peaks(material)["peak_bytes"]
    if found.empty:
        return Tile("peak state", DASH, "no session followed another yet")
    if not found.any():
        return Tile("peak state", "N/A", "nothing is kept between sessions")
    below = f"mean of {plural(len(found), 'trajectory', 'trajectories')}, earlier sessions only"
    return Tile("peak state", size(float(found.mean())), below)


def _largest(material: Material) -> Tile:
    """Of a run whose videos are single sessions: the memory that a question found."""
    found = [sum(r.state_bytes.values()) for r in material.responses if r.state_bytes]
    if not found:
        return Tile("largest state", DASH, "no question was answered yet")
    return Tile("largest state", size(max(found)), f"that any of {len(found):,} questions found")


def _wait(material: Material) -> Tile:
    waits = times.derived(material)["ttft_prep_s"]
    if waits.empty:
        return Tile("first token", DASH, "no ask was answered yet")
    return Tile(
        "first token",
        duration(float(waits.median())),
        f"median of {len(waits):,}, with preparation",
    )


def _distinct(values: list[str]) -> str:
    return "; ".join(dict.fromkeys(values)) or DASH


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return paths.short(value) or "(empty)"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "(none)"
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items()) or "(none)"
    return f"{value:g}" if isinstance(value, float) else str(value)
