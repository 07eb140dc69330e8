"""Several servers of one model as one: each stream stays with the server that has seen it.

A request goes where the last one with the same beginning went, so that the server's prefix cache
and encoded frames are of use; a new beginning goes to the server with the fewest. Where a server
cannot be reached any more, what it had moves to the others; after a minute it may have more again.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_lib.chat.endpoint import Endpoint
from bench_lib.errors import BenchError
from bench_lib.exchange import Generation
from bench_lib.messages import media
from bench_lib.messages.chat import Chat, ChatReply, Contract, Frames, Message, Text, TransportError
from bench_lib.messages.settings import EndpointSettings

AWAY_S = 60.0
"""How long a server that could not be reached is passed over."""


class Replicas(Chat):
    """Endpoints of one model: of one name, and with one limit on calls and cost for all together.

    Raises:
        BenchError: fewer than two addresses, or one given twice.
    """

    def __init__(self, model: str, urls: Sequence[str], settings: EndpointSettings) -> None:
        if len(set(urls)) < len(urls) or len(urls) < 2:
            raise BenchError(f"replicas need two or more addresses, each once: {', '.join(urls)}")
        self.endpoints = [Endpoint(model, url, settings) for url in urls]
        for endpoint in self.endpoints[1:]:
            endpoint.budget, endpoint.name = self.endpoints[0].budget, self.endpoints[0].name
        places = ",".join(endpoint.id.removeprefix(f"{model}@") for endpoint in self.endpoints)
        self.id = f"{model}@{settings.revision or places}"
        self._home: dict[str, Endpoint] = {}
        self._away_until: dict[Endpoint, float] = {}
        self._lock = threading.Lock()

    @property
    def identity(self) -> Mapping[str, Any]:
        """See `Chat.identity`; the same for any number of servers where a revision is named."""
        return {**self.endpoints[0].identity, "id": self.id}

    @property
    def answers_as(self) -> str:
        """See `Chat.answers_as`; the same for all."""
        return self.endpoints[0].answers_as

    def complete(
        self, messages: Sequence[Message], contract: Contract, generation: Generation
    ) -> ChatReply:
        """See `Chat.complete`; raises TransportError where no server can be reached."""
        key, tried = beginning(messages), set[Endpoint]()
        while True:
            endpoint = self._server(key, tried)
            try:
                reply = endpoint.complete(messages, contract, generation)
            except TransportError:
                tried.add(endpoint)
                with self._lock:
                    self._away_until[endpoint] = time.monotonic() + AWAY_S
                if len(tried) == len(self.endpoints):
                    raise
            else:
                with self._lock:
                    self._away_until.pop(endpoint, None)
                return reply

    def _server(self, key: str, tried: set[Endpoint]) -> Endpoint:
        """The home of a beginning, moved where its server has been tried in vain or is away."""
        with self._lock:
            now = time.monotonic()
            away = {e for e, until in self._away_until.items() if until > now}
            home = self._home.get(key)
            if home is not None and home not in tried | away:
                return home
            count = Counter(self._home.values())
            left = [e for e in self.endpoints if e not in tried]
            # One that is away is asked only when nobody else is left.
            home = min(left, key=lambda e: (e in away, count[e]))
            self._home[key] = home
            return home

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `Chat.embed`; the first server's."""
        return self.endpoints[0].embed(texts)


def beginning(messages: Sequence[Message]) -> str:
    """What tells one stream from another: the first frame that is shown, else the first words."""
    parts = [part for message in messages for part in message.parts]
    for part in parts:
        if isinstance(part, Frames) and part.frames:
            return media.digest(part.frames[0])
    texts = [part.text for part in parts if isinstance(part, Text)]
    return media.short_digest(texts)
