"""Memories that a message model wrote: the stream is gone, texts about stretches of it are left.

A subclass says when and from what a text is written; the rest is here: texts are kept in order,
shown before the frames of the current session, and a writer that fails costs its text, not the run.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from bench_lib.exchange import Generation, InputClass, Query
from bench_lib.measure import count
from bench_lib.memories.frame_window import FrameWindow, Held, Shown, State, instant, thin
from bench_lib.messages.chat import Chat, Contract, ContractBroken, Message, Part, Text
from bench_lib.messages.turn import ahead_s, ask
from bench_lib.prompts import PromptSet, load
from bench_lib.replies.clean import without_reasoning
from bench_lib.schema import clock
from bench_lib.state.walk import part
from bench_lib.video.stream import SessionInfo


@dataclass(frozen=True)
class Event:
    """A stretch `[start_s, end_s)` of a session in words."""

    info: SessionInfo
    start_s: float
    end_s: float
    text: str = part("text")


@dataclass(frozen=True)
class EventState(State):
    """The state of a frame window, and what was written so far."""

    events: tuple[Event, ...] = ()


@dataclass(kw_only=True)
class EventMemory(FrameWindow):
    """Base of memories of texts.

    Args:
        max_frames: Most frames that a writer or a question is shown, uniformly thinned.
        memory_tokens: Token limit of a written text.
        prompts: Prompt set of the writer, or a folder of one's own with the same files.
    """

    input_class: ClassVar[InputClass] = "thinned"
    # What is kept of a frame is written with later frames in view (StreamArena, Eq. 13).
    causal: ClassVar[bool] = False
    prompt_base: ClassVar[str] = "summary"

    max_frames: int = 1024
    max_pixels: int = 100_352
    as_video: bool = True
    memory_tokens: int = 2048
    prompts: str = "summary"

    @abstractmethod
    def write(self, held: Held) -> Sequence[Event]:
        """What is kept of a session that is over."""

    def recall(self, query: Query) -> Sequence[Event]:
        """The events shown for a question; all of them by default."""
        return self.state.events

    def reset(self, trajectory_id: str, seed: int) -> None:
        """See `Method.reset`."""
        self.state = EventState(seed)

    def end_session(self, recorded_bytes: int) -> None:
        """Write what is kept; the frames go. Raises ChatError where the model cannot be reached."""
        held = self.state.current
        written = self.write(held) if held is not None and (held.frames or held.notes) else ()
        self.state = replace(self.state, events=(*self.state.events, *written), current=None)

    def shown(self) -> Sequence[Shown]:
        """The current session alone, thinned to `max_frames`."""
        held = self.state.current
        return [] if held is None else [(held, thin(len(held.frames), self.max_frames))]

    def preface(self, query: Query) -> list[Part]:
        """The texts of earlier sessions, each under its session and interval."""
        written = "\n\n".join(
            f"Session {event.info.id}, {interval(event)}:\n{event.text or '(nothing was kept)'}"
            for event in self.recall(query)
        )
        return [Text(self.texts.render("memories", memories=written))] if written else []

    def tell(self, messages: Sequence[Message]) -> str:
        """One text from the writer: `{"memory": str}`. See `written`."""
        generation = Generation(max_new_tokens=self.memory_tokens, seed=self.state.seed)
        return written(self.served, messages, MEMORY, generation).text

    def state_bytes(self) -> Mapping[str, int]:
        """UTF-8 bytes of the texts, as the paper counts a text memory (open point 19)."""
        return {"text": sum(len(event.text.encode()) for event in self.state.events)}

    @cached_property
    def texts(self) -> PromptSet:
        """The writer's prompts."""
        return load(self.prompts, base=self.prompt_base)


@dataclass(frozen=True)
class Written:
    """What a writer wrote; `ahead_s` as in `turn.ahead_s`."""

    text: str
    ahead_s: float = 0.0


def written(
    chat: Chat, messages: Sequence[Message], contract: Contract, generation: Generation
) -> Written:
    """One text under a contract whose parser gives a text that is not empty.

    Two broken replies, or a refusal, give an empty text, counted as `empty_memories` (protocol,
    open point 20). A model that cannot be reached is an error: an empty text would then look like a
    bad memory.

    Raises:
        ChatError: the model could not be asked.
    """
    try:
        reply = ask(chat, messages, contract, generation)
        found = Written("" if reply.stop == "refused" else reply.value, ahead_s(reply))
    except ContractBroken:
        found = Written("")
    count("empty_memories", not found.text)
    return found


def interval(event: Event) -> str:
    """A half-open stretch for people, its day first where the session has a clock."""
    begins = clock(event.info.wall_start_s)
    day = f"{begins.split()[0]}, " if begins else ""
    return f"{day}{instant(event.info, event.start_s)} to {instant(event.info, event.end_s)}"


def prose_of(reply: str) -> str:
    """The reply without reasoning blocks; ValueError where nothing is left."""
    body = without_reasoning(reply)[0].strip()
    if not body:
        raise ValueError("it holds no text")
    return body


def memory_of(reply: str) -> str:
    """The text in `{"memory": str}`, in prose or a fence too; ValueError where there is none."""
    body = without_reasoning(reply)[0]
    start = body.find("{")
    if start < 0:
        raise ValueError("it holds no JSON object")
    found, _ = json.JSONDecoder(strict=False).raw_decode(body, start)
    text = found.get("memory")
    if not isinstance(text, str) or not text.strip():
        raise ValueError('it has no text under the key "memory"')
    return text.strip()


MEMORY = Contract(
    "memory",
    memory_of,
    {
        "type": "object",
        "properties": {"memory": {"type": "string"}},
        "required": ["memory"],
        "additionalProperties": False,
    },
)
"""The writer's reply (protocol, section 11)."""
