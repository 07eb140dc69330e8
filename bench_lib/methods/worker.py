"""worker: a method in a process of its own, in any environment; see `bench_lib.worker`.

For systems whose released stack cannot share this one's packages: a program speaks a protocol of
JSON lines, says what it can, and is driven like any other method. What kind of memory it is, it
says itself. Without a command the reference worker runs, which perceives nothing: it shows that the
protocol works.
"""

from __future__ import annotations

import json
import sys
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

from bench_lib.errors import BenchError
from bench_lib.measure import count
from bench_lib.methods import state as states
from bench_lib.methods.base import Alert, Generation, Method, Note, Query, Refused, Reply
from bench_lib.stream import EPSILON_S, Clip, SessionInfo, Size
from bench_lib.worker import reference, wire
from bench_lib.worker.process import Process
from bench_lib.worker.trunk import Place, Trunk
from bench_lib.worker.wire import Capabilities, Media


@dataclass(frozen=True)
class Said:
    """What this side keeps: alerts of the current session, and the size of frames."""

    alerts: tuple[Alert, ...] = ()
    size: Size = (0, 0)


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

    # What it is -----------------------------------------------------------------------------------

    @property
    def program(self) -> tuple[str, ...]:
        """The command that is run."""
        return tuple(self.command) or (sys.executable, str(reference.__file__))

    @property
    def hello(self) -> Mapping[str, Any]:
        """The worker's introduction; raises WorkerError, BenchError."""
        return introduced(self.program, json.dumps(self.settings, sort_keys=True), self.start_s)

    @property
    def can(self) -> Capabilities:
        """What it says it can."""
        found: Capabilities = self.hello["can"]
        return found

    @property
    def caveat(self) -> str:
        """See `Method.caveat`: what the worker says of its weights and packages."""
        if not self.command:
            return "the reference worker perceives nothing: its answers mean nothing"
        told = ", ".join(f"{k} {v}" for k, v in self.hello["provenance"].items())
        return (
            f"worker {self.hello['name']} ran in a process of its own: {told or 'it says no more'}"
        )

    def frame_size(self, native: Size) -> Size:
        """See `Method.frame_size`."""
        scale = min(1.0, (self.max_pixels / (native[0] * native[1])) ** 0.5)
        return max(1, int(native[0] * scale)), max(1, int(native[1] * scale))

    # The stream -----------------------------------------------------------------------------------

    def _open(self) -> None:
        self.trunk = Trunk(self.program, self.settings, self.start_s, self.timeout_s)
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
        reply = self._tell("observe", **wire.clip_of(clip, self.state.size, self.can, self.how))
        wire.counted(reply)
        new = wire.alerts_of(reply)
        self.state = replace(self.state, alerts=(*self.state.alerts, *new))

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
            raise Refused(f"worker {self.hello['name']} answers no questions")
        count("model_calls")
        begun = time.perf_counter()
        reply = self.trunk.ask(
            self.place,
            "respond",
            query=wire.query_of(query),
            generation=wire.generation_of(generation),
        )
        done = time.perf_counter()
        wire.counted(reply)
        first = min(done, begun + max(0.0, float(reply.get("ttft_s") or done - begun)))
        stop = str(reply.get("stop") or "end")
        return Reply(wire.text_of(reply, "respond"), begun, first, done, stop)

    def watch(self, note: Note, key: str) -> str:
        """See `Method.watch`; raises WorkerError."""
        if not self.can.proactive:
            raise Refused(f"worker {self.hello['name']} cannot speak unasked")
        return wire.text_of(self._tell("watch", key=key, note=wire.note_of(note)), "watch")

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
        said = self.trunk.ask(self.place, "state_bytes").get("bytes")
        if not isinstance(said, dict) or not set(said) <= set(states.KINDS):
            kinds = ", ".join(states.KINDS)
            raise BenchError(f"the worker's bytes must be by kind ({kinds}), not {said!r}")
        return {kind: int(number) for kind, number in said.items()}

    def save(self, folder: Path, shelf: Any = None) -> None:
        """Let the worker write its memory, or write what it was sent; raises WorkerError."""
        states.save(self.state, folder, self._identity())
        own = folder / "worker"
        own.mkdir()
        if self.can.saves:
            self.trunk.ask(self.place, "save", folder=str(own.resolve()))
        elif self.media == "file":
            raise BenchError("worker: it cannot save, and files are not kept: media must be inline")
        else:
            self.trunk.keep(own)

    def load(self, folder: Path) -> None:
        """See `Method.load`; raises WorkerError, BenchError."""
        loaded = states.load(folder, self._identity(), type(self))
        self._open()
        own = folder / "worker"
        if self.can.saves:
            self.trunk.tell("load", folder=str(own.resolve()))
        else:
            self.trunk.again(own)
        self.state = loaded

    def _identity(self) -> dict[str, Any]:
        model = {"worker": self.hello["name"], "provenance": self.hello["provenance"]}
        return {**super()._identity(), "model": model}


@cache
def introduced(program: tuple[str, ...], settings: str, start_s: float) -> Mapping[str, Any]:
    """What a worker says of itself, asked once of a process that then ends.

    Raises:
        WorkerError: it cannot be started or does not answer.
        BenchError: it speaks another protocol, or says something that is not known.
    """
    process = Process(program)
    try:
        asked = {"protocol": wire.PROTOCOL, "settings": json.loads(settings)}
        said = process.ask("hello", asked, start_s)
    finally:
        process.stop()
    if said.get("protocol") != wire.PROTOCOL:
        raise BenchError(
            f"worker {program[0]} speaks protocol {said.get('protocol')!r}, not {wire.PROTOCOL}"
        )
    name = wire.text_of(said, "hello", "name")
    provenance = dict(said.get("provenance") or {})
    return {"name": name, "can": wire.capabilities(name, said.get("can")), "provenance": provenance}
