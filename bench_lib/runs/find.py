"""Runs by their names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench_lib import paths
from bench_lib.errors import BenchError, nearest
from bench_lib.runs.folder import Run
from bench_lib.schema import RETRIED


def find_run(name: str) -> Path:
    """A run's folder by its name, a unique prefix, or `latest`.

    `latest` is the run that got the last answer, of those that no process is at work on; these are
    named.
    """
    home = paths.outputs() / "runs"
    known = {path.parent.name: path.parent for path in home.glob("*/manifest.json")}
    if not known:
        raise BenchError(f"no run below {paths.short(home)}; run notebooks/03_eval.ipynb first")
    if name == "latest":
        return _latest(known)
    matching = [name] if name in known else sorted(n for n in known if n.startswith(name))
    if len(matching) == 1:
        return known[matching[0]]
    if matching:
        raise BenchError(f"{name!r} begins {len(matching)} runs: {', '.join(matching)}")
    raise BenchError(f"unknown run {name!r}; {nearest(name, known)}")


def _latest(known: Mapping[str, Path]) -> Path:
    at_work = [name for name, folder in known.items() if Run(folder, {}).worked_on()]
    idle = {name: folder for name, folder in known.items() if name not in at_work}
    answered = [folder for folder in idle.values() if answered_once(folder)]
    if not answered:
        told = f"another process is at work on {', '.join(at_work)}" if at_work else "give a name"
        raise BenchError(f"no run is over that holds an answer; {told}")
    found = max(answered, key=last_written)
    if at_work:
        print(f"latest is {found.name}; not taken, processes are at work: {', '.join(at_work)}")
    return found


def answered_once(folder: Path) -> bool:
    """Whether a run holds an answer; what only failed is an attempt."""
    try:
        return any(r["status"] not in RETRIED for r in Run(folder, {}).read("responses"))
    except BenchError:
        return True  # whoever reads it says what is wrong with it


def last_written(folder: Path) -> float:
    """When a run last got an answer, or was opened where it has none, as a time of its files."""
    files = list(folder.glob("responses.*.jsonl")) or [folder / "manifest.json"]
    return max(path.stat().st_mtime for path in files)
