"""What can be known before a run: is the model there, does the prompt fit, are all frames used.

Servers drop frames in silence (a video sampled down to 32, a list cut at its limit), answer from a
cache that takes no notice of media, or refuse the first request after an hour of work. A few calls
of one token show it.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from bench_lib.chat.cache import CachedChat
from bench_lib.chat.endpoint import Endpoint, Renamed
from bench_lib.chat.replicas import Replicas
from bench_lib.chat.reply_stream import Fault, Unfinished
from bench_lib.chat.server import served, settle
from bench_lib.errors import BenchError, nearest
from bench_lib.exchange import Generation
from bench_lib.messages.chat import Chat, ChatError, ChatReply, Contract, Frames, Message, Text
from bench_lib.messages.keys import key_from
from bench_lib.redact import redacted
from bench_lib.video.stream import ArrayFrame, Size

FREE = Contract("free")
PROBE = Generation(max_new_tokens=1)
TRIES = 3
UNFINISHED = (
    "the server never says why a reply ended, so one that was cut would pass for whole; mend the "
    "server, or accept that with finish: assumed in backbone_args (for a judge: judge_args)"
)
RENAMED = (
    "to begin anew with it, give it another revision in backbone_args (for a judge: judge_args)"
)


@dataclass(frozen=True)
class Check:
    """One finding; `ok` is None where it could not be told."""

    name: str
    ok: bool | None
    detail: str


def preflight(
    chat: Chat,
    frames: int = 0,
    size: Size = (448, 448),
    as_video: bool = False,
    prompt_tokens: int = 0,
    max_new_tokens: int = 64,
) -> tuple[Check, ...]:
    """Look at the model that will serve a run; sends a few requests of one token.

    Args:
        chat: The model; a cache around it is passed over.
        frames: Frames that a question will show.
        size: Their height and width.
        as_video: Whether they go as one video.
        prompt_tokens: Further tokens of a question: its text, memories.
        max_new_tokens: Longest reply.
    """
    if isinstance(chat, CachedChat):
        chat = chat.chat
    if isinstance(chat, Replicas):
        how = frames, size, as_video, prompt_tokens, max_new_tokens
        return tuple(
            replace(check, name=f"{check.name}, {urlsplit(endpoint.url).netloc}")
            for endpoint in chat.endpoints
            for check in preflight(endpoint, *how)
        )
    checks: list[Check] = []
    limit = 0
    if isinstance(chat, Endpoint):
        checks, limit = _server(chat)
        if all(check.ok is not False for check in checks):
            checks += _reply(chat)
        if any(check.ok is False for check in checks):
            return tuple(checks)
    try:
        found, tokens = _frames(chat, frames, size, as_video)
    except ChatError as error:
        return (*checks, Check("items per prompt", False, f"{frames} frames: {error}"))
    checks += found
    needed = tokens + prompt_tokens + max_new_tokens
    if isinstance(chat, Endpoint):
        checks.append(_at_once(chat, needed if tokens else 0))
    if limit and tokens:
        told = f"about {needed} tokens of {limit}"
        return (*checks, Check("context", needed <= limit, told))
    return (*checks, Check("context", None, f"about {needed} tokens; the limit is not known"))


def require(checks: Sequence[Check]) -> None:
    """Raise BenchError that names what failed."""
    failed = [f"{check.name}: {check.detail}" for check in checks if check.ok is False]
    if failed:
        raise BenchError("the model cannot serve this run; " + "; ".join(failed))


def canary(chat: Chat, size: Size = (112, 112), as_video: bool = False) -> Check:
    """Ask the same of a red and of a blue picture: the answers must not come from one cache entry.

    The replies differ, or else their first token's log-probabilities do, where the backend gives
    them. Equal ones mean that a cache takes no notice of media, or that the model does not see.
    """
    if isinstance(chat, CachedChat):
        chat = chat.chat
    if isinstance(chat, Replicas):
        found = [canary(endpoint, size, as_video) for endpoint in chat.endpoints]
        return next((check for check in found if check.ok is not True), found[0])
    # A word of its own in the text: no earlier canary's replies can serve.
    text = f"Check {uuid.uuid4().hex[:8]}. Which colour fills the picture? Answer with one word."
    generation = Generation(max_new_tokens=8, keep_logits=True)
    replies = []
    for colour in ((220, 20, 20), (20, 20, 220)):
        picture = np.full((*size, 3), colour, np.uint8)
        shown = Frames((ArrayFrame(0.0, picture), ArrayFrame(1.0, picture)), as_video)
        try:
            replies.append(chat.complete([Message("user", (shown, Text(text)))], FREE, generation))
        except ChatError as error:
            return Check("canary", False, str(error))
    red, blue = replies
    if red.text != blue.text:
        return Check("canary", True, f"red: {red.text.strip()!r}, blue: {blue.text.strip()!r}")
    if red.logits is not None and blue.logits is not None:
        differ = red.logits.shape != blue.logits.shape or bool((red.logits != blue.logits).any())
        told = "differ" if differ else "are the same too"
        return Check("canary", differ, f"both {red.text.strip()!r}; their log-probabilities {told}")
    told = "a cache shares them, or the model does not see (settings: logprobs tells more)"
    return Check("canary", False, f"both {red.text.strip()!r}: {told}")


def _server(chat: Endpoint) -> tuple[list[Check], int]:
    """Key, address and model, and the context length as far as it is known."""
    variable = chat.settings.key_env
    try:
        key_from(variable)
    except BenchError as error:
        return [Check("key", False, str(error))], 0
    checks = [Check("key", True, f"{variable} is set" if variable else "none is sent")]
    try:
        listed = chat.transport.get("/models")
    except ChatError as error:
        return [*checks, Check("reachable", False, str(error))], 0
    models = _listed(listed)
    checks.append(Check("reachable", True, chat.url))
    there = chat.model in models
    told = chat.model if there else f"{chat.model!r} is not served; {nearest(chat.model, models)}"
    checks.append(Check("model", there, redacted(told, variable)))
    told_limit = models.get(chat.model, {}).get("max_model_len")
    known = told_limit if type(told_limit) is int and told_limit > 0 else 0
    return checks, chat.settings.context_tokens or known


def _listed(reply: Any) -> dict[str, dict[str, Any]]:
    """The served models by name; a list of another form names none."""
    rows = reply.get("data") if isinstance(reply, dict) else None
    found = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return {row["id"]: row for row in found if isinstance(row.get("id"), str)}


def _reply(chat: Endpoint) -> list[Check]:
    """Whether a reply says that it is whole, and which model it names.

    What may pass is left to the requests that follow, which are patient.
    """
    told = "the server tells why a reply ended"
    if chat.settings.finish == "assumed":
        told = "not asked for (finish: assumed): a reply that was cut counts as whole"
    for _ in range(TRIES):
        try:
            chat.once([Message("user", (Text("Say yes."),))], FREE, PROBE)
            break
        except Renamed as fault:
            return [Check("model named", False, f"{fault}; {RENAMED}")]
        except Unfinished:
            continue
        except (Fault, ChatError):
            return []
    else:
        return [Check("finish reason", False, UNFINISHED)]
    known = chat.answers_as
    named = Check("model named", True if known else None, known or "its replies name none")
    return [Check("finish reason", chat.settings.finish == "required" or None, told), named]


def _at_once(chat: Endpoint, tokens: int) -> Check:
    """How many requests go out together, and why so many."""
    found = served(chat)
    places = settle(chat, found, tokens)
    if chat.settings.concurrency:
        return Check("requests at once", True, f"{places}, as set")
    if found.cache_tokens:
        told = f"{places}: its cache holds {found.cache_tokens:,} tokens"
        return Check("requests at once", True, told)
    return Check("requests at once", None, f"{places}; the server does not tell its limits")


def _frames(chat: Chat, frames: int, size: Size, as_video: bool) -> tuple[list[Check], int]:
    """Whether all frames are used, told by the prompt's length, and that length."""
    whole = _asked(chat, frames, size, as_video).usage
    tokens = whole.get("prompt_tokens", 0)
    if not frames:
        return [], tokens
    used: float | None = whole.get("frames")
    checks = [Check("items per prompt", True, f"{frames} frames in one request")]
    if used is None and frames > 4 and tokens:
        two, four = (_asked(chat, n, size, as_video).usage.get("prompt_tokens", 0) for n in (2, 4))
        each = (four - two) / 2
        used = 2 + (tokens - two) / each if each > 0 else None
    if used is None:
        return [*checks, Check("frames used", None, "the backend does not tell")], tokens
    # A video's frames count in pairs, and a server may add text between them.
    ok = used >= 0.9 * frames - 1
    return [*checks, Check("frames used", ok, f"{used:.0f} of {frames}")], tokens


def _asked(chat: Chat, frames: int, size: Size, as_video: bool) -> ChatReply:
    """A request with that many frames, each of another grey."""
    greys = (np.broadcast_to(np.uint8(i * 37 % 256), (*size, 3)) for i in range(frames))
    shown = tuple(ArrayFrame(float(i), grey) for i, grey in enumerate(greys))
    parts = (Frames(shown, as_video), Text("Say yes.")) if frames else (Text("Say yes."),)
    return chat.complete([Message("user", parts)], FREE, PROBE)
