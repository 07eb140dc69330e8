"""What a server says about itself beside its replies: version, engine settings, room in its cache.

vLLM tells them at `/version` and `/metrics`; other servers tell less, hosted ones nothing.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench_lib.chat.base import Chat
from bench_lib.chat.endpoint import Endpoint

INFO = re.compile(r"^vllm:cache_config_info\{(.*)\}", re.MULTILINE)
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Served:
    """One address. `engine` holds its settings; `cache_tokens` what all its replicas can hold."""

    url: str
    version: str = ""
    engine: Mapping[str, str] = field(default_factory=dict)
    cache_tokens: int = 0

    def record(self) -> dict[str, Any]:
        """For the manifest."""
        return {"url": self.url, "version": self.version, "engine": dict(self.engine)}


def served(endpoint: Endpoint) -> Served:
    """Ask a server about itself; what it does not tell stays empty."""
    root, version = endpoint.url.removesuffix("/v1"), ""
    with contextlib.suppress(ValueError, KeyError, TypeError):  # not vLLM's form: not told
        version = str(json.loads(endpoint.transport.told(f"{root}/version"))["version"])
    metrics = endpoint.transport.told(f"{root}/metrics")
    engines = [dict(LABEL.findall(line)) for line in INFO.findall(metrics)]
    tokens = sum(
        int(one["num_gpu_blocks"]) * int(one["block_size"])
        for one in engines
        if one.get("num_gpu_blocks", "").isdecimal() and one.get("block_size", "").isdecimal()
    )
    shared = {k: v for k, v in (engines[0] if engines else {}).items() if k != "engine"}
    return Served(endpoint.url, version, shared, tokens)


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
    inner = getattr(chat, "chat", chat)
    behind = getattr(inner, "endpoints", [inner])
    return [served(endpoint) for endpoint in behind if isinstance(endpoint, Endpoint)]
