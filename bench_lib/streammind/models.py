"""Asking a worker's model: its endpoint, its settings, its place in the queue, its trace.

Each endpoint has `calls_at_once` places; the front has places of its own, so that a burst of the
memory writer cannot delay it. A call ends after `call_timeout_s`. What was asked and answered is
kept on the path of the work it belongs to, in an order that does not depend on threads.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import anyio

from bench_lib.chat.cache import CachedChat
from bench_lib.exchange import Generation
from bench_lib.measure import count
from bench_lib.messages.chat import (
    Chat,
    ChatError,
    ChatReply,
    Contract,
    ContractBroken,
    Frames,
    Message,
    RequestRefused,
    RequestUnfit,
    Text,
    TransportError,
)
from bench_lib.messages.turn import ask
from bench_lib.streammind.clock import Latency
from bench_lib.streammind.settings import DECODING, Settings
from bench_lib.streammind.threads import off_loop
from bench_lib.video.picture import Picture

UNFIT = 5
"""Requests of a worker that a server may decline before it has served one of them: more are no
matter of a request, but of the model or its settings."""


@dataclass(frozen=True)
class Call:
    """One question to a model: what the worker saw and what it said.

    `t_s` is stream time; `took_s` and the reply's instants are of the wall, `lasts_s` the video
    seconds that the latency model gives it. `error` is empty where the contract was kept.
    """

    worker: str
    contract: str
    model: str
    t_s: float
    place: str
    shown: tuple[str, ...]
    text: str
    reply: str = ""
    rejected: tuple[str, ...] = ()
    error: str = ""
    took_s: float = 0.0
    first_token_s: float = 0.0
    lasts_s: float = 0.0


def ask_place(t_s: float, text: str) -> str:
    """Names the path of a question; `called_for` gives it back from a call's place."""
    return f"ask@{t_s:g}:{text}"


def turn_place(t_s: float, key: str) -> str:
    """Names the path of an instruction by its key, or by its text where it has none."""
    return f"turn@{t_s:g}:{key}"


def called_for(place: str) -> str:
    """The name of the path on which a call was made, or of the one from which that path parted."""
    return _STEPS.sub("", place)


_STEPS = re.compile(r"(?:/\d+(?:\.\d+)?)+$")


@dataclass
class Path:
    """Calls that follow each other, and how long they take together.

    Work in parallel goes on branches, which `join` brings back in their order.
    """

    name: str
    calls: list[Call] = field(default_factory=list)
    took_s: float = 0.0
    lasts_s: float = 0.0
    first_token_s: float = 0.0

    def add(self, call: Call) -> None:
        """One more call after the others."""
        self.first_token_s = self.took_s + call.first_token_s
        self.calls.append(call)
        self.took_s += call.took_s
        self.lasts_s += call.lasts_s

    def branches(self, n: int) -> list[Path]:
        """Paths of work in parallel from here on."""
        return [Path(f"{self.name}/{len(self.calls)}.{i}") for i in range(n)]

    def join(self, branches: Sequence[Path]) -> None:
        """The parallel work is over: it took as long as its longest part."""
        for branch in branches:
            self.calls += branch.calls
        self.took_s += max((b.took_s for b in branches), default=0.0)
        self.lasts_s += max((b.lasts_s for b in branches), default=0.0)


class Models:
    """The message models of all workers.

    Args:
        settings: Says which worker is asked how.
        shared: The model that serves all workers without one of their own.
        seed: Seed of every request and of the latency model.
    """

    def __init__(self, settings: Settings, shared: Chat, seed: int) -> None:
        self.settings, self.seed = settings, seed
        self.chats = {worker: self._chat(worker, shared) for worker in DECODING}
        self.latency = Latency(settings.latency_s, seed)
        self._places: dict[tuple[str, bool], anyio.CapacityLimiter] = {}
        self._declined: Counter[str] = Counter()
        self._served: set[str] = set()

    def _chat(self, worker: str, shared: Chat) -> Chat:
        how = self.settings.of(worker)
        own = shared.another(how.model) if how.model else shared
        return thinking(own, how.thinking)

    @property
    def identity(self) -> Mapping[str, Any]:
        """The models by worker, for manifests."""
        return {worker: chat.id for worker, chat in self.chats.items()}

    async def ask(
        self,
        worker: str,
        messages: Sequence[Message],
        contract: Contract,
        path: Path,
        t_s: float,
    ) -> ChatReply:
        """Ask a worker's model; raises ChatError. The call is on the path either way."""
        how, chat = self.settings.of(worker), self.chats[worker]
        generation = Generation(how.max_tokens, how.temperature, how.top_p, seed=self.seed)
        place = f"{path.name}/{len(path.calls)}"
        call = Call(
            worker,
            contract.name,
            chat.id,
            t_s,
            place,
            *_what(messages),
            lasts_s=self.latency.of(worker, place),
        )
        begun = time.perf_counter()
        reply: ChatReply | None = None
        try:
            async with self._place(chat, worker):
                with anyio.fail_after(self.settings.call_timeout_s):
                    reply = await off_loop(lambda: ask(chat, messages, contract, generation))
            self._served.add(worker)
            return reply
        except TimeoutError:
            limit = self.settings.call_timeout_s
            call = replace(call, error=f"no reply within {limit:g} s")
            raise TransportError(f"{worker}: {call.error}") from None
        except ChatError as error:
            call = replace(
                call, error=f"{type(error).__name__}: {error}", rejected=tuple(error.rejected)
            )
            self._look_at(worker, error)
            raise
        finally:
            if reply is not None:
                call = replace(
                    call,
                    reply=reply.text,
                    rejected=reply.rejected,
                    took_s=reply.done_at - reply.ready_at,
                    first_token_s=reply.first_token_at - reply.ready_at,
                )
            else:
                call = replace(call, took_s=time.perf_counter() - begun)
            count(f"{worker}_calls")
            path.add(call)

    def _look_at(self, worker: str, error: ChatError) -> None:
        """Raise RequestRefused where a worker was declined only and ever."""
        if isinstance(error, ContractBroken):
            self._served.add(worker)
        self._declined[worker] += isinstance(error, RequestUnfit)
        if worker not in self._served and self._declined[worker] >= UNFIT:
            raise RequestRefused(
                f"the first {UNFIT} requests of the {worker} were all declined, the last: {error}"
            ) from None

    def _place(self, chat: Chat, worker: str) -> anyio.CapacityLimiter:
        key = chat.id, worker == "front"
        if key not in self._places:
            self._places[key] = anyio.CapacityLimiter(self.settings.calls_at_once or math.inf)
        return self._places[key]


def thinking(chat: Chat, on: bool) -> Chat:
    """The same model with its thinking on or off, where an endpoint's settings switch it."""
    from bench_lib.chat.endpoint import Endpoint

    if isinstance(chat, CachedChat):
        inner = thinking(chat.chat, on)
        return chat if inner is chat.chat else CachedChat(inner, chat.folder)
    if not isinstance(chat, Endpoint) or not chat.settings.thinking:
        return chat
    wanted: Literal["on", "off"] = "on" if on else "off"
    if chat.settings.thinking == wanted:
        return chat
    other = Endpoint(chat.model, chat.url, replace(chat.settings, thinking=wanted))
    # One model with one limit on calls and cost.
    other.budget, other.name = chat.budget, chat.name
    return other


def _what(messages: Sequence[Message]) -> tuple[tuple[str, ...], str]:
    """The ids of the frames shown, and all text."""
    parts = [part for message in messages for part in message.parts]
    frames = [f for p in parts if isinstance(p, Frames) for f in p.frames]
    ids = tuple(f.id if isinstance(f, Picture) else f"crop@{f.t_s:g}" for f in frames)
    return ids, "\n".join(p.text for p in parts if isinstance(p, Text))
