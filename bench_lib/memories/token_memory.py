"""Memories of visual tokens: the stream becomes tokens once, each question reads what is left.

A subclass says how memory changes when new grids come (`remember`) and which tokens a question
reads (`recall`), both on immutable records; the rest is here. A grid is two frames in sequence of
one session, or one where the model's tower sees frames singly. An odd frame waits for its pair: a
question or the session's end doubles it, a question only for itself. So the memory does not depend
on how the stream was cut into clips. A memory of something else than embeddings on a lattice says
what it takes from frames (`perceive`) and how it shows what it holds (`show`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench_lib.backbones.base import ENCODE_FRAMES
from bench_lib.backbones.generate import decode
from bench_lib.backbones.prompt import Built, Prompt, Visual, grid_times
from bench_lib.exchange import Generation, InputClass, Note, Query, Reply
from bench_lib.measure import count
from bench_lib.memories.method import Method
from bench_lib.memories.parts import pace
from bench_lib.memories.parts import speech as speaking
from bench_lib.memories.parts.speech import Said, Speech
from bench_lib.schema import clock
from bench_lib.state.walk import part
from bench_lib.video.stream import Clip, Frame, SessionInfo, Size

Held = tuple[int, Frame]
"""A frame that is not encoded yet, with the position of its session."""


class Place(NamedTuple):
    """Where a grid lies in the stream.

    Attributes:
        number: Count of grids in the whole stream before it.
        session: Position of its session in the stream.
        start_s: Instant of its first frame in the session.
        end_s: Instant of its last frame.
    """

    number: int
    session: int
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Group:
    """What is left of one grid.

    Attributes:
        number: See `Place`, as the next three.
        session: Position of its session in the stream.
        start_s: Instant of its first frame in the session.
        end_s: Instant of its last frame.
        tokens: Embeddings `[n, width]`.
        cells: Their cells in raster order, `[n]` int32.
    """

    number: int
    session: int
    start_s: float
    end_s: float
    tokens: Tensor = part("embeddings")
    cells: Tensor = part("index")


@dataclass(frozen=True)
class Seen:
    """A session of the stream: its clock, and the first instants of its first and last grid."""

    position: int
    wall_start_s: float | None = None
    extent_s: tuple[float, float] | None = None


@dataclass(frozen=True)
class TokenState:
    """All of a token memory: the subclass's record, sessions, waiting frames, grids seen so far.

    `said` are captions of the current session, where the method takes them; a question reads them.
    """

    memory: Any
    sessions: tuple[Seen, ...] = ()
    held: tuple[Held, ...] = ()
    size: Size = (0, 0)
    lattice: tuple[int, int] = (0, 0)
    grids: int = 0
    said: tuple[Said, ...] = ()


@dataclass(kw_only=True)
class TokenMemory(Method):
    """Base of memories that hold visual tokens and prefill them once per question."""

    model: ClassVar[Literal["none", "backbone", "chat"]] = "backbone"
    # A grid is encoded once, when it comes, and by itself (StreamArena, Eq. 14).
    causal: ClassVar[bool] = True
    speech: ClassVar[Speech] = "none"

    max_pixels: int | None = 401_408
    session_marker: bool = True

    @property
    def frames_per_grid(self) -> int:
        """Frames that are encoded together."""
        return self.served.frames_per_grid

    # What a subclass says -------------------------------------------------------------------------

    @abstractmethod
    def blank(self) -> Any:
        """The empty memory."""

    @abstractmethod
    def remember(self, memory: Any, grids: Sequence[Any], lattice: tuple[int, int]) -> Any:
        """The memory after new whole grids of one session, in time order, as `perceive` gave."""

    @abstractmethod
    def recall(self, memory: Any) -> Sequence[Any]:
        """The groups a question reads, in time order; each names its `session`."""

    def reached(self, memory: Any) -> set[int]:
        """Positions of the sessions of which something is held."""
        return {group.session for group in self.recall(memory)}

    def perceive(self, pictures: list[NDArray[np.uint8]], places: Sequence[Place]) -> Sequence[Any]:
        """What is taken from frames of whole grids, one record for each place."""
        tokens = self.served.encode(pictures)
        cells = torch.arange(tokens.shape[1], dtype=torch.int32, device=tokens.device)
        return [Group(*at, tokens[i].clone(), cells.clone()) for i, at in enumerate(places)]

    def show(self, prompt: Prompt, state: TokenState) -> None:
        """Append what the memory holds to a prompt."""
        seen = {session.position: session for session in state.sessions}
        for position, groups in groupby(self.recall(state.memory), key=lambda g: g.session):
            if self.session_marker:
                prompt.text(marker(seen[position]))
            prompt.show(_visual(list(groups), seen[position], state.lattice))

    @property
    def defers(self) -> bool:
        """Whether frames stay handles until a question looks at them."""
        return False

    def wanted(self, held: tuple[Held, ...]) -> tuple[Held, ...]:
        """Held frames that a later question may look at (only where the method defers)."""
        return held

    def chosen(self, held: tuple[Held, ...]) -> tuple[Held, ...]:
        """Held frames that a question looks at now."""
        return held

    # The contract ---------------------------------------------------------------------------------

    def frame_size(self, native: Size) -> Size:
        """See `Method.frame_size`."""
        return self.served.frame_size(native, self.max_pixels)

    def reset(self, trajectory_id: str, seed: int) -> None:
        """See `Method.reset`."""
        self.state = TokenState(self.blank())

    def begin_session(self, info: SessionInfo) -> None:
        """See `Method.begin_session`."""
        seen = Seen(info.index, info.wall_start_s)
        # A session of which nothing is left is forgotten: its record would grow the state.
        kept = self.reached(self.state.memory) | {session for session, _ in self.state.held}
        sessions = tuple(s for s in self.state.sessions if s.position in kept)
        size = info.frame_size
        self.state = replace(
            self.state,
            sessions=(*sessions, seen),
            size=size,
            lattice=self.served.lattice(size),
            said=(),
        )

    def observe(self, clip: Clip) -> None:
        """See `Method.observe`."""
        held = (*self.state.held, *((clip.session, frame) for frame in clip.frames))
        count("frames_observed", len(clip.frames))
        if self.speech == "captions":
            said = (*self.state.said, *speaking.captions(clip))
            self.state = replace(self.state, said=said)
        if self.defers:
            self.state = replace(self.state, held=self.wanted(held))
            return
        odd = sum(session == clip.session for session, _ in held) % self.frames_per_grid
        ripe = len(held) - odd
        self.state = replace(self._taken_in(self.state, held[:ripe]), held=held[ripe:])

    def end_session(self, recorded_bytes: int) -> None:
        """See `Method.end_session`."""
        if not self.defers:
            self.state = replace(self._taken_in(self.state, self.state.held), held=())

    def tokens(self) -> tuple[int, int]:
        """See `Method.tokens`."""
        rows, cols = self.state.lattice
        kept = sum(len(group.cells) for group in self.recall(self.state.memory))
        return kept, self.state.grids * rows * cols

    def respond(self, query: Query, generation: Generation) -> Reply:
        """See `Method.respond`; the state stays as it is."""
        whole = self._taken_in(self.state, self.chosen(self.state.held))
        said = decode(self.served, self.prompt(whole, query), generation)
        count("model_calls")
        return Reply(
            text=said.text,
            ready_at=said.ready_at,
            first_token_at=said.first_token_at,
            done_at=said.done_at,
            stop=said.stop,
            logits=said.logits,
        )

    def prompt(self, state: TokenState, query: Query) -> Built:
        """What the decoder reads: sessions in time order, what was said, the question."""
        prompt = Prompt(self.served)
        system = query.system or self.served.default_system
        if system:
            prompt.turn("system").text(system).end()
        prompt.turn("user")
        self.show(prompt, state)
        notes = self._told(state, query)
        for note in notes:
            prompt.text(f"\n[{when(note)}] {note.text}")
        prompt.text(f"\n{query.text}" if notes else query.text)
        return prompt.end().turn("assistant").build()

    def _told(self, state: TokenState, query: Query) -> Sequence[Note]:
        """Notes of the question and captions of the current session, in time order."""
        if not state.said:
            return query.notes
        now = state.sessions[-1]
        spoken = speaking.notes(state.said, now.position, now.wall_start_s)
        return sorted((*query.notes, *spoken), key=lambda note: (note.session, note.t_s))

    # Encoding -------------------------------------------------------------------------------------

    def _taken_in(self, state: TokenState, held: Sequence[Held]) -> TokenState:
        """The state after encoding and remembering frames; a session's lone last one is doubled."""
        for position, run in runs(held):
            instants = [frame.t_s for frame in run]
            times = grid_times(instants, self.frames_per_grid)
            places = [
                Place(state.grids + i, position, start, end) for i, (start, end) in enumerate(times)
            ]
            grids = self.perceive([frame.pixels(state.size) for frame in run], places)
            state = replace(
                state,
                memory=self.remember(state.memory, grids, state.lattice),
                sessions=tuple(_extended(s, position, times) for s in state.sessions),
                grids=state.grids + len(places),
            )
        return state


@dataclass(kw_only=True)
class Thinnable(TokenMemory):
    """Base of memories in two forms: incremental, or of the prefix thinned at each question.

    Attributes:
        form: See above.
        max_frames: Frames that `thinned` looks at.
    """

    form: Literal["incremental", "thinned"] = "incremental"
    max_frames: int = 240

    @property
    def input_class(self) -> InputClass:  # type: ignore[override]
        """See `Method.input_class`; it is the form."""
        return self.form

    @property
    def defers(self) -> bool:
        """See `TokenMemory.defers`."""
        return self.form == "thinned"

    def chosen(self, held: tuple[Held, ...]) -> tuple[Held, ...]:
        """At most `max_frames` of the held frames, evenly spaced, first and last among them."""
        if not self.defers:
            return held
        return tuple(held[i] for i in pace.thinned(len(held), self.max_frames))


def runs(held: Sequence[Held]) -> Iterator[tuple[int, list[Frame]]]:
    """Frames of one session, at most ENCODE_FRAMES at a time."""
    for position, members in groupby(held, key=lambda item: item[0]):
        frames = [frame for _, frame in members]
        for start in range(0, len(frames), ENCODE_FRAMES):
            yield position, frames[start : start + ENCODE_FRAMES]


def _extended(seen: Seen, position: int, times: Sequence[tuple[float, float]]) -> Seen:
    if seen.position != position:
        return seen
    first = times[0][0] if seen.extent_s is None else seen.extent_s[0]
    return replace(seen, extent_s=(first, times[-1][0]))


def _visual(groups: list[Group], seen: Seen, lattice: tuple[int, int]) -> Visual:
    assert seen.extent_s is not None
    sizes = torch.tensor([len(group.cells) for group in groups])
    return Visual(
        tokens=torch.cat([group.tokens for group in groups]),
        grids=torch.arange(len(groups)).repeat_interleave(sizes),
        cells=torch.cat([group.cells for group in groups]),
        times_s=tuple((group.start_s, group.end_s) for group in groups),
        extent_s=seen.extent_s,
        lattice=lattice,
    )


def marker(seen: Seen) -> str:
    """What is written before a session: its number and its clock, where it has one."""
    since = f", from {clock(seen.wall_start_s)}" if seen.wall_start_s is not None else ""
    return f"\nSession {seen.position + 1}{since}:\n"


def when(note: Note) -> str:
    """The instant of a note, for a prompt."""
    if note.wall_s is not None:
        return clock(note.wall_s)
    return f"session {note.session + 1}, {note.t_s:.0f} s"
