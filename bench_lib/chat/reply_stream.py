"""A server's reply, streamed or whole, as one `ChatReply`; broken is told from short."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_lib.chat.base import ChatReply

STOPS = {"stop": "end", "length": "length", "content_filter": "refused"}


class Fault(Exception):
    """A transport failure that another try may not meet; `wait_s` is what the server asked for."""

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


def events(lines: Iterable[str]) -> Iterator[Any]:
    """JSON events of a server-sent stream; raises Fault where it ends before its end marker.

    A stream without `[DONE]` is whole only if a choice has given its `finish_reason`: the end of a
    connection alone does not tell a finished reply from a cut one.
    """
    finished = False
    for line in lines:
        if not line.startswith("data:"):
            continue
        data = line[5:].strip()
        if data == "[DONE]":
            return
        try:
            event = json.loads(data)
        except ValueError:
            raise Fault(f"malformed event in the stream: {data[:120]!r}") from None
        finished = finished or any(c.get("finish_reason") for c in _choices(event))
        yield event
    if not finished:
        raise Fault("the stream broke off")


def collect(found: Iterable[Mapping[str, Any]], sent_at: float) -> ChatReply:
    """Put a reply together from its events; raises Fault where no choice ever came.

    Reasoning that the server keeps apart stays apart. The first token is the first of either kind.
    """
    kept: tuple[list[str], list[str], list[str]] = ([], [], [])
    stop, first_at, choices = "", 0.0, 0
    usage: dict[str, int] = {}
    logits: NDArray[np.float32] | None = None
    for event in found:
        usage |= _counts(event.get("usage") or {})
        for choice in _choices(event)[:1]:
            choices += 1
            pieces = _pieces(choice)
            if any(pieces) and not first_at:
                first_at = time.perf_counter()
            for pile, piece in zip(kept, pieces, strict=True):
                pile.append(piece)
            if logits is None:
                logits = _top(choice.get("logprobs"))
            stop = choice.get("finish_reason") or stop
    done_at = time.perf_counter()
    if not choices:
        raise Fault("a reply without a choice")
    if stop == "abort":
        raise Fault("the server aborted the reply")
    text, reasoning, declined = ("".join(pile) for pile in kept)
    return ChatReply(
        text=text or declined,
        reasoning=reasoning,
        stop="refused" if declined else STOPS.get(stop, stop or "end"),
        ready_at=sent_at,
        first_token_at=first_at or done_at,
        done_at=done_at,
        usage=usage,
        logits=logits,
    )


def _choices(event: Any) -> list[Mapping[str, Any]]:
    choices = (event.get("choices") or []) if isinstance(event, Mapping) else None
    if not isinstance(choices, list) or not all(isinstance(c, Mapping) for c in choices):
        raise Fault(f"an event of another form: {str(event)[:120]!r}")
    return choices


def _pieces(choice: Mapping[str, Any]) -> tuple[str, str, str]:
    """What a choice adds to the text, the reasoning and the refusal."""
    said = choice.get("delta") or choice.get("message") or {}
    found = (
        said.get("content") or "",
        said.get("reasoning_content") or said.get("reasoning") or "",
        said.get("refusal") or "",
    )
    if not all(isinstance(piece, str) for piece in found):
        raise Fault(f"a reply whose parts are no text: {str(said)[:120]!r}")
    return found


def _counts(usage: Mapping[str, Any]) -> dict[str, int]:
    """Integer counts, those of the details included (`cached_tokens`, `reasoning_tokens`, ...)."""
    flat = {k: v for k, v in usage.items() if isinstance(v, int)}
    for details in usage.values():
        if isinstance(details, Mapping):
            flat |= {k: v for k, v in details.items() if isinstance(v, int)}
    return flat


def _top(logprobs: Any) -> NDArray[np.float32] | None:
    """Log-probabilities `[k]` of the first token's likeliest values, in falling order."""
    content = (logprobs or {}).get("content") if isinstance(logprobs, Mapping) else None
    if not content or not content[0].get("top_logprobs"):
        return None
    found = [entry["logprob"] for entry in content[0]["top_logprobs"]]
    return np.array(sorted(found, reverse=True), np.float32)
