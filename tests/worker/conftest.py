"""Methods whose workers follow a script."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from scripted import SIZE, Doing, Program

from bench_lib import methods
from bench_lib.video.stream import SessionInfo
from bench_lib.worker import process, tree


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Makes a method whose worker follows a script: `(op, which of its requests, 0 each): Doing`.

    Requests are counted over all processes of the method's worker.
    """
    monkeypatch.setattr(tree, "end", lambda pid, mark: None)

    def make(
        script: dict[tuple[str, int], Doing] | None = None, begin: bool = True, **args: Any
    ) -> Any:
        times: dict[str, int] = {}
        started = lambda command, **how: Program(script or {}, times)  # noqa: E731
        # Of this module alone: videos are read by programs too.
        own = SimpleNamespace(**{**vars(subprocess), "Popen": started})
        monkeypatch.setattr(process, "subprocess", own)
        # A command of its own, so that no introduction is kept from another one.
        command = ["scripted", uuid4().hex]
        method = methods.load("worker", command=command, **args)
        if begin:
            method.reset("T", 42)
            method.begin_session(SessionInfo("S1", 0, None, SIZE))
        return method

    return make
