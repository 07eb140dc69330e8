"""One file or folder a benchmark, found by its name: its rows, scores, judge and sections of pages.

`NAME.py` defines `BENCH`, a `readings.benchmark.Benchmark` of that name. Its tasks are known once
the source that brings its candidates is imported (`tasks.Bench`).
"""

from __future__ import annotations

import importlib
import pkgutil

from bench_lib.errors import BenchError, nearest
from bench_lib.readings.benchmark import Benchmark


def available() -> tuple[str, ...]:
    """Names of all benchmarks."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def find(name: str) -> Benchmark:
    """The benchmark of that name; BenchError names the nearest one."""
    if name not in available():
        raise BenchError(f"unknown benchmark {name!r}; {nearest(name, available())}")
    found: Benchmark = importlib.import_module(f"{__name__}.{name}").BENCH
    return found
