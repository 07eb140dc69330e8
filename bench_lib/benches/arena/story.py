"""What an agent did in one video of one run, read from the run's records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from bench_lib.errors import BenchError, nearest
from bench_lib.readings.material import Material
from bench_lib.report.frames import Picture, Shot, take
from bench_lib.report.sections import Exchange
from bench_lib.schema import Candidate, Trajectory
from bench_lib.streammind import trace
from bench_lib.streammind.bank import Bank
from bench_lib.streammind.log import Entry
from bench_lib.streammind.models import ask_place, called_for, turn_place
from bench_lib.tasks import task_of
from bench_lib.video.picture import instant

CROP = "crop@"
THUMBS = 8
"""Frames of a call that are shown; the rest is counted."""
WORKERS = {
    "front": "Front: answers, delegates, starts and ends monitors",
    "router": "Router: splits a mission into tasks",
    "recall": "Recall: reads the memory",
    "distil": "Recall, distilling what was read",
    "verify": "Recall, looking at frames again",
    "search": "Search: looks things up",
    "fallback": "Front, without an answer of the team",
    "listen": "Ear: transcribes what is said",
    "monitor": "Monitor: watches one condition",
    "memory_writer": "Memory Writer: describes the newest seconds",
    "summary": "Memory Writer, summing up events",
}


@dataclass(frozen=True)
class Story:
    """One video of a run. `absent` says why there is nothing to look at."""

    label: str = ""
    material: Material | None = None
    trajectory: Trajectory | None = None
    asked: str = ""
    absent: str = ""

    @classmethod
    def of(cls, material: Material, label: str, trajectory: str = "", question: str = "") -> Story:
        """The video and question that are named, else the first ones that were kept.

        Raises:
            BenchError: the trajectory or the question is not there.
        """
        known = trace.traced(material.run)
        if not known:
            return cls(label, absent=f"{label} has kept no calls: no walk of a video is over yet.")
        name = trajectory or known[0]
        if name not in known:
            raise BenchError(f"no calls are kept of trajectory {name!r}; {nearest(name, known)}")
        return cls(label, material, material.trajectories[name], question)

    @property
    def there(self) -> tuple[Material, Trajectory]:
        """The run and the video."""
        if self.material is None or self.trajectory is None:
            raise BenchError(self.absent)
        return self.material, self.trajectory

    @cached_property
    def calls(self) -> list[dict[str, Any]]:
        """All kept calls in order."""
        material, trajectory = self.there
        return trace.calls(material.run, trajectory.id)

    @cached_property
    def _memory(self) -> tuple[list[Entry], dict[str, int]]:
        material, trajectory = self.there
        return trace.memory(material.run, trajectory.id)

    @property
    def entries(self) -> list[Entry]:
        """The log of the memory."""
        return self._memory[0]

    @property
    def left_out(self) -> Mapping[str, int]:
        """Calls that were not kept, by worker."""
        return self._memory[1]

    @cached_property
    def bank(self) -> Bank:
        """The memory at the end of the video."""
        return Bank.at(self.entries, math.inf)

    @cached_property
    def candidates(self) -> list[Candidate]:
        """The questions that were asked, in time order."""
        material, trajectory = self.there
        asked = {candidate for owner, candidate, _ in material.asks if owner == trajectory.id}
        own = [c for c in trajectory.candidates if c.id in asked]
        return sorted(own, key=lambda c: (c.probes[0].t_s, c.id))

    def of_question(self, candidate: Candidate) -> list[dict[str, Any]]:
        """The calls that served a question, or the instruction of a proactive case."""
        t_s = candidate.probes[0].t_s
        told = task_of(candidate.task).watches
        place = turn_place(t_s, candidate.id) if told else ask_place(t_s, candidate.question)
        return [call for call in self.calls if called_for(call["place"]) == place]

    @cached_property
    def question(self) -> Candidate | None:
        """The question asked for by its id or its end, else the one with the longest mission."""
        if self.asked:
            found = [c for c in self.candidates if c.id == self.asked or c.id.endswith(self.asked)]
            if len(found) != 1:
                known = [c.id for c in self.candidates]
                raise BenchError(f"question {self.asked!r}; {nearest(self.asked, known)}")
            return found[0]
        return max(self.candidates, key=lambda c: len(self.of_question(c)), default=None)

    def exchanges(self, calls: Iterable[Mapping[str, Any]]) -> list[Exchange]:
        """Calls with the frames that were shown, which are taken from the video."""
        calls = list(calls)
        shots = {key: self._shot(key) for call in calls for key in call["shown"][-THUMBS:]}
        known = {key: shot for key, shot in shots.items() if shot is not None}
        pictures = {
            key: replace(
                made, caption=f"{shot.label} {self.bank.timeline.label(_t_s(key))}".strip()
            )
            for (key, shot), made in zip(known.items(), take(list(known.values())), strict=True)
        }
        return [self._exchange(call, pictures) for call in calls]

    def _exchange(self, call: Mapping[str, Any], pictures: Mapping[str, Picture]) -> Exchange:
        shown = [
            pictures.get(key) or Picture(key, why="of no known session")
            for key in call["shown"][-THUMBS:]
        ]
        rest = len(call["shown"]) - len(shown)
        at = self.bank.timeline.label(call["t_s"])
        facts = [at, f"{len(call['shown'])} frames", f"{len(call['text']) + call['cut']:,} letters"]
        if call["lasts_s"]:
            facts.append(f"{call['lasts_s']:g} s of video")
        told = [f"{rest} earlier frames are not shown here." if rest else ""]
        told.append(f"Rejected: {' | '.join(call['rejected'])}" if call["rejected"] else "")
        told.append(f"Failed: {call['error']}." if call["error"] else "")
        return Exchange(
            WORKERS.get(call["worker"], call["worker"]),
            " · ".join(facts),
            tuple(shown),
            call["text"],
            call["reply"],
            " ".join(filter(None, told)),
            bool(call["error"]),
        )

    def _shot(self, key: str) -> Shot | None:
        """A frame's place in the video: ids are `f` and milliseconds, crops `crop@` and seconds."""
        _, trajectory = self.there
        t_s = _t_s(key)
        past = [p for p in self.bank.places if p.offset_s <= t_s + 1e-6]
        if not past:
            return None
        label = "crop of" if key.startswith(CROP) else ""
        return Shot(label, trajectory.session(past[-1].id), t_s - past[-1].offset_s)


def _t_s(key: str) -> float:
    """The instant in a frame's id."""
    return float(key.removeprefix(CROP)) if key.startswith(CROP) else instant(key)
