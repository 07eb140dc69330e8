"""A run's folder: what identifies it, what it holds, how it is resumed.

    outputs/runs/<notebook>-<name>-<digest>/
        manifest.json            parameters, versions, digests of the data, one entry per process
        responses.*.jsonl        append-only, one file per process, keyed by (candidate, probe)
        sessions.*.jsonl         what each fed session cost and how large the memory was
        states/                  saved memories
        metrics.json             scores with their n

A record is on disk once its line ends with a newline; a torn last line (kill -9) is skipped when
read and its work is done again. No file is ever rewritten but manifest.json and metrics.json, which
are replaced whole.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import IO, Any

from bench_lib import __version__, paths
from bench_lib.errors import BenchError, nearest
from bench_lib.schema import Response, Trajectory

NOT_IDENTITY = (
    "device", "shard", "workers", "data_root", "store_gib", "limit", "tasks",
    "trajectories", "name", "question", "at", "probe_every_s", "repeat",
)  # fmt: skip
"""Parameters that do not change what an answer is; all others, and the versions, identify a run."""
VERSIONS = ("torch", "transformers", "decord", "av")


def identity(params: Mapping[str, Any]) -> dict[str, Any]:
    """What makes two runs the same run.

    Of a server's settings those count on which its replies depend, not how it is reached; its
    address counts only where no revision names its weights.
    """
    own = {key: value for key, value in params.items() if key not in NOT_IDENTITY}
    if str(own.get("backbone", "")).startswith("endpoint:"):
        from bench_lib.chat.settings import SHAPING

        given = own.get("backbone_args") or {}
        own["backbone_args"] = {key: given[key] for key in sorted(given) if key in SHAPING}
        if given.get("revision"):
            own["backbone"] = own["backbone"].partition("@http")[0]
    return {**own, "versions": versions()}


def versions() -> dict[str, str]:
    """Versions of the packages that can change a number; `absent` where one is not installed."""
    found = {"bench_lib": __version__}
    for package in VERSIONS:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "absent"
    return found


def digest(value: Any, length: int = 8) -> str:
    """Hex digits of a JSON value."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


@dataclass
class Run:
    """An open run folder; safe to append to from many threads, and many processes at once."""

    folder: Path
    params: dict[str, Any]
    started: float = field(default_factory=time.time)
    _files: dict[str, IO[str]] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def open(cls, notebook: str, name: str, params: Mapping[str, Any], **more: Any) -> Run:
        """Create or reopen the folder of these parameters and note this process in its manifest.

        `more` is what identifies this run beside its parameters.
        """
        ident = {**identity(params), **more}
        folder = paths.outputs() / "runs" / f"{notebook}-{name}-{digest(ident)}"
        try:
            (folder / "locks").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BenchError(
                f"cannot write {paths.short(folder)}: {error.strerror}; set BENCH_OUTPUTS to a "
                "folder that can be written"
            ) from None
        run = cls(folder, dict(params))
        with run.locked("manifest"):
            manifest = run.manifest()
            manifest.setdefault("notebook", notebook)
            manifest.setdefault("name", name)
            manifest.setdefault("identity", ident)
            manifest.setdefault("data", {})
            manifest.setdefault("processes", []).append(process(params))
            run._replace("manifest.json", manifest)
        return run

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
        return json.loads(path.read_text()) if path.exists() else {}

    def register(self, trajectory: Trajectory) -> None:
        """Note a trajectory's digest; BenchError if this run has seen other data of that name."""
        value = hashlib.sha256(_content(trajectory).encode()).hexdigest()[:16]
        with self.locked("manifest"):
            manifest = self.manifest()
            known = manifest["data"].setdefault(trajectory.id, value)
            self._replace("manifest.json", manifest)
        if known != value:
            raise BenchError(
                f"trajectory {trajectory.id!r} differs from the one this run began with; give the "
                f"run another folder by deleting or moving {paths.short(self.folder)}"
            )

    def note(self, **facts: Any) -> None:
        """Add facts to the manifest (what served, what was quarantined, ...)."""
        with self.locked("manifest"):
            manifest = self.manifest()
            manifest.setdefault("facts", {}).update(facts)
            self._replace("manifest.json", manifest)

    def append(self, kind: str, record: Any) -> None:
        """Write one record to this process's file of that kind; on disk when this returns."""
        text = (
            record.model_dump_json()
            if hasattr(record, "model_dump_json")
            else json.dumps(record, allow_nan=False)
        )
        with self._lock:
            if kind not in self._files:
                stamp = f"{platform.node()}-{os.getpid()}-{int(self.started * 1000)}"
                path = self.folder / f"{kind}.{stamp}.jsonl"
                self._files[kind] = path.open("a", encoding="utf-8")
            self._files[kind].write(paths.homeless(text) + "\n")
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
        records = []
        for path in sorted(
            self.folder.glob(f"{kind}.*.jsonl"), key=lambda p: p.name.split("-")[-1]
        ):
            for number, line in enumerate(path.read_text(encoding="utf-8").split("\n")[:-1], 1):
                try:
                    records.append(json.loads(line))
                except ValueError:
                    raise BenchError(
                        f"{paths.short(path)} line {number} is not JSON; delete that line, "
                        "its work is done again"
                    ) from None
        return records

    def responses(self) -> dict[tuple[str, str], Response]:
        """Responses by (candidate, probe): the newest that did not fail, else the newest."""
        found: dict[tuple[str, str], Response] = {}
        for record in self.read("responses"):
            response = Response.model_validate(record)
            key = response.candidate, response.probe
            if key not in found or response.status not in RETRIED or found[key].status in RETRIED:
                found[key] = response
        return found

    def done(self) -> set[tuple[str, str]]:
        """Keys that need no further work; errors are tried again by the same command."""
        return {key for key, r in self.responses().items() if r.status not in RETRIED}

    def write_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Replace metrics.json."""
        self._replace("metrics.json", dict(metrics))

    @contextmanager
    def locked(self, name: str, wait: bool = True) -> Iterator[bool]:
        """Hold a lock of this run; yields False at once where it is held and `wait` is off.

        The operating system lets go of it when a process dies.
        """
        path = self.folder / "locks" / digest(name, 16)
        with path.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
                return
            yield True

    def _replace(self, name: str, value: Mapping[str, Any]) -> None:
        temporary = self.folder / f".{name}.{os.getpid()}.{threading.get_ident()}"
        text = json.dumps(value, indent=1, sort_keys=True, allow_nan=False, default=str)
        temporary.write_text(paths.homeless(text))
        temporary.replace(self.folder / name)


def find_run(name: str) -> Path:
    """A run's folder by its name, a unique prefix, or `latest` (the one last written to)."""
    home = paths.outputs() / "runs"
    known = {path.parent.name: path.parent for path in home.glob("*/manifest.json")}
    if not known:
        raise BenchError(f"no run below {paths.short(home)}; run notebooks/03_eval.ipynb first")
    if name == "latest":
        return max(known.values(), key=last_written)
    matching = [name] if name in known else sorted(n for n in known if n.startswith(name))
    if len(matching) == 1:
        return known[matching[0]]
    if matching:
        raise BenchError(f"{name!r} begins {len(matching)} runs: {', '.join(matching)}")
    raise BenchError(f"unknown run {name!r}; {nearest(name, known)}")


def last_written(folder: Path) -> float:
    """When a run's records were last written to, as a time of its files."""
    files = [folder / "manifest.json", *folder.glob("*.jsonl")]
    return max(path.stat().st_mtime for path in files)


RETRIED = ("error", "not_run")


def process(params: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest's entry for this process."""
    shown = {k: paths.short(v) if isinstance(v, str) else v for k, v in params.items()}
    return {
        "params": shown,
        "started": time.strftime("%Y-%m-%d %H:%M:%S"),
        "revision": revision(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "versions": versions(),
    }


def revision() -> str:
    """Git revision of this package with `+` where it has uncommitted changes; empty outside git."""
    try:

        def git(*words: str) -> str:
            done = subprocess.run(
                ["git", "-C", str(paths.root()), *words], capture_output=True, text=True, timeout=10
            )
            return done.stdout.strip() if done.returncode == 0 else ""

        head = git("rev-parse", "--short", "HEAD")
        return f"{head}+" if head and git("status", "--porcelain", "--", "bench_lib") else head
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _content(trajectory: Trajectory) -> str:
    """A trajectory without its places on this machine."""
    record = trajectory.model_dump(mode="json")
    for session in (*record["sessions"], *record["between"]):
        for span in session["spans"]:
            span["file"] = Path(span["file"]).name
    return json.dumps(record, sort_keys=True)
