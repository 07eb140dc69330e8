"""The shell command that gives the same run again."""

from __future__ import annotations

import json
import shlex
from typing import Any

from bench_lib.params.evaluate import EvalParams
from bench_lib.readings.material import Material


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


def record_files(material: Material) -> list[tuple[str, str]]:
    """The files of the run folder and what they hold."""
    known = {
        "manifest.json": "parameters, versions, one entry per process",
        "responses.*.jsonl": "one line per ask: raw reply, status, decision, timings, counters",
        "sessions.*.jsonl": "one line per fed session: state bytes, clip times, counters",
        "verdicts.*.jsonl": "one line per judged reply: score, checks, justification, raw reply",
        "repeats.*.jsonl": "one line per ask that was put a second time",
        "calls.*.jsonl": "one line per call of an agent's worker: what it saw, what it said",
        "memory.*.jsonl": "one line per video: the agent's memory at its end",
        "metrics.json": "scores with their n",
        "states": "saved memories",
    }
    return [(name, what) for name, what in known.items() if any(material.run.folder.glob(name))]
