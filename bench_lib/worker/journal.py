"""What a trunk was sent, in order, on disk; states that are saved one after another share it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench_lib.errors import BenchError
from bench_lib.measure import count
from bench_lib.state.packs import RECORD, Shelf, read


class Journal:
    """Requests, one a line. A line is whole before its request is sent.

    Once one could not be written nothing is read any more: what it holds is not all.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._digest = hashlib.sha256()
        self._before = self.size, self._digest.copy()
        self._lost = ""
        self._kept: dict[str, int] = {}  # by digest, how long the journal was when it was saved
        path.touch()

    def add(self, op: str, body: Mapping[str, Any]) -> None:
        """One more request; raises BenchError where the disk takes no more."""
        self._before = self.size, self._digest.copy()
        line = json.dumps([op, body]).encode() + b"\n"
        try:
            with self.path.open("ab") as file:
                file.write(line)
        except OSError as error:
            self._lost = (
                f"what the worker is sent cannot be noted in {self.path.parent} ({error}): make "
                "room there, or set TMPDIR to a folder with more"
            )
            raise BenchError(self._lost) from None
        self.size += len(line)
        self._digest.update(line)

    def take_back(self) -> None:
        """The newest request changed nothing."""
        self.size, self._digest = self._before
        with self.path.open("rb+") as file:
            file.truncate(self.size)

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        if self._lost:
            raise BenchError(self._lost)
        with self.path.open("rb") as lines:
            for line in lines:
                op, body = json.loads(line)
                yield op, body

    def keep(self, folder: Path, shelf: Shelf) -> None:
        """Write what is new since the state before to the shelf; `take` finds it from `folder`.

        Raises BenchError where a request could not be written.
        """
        if self._lost:
            raise BenchError(self._lost)
        before = read(shelf.before) if shelf.before else {}
        parts, done = before.get("packs", {}), self._kept.get(before.get("journal", ""))
        if done is None or not all((shelf.packs / name).exists() for name in parts):
            parts, done = {}, 0
        digest = self._digest.hexdigest()
        if self.size > done:
            shelf.packs.mkdir(parents=True, exist_ok=True)
            part = shelf.packs / f"{digest[:16]}-{done}.jsonl"
            unfinished = part.with_suffix(".part")
            with self.path.open("rb") as lines, unfinished.open("wb") as file:
                lines.seek(done)
                shutil.copyfileobj(lines, file)
            unfinished.replace(part)
            parts = {**parts, part.name: {"bytes": self.size - done}}
        record = {"shelf": os.path.relpath(shelf.packs, folder), "packs": parts, "journal": digest}
        (folder / RECORD).write_text(json.dumps(record))
        self._kept[digest] = self.size
        count("state_bytes_written", self.size - done)
        count("state_bytes_on_disk", self.size)

    def take(self, folder: Path) -> None:
        """Begin with what another journal kept in `folder`.

        Raises:
            BenchError: it is not there, or damaged.
        """
        record = read(folder)
        parts = [folder / record.get("shelf", "") / name for name in record.get("packs", ())]
        absent = [str(part) for part in parts if not part.exists()]
        if "journal" not in record or absent:
            raise BenchError(
                f"{folder} needs {absent[0] if absent else RECORD}, which is missing: delete the "
                "state's folder"
            )
        with self.path.open("wb") as file:
            for part in parts:
                with part.open("rb") as lines:
                    shutil.copyfileobj(lines, file)
        with self.path.open("rb") as whole:
            hashlib.file_digest(whole, lambda: self._digest)
            self.size = whole.tell()
        if self._digest.hexdigest() != record["journal"]:
            raise BenchError(
                f"{folder}: what the worker was sent is damaged: its digest differs; delete the "
                "state's folder"
            )
        self._kept[record["journal"]] = self.size
