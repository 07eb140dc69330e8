"""Drives a method over sessions by hand, and reads what it sent to a scripted model."""

from __future__ import annotations

import numpy as np

from bench_lib.chat.recorded import ScriptedChat
from bench_lib.exchange import Generation, Note, Query
from bench_lib.memories.method import Method
from bench_lib.messages.chat import Frames, Message, Text
from bench_lib.video.stream import ArrayFrame, Clip, SessionInfo

WALL_S = 10 * 3600.0
SIZE = (8, 12)


def info(index: int, wall: bool = True) -> SessionInfo:
    """A session an hour after the one before it, from 10:00:00 on day 1."""
    return SessionInfo(f"S{index + 1:03d}", index, WALL_S + 3600 * index if wall else None, SIZE)


def frame(session: int, t_s: float) -> ArrayFrame:
    """A frame that shows where it is from: session in red, second in green."""
    pixels = np.zeros((*SIZE, 3), np.uint8)
    pixels[..., 0], pixels[..., 1] = session, int(t_s)
    return ArrayFrame(t_s, pixels)


def clip(session: int, start: int, end: int) -> Clip:
    """Frames at each second of `[start, end)`."""
    return Clip(session, tuple(frame(session, float(t)) for t in range(start, end)))


def session(method: Method, index: int, seconds: int, end: bool = True, bytes_: int = 1000) -> None:
    """One session of so many frames, in clips of eight."""
    method.begin_session(info(index))
    for start in range(0, seconds, 8):
        method.observe(clip(index, start, min(seconds, start + 8)))
    if end:
        method.end_session(bytes_)


def asked(index: int, t_s: float, *notes: Note, closed: bool = True) -> Query:
    """A question at an instant."""
    return Query("What now?", index, t_s, closed, system="You see.", notes=notes)


def respond(method: Method, query: Query) -> list[Message]:
    """What a method sends to its model for a query, on a branch."""
    branch = method.branch()
    before = len(method.served.asked)
    branch.respond(query, Generation())
    [(messages, _, _)] = method.served.asked[before:]
    return list(messages)


def chat(*replies: str) -> ScriptedChat:
    """A model with these replies, then many more of the same sort."""
    return ScriptedChat([*replies, *["fine"] * 50])


def frames_of(messages: list[Message]) -> list[tuple[int, int]]:
    """(session, second) of all frames sent, read from their pixels, in order."""
    shown = [f for m in messages for p in m.parts if isinstance(p, Frames) for f in p.frames]
    return [(int(f.pixels()[0, 0, 0]), int(f.pixels()[0, 0, 1])) for f in shown]


def script(messages: list[Message]) -> list[str]:
    """The user turn line by line; frames as `<session:first-last>`, videos as `<<...>>`."""
    lines: list[str] = []
    for part in messages[-1].parts:
        if isinstance(part, Text):
            lines += part.text.split("\n")
        else:
            assert isinstance(part, Frames)
            assert part.size == SIZE
            at = frames_of([Message("user", (part,))])
            name = f"{at[0][0]}:{at[0][1]}" + (f"-{at[-1][1]}" if len(at) > 1 else "")
            lines.append(f"<<{name}>>" if part.video else f"<{name}>")
    return lines
