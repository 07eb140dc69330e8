"""Where trajectories come from: one file per source, found by its name like a method.

A source file defines `load(data_root: str) -> Dataset`. What it yields is checked here once more by
the rules that hold for all of them; an offending record is quarantined with its reason, counted,
and the rest goes on.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass

from bench_lib.errors import BenchError, nearest
from bench_lib.schema import Trajectory

SHARED = ("check", "captions")


@dataclass(frozen=True)
class Problem:
    """Why a record was left out: the file, the record, the field, its value, what is wrong."""

    file: str
    record: str
    field: str
    value: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}: {self.record}: {self.field} = {self.value}: {self.reason}"


@dataclass(frozen=True)
class Dataset:
    """What a source yields. `note` is said in every report's header when it is not empty."""

    trajectories: tuple[Trajectory, ...]
    problems: tuple[Problem, ...] = ()
    note: str = ""


def available() -> tuple[str, ...]:
    """Names of all sources."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name not in SHARED))


def load(name: str, data_root: str = "") -> Dataset:
    """Load and check a source. `NAME-VARIANT` passes the variant on (`dollhouse-small`)."""
    from bench_lib.sources.check import check

    base, _, variant = name.partition("-")
    if base not in available():
        raise BenchError(f"unknown source {name!r}; {nearest(base, available())}")
    module = importlib.import_module(f"{__name__}.{base}")
    found: Dataset = module.load(data_root, variant) if variant else module.load(data_root)
    trajectories, problems = check(found.trajectories)
    return Dataset(trajectories, (*found.problems, *problems), found.note)


def prepare(trajectory: Trajectory) -> None:
    """Let a source that makes its media on demand make them, before they are opened."""
    if trajectory.source in available():
        module = importlib.import_module(f"{__name__}.{trajectory.source}")
        if hasattr(module, "prepare"):
            module.prepare(trajectory)


def choose(trajectories: Iterable[Trajectory], wanted: list[str]) -> tuple[Trajectory, ...]:
    """Those of the wanted ids, all for an empty list; BenchError names the nearest known one."""
    known = {trajectory.id: trajectory for trajectory in trajectories}
    for name in wanted:
        if name not in known:
            raise BenchError(f"unknown trajectory {name!r}; {nearest(name, known)}")
    return tuple(known[name] for name in wanted) if wanted else tuple(known.values())
