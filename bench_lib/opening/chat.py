"""Models that take messages, by name: one contract, several backends.

`endpoint:MODEL@URL` an OpenAI-compatible server, `endpoint:MODEL@URL,URL` several of one model;
`vllm:MODEL` vLLM in this process; `recorded:FOLDER` kept replies; `ideal` the dollhouse's ideal
observer; else a local backbone.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

from bench_lib.errors import BenchError, nearest
from bench_lib.messages.chat import Chat

T = TypeVar("T")

FORMS = ("endpoint:MODEL@URL", "vllm:MODEL", "recorded:FOLDER", "ideal", "a backbone's name")


def open(spec: str, **settings: Any) -> Chat:
    """The model that `spec` names; `settings` are those of its backend.

    It can open others by name in its turn (`Chat.another`).

    Raises:
        BenchError: the text is of no known form, or a setting is unknown.
    """
    chat = _open(spec, **settings)
    chat.another = open  # type: ignore[method-assign]
    return chat


def program(spec: str) -> bool:
    """Whether a name is that of the ideal observer, a program, here or behind an endpoint."""
    return spec == "ideal" or spec.startswith("endpoint:ideal@")


def _open(spec: str, **settings: Any) -> Chat:
    kind, _, rest = spec.partition(":")
    if kind == "endpoint":
        from bench_lib.chat.endpoint import Endpoint
        from bench_lib.messages.settings import EndpointSettings

        found = re.fullmatch(r"(.+?)@(https?://.*)", rest)
        if not found:
            raise BenchError(f"{spec!r}: an endpoint is named endpoint:MODEL@http://host:8000/v1")
        urls, given = found[2].split(","), _built(EndpointSettings, **settings)
        if len(urls) == 1:
            return Endpoint(found[1], urls[0], given)
        from bench_lib.chat.replicas import Replicas

        return Replicas(found[1], [url.strip() for url in urls], given)
    if kind == "vllm" and rest:
        from bench_lib.chat.vllm_offline import VllmChat

        return _built(VllmChat, rest, **settings)
    if kind == "recorded" and rest:
        from bench_lib.chat.recorded import RecordedChat

        return _built(RecordedChat, rest, **settings)
    if spec == "ideal":
        from bench_lib.dollhouse.ideal.observer import IdealChat

        return _built(IdealChat, **settings)
    if not spec or kind in ("endpoint", "vllm", "recorded", "ideal"):
        raise BenchError(f"{spec!r} names no model; forms: {', '.join(FORMS)}")
    from bench_lib.chat.local import LocalChat
    from bench_lib.opening import backbones

    return LocalChat(_built(backbones.load, spec, **settings))


def _built(maker: Callable[..., T], *args: Any, **settings: Any) -> T:
    """Call it; BenchError names the nearest setting for one that it does not have."""
    known = list(inspect.signature(maker).parameters)[len(args) :]
    for name in settings:
        if name not in known:
            raise BenchError(f"no setting {name!r}; {nearest(name, known)}")
    return maker(*args, **settings)
