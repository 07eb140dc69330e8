"""How often a model gives the same reply twice: a measured figure in place of a promise.

Served models differ from run to run at temperature 0 and a fixed seed, because sums are ordered by
what else is in the batch. So requests are repeated alone and among others.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from bench_lib.chat.cache import CachedChat
from bench_lib.exchange import Generation
from bench_lib.messages.chat import Chat, Contract, Message
from bench_lib.score.repeats import Agreement, agreement

Request = tuple[Sequence[Message], Contract, Generation]


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
