"""Speech recognition: one file per recogniser, found by its name like a method.

A file defines `load(where: str, home: Path) -> Recogniser`. A `SPEC` is `NAME` or `NAME:WHERE`;
what `WHERE` means is said in the file. The same recogniser serves a stream
(`StreamMind.hear(recogniser(spec).listen)`) and whole files (`transcript`).
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass, replace
from pathlib import Path

from bench_lib.errors import BenchError, nearest
from bench_lib.speech.repeats import wary
from bench_lib.speech.windows import Listen

SHARED = ("repeats", "transcript", "windows")


@dataclass(frozen=True)
class Recogniser:
    """Samples to text, and an `id` that changes with everything the text depends on."""

    id: str
    listen: Listen


def available() -> tuple[str, ...]:
    """Names of all recognisers."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name not in SHARED))


def recogniser(spec: str, home: Path | None = None) -> Recogniser:
    """The recogniser of a spec, its repetitions marked (`repeats`).

    Places in the spec are relative to `home`, the working directory if None.

    Raises:
        BenchError: no such recogniser, or what it needs is not there; the message says what to do.
    """
    name, _, where = spec.partition(":")
    if name not in available():
        raise BenchError(f"unknown speech recogniser {name!r}; {nearest(name, available())}")
    found: Recogniser = importlib.import_module(f"{__name__}.{name}").load(
        where, home or Path.cwd()
    )
    return replace(found, listen=wary(found.listen))
