"""Models that take messages: one contract, several backends, chosen by a short text.

`endpoint:MODEL@URL` an OpenAI-compatible server; `vllm:MODEL` vLLM in this process;
`recorded:FOLDER` kept replies; `ideal` the dollhouse's ideal observer; else a local backbone.
"""

from __future__ import annotations

import re
from typing import Any

from bench_lib.chat.base import Chat
from bench_lib.errors import BenchError

FORMS = ("endpoint:MODEL@URL", "vllm:MODEL", "recorded:FOLDER", "ideal", "a backbone's name")


def open(spec: str, **settings: Any) -> Chat:
    """The model that `spec` names; `settings` are those of its backend.

    Raises:
        BenchError: the text is of no known form, or a setting is unknown.
    """
    kind, _, rest = spec.partition(":")
    if kind == "endpoint":
        from bench_lib.chat.endpoint import Endpoint
        from bench_lib.chat.settings import settings as endpoint_settings

        found = re.fullmatch(r"(.+?)@(https?://.*)", rest)
        if not found:
            raise BenchError(f"{spec!r}: an endpoint is named endpoint:MODEL@http://host:8000/v1")
        return Endpoint(found[1], found[2], endpoint_settings(**settings))
    if kind == "vllm" and rest:
        from bench_lib.chat.vllm_offline import VllmChat

        return VllmChat(rest, **settings)
    if kind == "recorded" and rest:
        from bench_lib.chat.recorded import RecordedChat

        return RecordedChat(rest, **settings)
    if spec == "ideal":
        from bench_lib.dollhouse.observer import IdealChat

        return IdealChat(**settings)
    if not spec or kind in ("endpoint", "vllm", "recorded", "ideal"):
        raise BenchError(f"{spec!r} names no model; forms: {', '.join(FORMS)}")
    from bench_lib import backbones
    from bench_lib.chat.local import LocalChat

    return LocalChat(backbones.load(spec), **settings)
