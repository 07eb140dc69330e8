"""A worker's memory of one stream: its process, and on disk all that it was sent.

What changes the trunk is written to a journal before it is sent, so that a process that ended can
be followed by another one, and a worker that cannot save can be saved.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_lib.worker.process import Process, WorkerError
from bench_lib.worker.wire import PROTOCOL

JOURNAL = "journal.jsonl"


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
    """

    def __init__(
        self, command: Sequence[str], settings: Mapping[str, Any], start_s: float, timeout_s: float
    ) -> None:
        self.command, self.settings = command, settings
        self.start_s, self.timeout_s = start_s, timeout_s
        self.folder = Path(tempfile.mkdtemp(prefix="bench-worker-"))
        self.media = self.folder / "media"
        self.media.mkdir()
        self.journal = self.folder / JOURNAL
        self.journal.touch()
        self.started = 0
        self.branches = 0
        self.dropped: deque[Place] = deque()
        self._lock = threading.RLock()
        self._process: list[Process] = []
        weakref.finalize(self, _end, self._process, self.folder)

    @property
    def pid(self) -> int:
        """Of the process now, 0 where there is none."""
        return self._process[0].pid if self._process else 0

    def _alive(self) -> Process:
        """The process, started and told everything again where the last one ended."""
        if self._process and self._process[0].alive:
            return self._process[0]
        self._process.clear()
        process = Process(self.command)
        self._process.append(process)
        self.started += 1
        process.ask("hello", {"protocol": PROTOCOL, "settings": self.settings}, self.start_s)
        with self.journal.open(encoding="utf-8") as lines:
            for line in lines:
                op, body = json.loads(line)
                process.ask(op, body, self.timeout_s)
        return process

    def tell(self, op: str, **body: Any) -> dict[str, Any]:
        """A request that changes the trunk; raises WorkerError, Refused."""
        with self._lock:
            process = self._alive()
            reply = process.ask(op, {"state": "trunk", **body}, self.timeout_s)
            with self.journal.open("a", encoding="utf-8") as file:
                file.write(json.dumps([op, {"state": "trunk", **body}], ensure_ascii=False) + "\n")
            return reply

    def ask(self, place: Place, op: str, **body: Any) -> dict[str, Any]:
        """A request that leaves the trunk as it is; raises WorkerError, Refused."""
        with self._lock:
            if place.name != "trunk" and (place.process != self.started or not self._running()):
                raise WorkerError(
                    f"the worker's process ended while this question was open; {op} has no state"
                )
            process = self._alive()
            while self.dropped:
                gone = self.dropped.popleft()
                if gone.process == self.started:
                    process.ask("drop", {"state": gone.name}, self.timeout_s)
            return process.ask(op, {"state": place.name, **body}, self.timeout_s)

    def _running(self) -> bool:
        return bool(self._process) and self._process[0].alive

    def branch(self, place: Place) -> Place:
        """A copy of a state inside the process; raises WorkerError."""
        with self._lock:
            self.branches += 1
            name = f"b{self.branches}"
            self.ask(place, "branch", to=name)
            return Place(name, self.started)

    def keep(self, folder: Path) -> None:
        """Write what the trunk was sent to a folder."""
        with self._lock:
            shutil.copyfile(self.journal, folder / JOURNAL)

    def again(self, folder: Path) -> None:
        """Begin with what another trunk was sent."""
        with self._lock:
            shutil.copyfile(folder / JOURNAL, self.journal)
            self._alive()


def _end(process: list[Process], folder: Path) -> None:
    for one in process:
        one.stop()
    shutil.rmtree(folder, ignore_errors=True)
