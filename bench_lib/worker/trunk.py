"""A worker's memory of one stream: its process, and on disk all that it was sent.

What changes the trunk is noted before it is sent, so that a process that ended can be followed by
another one, and a worker that cannot save can be saved. A process counts as the trunk's only once
it has taken in all of it: none ever answers from a part.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_lib.errors import BenchError
from bench_lib.exchange import Refused
from bench_lib.worker.hello import Introduction, introduced
from bench_lib.worker.journal import Journal
from bench_lib.worker.process import Process, WorkerError

TRIES = 3
"""Starts in a row that may fail before a trunk is given up."""
DECLINABLE = ("watch",)
"""What a worker may decline, and its memory is as it was."""


@dataclass(frozen=True)
class Place:
    """A state inside a process: the trunk, or a branch of a certain process."""

    name: str = "trunk"
    process: int = 0


class Trunk:
    """See the module. Several threads may ask; requests go one after the other.

    Args:
        command, settings: Of the worker.
        start_s, timeout_s: Longest time of `hello`, and of any other reply.
        said: What it said of itself; a process that says something else is none of it.
    """

    def __init__(
        self,
        command: Sequence[str],
        settings: Mapping[str, Any],
        start_s: float,
        timeout_s: float,
        said: Introduction,
    ) -> None:
        self.command, self.settings, self.said = command, settings, said
        self.start_s, self.timeout_s = start_s, timeout_s
        self.folder = Path(tempfile.mkdtemp(prefix="bench-worker-"))
        self.media = self.folder / "media"
        self.media.mkdir()
        self.journal = Journal(self.folder / "journal.jsonl")
        self.started = 0
        self.branches = 0
        self.dropped: deque[Place] = deque()
        self._lock = threading.RLock()
        self._failed = 0
        self._process: list[Process] = []
        weakref.finalize(self, _end, self._process, self.folder)

    @property
    def pid(self) -> int:
        """Of the process now, 0 where there is none."""
        return self._process[0].pid if self._process else 0

    def _running(self) -> bool:
        return bool(self._process) and self._process[0].alive

    def _ready(self) -> Process:
        """The process; where there is none, one that was told everything."""
        if self._running():
            return self._process[0]
        while self._process:
            self._process.pop().kill()
        if self._failed >= TRIES:
            raise WorkerError(
                f"the worker was given up: {TRIES} starts in a row failed before it had taken in "
                "what came before"
            )
        self._failed += 1
        process = Process(self.command)
        self.started += 1
        try:
            self._tell_all(process)
        except BaseException:
            process.kill()
            raise
        self._failed = 0
        self._process.append(process)
        return process

    def _tell_all(self, process: Process) -> None:
        said = introduced(process, self.settings, self.start_s)
        if said != self.said:
            raise BenchError(
                f"the worker introduced itself as {said}, and before as {self.said}: what it says "
                "of itself must be the same at each start"
            )
        for op, body in self.journal:
            try:
                process.ask(op, body, self.timeout_s)
            except (WorkerError, Refused) as error:
                raise WorkerError(f"as it was told again what came before: {error}") from None

    def tell(self, op: str, **body: Any) -> dict[str, Any]:
        """A request that changes the trunk; raises WorkerError, BenchError, Refused."""
        with self._lock:
            process = self._ready()
            body = {"state": "trunk", **body}
            try:
                self.journal.add(op, body)
                return process.ask(op, body, self.timeout_s)
            except (BenchError, Refused):
                if op in DECLINABLE and process.alive:
                    self.journal.take_back()
                else:
                    process.kill()  # how much of this it holds is not known
                raise

    def ask(self, place: Place, op: str, **body: Any) -> dict[str, Any]:
        """A request that leaves the trunk as it is; raises WorkerError, Refused."""
        with self._lock:
            self._drop()
            if place.name != "trunk" and (place.process != self.started or not self._running()):
                raise WorkerError(
                    f"the worker's process ended while this question was open; {op} has no state"
                )
            return self._ready().ask(op, {"state": place.name, **body}, self.timeout_s)

    def _drop(self) -> None:
        """Let go of branches that nobody holds; what goes wrong is no matter of who asks next."""
        while self.dropped:
            gone = self.dropped.popleft()
            if gone.process == self.started and self._running():
                with contextlib.suppress(WorkerError, Refused):
                    self._process[0].ask("drop", {"state": gone.name}, self.timeout_s)

    def branch(self, place: Place) -> Place:
        """A copy of a state inside the process; raises WorkerError."""
        with self._lock:
            self.branches += 1
            name = f"b{self.branches}"
            self.ask(place, "branch", to=name)
            return Place(name, self.started)

    def begin_with(self, folder: Path) -> None:
        """Begin with what another trunk's journal kept; raises WorkerError, BenchError."""
        with self._lock:
            self.journal.take(folder)
            self._ready()

    def load(self, folder: Path) -> None:
        """Begin with what the worker saved; raises WorkerError.

        From a copy: the folder may go, and a later process of the worker needs it as well.
        """
        own = self.folder / "saved"
        shutil.copytree(folder, own)
        self.tell("load", folder=str(own))


def _end(process: list[Process], folder: Path) -> None:
    for one in process:
        one.stop()
    shutil.rmtree(folder, ignore_errors=True)
