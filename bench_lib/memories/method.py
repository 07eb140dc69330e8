"""The contract of a memory system. See CONTRIBUTING.md for how to add one: one file in this folder.

The trunk sees the stream and never a question; questions are asked on branches.

    reset(trajectory_id, seed)   begin_session(info)   observe(clip)   end_session(recorded_bytes)
    branch()                     a second object that shares tensors and owns what it changes
    on a branch:                 observe(clip)   note(note)   respond(query, generation)
    commit(query, reply)         trunk only: the one way a turn becomes part of memory
    watch(note, key)             trunk only: an instruction to speak up when something happens
    alerts(t_s)                  what it has said of its own accord by then
    save(folder, shelf) / load(folder)   between sessions
    state_bytes()                bytes of the state by kind

All that grows with the stream is one object, `self.state`: a frozen dataclass of numbers, strings,
tuples, frame handles, and arrays or tensors that are never written in place. So `branch` copies a
reference, and `save` and `state_bytes` walk the same thing.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from bench_lib import paths
from bench_lib.exchange import Alert, Generation, InputClass, Note, Query, Refused, Reply
from bench_lib.state import walk as states
from bench_lib.state.packs import Shelf
from bench_lib.video.stream import Clip, SessionInfo, Size


@dataclass(kw_only=True)
class Method(ABC):
    """A streaming memory system. Fields are its hyper-parameters, each with its published default.

    Class attributes say what it supports:
    `input_class`: `incremental` (each clip once), `window` (the newest frames, worked on at the
    probe) or `thinned` (the whole prefix thinned to N frames and rebuilt at each probe).
    `model`: what serves it, `backbone` (a local model), `chat` (a message model) or `none`.
    `persistent`: keeps something of earlier sessions. `bounded`: its state has a ceiling.
    `notes_touch_state`: notes change its memory, so they can be delivered in the stream.
    `sees`: its answers depend on the video; baselines that look away say no.
    `forks`: `branch` works; where it does not, the engine rebuilds the trunk for each probe.
    `causal`: how it attends to time: True where a frame is encoded without later ones.
    `watches`: it can be told to speak up (`watch`). `tools`: it can look things up outside the
    video.
    """

    name: ClassVar[str] = ""
    input_class: ClassVar[InputClass] = "incremental"
    model: ClassVar[Literal["none", "backbone", "chat"]] = "none"
    persistent: ClassVar[bool] = True
    bounded: ClassVar[bool] = False
    notes_touch_state: ClassVar[bool] = False
    wants_audio: ClassVar[bool] = False
    needs_weights: ClassVar[bool] = False
    sees: ClassVar[bool] = True
    forks: ClassVar[bool] = True
    causal: ClassVar[bool] = True
    watches: ClassVar[bool] = False
    tools: ClassVar[bool] = False

    fps: float = 1.0
    clip_frames: int = 8

    served: Any = field(default=None, init=False, repr=False, compare=False)
    state: Any = field(default=None, init=False, repr=False, compare=False)

    def attach(self, model: Any) -> Self:
        """Give the method the model that serves it; branches share it. Returns the method."""
        self.served = model
        return self

    def frame_size(self, native: Size) -> Size:
        """The size frames are prepared at, fixed for a trajectory by its first session."""
        return native

    @abstractmethod
    def reset(self, trajectory_id: str, seed: int) -> None:
        """Forget everything; called before each trajectory."""

    def begin_session(self, info: SessionInfo) -> None:  # noqa: B027 - an optional hook
        """A session starts."""

    @abstractmethod
    def observe(self, clip: Clip) -> None:
        """Take in the next clip. Clips arrive in time order, once."""

    def end_session(self, recorded_bytes: int) -> None:  # noqa: B027 - an optional hook
        """The session is over; `recorded_bytes` is the size of its own recorded video."""

    def branch(self) -> Self:
        """A second object at this point of the stream; what it does leaves this one untouched."""
        return copy.copy(self)

    def note(self, note: Note) -> None:  # noqa: B027 - an optional hook
        """A user interaction reaches the memory (only where `notes_touch_state`)."""

    @abstractmethod
    def respond(self, query: Query, generation: Generation) -> Reply:
        """Answer from what has been observed so far."""

    def commit(self, query: Query, reply: Reply) -> None:  # noqa: B027 - an optional hook
        """Make a turn part of the memory (benchmarks with one dialogue per video).

        A method that does not override this gets earlier turns as notes of the next query.
        """

    def watch(self, note: Note, key: str) -> str:
        """Take an instruction to speak up while the stream goes on; returns the acknowledgement.

        Only called on methods that say `watches`; each instruction has a key of its own.
        """
        raise Refused(f"{self.name} cannot speak unasked")

    def unwatch(self, key: str) -> None:  # noqa: B027 - an optional hook
        """A watch is over: it has spoken, or nobody waits for it any longer."""

    def alerts(self, t_s: float) -> tuple[Alert, ...]:
        """What was delivered by `t_s` seconds of the current session, in order of delivery."""
        return ()

    @property
    def caveat(self) -> str:
        """What a reader of its scores must know of the model that serves it; reports show it."""
        return ""

    def settle(self) -> None:
        """Wait until the device has done what was asked of it, so that the next work is timed."""
        device: Any = getattr(self.served, "device", None)
        if getattr(device, "type", "cpu") != "cpu":
            from bench_lib.backbones.generate import synchronize

            synchronize(device)

    def tokens(self) -> tuple[int, int]:
        """Visual tokens kept now and seen so far; zeros where memory does not hold tokens."""
        return 0, 0

    def state_bytes(self) -> Mapping[str, int]:
        """Bytes of the state by kind, from its real tensors, texts and frames."""
        return states.nbytes(self.state)

    def save(self, folder: Path, shelf: Shelf | None = None) -> None:
        """Write the state to `folder` (safetensors and JSON).

        By itself and exactly, unless a `shelf` says in what form and beside which earlier states.
        """
        states.save(self.state, folder, self._identity(), shelf)

    def load(self, folder: Path) -> None:
        """Read a state that `save` wrote, after `attach` and in place of `reset`."""
        device = str(getattr(self.served, "device", "cpu"))
        self.state = states.load(folder, self._identity(), type(self), device)

    def _identity(self) -> dict[str, Any]:
        """What must agree between the saver and the loader of a state."""
        args = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        args = {k: paths.homeless(v) if isinstance(v, str) else v for k, v in args.items()}
        model = paths.homeless(getattr(self.served, "id", "none"))
        return {"method": self.name, "args": args, "model": model}
