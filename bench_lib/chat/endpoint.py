"""Any server that speaks the OpenAI chat protocol: vLLM, SGLang, hosted APIs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from reprlib import repr as shown
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from bench_lib.chat.body import MOST_BYTES
from bench_lib.chat.reply_stream import Fault, collect, counts
from bench_lib.chat.transport import Transport
from bench_lib.chat.wire import Wire, names
from bench_lib.errors import BenchError
from bench_lib.exchange import Generation
from bench_lib.measure import count
from bench_lib.messages.budget import Budget
from bench_lib.messages.chat import Chat, ChatReply, Contract, Message, RequestRefused
from bench_lib.messages.contract import checked
from bench_lib.messages.settings import EndpointSettings
from bench_lib.redact import redacted, scrubbed

TOKEN_BYTES, VECTOR_BYTES = 2**12, 2**18
"""What a token takes in a stream, with its log-probabilities, and a vector in JSON, at most."""


class Endpoint(Chat):
    """A served model. Many threads may ask at once; each waits for one of its places.

    Clocks: `ready_at` is when the request that was answered went out, its media encoded and earlier
    tries over; `first_token_at` is when its first token came in, of reasoning or of the reply;
    `done_at` is when the stream ended. So `first_token_at - ready_at` is the time to first token
    over the network, and `done_at - ready_at` the full-response latency that APIs are compared by.
    Where the server does not stream, the first is unknown and equals the second.

    Raises:
        BenchError: the address is not an http(s) one or holds a user name, key or query.
    """

    def __init__(self, model: str, url: str, settings: EndpointSettings | None = None) -> None:
        self.settings = settings or EndpointSettings()
        self.model = model
        self.url = _checked_url(url)
        parts = urlsplit(self.url)
        self.id = f"{model}@{self.settings.revision or parts.netloc + parts.path}"
        self.wire = Wire(self.settings)
        self.name = Name()
        self._held: set[str] = set()
        self._guard = threading.Lock()
        self.transport = self.embedder = Transport(self.url, self.settings)
        s = self.settings
        if s.embedding_url:
            self.embedder = Transport(_checked_url(s.embedding_url), s)
        self.budget = Budget(s.max_calls, s.max_cost, s.price_in, s.price_out)

    @property
    def identity(self) -> Mapping[str, Any]:
        """See `Chat.identity`: the id and the settings on which replies depend."""
        return {"id": self.id, **self.settings.shaping()}

    @property
    def answers_as(self) -> str:
        """See `Chat.answers_as`."""
        return self.name.told

    def complete(
        self, messages: Sequence[Message], contract: Contract, generation: Generation
    ) -> ChatReply:
        """See `Chat.complete`; whatever goes wrong is one of the kinds of ChatError."""
        return checked(self._send, messages, contract, generation)

    def _send(
        self, messages: Sequence[Message], contract: Contract, generation: Generation
    ) -> ChatReply:
        def body(held: frozenset[str] = frozenset()) -> dict[str, Any]:
            return self._body(messages, contract, generation, held)

        if self.settings.media == "once":
            reply = self.transport.persist(lambda: self._short(body))
        else:
            whole = body()
            reply = self.transport.persist(lambda: self._once(whole))
        count("prompt_tokens", reply.usage.get("prompt_tokens", 0))
        count("completion_tokens", reply.usage.get("completion_tokens", 0))
        if "frames" in reply.usage:
            count("frames_encoded", reply.usage["frames"])
        return reply

    def once(
        self, messages: Sequence[Message], contract: Contract, generation: Generation
    ) -> ChatReply:
        """One request and no further try; raises Fault where it fails, ChatError where in vain."""
        return self._once(self._body(messages, contract, generation))

    def _body(
        self,
        messages: Sequence[Message],
        contract: Contract,
        generation: Generation,
        held: frozenset[str] = frozenset(),
    ) -> dict[str, Any]:
        made = self.wire.body(self.model, messages, contract, generation, held)
        if self.settings.stream:
            made |= {"stream": True, "stream_options": {"include_usage": True}}
        return made

    def _short(self, body: Callable[[frozenset[str]], dict[str, Any]]) -> ChatReply:
        """One request with what the server holds by its name; where that fails, one with all."""
        with self._guard:
            held = frozenset(self._held)
        made = body(held)
        known = names(made)
        try:
            reply = self._once(made)
        except (Fault, RequestRefused):
            if not known & held:
                raise
            # The server was started anew, or its cache has let something go.
            with self._guard:
                self._held -= known
            reply = self._once(body(frozenset()))
        with self._guard:
            self._held |= known
        return reply

    def _once(self, body: dict[str, Any]) -> ChatReply:
        assumed = self.settings.finish == "assumed"
        most = MOST_BYTES + TOKEN_BYTES * int(body.get(self.settings.limit_field) or 0)
        with self.budget.request() as usage:
            sent_at = time.perf_counter()
            with self.transport.post("/chat/completions", body, most) as found:
                reply = collect(found, sent_at, assumed)
            usage |= reply.usage
        text, reasoning, name = (
            scrubbed(told, self.settings.key_env)
            for told in (reply.text, reply.reasoning, reply.model)
        )
        self.name.hold(name)
        return replace(reply, text=text, reasoning=reasoning, model=name)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors from the server's `embedding_model`, or lexical ones where none is named."""
        model = self.settings.embedding_model
        if not model:
            return super().embed(texts)
        return self.embedder.persist(lambda: self._vectors({"model": model, "input": list(texts)}))

    def _vectors(self, body: dict[str, Any]) -> NDArray[np.float32]:
        texts = len(body["input"])
        most = MOST_BYTES + VECTOR_BYTES * texts
        with (
            self.budget.request() as usage,
            self.embedder.post("/embeddings", body, most) as found,
        ):
            reply: Any = next(found, {})
            used = counts(reply.get("usage"))
            usage |= {"completion_tokens": 0, **used} if used else {}
        vectors = _vectors_of(reply.get("data"), texts)
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


@dataclass
class Name:
    """The model that replies name. The first one stays: another is another model's reply.

    Replicas share one. A reply that names none tells nothing.
    """

    told: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def hold(self, told: str) -> None:
        """Take note of a reply's name; raises Renamed where it is not that of all others."""
        with self._lock:
            self.told = self.told or told
            if told not in ("", self.told):
                raise Renamed(f"it answers as {told!r} now, and answered as {self.told!r} before")


class Renamed(Fault):
    """A reply of another model than the replies before it."""


def _vectors_of(rows: Any, texts: int) -> NDArray[np.float32]:
    """The vectors `[texts, d]` of an embedding reply, in the order of the texts; Fault if not."""
    try:
        by_place = {row.get("index", place): row["embedding"] for place, row in enumerate(rows)}
        with np.errstate(over="ignore"):  # what is too large is not finite
            vectors = np.array([by_place[place] for place in range(texts)], np.float32)
    except (TypeError, KeyError, ValueError, AttributeError, OverflowError):
        raise Fault(f"embeddings of another form: {shown(rows)}") from None
    if len(rows) != texts or vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise Fault(f"{len(rows)} vectors for {texts} texts, or some that are no vectors")
    return vectors


def _checked_url(url: str) -> str:
    """The address without what may follow the version; BenchError where it cannot be one."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BenchError(
            f"an endpoint's address looks like http://host:8000/v1, not {redacted(url)!r}"
        )
    if "@" in url or parts.query:
        raise BenchError(
            f"the address of {parts.hostname} holds a user name, key or query: name the key's "
            "environment variable with key_env instead"
        )
    return url.rstrip("/").removesuffix("/chat/completions")
