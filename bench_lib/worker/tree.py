"""Ending a process with all that it started, wherever that has gone.

A process of a worker may open a session of its own, and lose its parent: then neither the group nor
the family leads to it. What it still has is the environment that it was started with, so a mark in
it is looked for.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

import psutil

MARK = "BENCH_WORKER"
"""Variable whose value names a worker's process in the environment of all that it starts."""
KILL_S = 5.0
"""Longest time for a killed tree to be gone; processes that the kernel holds are left to it."""


def end(pid: int, mark: str) -> None:
    """Kill the processes of a worker's group, family and mark, until none but itself is left.

    Args:
        pid: Of the worker, which leads its group; its exit code is left to whoever started it.
        mark: Value of `MARK` in its environment.
    """
    until_s = time.monotonic() + KILL_S
    found = _family(pid) | _marked(mark)  # before its death cuts the way to them
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    while found and time.monotonic() < until_s:
        for one in found:
            with contextlib.suppress(psutil.Error):
                one.kill()
        psutil.wait_procs([one for one in found if one.pid != pid], 0.2)
        found = {one for one in _marked(mark) if one.pid != pid}  # born meanwhile


def _family(pid: int) -> set[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        return set(psutil.Process(pid).children(recursive=True))
    return set()


def _marked(mark: str) -> set[psutil.Process]:
    found = set()
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if one.environ().get(MARK) == mark:
                found.add(one)
    return found
