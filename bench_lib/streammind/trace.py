"""What a run keeps of a team's work, to be looked at: every call of a worker, and its memory.

    calls.*.jsonl     one line per call: trajectory, worker, place, instant, ids of the frames that
                      were shown, text and reply, times; `cut` counts characters that were left out
    memory.*.jsonl    one line per walked video: trajectory and all entries of the log (`log.Entry`)

Frames are named by their instant and not kept: a reader takes them from the video. Calls that serve
a question are always kept; those of the background (writer, monitors and ear) up to `BACKGROUND`
bytes a video, then they are only counted, in the line of the memory.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bench_lib.streammind.log import Entry, Log
from bench_lib.streammind.models import Call

if TYPE_CHECKING:
    from bench_lib.runs.folder import Run

TEXT = 6000
"""Characters of a call's text and of its reply that are kept: its begin and its end."""
BACKGROUND = 8 * 2**20
WATCHERS = ("memory_writer", "summary", "monitor", "listen")
"""Workers of the background."""


class Trace:
    """Writes one video's records; `append` is that of a run."""

    def __init__(self, append: Callable[[str, Any], None], trajectory: str) -> None:
        self.append, self.trajectory = append, trajectory
        self.room = BACKGROUND
        self.left_out: Counter[str] = Counter()

    def call(self, call: Call) -> None:
        """One more call."""
        record = {**asdict(call), "trajectory": self.trajectory, "cut": 0}
        for name in ("text", "reply"):
            record[name], cut = _shortened(record[name])
            record["cut"] += cut
        if call.worker in WATCHERS:
            self.room -= len(json.dumps(record))
            if self.room < 0:
                self.left_out[call.worker] += 1
                return
        self.append("calls", record)

    def end(self, log: Log) -> None:
        """The video is over: its memory as it is then."""
        entries = [asdict(entry) for entry in log.until()]
        record = {"trajectory": self.trajectory, "entries": entries}
        self.append("memory", {**record, "left_out": dict(self.left_out)})


def _shortened(text: str) -> tuple[str, int]:
    cut = len(text) - TEXT
    if cut <= 0:
        return text, 0
    half = TEXT // 2
    return f"{text[:half]}\n[... {cut:,} characters left out ...]\n{text[-half:]}", cut


def calls(run: Run, trajectory: str) -> list[dict[str, Any]]:
    """The kept calls of a video in the order of their instants, each once.

    A clip before a question is worked on twice, on the question's branch and on the trunk, and a
    resumed run walks a video again: the last record of a call's place stands.
    """
    found = {record["place"]: record for record in _records(run, "calls", trajectory)}
    return sorted(found.values(), key=lambda record: (record["t_s"], record["place"]))


def memory(run: Run, trajectory: str) -> tuple[list[Entry], dict[str, int]]:
    """The log of a video as it was at its end, and how many calls were not kept, by worker."""
    found: dict[str, Any] = {}
    for record in _records(run, "memory", trajectory):
        found = record
    entries = [Entry(**entry) for entry in found.get("entries", [])]
    return entries, found.get("left_out", {})


def traced(run: Run) -> list[str]:
    """Trajectories of which a run has kept the memory."""
    return list(dict.fromkeys(record["trajectory"] for record in _records(run, "memory", "")))


def _records(run: Run, kind: str, trajectory: str) -> Iterator[dict[str, Any]]:
    """Whole lines of a kind, of one trajectory or of all; other lines are not parsed."""
    mark = f'"trajectory": {json.dumps(trajectory)}' if trajectory else ""
    files = sorted(run.folder.glob(f"{kind}.*.jsonl"), key=lambda p: p.name.split("-")[-1])
    for path in files:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                if line.endswith("\n") and mark in line:
                    record = json.loads(line)
                    if not trajectory or record["trajectory"] == trajectory:
                        yield record
