"""A question with tools: the model may look things up for some rounds, then it answers.

StreamArena (appendix C.2): at most five rounds, text search, full-frame and crop image search. The
tools that a run has no provider for are not offered; each request says how many rounds are left. A
call stands in the reply's text, which any model can write:
`<tool_call>{"name": "text_search", "arguments": {"query": "..."}}</tool_call>`.
A question's task is not known to a method, so all questions are offered the tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from bench_lib.exchange import Generation, Query, Reply
from bench_lib.measure import count
from bench_lib.messages.chat import Chat, Contract, Message, Text
from bench_lib.messages.contract import probe
from bench_lib.messages.turn import ahead_s, as_reply, ask, later
from bench_lib.prompts import load
from bench_lib.replies.clean import without_reasoning
from bench_lib.video.stream import Frame

CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
LONGEST = 1280
"""Side in pixels of a frame that is searched with."""


@dataclass(frozen=True)
class Limits:
    """`rounds`: StreamArena, C.2. The others are those of its Search Worker (C.5)."""

    rounds: int = 5
    results: int = 10
    similarity: float = 0.6
    crop_side: int = 720
    quality: int = 85


@cache
def provider(spec: str) -> Any:
    """The provider of that name, opened once; None for an empty one. Raises BenchError."""
    from bench_lib.search import providers

    return providers.provider(spec)


def answered(
    chat: Chat,
    messages: Sequence[Message],
    query: Query,
    generation: Generation,
    frames: Sequence[Frame],
    spec: str,
    limits: Limits,
) -> Reply:
    """The answer to a question; `frames` are those that were shown, newest last.

    Counts `tool_calls`, `tool_calls_failed` and `tool_rounds`. Raises ChatError, Refused,
    BenchError.
    """
    source = provider(spec)
    if source is None:
        return as_reply(ask(chat, messages, probe(query), generation))
    texts = load("tools")
    offer = texts.render("offer", tools=texts.render("text_search"))
    if "crop_search" in source.tools:
        offer = f"{offer}\n{texts.render('image_search')}"
    said = [*messages[:-1], _longer(messages[-1], offer, _left(source.tools, limits.rounds))]
    waited_s = 0.0
    for left in range(limits.rounds - 1, -1, -1):
        reply = ask(chat, said, Contract(f"tools_{query.contract}"), generation)
        calls = CALL.findall(without_reasoning(reply.text)[0])
        if not calls or reply.stop == "refused":
            return later(as_reply(reply), waited_s)
        waited_s += ahead_s(reply)
        count("tool_rounds")
        found = [_result(source, call, frames, limits) for call in calls]
        told = "\n\n".join([*found, _left(source.tools, left) if left else texts.render("last")])
        said += [Message("assistant", (Text(reply.text),)), Message("user", (Text(told),))]
    return later(as_reply(ask(chat, said, probe(query), generation)), waited_s)


def _longer(message: Message, *texts: str) -> Message:
    parts = message.parts
    *before, last = parts
    assert isinstance(last, Text)
    return Message(message.role, (*before, Text("\n\n".join((last.text, *texts)))))


def _left(tools: Sequence[str], rounds: int) -> str:
    return f"[tools: {', '.join(tools)}] [rounds left: {rounds}]"


def _result(source: Any, call: str, frames: Sequence[Frame], limits: Limits) -> str:
    """What a call brought, as data; a call that cannot be served says why."""
    from bench_lib.messages.fence import fenced
    from bench_lib.search.tools import SearchError

    count("tool_calls")
    try:
        wanted = json.loads(call)
        name, given = wanted["name"], wanted.get("arguments") or {}
        if name not in source.tools:
            raise ValueError(f"there is no tool {name!r}, only {', '.join(source.tools)}")
        text = _served(source, name, given, frames, limits)
    except (SearchError, ValueError, KeyError, TypeError, AttributeError) as error:
        count("tool_calls_failed")
        text = f"The call failed: {type(error).__name__}: {error}"
    return f"Result of {call.strip()}:\n{fenced('search', text)}"


def _served(
    source: Any, name: str, given: Mapping[str, Any], frames: Sequence[Frame], limits: Limits
) -> str:
    from bench_lib.search.tools import crop, listed, relevant
    from bench_lib.video.picture import picture

    if name == "text_search":
        words = str(given["query"])
        results = source.text(words, limits.results)
        return listed(relevant(words, results, limits.similarity, limits.results))
    back = int(given.get("frame", 0))
    if not 0 <= back < len(frames):
        raise ValueError(f"frame {back} was not shown; {len(frames)} were, 0 is the newest")
    frame = frames[-1 - back]
    shown = picture(frame, frame.t_s, LONGEST, limits.quality)
    jpeg = shown.jpeg
    if name == "crop_search":
        jpeg = crop(shown, tuple(given["box"]), limits.crop_side, limits.quality)
    return listed(source.image(jpeg, limits.results))
