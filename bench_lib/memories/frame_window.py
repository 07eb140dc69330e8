"""Methods that keep frames and show some of them to a message model at each question.

A subclass chooses frames; the rest is here: frame handles are held by session, and a question
becomes a system turn and one user turn of session headers, frames with their times, the wearer's
words at their time between them, and the request. A message model sees nothing else.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from bench_lib.errors import BenchError
from bench_lib.exchange import Generation, InputClass, Note, Query, Reply
from bench_lib.measure import count
from bench_lib.memories.method import Method
from bench_lib.memories.parts import speech as speaking
from bench_lib.memories.parts.speech import Said, Sounding, Speech
from bench_lib.messages.chat import Frames, Message, Part, Sound, Text
from bench_lib.messages.contract import probe
from bench_lib.messages.turn import as_reply, ask
from bench_lib.schema import clock
from bench_lib.state import walk as states
from bench_lib.video.stream import Clip, Frame, SessionInfo, Size


@dataclass(frozen=True)
class Held:
    """A session as a method holds it.

    `notes` are those that reached the memory itself; `recorded_bytes` the size of its video; `said`
    and `sound` what was said in it, where the method takes that.
    """

    info: SessionInfo
    frames: tuple[Frame, ...] = ()
    notes: tuple[Note, ...] = ()
    recorded_bytes: int = 0
    said: tuple[Said, ...] = ()
    sound: tuple[Sounding, ...] = ()


@dataclass(frozen=True)
class State:
    """Completed sessions in order, and the one that is going on."""

    seed: int = 42
    past: tuple[Held, ...] = ()
    current: Held | None = None


Shown = tuple[Held, Sequence[int]]
"""A session and the indices of its frames that a question shows, ascending."""


@dataclass(kw_only=True)
class FrameWindow(Method):
    """Base of methods that show frames.

    `speech` says how what is said is taken; a method that offers the choice makes a parameter of
    it. Captions stand at their times between images, and after the frames where those go as video;
    sound is one part after the frames.

    Args:
        max_pixels: Frames are sent with at most this many pixels. The papers give no resolution.
        as_video: Send runs of frames as videos instead of separate images.
        part_frames: Longest video part; 0 for whole runs.
    """

    input_class: ClassVar[InputClass] = "window"
    # Frames go as images in the order of time, each read by itself and with earlier ones (Eq. 14
    # of StreamArena).
    causal: ClassVar[bool] = True
    model: ClassVar[Any] = "chat"
    speech: ClassVar[Speech] = "none"

    max_pixels: int = 401_408
    as_video: bool = False
    part_frames: int = 0

    @property
    def wants_audio(self) -> bool:  # type: ignore[override]
        """See `Method.wants_audio`."""
        return self.speech == "sound"

    def attach(self, model: Any) -> Self:
        """See `Method.attach`; raises BenchError where sound would go to a model that takes none.

        A model says so with `hears`.
        """
        if self.speech == "sound" and not getattr(model, "hears", True):
            raise BenchError(
                f"{self.name} sends the sound of the stream, and {model.id} takes none: choose a "
                "model that hears, or give -y 'method_args: {speech: captions}'"
            )
        return super().attach(model)

    def frame_size(self, native: Size) -> Size:
        """See `Method.frame_size`: what the model takes best within `max_pixels`."""
        return self.served.frame_size(native, self.max_pixels)

    def reset(self, trajectory_id: str, seed: int) -> None:
        """See `Method.reset`."""
        self.state = State(seed)

    def begin_session(self, info: SessionInfo) -> None:
        """See `Method.begin_session`."""
        self.state = replace(self.state, current=Held(info))

    def observe(self, clip: Clip) -> None:
        """Hold the frame handles, and what is said; no pixel is read."""
        count("frames_observed", len(clip.frames))
        self._hear(clip)
        self._hold(self.state.current.frames + clip.frames)

    def _hear(self, clip: Clip) -> None:
        held = self.state.current
        if self.speech == "captions":
            held = replace(held, said=(*held.said, *speaking.captions(clip)))
        elif self.speech == "sound":
            held = replace(held, sound=(*held.sound, *speaking.sound(clip)))
        self.state = replace(self.state, current=held)

    def _hold(self, frames: tuple[Frame, ...]) -> None:
        held = replace(self.state.current, frames=frames)
        self.state = replace(self.state, current=held)

    def end_session(self, recorded_bytes: int) -> None:
        """Keep the session among the past ones, or drop it where the method is not persistent."""
        held, past = self.state.current, self.state.past
        if held is not None and self.persistent:
            past = (*past, replace(held, recorded_bytes=recorded_bytes))
        self.state = replace(self.state, past=past, current=None)

    def state_bytes(self) -> Mapping[str, int]:
        """Bytes of what is held of sessions, the current one included; frames by their pixels."""
        return states.nbytes((self.state.past, self.state.current))

    @abstractmethod
    def shown(self) -> Sequence[Shown]:
        """The sessions a question shows, in order, with the frames chosen of each."""

    def preface(self, query: Query) -> list[Part]:
        """What comes before the frames; nothing by default."""
        return []

    def messages(self, query: Query) -> list[Message]:
        """The whole request that a query becomes."""
        shown = self.shown()
        at = {held.info.index for held, _ in shown}
        parts = self.preface(query)
        parts += [Text(logged(note)) for note in query.notes if note.session not in at]
        for held, chosen in shown:
            notes = [n for n in query.notes if n.session == held.info.index]
            parts += self.stretch(held, chosen, notes)
        parts.append(Text(query.text))
        system = [Message("system", (Text(query.system),))] if query.system else []
        return [*system, Message("user", tuple(joined(parts)))]

    def stretch(self, held: Held, chosen: Sequence[int], notes: Sequence[Note]) -> list[Part]:
        """One session as parts: header, then frames and notes in time order."""
        info = held.info
        parts: list[Part] = [header(info)]
        spoken = speaking.notes(held.said, info.index, info.wall_start_s)
        among = () if self.as_video else spoken
        said = sorted((*held.notes, *notes, *among), key=lambda note: note.t_s)
        for item in ordered(held.frames, chosen, said, 1.5 / self.fps, self.part_frames):
            if isinstance(item, Note):
                parts.append(Text(f"[{instant(info, item.t_s)}] {item.text}"))
            elif self.as_video:
                first, last = (instant(info, item[i].t_s) for i in (0, -1))
                parts.append(Text(f"Video from {first} to {last}, {len(item)} frames:"))
                parts.append(Frames(item, video=True, size=info.frame_size))
            else:
                for frame in item:
                    parts.append(Text(f"{instant(info, frame.t_s)}:"))
                    parts.append(Frames((frame,), size=info.frame_size))
        if self.as_video:
            parts += [Text(f"[{instant(info, n.t_s)}] {n.text}") for n in spoken]
        if held.sound:
            end_s = held.sound[-1].end_s
            parts.append(Sound(speaking.samples(held.sound, held.sound[0].start_s, end_s)))
        return parts

    def respond(self, query: Query, generation: Generation) -> Reply:
        """Show the chosen frames and the request to the model; raises ChatError, Refused."""
        return as_reply(ask(self.served, self.messages(query), probe(query), generation))


def header(info: SessionInfo) -> Text:
    """The line that opens a session; the same at every question, so that servers can reuse it."""
    begins = clock(info.wall_start_s)
    return Text(f"Session {info.id}, from {begins}:" if begins else f"Session {info.id}:")


def instant(info: SessionInfo, t_s: float) -> str:
    """An instant as `10:03:12`: wall clock where there is one, else time in the session."""
    return clock((info.wall_start_s or 0.0) + t_s).split()[1]


def ordered(
    frames: Sequence[Frame],
    chosen: Sequence[int],
    notes: Sequence[Note],
    gap_s: float,
    most: int = 0,
) -> Iterator[Note | tuple[Frame, ...]]:
    """Notes and runs of chosen frames in time order; a note comes before the frame of its instant.

    A run ends at a note, where the stream itself had a gap longer than `gap_s` (frames left out by
    choice are none), and after `most` frames where that is not 0.
    """
    left = deque(notes)
    run: list[Frame] = []
    for at, index in enumerate(chosen):
        frame = frames[index]
        previous = chosen[at - 1] if at else index
        broken = any(frames[i + 1].t_s - frames[i].t_s > gap_s for i in range(previous, index))
        if run and (broken or (left and left[0].t_s <= frame.t_s) or len(run) == most):
            yield tuple(run)
            run = []
        while left and left[0].t_s <= frame.t_s:
            yield left.popleft()
        run.append(frame)
    if run:
        yield tuple(run)
    yield from left


def thin(total: int, limit: int) -> list[int]:
    """At most `limit` of `total` indices, evenly spread, first and last included."""
    if total <= limit:
        return list(range(total))
    if limit == 1:
        return [total - 1]
    return [round(i * (total - 1) / (limit - 1)) for i in range(limit)]


def joined(parts: Sequence[Part]) -> Iterator[Part]:
    """The same parts with neighbouring texts on lines of one text."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, Text):
            lines.append(part.text)
            continue
        if lines:
            yield Text("\n".join(lines))
            lines = []
        yield part
    if lines:
        yield Text("\n".join(lines))


def logged(note: Note) -> str:
    """A note whose session is not shown, as `[DAY1 10:00:00] text`."""
    when = clock(note.wall_s) or clock(note.t_s).split()[1]
    return f"[{when}] {note.text}"
