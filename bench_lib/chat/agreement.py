"""How often a model gives the same reply twice: a measured figure in place of a promise.

Served models differ from run to run at temperature 0 and a fixed seed, because sums are ordered by
what else is in the batch. So requests are repeated alone and among others.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bench_lib.chat.base import Chat, Contract, Message
from bench_lib.chat.cache import CachedChat
from bench_lib.methods.base import Generation

Request = tuple[Sequence[Message], Contract, Generation]


@dataclass(frozen=True)
class Agreement:
    """Of `n` requests, `equal` had the same reply twice; the first replies had `distinct` values.

    With few distinct values agreement means little: a model that always says A agrees with itself.
    """

    n: int
    equal: int
    distinct: int

    @property
    def share(self) -> float:
        """The share of equal pairs; NaN where nothing was asked."""
        return self.equal / self.n if self.n else float("nan")


def agreement(first: Sequence[str], second: Sequence[str]) -> Agreement:
    """Compare two lists of replies to the same requests, in the same order."""
    pairs = list(zip(first, second, strict=True))
    return Agreement(len(pairs), sum(a == b for a, b in pairs), len(set(first)))


def repeated(chat: Chat, requests: Sequence[Request], at_once: int = 8) -> Agreement:
    """Ask each request twice, past any cache: one by one, then in reverse with others beside it.

    Raises:
        ChatError: a request failed.
    """
    if isinstance(chat, CachedChat):
        chat = chat.chat
    alone = [chat.complete(*request).text for request in requests]
    with ThreadPoolExecutor(at_once) as pool:
        among = list(pool.map(lambda request: chat.complete(*request).text, requests[::-1]))
    return agreement(alone, among[::-1])
