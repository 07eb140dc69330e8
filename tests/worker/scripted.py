"""A worker in a thread, behind real pipes: honest as the reference one but for what it is told."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from bench_lib.exchange import Generation, Query
from bench_lib.schema import Caption
from bench_lib.video.stream import ArrayFrame, Clip
from bench_lib.worker import reference

SIZE = (16, 24)
Doing = Callable[["Program", dict[str, Any], dict[str, Any]], Any]
"""Gets the program, the request and the honest reply; what it gives is written in its place."""


class Program:
    """What `subprocess.Popen` gives. `script` is by op: what is done at which of its requests."""

    def __init__(self, script: dict[tuple[str, int], Doing], times: dict[str, int]) -> None:
        self.script, self.times = script, times
        self.pid, self.returncode = 0, None
        ours, theirs = os.pipe(), os.pipe()
        self._input, self.stdin = os.fdopen(ours[0], "rb"), os.fdopen(ours[1], "wb", 0)
        self.stdout, self.output = os.fdopen(theirs[0], "rb", 0), os.fdopen(theirs[1], "wb", 0)
        errors = os.pipe()
        self.stderr, self._errors = os.fdopen(errors[0], "rb", 0), os.fdopen(errors[1], "wb", 0)
        self._over = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        worker = reference.Worker()
        for line in self._input:
            request = json.loads(line)
            op = request["op"]
            reply = {**(getattr(worker, op)(request) or {}), "id": request["id"]}
            self.times[op] = number = self.times.get(op, 0) + 1
            doing = self.script.get((op, number), self.script.get((op, 0)))
            with contextlib.suppress(OSError, ValueError):  # the other side has gone
                said = doing(self, request, reply) if doing else reply
                if isinstance(said, dict):
                    said = json.dumps(said).encode() + b"\n"
                self.output.write(said or b"")

    def exit(self, code: int) -> None:
        """The program ends; its pipes are shut only where nobody else holds them."""
        self.returncode = code
        self._over.set()

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float) -> int | None:
        """Nothing ends a thread but what it does itself."""
        self._over.wait(min(timeout, 0.05))
        return self.returncode


def clip(start: int, frames: int = 2, said: str = "", sound: bool = False) -> Clip:
    """A clip of one frame a second."""
    shown = tuple(
        ArrayFrame(float(t), np.full((*SIZE, 3), t, np.uint8)) for t in range(start, start + frames)
    )
    end_s = float(start + frames - 1)
    captions = (Caption(start_s=end_s - 0.5, end_s=end_s, text=said),) if said else ()
    audio = np.zeros(1600, np.float32) if sound else None
    return Clip(0, shown, captions, audio, end_s)


def ask(method: Any, text: str = "What now?", t_s: float = 9.0) -> str:
    """A question on a branch."""
    asked = method.branch() if method.forks else method
    return asked.respond(Query(text, 0, t_s), Generation()).text
