"""A stream with speech and sound for methods that watch, and a model that keeps what it sees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bench_lib import methods
from bench_lib.exchange import Generation, Query, Reply
from bench_lib.memories.method import Method
from bench_lib.messages.chat import Chat, ChatReply, Contract, Frames, Message, Sound, Text
from bench_lib.messages.contract import checked
from bench_lib.schema import Caption
from bench_lib.video.stream import SAMPLE_RATE, ArrayFrame, Clip, SessionInfo

WALL_S = 10 * 3600.0
SIZE = (8, 12)
Call = tuple[tuple[Message, ...], Contract, Generation]


class Spy(Chat):
    """Answers as it is told, and keeps every request."""

    id = "spy"

    def __init__(self, answer: Callable[[Sequence[Message], Contract], str] | str = "") -> None:
        self.answer = answer
        self.asked: list[Call] = []

    def complete(
        self, messages: Sequence[Message], contract: Contract, generation: Generation
    ) -> ChatReply:
        return checked(self._send, messages, contract, generation)

    def _send(
        self, messages: Sequence[Message], contract: Contract, generation: Generation
    ) -> ChatReply:
        self.asked.append((tuple(messages), contract, generation))
        said = self.answer if isinstance(self.answer, str) else self.answer(messages, contract)
        return ChatReply(said)


def begun(name: str, chat: Chat, **args: Any) -> Method:
    """A method in its first session."""
    method = methods.load(name, **args).attach(chat)
    method.reset("t", 42)
    method.begin_session(SessionInfo("S001", 0, WALL_S, SIZE))
    return method


def clips(
    start_s: float,
    end_s: float,
    fps: float = 2.0,
    step: int = 2,
    said: Sequence[Caption] = (),
    sound: bool = False,
    changed_from_s: float = 1e9,
) -> list[Clip]:
    """Frames of `[start_s, end_s]` in clips of `step`; the sound of second k has the level k.

    From `changed_from_s` on pictures and words are other ones.
    """
    times = [k / fps for k in range(round(start_s * fps), round(end_s * fps) + 1)]
    found = []
    for at in range(0, len(times), step):
        own = times[at : at + step]
        frames = tuple(
            ArrayFrame(t, np.full((*SIZE, 3), int(t) % 200 + 50 * (t >= changed_from_s), np.uint8))
            for t in own
        )
        first_s = own[0] - 1 / fps
        words = tuple(
            c if c.end_s < changed_from_s else c.model_copy(update={"text": f"{c.text} (changed)"})
            for c in said
            if first_s < c.end_s <= own[-1]
        )
        audio = None
        if sound:
            first, last = (round(t * SAMPLE_RATE) for t in (first_s, own[-1]))
            audio = (np.arange(first, last) // SAMPLE_RATE + 1).astype(np.float32) / 1000
        found.append(Clip(0, frames, words, audio, first_s))
    return found


def show(method: Method, shown: Sequence[Clip]) -> None:
    for clip in shown:
        method.observe(clip)


def ask(method: Method, t_s: float, text: str = "What now?", **query: Any) -> Reply:
    """A question on a branch."""
    return method.branch().respond(Query(text, 0, t_s, **query), Generation())


def line(end_s: float, text: str) -> Caption:
    return Caption(start_s=end_s - 0.5, end_s=end_s, text=text)


def times(messages: Sequence[Message]) -> list[float]:
    """Instants of all frames of a request, in order."""
    return [f.t_s for m in messages for p in m.parts if isinstance(p, Frames) for f in p.frames]


def texts(messages: Sequence[Message]) -> str:
    """All texts of a request, a line each."""
    return "\n".join(p.text for m in messages for p in m.parts if isinstance(p, Text))


def turns(messages: Sequence[Message]) -> list[tuple[Any, ...]]:
    """Roles with what each turn holds: texts, instants of frames, levels of sound."""
    return [(m.role, *map(_plain, m.parts)) for m in messages]


def _plain(part: Any) -> Any:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Sound):
        return {round(float(level) * 1000) for level in np.unique(part.samples)}
    return [f.t_s for f in part.frames]
