"""vst: think about the video stretch by stretch; the thoughts are the memory.

VST (arXiv 2603.12262; release 1ranGuan/VST b6f4490, class `qwen2_5_vl_stream_think`): the prefix,
thinned to a frame limit, is cut into K equal stretches, K by its length. The model writes a thought
on each but the last, which it sees with all thoughts and the question. Published scores need the
tuned weights (VST-3B, -7B, -32B), which any server of Qwen2.5-VL serves; a stock model follows the
prompts alone.

Sessions, which the release does not know: when one ends, all K stretches of it become thoughts, and
they are all that is kept of it. With `segment_seconds` a stretch becomes a thought as soon as it is
over, so the memory grows with the stream and a question costs one call.

Deviations: the prompts are our own, and thoughts have a line that names their session and clock;
memory opens the user's turn, since stock chat templates know no role for it (`memory_role`);
frames are never enlarged and not doubled to an even number; a question's time is its cutoff. A
thought that fails twice is empty and counted; the release gives such samples a random letter.

A fault of the release that `parity` brings back: times are too short where the token budget leaves
frames out (the count of what is left over the rate of what was read: of two minutes, 32 s).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from bench_lib.errors import BenchError
from bench_lib.exchange import Generation, InputClass, Query, Reply
from bench_lib.measure import count
from bench_lib.memories.event_memory import Event, EventMemory, Written, written
from bench_lib.memories.frame_window import Held, header, joined, logged, thin
from bench_lib.memories.parts import speech as speaking
from bench_lib.memories.parts.speech import Speech
from bench_lib.messages.chat import Contract, Frames, Message, Part, Text
from bench_lib.messages.contract import probe
from bench_lib.messages.turn import as_reply, ask, later
from bench_lib.video.stream import EPSILON_S, Clip, Frame, SessionInfo, Size

FACTOR = 28
"""Side in pixels of the square that becomes one token; two frames share their tokens."""
LIMITS_S = (30.0, 240.0, 1800.0)
"""Lengths at which K changes: up to the first inclusive, below the other two, the rest."""


@dataclass(frozen=True)
class Stretch:
    """Frames of `[start_s, end_s)` of a session, and the size at which they are shown."""

    info: SessionInfo
    start_s: float
    end_s: float
    frames: tuple[Frame, ...]
    size: Size


@dataclass(kw_only=True)
class Vst(EventMemory):
    """VST. Defaults are those of the released class unless said otherwise.

    Args:
        fps: 2: the release's video reader.
        segments: K for prefixes of up to 30 s, below 4 min, below 30 min, and longer. The class;
            its streaming scripts (OVO-Bench) take 2, 3, 5, 5.
        segment_seconds: Length of a stretch of the incremental form; 0 is the release's form.
        segment_tokens: Visual tokens of a stretch; a thinned prefix has K times as many.
        max_frames: Frames of the prefix. 384: its scripts (StreamArena's setting).
        min_pixels: 200,704: 256 tokens a frame; with more frames than that allows, frames go.
        max_pixels: 602,112: 768 tokens a frame.
        keep_memory: Newest thoughts that are kept; 0 keeps all.
        memory_tokens: Token limit of a thought.
        answer_tokens: Least token limit of a reply, which reasons before it answers.
        parity: Bring back the release's fault.
        memory_role: `user`, or the role that the tuned weights' chat template has for memory
            (`previous text`).
        speech: `captions` shows what was said with the question, as StreamArena's runs do. The
            release has none.
    """

    prompt_base: ClassVar[str] = "vst"
    needs_weights: ClassVar[bool] = True
    checkpoint: ClassVar[str] = "Catalan258/VST-7B"

    fps: float = 2.0
    segments: list = field(default_factory=lambda: [1, 1, 2, 3])
    segment_seconds: float = 0.0
    segment_tokens: int = 8192
    max_frames: int = 384
    min_pixels: int = 256 * FACTOR**2
    max_pixels: int = 768 * FACTOR**2
    keep_memory: int = 0
    memory_tokens: int = 5000
    answer_tokens: int = 32_768
    parity: bool = False
    memory_role: str = "user"
    prompts: str = "vst"
    speech: Speech = "none"  # type: ignore[misc]

    def __post_init__(self) -> None:
        speaking.checked("vst", self.speech, ("none", "captions"))
        if len(self.segments) != 4 or min(self.segments) < 1:
            raise BenchError(f"vst: segments are four counts of 1 or more, not {self.segments}")
        for name in ("segment_seconds", "keep_memory"):
            if getattr(self, name) < 0:
                raise BenchError(f"vst: {name} must not be negative: {getattr(self, name)}")

    @property
    def input_class(self) -> InputClass:  # type: ignore[override]
        """See `Method.input_class`; it depends on the form."""
        return "incremental" if self.segment_seconds else "thinned"

    @property
    def causal(self) -> bool:  # type: ignore[override]
        """See `Method.causal`; K and so each stretch depend on the end (StreamArena, Eq. 13)."""
        return bool(self.segment_seconds)

    @property
    def caveat(self) -> str:
        """See `Method.caveat`. A server names a model by its weights, so theirs say `vst`."""
        model = getattr(self.served, "id", "")
        if not model or "vst" in model.lower():
            return ""
        return (
            f"vst ran on {model}, which was not trained for it: its scores are not those of the "
            f"published system ({self.checkpoint})"
        )

    # The stream -----------------------------------------------------------------------------------

    def observe(self, clip: Clip) -> None:
        """Hold frames; in the incremental form think about each stretch that is over."""
        if not self.segment_seconds:
            super().observe(clip)
            return
        count("frames_observed", len(clip.frames))
        self._hear(clip)
        for frame in clip.frames:
            held = self.state.current
            if held.frames and self._number(frame) != self._number(held.frames[-1]):
                self._keep(self.write(held))
                held = replace(held, frames=())
            self.state = replace(self.state, current=replace(held, frames=(*held.frames, frame)))

    def end_session(self, recorded_bytes: int) -> None:
        """Think about what is left of the session; its frames go."""
        held = self.state.current
        if held is not None and held.frames:
            self._keep(self.write(held))
        self.state = replace(self.state, current=None)

    def write(self, held: Held) -> Sequence[Event]:
        """A thought on each stretch."""
        return self._thoughts(self._stretches(held))[0]

    def _keep(self, events: Sequence[Event]) -> None:
        self.state = replace(self.state, events=self._newest((*self.state.events, *events)))

    def _newest(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        return events[-self.keep_memory :] if self.keep_memory else events

    def _number(self, frame: Frame) -> int:
        return int((frame.t_s + EPSILON_S) // self.segment_seconds)

    def _stretches(self, held: Held) -> list[Stretch]:
        """What is held of a session, thinned and cut; one stretch in the incremental form."""
        frames = [held.frames[i] for i in thin(len(held.frames), self.max_frames)]
        start_s, last_s = frames[0].t_s, frames[-1].t_s
        length = 1 if self.segment_seconds else segments(last_s - start_s, self.segments)
        chosen, pixels = fitted(
            len(frames), self.segment_tokens * length, self.min_pixels, self.max_pixels
        )
        size = self.served.frame_size(held.info.frame_size, pixels)
        whole_s = last_s + 1 / self.fps - start_s
        step_s = whole_s / length * (len(chosen) / len(frames) if self.parity else 1)
        return [
            Stretch(
                held.info,
                start_s + number * step_s,
                start_s + (number + 1) * step_s,
                tuple(frames[chosen[i]] for i in range(begin, end)),
                size,
            )
            for number, (begin, end) in enumerate(cut(len(chosen), length))
            if begin < end
        ]

    # Thoughts and answers -------------------------------------------------------------------------

    def _thoughts(self, stretches: Sequence[Stretch]) -> tuple[list[Event], float]:
        """Thoughts on stretches, each with those before it in mind; and how far they run ahead."""
        found: list[Event] = []
        ahead_s = 0.0
        for stretch in stretches:
            said = self._thought(stretch, (*self.state.events, *found))
            ahead_s += said.ahead_s
            found.append(Event(stretch.info, stretch.start_s, stretch.end_s, said.text))
        return found, ahead_s

    def _thought(self, stretch: Stretch, events: tuple[Event, ...]) -> Written:
        system = Message("system", (Text(self.texts.render("system")),))
        messages = [system, *self._turns(events, _seen(stretch))]
        generation = Generation(max_new_tokens=self.memory_tokens, seed=self.state.seed)
        count("stretches_thought")
        return written(self.served, messages, THOUGHT, generation)

    def respond(self, query: Query, generation: Generation) -> Reply:
        """Think about all stretches but the last and answer from thoughts and that one.

        Raises:
            ChatError: the model could not be asked.
            Refused: the model declined.
        """
        held = self.state.current
        stretches = self._stretches(held) if held is not None and held.frames else []
        thoughts, ahead_s = self._thoughts(stretches[:-1])
        limit = max(self.answer_tokens, generation.max_new_tokens)
        parts = [part for stretch in stretches[-1:] for part in _seen(stretch)]
        said = speaking.notes(held.said, held.info.index, held.info.wall_start_s) if held else []
        notes = sorted((*said, *query.notes), key=lambda note: (note.session, note.t_s))
        parts += [Text(logged(note)) for note in notes]
        parts.append(Text(f"Time={query.cutoff_s:.1f}s {query.text}"))
        messages = [
            *([Message("system", (Text(query.system),))] if query.system else []),
            *self._turns((*self.state.events, *thoughts), parts),
        ]
        generation = replace(generation, max_new_tokens=limit)
        return later(as_reply(ask(self.served, messages, probe(query), generation)), ahead_s)

    def _turns(self, events: tuple[Event, ...], parts: Sequence[Part]) -> list[Message]:
        """The thoughts so far, then what is shown, in one user turn or in two turns."""
        said: list[str] = []
        session = None
        for event in self._newest(events):
            if event.info.index != session:
                said.append(header(event.info).text)
                session = event.info.index
            said.append(f"{_span(event.start_s, event.end_s)} {event.text}")
        memory: list[Part] = []
        if said:
            memory.append(Text(self.texts.render("memory", thoughts="\n".join(said))))
        if self.memory_role == "user" or not memory:
            return [Message("user", tuple(joined([*memory, *parts])))]
        # The tuned weights' template has this role; the type names those of stock templates.
        role: Any = self.memory_role
        return [Message(role, tuple(memory)), Message("user", tuple(joined(parts)))]


def segments(duration_s: float, counts: Sequence[int]) -> int:
    """K for a prefix whose last frame is so long after its first (release, `_preprocess_batch`)."""
    if duration_s <= LIMITS_S[0]:
        return counts[0]
    if duration_s < LIMITS_S[1]:
        return counts[1]
    return counts[2] if duration_s < LIMITS_S[2] else counts[3]


def cut(frames: int, length: int) -> list[tuple[int, int]]:
    """`length` runs of equal length as (begin, end); the last one takes the rest."""
    step = max(frames // length, 1)
    ends = [min((i + 1) * step, frames) for i in range(length - 1)]
    begins = [min(i * step, frames) for i in range(length)]
    return list(zip(begins, [*ends, frames], strict=True))


def fitted(frames: int, tokens: int, min_pixels: int, max_pixels: int) -> tuple[list[int], int]:
    """Which frames a token budget has room for, and the pixels of each.

    Frames share `tokens` squares of 28 x 28 pixels, two frames to a square. Where that leaves a
    frame less than `min_pixels`, frames are left out (release, `_spatial_resize_video`).
    """
    area = tokens * FACTOR**2 * 2
    chosen = list(range(frames))
    if area / frames < min_pixels:
        room = max(1, area // min_pixels)
        steps = max(1, room - 1)
        chosen = [i * (frames - 1) // steps for i in range(room)]
    most = min(max_pixels, area // len(chosen))
    return chosen, max(most, int(min_pixels * 1.05))


def thought_of(reply: str) -> str:
    """A thought as it is, reasoning blocks included; ValueError where it is empty."""
    if not reply.strip():
        raise ValueError("it holds no text")
    return reply.strip()


def _seen(stretch: Stretch) -> list[Part]:
    """A stretch as the model is shown it."""
    video = Frames(stretch.frames, video=True, size=stretch.size)
    span = _span(stretch.start_s, stretch.end_s)
    return [header(stretch.info), Text(span), video]


def _span(start_s: float, end_s: float) -> str:
    return f"Time={start_s:.1f}-{end_s:.1f}s"


THOUGHT = Contract("thought", thought_of)
