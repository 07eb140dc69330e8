"""A server's reply, streamed or whole, as one `ChatReply`: whole or a fault, never a shorter one.

What a reply holds, and what becomes of it:

    finish reason       one of `STOPS`; none, another one, or two of them: a fault
    choices             that of index 0 is read; two of one index: a fault
    text                after the finish, from another role, in pieces and at once: a fault
    tool calls          a fault: none was offered, so text of the reply was taken for one
    reasoning alone     an empty reply; the reasoning is kept apart
    lone surrogates     U+FFFD, as servers write what is no character; halves of one are joined
    model               the same in all events, else a fault
    usage, logprobs     what has another form counts as not told
    lines of a stream   those of server-sent events, ended by LF or CRLF; others: a fault
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from reprlib import repr as shown
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_lib.messages.chat import ChatReply

STOPS = {
    "stop": "end",
    "eos": "end",
    "eos_token": "end",
    "stop_sequence": "end",
    "length": "length",
    "content_filter": "refused",
}
"""Known finish reasons (OpenAI, vLLM, SGLang, text-generation-inference, Together)."""
MOST_COUNT, MOST_NAME = 10**12, 200
"""No count of a reply is larger, no model's name longer."""


class Fault(Exception):
    """A transport failure that another try may not meet; `wait_s` is what the server asked for."""

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class Unfinished(Fault):
    """A reply that came to its end and does not say why."""


def parsed(text: str) -> Any:
    """A JSON value; raises Fault where there is none, or one nested too deeply to be read."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        what = "HTML" if text.lstrip()[:1] == "<" else "no JSON"
        raise Fault(
            f"{what} where JSON was expected (is the address right?): {text[:120]!r}"
        ) from None


def events(lines: Iterable[str]) -> Iterator[Any]:
    """JSON events of a server-sent stream; raises Fault where it ends before its end marker.

    A stream without `[DONE]` is whole only if its choice has given its `finish_reason`: the end of
    a connection alone does not tell a finished reply from a cut one. What an event of the type
    `error` holds comes as an error of the protocol's form.
    """
    finished = False
    for data, failed in _data(lines):
        if data == "[DONE]":
            return
        event = parsed(data)
        finished = finished or bool((choice_of(event) or {}).get("finish_reason"))
        yield {"error": event} if failed and not _names_error(event) else event
    if not finished:
        raise Fault("the stream broke off")


def _data(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """What a stream carries, event by event, and whether the event's type is `error`."""
    held: list[str] = []
    failed = False
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() not in ("", "data", "event", "id", "retry"):
            raise Fault(f"a line of another form in the stream: {line[:120]!r}")
        if name == "event":
            failed = value.strip() == "error"
        if name == "data" and value.strip():
            held.append(value.strip())
        # Known servers put an event into one line, and some put no blank line after it.
        one = len(held) == 1 and held[0][-1] in "}]"
        if held and (one or not line.strip()):
            yield "\n".join(held), failed
            held.clear()
        failed = failed and bool(line.strip())
    if held:
        raise Fault("the stream broke off")


def collect(
    found: Iterable[Mapping[str, Any]], sent_at: float, end_assumed: bool = False
) -> ChatReply:
    """Put a reply together from its events; raises Fault where it is not whole.

    Reasoning that the server keeps apart stays apart. The first token is the first of either kind.
    `end_assumed` takes a reply without a finish reason for whole where its end was regular.
    """
    parts = _Parts()
    for event in found:
        parts.add(event)
    return parts.whole(sent_at, end_assumed)


def error_in(event: Mapping[str, Any]) -> Any:
    """The error that an event reports, at its top, in its choices or their messages; or None."""
    if _names_error(event):
        return event.get("error") or event
    choices = _choices(event)
    places = [*choices, *(said for choice in choices for said in _said(choice).values())]
    return next((place["error"] for place in places if place.get("error")), None)


def counts(usage: Any) -> dict[str, int]:
    """Counts of a reply: of tokens, details included (`cached_tokens`, ...), and of `frames`.

    Whatever is no whole number from 0 on is left out, as if it had not been told.
    """
    if not isinstance(usage, Mapping):
        return {}
    details = [value for value in usage.values() if isinstance(value, Mapping)]
    return {
        name: n
        for group in (*details, usage)
        for name, n in group.items()
        if name.endswith("_tokens") or name == "frames"
        if type(n) is int and 0 <= n <= MOST_COUNT
    }


@dataclass
class _Parts:
    """What has come of a reply so far."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    form: str | None = None
    finish: str = ""
    model: str = ""
    first_at: float = 0.0
    usage: dict[str, int] = field(default_factory=dict)
    logprobs: Any = None

    def add(self, event: Mapping[str, Any]) -> None:
        """Take in one event."""
        self.usage |= counts(event.get("usage"))
        name = event.get("model")
        if isinstance(name, str) and name:
            name = mended(name[:MOST_NAME])
            if self.model not in ("", name):
                raise Fault(f"one reply from two models, {self.model!r} and {name!r}")
            self.model = name
        choice = choice_of(event)
        if choice is None:
            return
        for form, said in _said(choice).items():
            self._say(form, said)
        told = choice.get("logprobs")
        if self.logprobs is None and isinstance(told, Mapping):
            self.logprobs = told.get("content") or None
        self._end(choice.get("finish_reason"))

    def _say(self, form: str, said: Mapping[str, Any]) -> None:
        if said.get("role") not in (None, "", "assistant"):
            raise Fault(f"words of another role: {shown(said['role'])}")
        if said.get("tool_calls") or said.get("function_call"):
            raise Fault("the server made a tool call of the reply, and no tool was offered")
        reasoning = said.get("reasoning_content") or said.get("reasoning") or ""
        pieces = said.get("content") or "", reasoning, said.get("refusal") or ""
        if not all(isinstance(piece, str) for piece in pieces):
            raise Fault(f"a reply whose parts are no text: {shown(said)}")
        if not any(pieces):
            self.form = self.form or ""
            return
        if self.finish:
            raise Fault("the reply goes on after its end")
        if self.form and (form != self.form or form == "message"):
            raise Fault("a reply in pieces and at once")
        self.form = form
        self.first_at = self.first_at or time.perf_counter()
        for pile, piece in zip((self.text, self.reasoning, self.refusal), pieces, strict=True):
            pile.append(piece)

    def _end(self, reason: Any) -> None:
        if reason is None or reason == "":
            return
        if not isinstance(reason, str) or reason not in STOPS:
            raise Fault(f"the server ended the reply with finish_reason {shown(reason)}")
        if self.finish not in ("", reason):
            raise Fault(f"two finish reasons, {self.finish!r} and {reason!r}")
        self.finish = reason

    def whole(self, sent_at: float, end_assumed: bool) -> ChatReply:
        """The reply; raises Fault where there is none, or where nothing says that it is whole."""
        done_at = time.perf_counter()
        if self.form is None:
            raise Fault("a reply without a message")
        if not self.finish and not end_assumed:
            raise Unfinished("a reply without a finish reason: it may have been cut")
        text, reasoning, declined = (
            mended("".join(pile)) for pile in (self.text, self.reasoning, self.refusal)
        )
        return ChatReply(
            text=text or declined,
            reasoning=reasoning,
            stop="refused" if declined else STOPS.get(self.finish, "end"),
            ready_at=sent_at,
            first_token_at=self.first_at or done_at,
            done_at=done_at,
            usage=self.usage,
            logits=_top(self.logprobs),
            finish=self.finish,
            model=self.model,
        )


def choice_of(event: Any) -> Mapping[str, Any] | None:
    """The choice of index 0, or None where an event holds none; Fault where that is not clear."""
    choices = _choices(event)
    places = [i if c.get("index") is None else c["index"] for i, c in enumerate(choices)]
    if any(type(place) is not int for place in places) or len(set(places)) < len(places):
        raise Fault(f"choices without an order: {shown(event)}")
    return next((c for c, place in zip(choices, places, strict=True) if place == 0), None)


def mended(text: str) -> str:
    """Text that every file can hold: halves of a surrogate pair joined, lone ones U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _choices(event: Any) -> list[Mapping[str, Any]]:
    choices = (event.get("choices") or []) if isinstance(event, Mapping) else None
    if not isinstance(choices, list) or not all(isinstance(c, Mapping) for c in choices):
        raise Fault(f"an event of another form: {shown(event)}")
    return choices


def _said(choice: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What a choice says, by its form: a piece (`delta`), or all at once (`message`)."""
    given = {form: choice[form] for form in ("delta", "message") if choice.get(form) is not None}
    if not all(isinstance(said, Mapping) for said in given.values()):
        raise Fault(f"a choice of another form: {shown(choice)}")
    return {form: said for form, said in given.items() if said} or dict(list(given.items())[:1])


def _names_error(event: Any) -> bool:
    if not isinstance(event, Mapping):
        return False
    return bool(event.get("error")) or "error" in (event.get("object"), event.get("type"))


def _top(content: Any) -> NDArray[np.float32] | None:
    """Log-probabilities `[k]` of the first token's likeliest values, in falling order."""
    try:
        found = [entry["logprob"] for entry in content[0]["top_logprobs"]]
        if found and all(type(one) in (int, float) and one <= 1 for one in found):
            return np.array(sorted(found, reverse=True), np.float32)
    except (TypeError, KeyError, IndexError, OverflowError):
        pass  # of another form: not told
    return None
