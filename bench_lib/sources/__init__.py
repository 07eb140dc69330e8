"""Where trajectories come from: one file per source, found by its name like a method.

A source file defines `load(data_root: str) -> Dataset`. What it yields is checked here once more by
the rules that hold for all of them; an offending record is quarantined with its reason, counted,
and the rest goes on. A source may have knobs, in `KNOBS` with their defaults; they are part of its
name, and so of a run's identity: `stream_arena?language=zh&horizon=ignore`.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

from bench_lib.content import ends
from bench_lib.errors import BenchError, nearest
from bench_lib.schema import Dataset, Trajectory
from bench_lib.texts import composed

SHARED = ("check",)


def available() -> tuple[str, ...]:
    """Names of all sources."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name not in SHARED))


def load(name: str, data_root: str = "", program: bool | None = None) -> Dataset:
    """Load and check a source.

    `NAME-VARIANT` passes the variant on (`dollhouse-small`), `NAME?KNOB=VALUE&KNOB=VALUE` knobs.
    `program` says whether the ideal observer will look at it or a model will; a source may define
    `shown_to(program)`, the knobs it then has where its name gives no others.
    """
    from bench_lib.sources.check import check

    whole, _, asked = name.partition("?")
    base, _, variant = whole.partition("-")
    if base not in available():
        raise BenchError(f"unknown source {name!r}; {nearest(base, available())}")
    module = importlib.import_module(f"{__name__}.{base}")
    if variant and "variant" not in inspect.signature(module.load).parameters:
        raise BenchError(f"unknown source {name!r}: {base} has no variants")
    knobs: dict[str, Any] = _knobs(name, asked, getattr(module, "KNOBS", {}))
    if program is not None and hasattr(module, "shown_to"):
        knobs = {**module.shown_to(program), **knobs}
    given = (data_root, variant) if variant else (data_root,)
    found: Dataset = module.load(*given, **knobs)
    trajectories, problems = check(found.trajectories)
    return replace(found, trajectories=trajectories, problems=(*found.problems, *problems))


def _knobs(name: str, asked: str, known: Mapping[str, str]) -> dict[str, str]:
    """The knobs in a source's name; BenchError for one that is unknown, twice or without value."""
    try:
        pairs = parse_qsl(asked, keep_blank_values=True, strict_parsing=True) if asked else []
    except ValueError:
        raise BenchError(f"source {name!r}: knobs are written ?KNOB=VALUE&KNOB=VALUE") from None
    for knob, _ in pairs:
        if knob not in known:
            raise BenchError(f"source {name!r}: unknown knob {knob!r}; {nearest(knob, known)}")
    if len(dict(pairs)) < len(pairs):
        raise BenchError(f"source {name!r} gives a knob twice")
    return dict(pairs)


def prepare(trajectory: Trajectory) -> Trajectory:
    """Let a source that makes its media on demand make them, before they are opened.

    Returns the trajectory to go on with: what could only now be known of it may have been added
    (the captions of a recording that had to be transcribed).
    """
    if trajectory.source in available():
        module = importlib.import_module(f"{__name__}.{trajectory.source}")
        if hasattr(module, "prepare"):
            return module.prepare(trajectory) or trajectory
    return trajectory


def recorded(source: str, file: str) -> str:
    """What the content of a source's video is known by, wherever it lies; empty where it is gone.

    By default that is what the file is known by. A source that makes its media on demand defines
    `recorded(file)`, by what it makes them from.
    """
    own = importlib.import_module(f"{__name__}.{source}") if source in available() else None
    try:
        return getattr(own, "recorded", ends)(file)
    except OSError:
        return ""


def choose(trajectories: Iterable[Trajectory], wanted: list[str]) -> tuple[Trajectory, ...]:
    """Those of the wanted ids, all for an empty list; BenchError names the nearest known one."""
    known = {trajectory.id: trajectory for trajectory in trajectories}
    wanted = [composed(name) for name in wanted]
    for name in wanted:
        if name not in known:
            raise BenchError(f"unknown trajectory {name!r}; {nearest(name, known)}")
    return tuple(known[name] for name in wanted) if wanted else tuple(known.values())
