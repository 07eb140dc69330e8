"""worker: a method in a process of its own, in any environment; see `bench_lib.worker`.

For systems whose released stack cannot share this one's packages: a program speaks a protocol of
JSON lines, says what it can, and is driven like any other method. What kind of memory it is, it
says itself. Without a command the reference worker runs, which perceives nothing: it shows that the
protocol works.
"""

from __future__ import annotations

import json
import math
import sys
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

from bench_lib.errors import BenchError
from bench_lib.exchange import Alert, Generation, Note, Query, Refused, Reply
from bench_lib.measure import count
from bench_lib.memories.method import Method
from bench_lib.state import walk as states
from bench_lib.state.packs import Shelf
from bench_lib.video.stream import EPSILON_S, Clip, SessionInfo, Size
from bench_lib.worker import hello, reference, values, wire
from bench_lib.worker.hello import Capabilities, Introduction
from bench_lib.worker.process import Process
from bench_lib.worker.trunk import Place, Trunk
from bench_lib.worker.wire import Media


@dataclass(frozen=True)
class Said:
    """What this side keeps of a session: alerts, the size of frames, the end of the last clip."""

    alerts: tuple[Alert, ...] = ()
    size: Size = (0, 0)
    seen_s: float | None = None


def _declared(name: str) -> Any:
    return property(lambda self: getattr(self.can, name), doc=f"See `Method`; `{name}` of `can`.")


@dataclass(kw_only=True)
class Worker(Method):
    """See the module.

    Args:
        command: The program and its arguments; empty runs the reference worker.
        settings: Handed to it in `hello`.
        max_pixels: Frames are sent with at most this many pixels.
        image: Form of pictures; `png` loses nothing.
        quality: Of JPEG pictures.
        media: Pictures and sound inside the messages, or as files of a temporary folder.
        start_s: Longest time of a worker's first reply.
        timeout_s: Longest time of any other one.
    """

    command: list = field(default_factory=list)
    settings: dict = field(default_factory=dict)
    max_pixels: int = 401_408
    image: Literal["jpeg", "png"] = "jpeg"
    quality: int = 90
    media: Literal["inline", "file"] = "inline"
    start_s: float = 600.0
    timeout_s: float = 600.0

    input_class = _declared("input_class")
    persistent = _declared("persistent")
    bounded = _declared("bounded")
    notes_touch_state = _declared("notes")
    wants_audio = _declared("audio")
    sees = _declared("sees")
    forks = _declared("forks")
    causal = _declared("causal")
    watches = _declared("proactive")
    tools = _declared("tools")

    trunk: Trunk = field(init=False, repr=False, compare=False)
    place: Place = field(default_factory=Place, init=False, repr=False, compare=False)
    how: Media = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if any(not isinstance(word, str) for word in self.command):
            raise BenchError(f"worker: command is a list of texts, not {self.command!r}")
        for name, known in (("image", ("jpeg", "png")), ("media", ("inline", "file"))):
            if getattr(self, name) not in known:
                raise BenchError(f"worker: {name} is {getattr(self, name)!r}, not one of {known}")
        for name in ("start_s", "timeout_s"):
            if not 0.0 < getattr(self, name) < math.inf:
                raise BenchError(
                    f"worker: {name} is {getattr(self, name)!r}, not a time in seconds"
                )

    # What it is -----------------------------------------------------------------------------------

    @property
    def program(self) -> tuple[str, ...]:
        """The command that is run."""
        return tuple(self.command) or (sys.executable, str(reference.__file__))

    @property
    def hello(self) -> Introduction:
        """The worker's introduction; raises WorkerError, BenchError."""
        return introduced(self.program, json.dumps(self.settings, sort_keys=True), self.start_s)

    @property
    def can(self) -> Capabilities:
        """What it says it can."""
        return self.hello.can

    @property
    def caveat(self) -> str:
        """See `Method.caveat`: what the worker says of its weights and packages."""
        if not self.command:
            return "the reference worker perceives nothing: its answers mean nothing"
        told = ", ".join(f"{k} {v}" for k, v in self.hello.provenance.items())
        return f"worker {self.hello.name} ran in a process of its own: {told or 'it says no more'}"

    def frame_size(self, native: Size) -> Size:
        """See `Method.frame_size`."""
        scale = min(1.0, (self.max_pixels / (native[0] * native[1])) ** 0.5)
        return max(1, int(native[0] * scale)), max(1, int(native[1] * scale))

    # The stream -----------------------------------------------------------------------------------

    def _open(self) -> None:
        self.trunk = Trunk(self.program, self.settings, self.start_s, self.timeout_s, self.hello)
        self.place, self.state = Place(), Said()
        folder = self.trunk.media if self.media == "file" else None
        self.how = Media(self.image, self.quality, folder)

    def _tell(self, op: str, **body: Any) -> dict[str, Any]:
        """A request that changes this state; raises WorkerError, Refused."""
        if self.place.name == "trunk":
            return self.trunk.tell(op, **body)
        return self.trunk.ask(self.place, op, **body)

    def reset(self, trajectory_id: str, seed: int) -> None:
        """See `Method.reset`; raises WorkerError."""
        self._open()
        self._tell("reset", trajectory=trajectory_id, seed=seed)

    def begin_session(self, info: SessionInfo) -> None:
        """See `Method.begin_session`; raises WorkerError."""
        self.state = Said(size=info.frame_size)
        self._tell("begin_session", session=wire.session_of(info))

    def observe(self, clip: Clip) -> None:
        """See `Method.observe`; raises WorkerError."""
        count("frames_observed", len(clip.frames))
        count("frames_sent", len(clip.frames))
        said = self.state
        reply = self._tell("observe", **wire.clip_of(clip, said.size, self.can, self.how))
        values.counted(reply)
        now_s = wire.end_of(clip)
        room = values.ALERTS - len(said.alerts)
        new = values.alerts_of(reply, said.seen_s, now_s, room)
        self.state = replace(said, alerts=(*said.alerts, *new), seen_s=now_s)

    def end_session(self, recorded_bytes: int) -> None:
        """See `Method.end_session`; raises WorkerError."""
        self._tell("end_session", recorded_bytes=recorded_bytes)
        self.state = replace(self.state, alerts=())

    def branch(self) -> Self:
        """See `Method.branch`; raises WorkerError."""
        other = super().branch()
        other.place = self.trunk.branch(self.place)
        weakref.finalize(other, self.trunk.dropped.append, other.place)
        return other

    def note(self, note: Note) -> None:
        """See `Method.note`; raises WorkerError."""
        self._tell("note", note=wire.note_of(note))

    # Questions ------------------------------------------------------------------------------------

    def respond(self, query: Query, generation: Generation) -> Reply:
        """See `Method.respond`; raises WorkerError, Refused."""
        if not self.can.reactive:
            raise Refused(f"worker {self.hello.name} answers no questions")
        count("model_calls")
        begun = time.perf_counter()
        reply = self.trunk.ask(
            self.place,
            "respond",
            query=wire.query_of(query),
            generation=wire.generation_of(generation),
        )
        done = time.perf_counter()
        values.counted(reply)
        text, stop = values.text_of(reply, "reply to respond"), values.stop_of(reply)
        return Reply(text, begun, begun + values.ttft_of(reply, done - begun), done, stop)

    def watch(self, note: Note, key: str) -> str:
        """See `Method.watch`; raises WorkerError."""
        if not self.can.proactive:
            raise Refused(f"worker {self.hello.name} cannot speak unasked")
        reply = self._tell("watch", key=key, note=wire.note_of(note))
        return values.text_of(reply, "reply to watch")

    def unwatch(self, key: str) -> None:
        """See `Method.unwatch`; raises WorkerError."""
        self._tell("unwatch", key=key)

    def alerts(self, t_s: float) -> tuple[Alert, ...]:
        """See `Method.alerts`."""
        due = [a for a in self.state.alerts if a.delivered_s <= t_s + EPSILON_S]
        return tuple(sorted(due, key=lambda a: a.delivered_s))

    # The memory -----------------------------------------------------------------------------------

    def state_bytes(self) -> Mapping[str, int]:
        """See `Method.state_bytes`: what the worker says; raises WorkerError."""
        return values.bytes_of(self.trunk.ask(self.place, "state_bytes"))

    def save(self, folder: Path, shelf: Shelf | None = None) -> None:
        """Let the worker write its memory, or write what it was sent; raises WorkerError."""
        states.save(self.state, folder / "said", self._identity())
        if self.can.saves:
            own = folder / "worker"
            own.mkdir()
            self.trunk.ask(self.place, "save", folder=str(own.resolve()))
            written = sum(path.stat().st_size for path in own.rglob("*") if path.is_file())
            count("state_bytes_written", written)
            count("state_bytes_on_disk", written)
        elif self.media == "file":
            raise BenchError("worker: it cannot save, and files are not kept: media must be inline")
        else:
            self.trunk.journal.keep(folder, shelf or Shelf(folder))

    def load(self, folder: Path) -> None:
        """See `Method.load`; raises WorkerError, BenchError."""
        loaded = states.load(folder / "said", self._identity(), type(self))
        self._open()
        if self.can.saves:
            self.trunk.load(folder / "worker")
        else:
            self.trunk.begin_with(folder)
        self.state = loaded

    def _identity(self) -> dict[str, Any]:
        model = {"worker": self.hello.name, "provenance": dict(self.hello.provenance)}
        return {**super()._identity(), "model": model}


@cache
def introduced(program: tuple[str, ...], settings: str, start_s: float) -> Introduction:
    """What a worker says of itself, asked once of a process that then ends.

    Raises:
        WorkerError: it cannot be started or does not answer.
        BenchError: it speaks another protocol, or says something that is not known.
    """
    process = Process(program)
    try:
        return hello.introduced(process, json.loads(settings), start_s)
    finally:
        process.stop()
