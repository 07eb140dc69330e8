"""What no parameter of any notebook may be: a secret, a number without end, an unsafe file name."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from bench_lib.errors import BenchError, nearest
from bench_lib.redact import secret_at

LONGEST_NAME = 80
SIGNS = "-_.,+=() "
MOST_SEED = 2**31
"""Seeds below it are taken by every library and server; repeats add to theirs."""
FREE_TEXTS = ("question",)
"""Parameters whose text is the user's own words."""


def plain(params: Any) -> None:
    """Refuse secrets and numbers that are not finite, wherever in a record they stand.

    Raises:
        BenchError: names the parameter; never shows a secret.
    """
    values = {name: value for name, value in asdict(params).items() if name not in FREE_TEXTS}
    _keys(values)
    where = secret_at(values)
    if where:
        raise BenchError(
            f"parameter {where} holds a secret: put it into an environment variable, and name that "
            "in key_env of backbone_args or judge_args; delete the notebook that papermill has "
            "written, which keeps what it was given"
        )
    for where, value in _numbers(values):
        if not math.isfinite(value):
            raise BenchError(f"parameter {where} must be a finite number, not {value}")


def _keys(value: Any, where: str = "") -> None:
    for key, inner in value.items() if isinstance(value, Mapping) else ():
        if not isinstance(key, str):
            raise BenchError(f"parameter {where}: names in it must be texts, not {key!r}")
        _keys(inner, f"{where}.{key}".lstrip("."))


def seed(value: int) -> None:
    """Refuse what some library or server takes for no seed."""
    if not 0 <= value < MOST_SEED:
        raise BenchError(f"parameter seed must lie in [0, {MOST_SEED}), not {value}")


def _numbers(value: Any, where: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _numbers(inner, f"{where}.{key}".lstrip("."))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _numbers(inner, where)
    elif isinstance(value, float):
        yield where, value


def choice(name: str, value: Any, known: tuple[str, ...]) -> None:
    """Refuse what is none of the known values."""
    if value not in known:
        raise BenchError(f"parameter {name} is {value!r}; {nearest(str(value), known)}")


def at_least(params: Any, least: int, *names: str) -> None:
    """Refuse numbers below `least`."""
    for name in names:
        value = getattr(params, name)
        if value < least:
            told = "must not be negative" if least == 0 else f"must be at least {least}"
            raise BenchError(f"parameter {name} {told}, not {value}")


def texts(params: Any, *names: str) -> None:
    """Refuse lists that hold anything but texts."""
    for name in names:
        for value in getattr(params, name):
            if not isinstance(value, str):
                raise BenchError(f"parameter {name} must hold texts, not {value!r}")


def file_name(name: str) -> str:
    """A name in Unicode's composed form; refuses what is no part of a file's name everywhere."""
    name = unicodedata.normalize("NFC", name)
    reason = _unsafe(name)
    if reason:
        raise BenchError(
            f"parameter name becomes part of file names; {name[:LONGEST_NAME]!r} {reason}: use "
            f"letters, digits and {SIGNS!r}, {LONGEST_NAME} bytes at most"
        )
    return name


def _unsafe(name: str) -> str:
    size = len(name.encode(errors="replace"))
    if not name:
        return "is empty"
    if size > LONGEST_NAME:
        return f"has {size} bytes"
    for sign in name:
        if not (sign.isalnum() or unicodedata.category(sign)[0] == "M" or sign in SIGNS):
            return f"holds {sign!r}"
    if name[0] in ". -" or name[-1] in ". ":
        return "begins or ends with a dot, a space or a dash"
    return ""
