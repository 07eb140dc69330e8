"""The model that serves a method, from the `backbone` parameter."""

from __future__ import annotations

from typing import Any

from bench_lib.methods.base import Method
from bench_lib.params import EvalParams


def serve(method: Method, params: EvalParams) -> Any:
    """A local backbone, a message model behind the reply cache, or None where none is needed."""
    if method.model == "none":
        return None
    from bench_lib import backbones

    local = {"device": params.device, "dtype": params.dtype, "attention": params.attention}
    if method.model == "backbone":
        return backbones.load(params.backbone, seed=params.seed, **local)
    from bench_lib import chat

    return chat.open(params.backbone, **local)
