"""Notebook parameters: the plain values of a parameters cell, bound to a frozen, checked record.

papermill warns about unknown parameters and goes on, and guesses types; here both are errors, in
the first second and in one line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from bench_lib.errors import BenchError, nearest

T = TypeVar("T")


PLAIN = (str, int, float, bool, list, dict, tuple, type(None))


IPYTHON = {"In", "Out", "exit", "quit", "open"}


def bind(cls: type[T], namespace: Mapping[str, Any]) -> T:
    """Build `cls` from a notebook's globals.

    Raises BenchError for a plain value that is no field (a misspelt parameter), for a value of the
    wrong type, and for what the class itself refuses.
    """
    known = {f.name: f for f in fields(cls)}  # type: ignore[arg-type]
    given = {
        name: value
        for name, value in namespace.items()
        if not name.startswith("_") and name not in IPYTHON and type(value) in PLAIN
    }
    for name in given:
        if name not in known:
            raise BenchError(f"unknown parameter {name!r}; {nearest(name, known)}")
    values = {name: _typed(name, value, str(known[name].type)) for name, value in given.items()}
    return cls(**values)


def _typed(name: str, value: Any, wanted: str) -> Any:
    kind = {"str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict}[
        wanted
    ]
    if kind is float and type(value) is int:
        return float(value) if abs(value) < 2**1000 else math.inf
    if type(value) is kind:
        return value
    hint = ""
    if kind is bool:
        hint = "; with papermill -p write True or False"
    elif kind is str:
        hint = "; with papermill use -r to keep it text"
    elif kind in (list, dict):
        hint = f"; with papermill use -y '{name}: ...'"
    raise BenchError(
        f"parameter {name} must be {wanted}, not {type(value).__name__} {value!r}{hint}"
    )
