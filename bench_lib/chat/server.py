"""What a server says about itself beside its replies: version, engine settings, room in its cache.

vLLM tells them at `/version` and `/metrics`; other servers tell less, hosted ones nothing.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench_lib.chat.endpoint import Endpoint
from bench_lib.messages.chat import Chat

INFO = re.compile(r"^vllm:cache_config_info\{(.*)\}", re.MULTILINE)
LABEL = re.compile(r'\b(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Served:
    """One address. `engine` holds its settings; `cache_tokens` what all its replicas can hold.

    `model` is what its replies name.
    """

    url: str
    version: str = ""
    engine: Mapping[str, str] = field(default_factory=dict)
    cache_tokens: int = 0
    model: str = ""

    def record(self) -> dict[str, Any]:
        """For the manifest."""
        record = {"url": self.url, "version": self.version, "engine": dict(self.engine)}
        return record | {"model": self.model}


def served(endpoint: Endpoint) -> Served:
    """Ask a server about itself; what it does not tell stays empty."""
    root, version = endpoint.url.removesuffix("/v1"), ""
    # What is not of vLLM's form is not told.
    with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
        version = str(json.loads(endpoint.transport.told(f"{root}/version"))["version"])
    metrics = endpoint.transport.told(f"{root}/metrics")
    engines = [dict(LABEL.findall(line)) for line in INFO.findall(metrics)]
    tokens = sum(
        int(one["num_gpu_blocks"]) * int(one["block_size"])
        for one in engines
        if one.get("num_gpu_blocks", "").isdecimal() and one.get("block_size", "").isdecimal()
    )
    shared = {k: v for k, v in (engines[0] if engines else {}).items() if k != "engine"}
    return Served(endpoint.url, version, shared, tokens, endpoint.answers_as)


def settle(endpoint: Endpoint, found: Served, tokens: int) -> int:
    """Let as many requests of that many tokens go out at once as its cache holds; how many.

    Only where the user leaves it to the server, and the server tells. More would wait there, or
    push out prefixes that the next request could have used.
    """
    if not endpoint.settings.concurrency and found.cache_tokens and tokens:
        endpoint.transport.allow(found.cache_tokens // tokens)
    return endpoint.transport.places


def servers(chat: Chat) -> list[Served]:
    """Every server behind a chat, a cache around it passed over; none behind other models."""
    return [served(endpoint) for endpoint in _behind(chat)]


def expect(chat: Chat, records: Iterable[Mapping[str, Any]]) -> None:
    """Hold the servers to the model that they named when a run began; `records` are of then."""
    told = [str(record.get("model") or "") for record in records]
    for endpoint in _behind(chat):
        endpoint.name.told = endpoint.name.told or next(filter(None, told), "")


def _behind(chat: Chat) -> list[Endpoint]:
    inner = getattr(chat, "chat", chat)
    behind = getattr(inner, "endpoints", [inner])
    return [endpoint for endpoint in behind if isinstance(endpoint, Endpoint)]
