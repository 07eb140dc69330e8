"""The model that serves a method, from the `backbone` parameter."""

from __future__ import annotations

from typing import Any

from bench_lib import paths
from bench_lib.dollhouse.world import lore  # noqa: F401 - its collection is known by name then
from bench_lib.errors import BenchError
from bench_lib.memories.method import Method
from bench_lib.opening import startup
from bench_lib.params.evaluate import EvalParams

POOL = 16
"""Open calls per trajectory thread of a message model."""


def serve(method: Method, params: EvalParams) -> Any:
    """A local backbone, a message model behind the reply cache, or None where none is needed."""
    if method.model == "none":
        return None
    spec = params.backbone
    remote = spec == "ideal" or spec.partition(":")[0] in ("endpoint", "vllm", "recorded")
    if method.model == "chat" and remote:
        from bench_lib.chat.cache import CachedChat
        from bench_lib.opening import chat

        return CachedChat(chat.open(spec, **params.backbone_args), paths.cache() / "replies")
    if remote or params.backbone_args:
        what = "backbone_args" if params.backbone_args else f"the message model {spec!r}"
        raise BenchError(f"{method.name} works inside a local model and cannot use {what}")
    problem = startup.mismatch()
    if problem and params.device != "cpu":
        print(problem)
    from bench_lib.opening import backbones

    backbone = backbones.load(
        spec, params.device, params.dtype, params.attention, params.max_pixels or None, params.seed
    )
    if method.model == "backbone":
        return backbone
    from bench_lib.chat.local import LocalChat

    return LocalChat(backbone)


def runs_here(method: Method) -> bool:
    """Whether a model on this machine's device serves the method, by itself or behind messages."""
    return method.model == "backbone" or hasattr(method.served, "backbone")


def replies_at_once(method: Method) -> int:
    """Open calls per trajectory; one on a local device, or each time would hold others' waits."""
    return POOL if method.model == "chat" and not runs_here(method) else 1
