"""The shell command that gives the same run again."""

from __future__ import annotations

import json
import shlex
from typing import Any

from bench_lib.params.evaluate import EvalParams


def command(notebook: str, params: EvalParams, output: str) -> str:
    """A papermill command with the parameters that differ from their defaults, one a line.

    `-p` guesses types from text; where it would guess wrongly, `-r` keeps text and `-y` carries
    lists and dictionaries.
    """
    words = [f"papermill notebooks/{notebook}.ipynb {shlex.quote(output)}"]
    words += [_option(name, value) for name, value in params.changed().items()]
    return " \\\n    ".join(words)


def _option(name: str, value: Any) -> str:
    if isinstance(value, list | dict):
        return f"-y {shlex.quote(json.dumps({name: value}, ensure_ascii=False))}"
    flag = "-r" if isinstance(value, str) and _guessed(value) else "-p"
    return f"{flag} {name} {shlex.quote(str(value))}"


def _guessed(text: str) -> bool:
    """Whether papermill would take a text for a number, a truth value or nothing."""
    if text in ("True", "False", "None"):
        return True
    for kind in (int, float):
        try:
            kind(text)
        except ValueError:
            continue
        return True
    return False
