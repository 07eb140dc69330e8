"""A run's folder: what identifies it, what it holds, how it is resumed.

    outputs/runs/<notebook>-<name>-<digest>/
        manifest.json            parameters, versions, one entry per process
        data.json                what the data is known by, in parts (see `identity`)
        responses.*.jsonl        append-only, one file per process, keyed by (trajectory, candidate,
                                 probe)
        sessions.*.jsonl         what each fed session cost and how large the memory was
        states/                  saved memories
        metrics.json             scores with their n

A record is on disk once its line ends with a newline; a torn last line (kill -9) is skipped when
read and its work is done again. Only manifest.json, data.json and metrics.json are ever rewritten;
they are replaced whole.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from bench_lib import paths
from bench_lib.content import digest
from bench_lib.errors import BenchError
from bench_lib.redact import scrubbed
from bench_lib.runs.identity import (
    FORMAT,
    Contents,
    about,
    as_kept,
    differs,
    identity,
    merged,
    same,
)
from bench_lib.runs.provenance import process
from bench_lib.schema import RETRIED, Key, Response

AT_WORK = "at-work"
"""The lock that all processes at work on a run share."""


@dataclass
class Run:
    """An open run folder; safe to append to from many threads, and many processes at once.

    `others` says of runs with the same parameters why this is none of them. `device` names what the
    times of this process depend on most.
    """

    folder: Path
    params: dict[str, Any]
    others: tuple[str, ...] = ()
    device: str = ""
    started: float = field(default_factory=time.time)
    _first: dict[str, Any] = field(default_factory=dict, repr=False)
    _facts: dict[str, Any] = field(default_factory=dict, repr=False)
    _files: dict[str, IO[str]] = field(default_factory=dict, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @classmethod
    def open(
        cls,
        notebook: str,
        name: str,
        params: Mapping[str, Any],
        present: Contents | None = None,
        own: Iterable[str] = (),
        **more: Any,
    ) -> Run:
        """The run of these parameters, which is written from its first record on (`begin`).

        `present` is what the source's data is known by, `own` names the trajectories of it that are
        asked about. A run goes on where its parameters are the same and no trajectory that it was
        asked about has become another one; else another run begins. `more` is what identifies a
        run beside its parameters and its data.
        """
        home = paths.there(paths.outputs())
        if not (home.is_dir() and os.access(home, os.W_OK)):
            raise _unwritable(home, "it is no folder that you may write")
        ident = {**identity(params), **as_kept(more)}
        present = present or {}
        first = {
            "manifest": {"format": FORMAT, "notebook": notebook, "name": name, "identity": ident},
            "data": {trajectory: present[trajectory] for trajectory in own},
        }
        folder, others = _place(f"{notebook}-{name}", ident, present)
        return cls(folder, dict(params), tuple(others), _first=first)

    def begin(self) -> None:
        """Create or reopen the folder, and note this process in its manifest; once per process.

        Nothing is written before, so that what is refused leaves nothing.
        """
        with self._lock:
            first, self._first = self._first, {}
            if not first:
                return
            try:
                (self.folder / "locks").mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise _unwritable(self.folder, str(error.strerror)) from None
            with self.locked("manifest"):
                self.check(first["data"])
                self._replace("data.json", merged(self.contents(), first["data"]))
                manifest = {**first["manifest"], **self.manifest()}
                own = process(self.params, self.stamp, self.device)
                manifest.setdefault("processes", []).append(own)
                self._replace("manifest.json", manifest)
            self._facts = {}

    @classmethod
    def at(cls, folder: Path) -> Run:
        """An existing run folder, to read."""
        if not (folder / "manifest.json").exists():
            raise BenchError(f"{paths.short(folder)} is no run: it has no manifest.json")
        run = cls(folder, {})
        run.params = run.manifest()["processes"][-1]["params"]
        return run

    def manifest(self) -> dict[str, Any]:
        """What manifest.json says now; empty before the first opening."""
        path = self.folder / "manifest.json"
        found = json.loads(path.read_text()) if path.exists() else {}
        return {**found, "facts": {**found.get("facts", {}), **self._facts}}

    def contents(self) -> Contents:
        """What the data is known by that this run was asked about; empty for runs of old forms."""
        path = self.folder / "data.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def check(self, present: Contents) -> None:
        """BenchError where this run was asked about other data; names the first difference."""
        what = differs(self.contents(), present)
        if what:
            raise BenchError(
                f"{paths.short(self.folder)} was asked about other data: {what} differs"
            )

    def note(self, **facts: Any) -> None:
        """Add facts to the manifest (what served, what was quarantined, ...)."""
        with self._lock:
            self._facts |= facts
            if self._first:
                return  # they are written when the run begins
            with self.locked("manifest"):
                self._replace("manifest.json", self.manifest())
            self._facts = {}

    @property
    def stamp(self) -> str:
        """What names this process's files: machine, number, and when it began, in ms."""
        return f"{platform.node()}-{os.getpid()}-{int(self.started * 1000)}"

    def append(self, kind: str, record: Any) -> None:
        """Write one record to this process's file of that kind; on disk when this returns."""
        text = (
            record.model_dump_json()
            if hasattr(record, "model_dump_json")
            else json.dumps(record, allow_nan=False)
        )
        with self._lock:
            self.begin()
            if kind not in self._files:
                path = self.folder / f"{kind}.{self.stamp}.jsonl"
                self._files[kind] = path.open("a", encoding="utf-8")
            self._files[kind].write(scrubbed(paths.homeless(text)) + "\n")
            self._files[kind].flush()

    def sync(self) -> None:
        """Force what was written to the disk; called once per session."""
        with self._lock:
            for file in self._files.values():
                os.fsync(file.fileno())

    def close(self) -> None:
        """Close this process's files."""
        with self._lock:
            for file in self._files.values():
                file.close()
            self._files.clear()

    def read(self, kind: str) -> list[dict[str, Any]]:
        """All whole records of a kind, oldest file first; a torn last line is skipped."""
        return [record for _, record in self._stamped(kind)]

    def _stamped(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Records with the stamp of the process that wrote them."""
        for path in sorted(
            self.folder.glob(f"{kind}.*.jsonl"), key=lambda p: p.name.split("-")[-1]
        ):
            stamp = path.name.removeprefix(f"{kind}.").removesuffix(".jsonl")
            for number, line in enumerate(path.read_text(encoding="utf-8").split("\n")[:-1], 1):
                try:
                    yield stamp, json.loads(line)
                except ValueError:
                    raise BenchError(
                        f"{paths.short(path)} line {number} is not JSON; delete that line, "
                        "its work is done again"
                    ) from None

    def responses(self) -> dict[Key, Response]:
        """Responses by ask: the newest that did not fail, else the newest."""
        return {key: response for key, (_, response) in self._counted().items()}

    def given_by(self) -> dict[Key, dict[str, Any]]:
        """The manifest's entry of the process that gave each of these responses.

        Empty for those of runs of older forms, whose entries name no files.
        """
        known = {p.get("stamp", ""): p for p in self.manifest().get("processes", [])}
        return {key: known.get(stamp, {}) for key, (stamp, _) in self._counted().items()}

    def _counted(self) -> dict[Key, tuple[str, Response]]:
        found: dict[Key, tuple[str, Response]] = {}
        for stamp, record in self._stamped("responses"):
            response = Response.model_validate(record)
            old = found.get(response.key)
            if old is None or response.status not in RETRIED or old[1].status in RETRIED:
                found[response.key] = stamp, response
        return found

    def done(self) -> set[Key]:
        """Keys that need no further work; errors are tried again by the same command."""
        return {key for key, response in self.responses().items() if response.final}

    def write_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Replace metrics.json."""
        self.begin()
        self._replace("metrics.json", dict(metrics))

    @contextmanager
    def locked(self, name: str, wait: bool = True) -> Iterator[bool]:
        """Hold a lock of this run; yields False at once where it is held and `wait` is off.

        The operating system lets go of it when a process dies.
        """
        self.begin()
        path = self.folder / "locks" / digest(name, 16)
        with path.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
                return
            yield True

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Let others see that this process is at work on the run (`worked_on`)."""
        with (self.folder / "locks" / AT_WORK).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            yield

    def worked_on(self) -> bool:
        """Whether a living process is at work on it."""
        path = self.folder / "locks" / AT_WORK
        if not path.exists():
            return False
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def _replace(self, name: str, value: Mapping[str, Any]) -> None:
        temporary = self.folder / f".{name}.{os.getpid()}.{threading.get_ident()}"
        text = json.dumps(value, indent=1, sort_keys=True, allow_nan=False, default=str)
        temporary.write_text(scrubbed(paths.homeless(text)))
        temporary.replace(self.folder / name)


def _unwritable(folder: Path, reason: str) -> BenchError:
    return BenchError(
        f"cannot write {paths.short(folder)}: {reason}; set BENCH_OUTPUTS to a folder that can be "
        "written"
    )


def _place(stem: str, ident: Mapping[str, Any], present: Contents) -> tuple[Path, list[str]]:
    """The folder of the run that goes on, or of one that begins; why others do not go on.

    Of several that could go on, it is the one that knows most of this data.
    """
    home = paths.outputs() / "runs"
    new = home / f"{stem}-{digest([FORMAT, ident, present])}"
    found: dict[Path, int] = {}
    others: list[str] = []
    for run, manifest in runs_named(stem):
        if not same(manifest["identity"], ident):
            continue
        known, name = run.contents(), run.folder.name
        if manifest.get("format") != FORMAT:
            others.append(f"{name} was made before runs knew their data by content")
        elif about(known, present):
            found[run.folder] = len(known.keys() & present.keys())
        elif what := differs(known, present):
            others.append(f"{name} was asked about other data: {what} differs")
        else:
            others.append(f"{name} was asked about other trajectories: {', '.join(known)}")
    if found:
        return max(found, key=lambda folder: (found[folder], folder == new)), []
    return new, others


def runs_named(stem: str) -> Iterator[tuple[Run, dict[str, Any]]]:
    """Runs of a notebook and a name, with their manifests, in the order of their folders' names."""
    for path in sorted((paths.outputs() / "runs").glob("*/manifest.json")):
        run = Run(path.parent, {})
        manifest = run.manifest()
        if f"{manifest.get('notebook')}-{manifest.get('name')}" == stem:
            yield run, manifest
