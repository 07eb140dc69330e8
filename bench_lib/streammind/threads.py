"""The agent's event loop, in a thread of its own, and blocking calls off that loop.

One loop serves all streams of a process. It and the threads of model calls are daemons: an
abandoned call must not keep the process alive. Cancelling the task that waits for a call abandons
the call at once and tells it so through `messages.abort`, where the backend looks.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio.from_thread import BlockingPortal
from anyio.lowlevel import current_token

from bench_lib.measure import count, counting
from bench_lib.messages import abort

T = TypeVar("T")
_lock = threading.Lock()
_portal: BlockingPortal | None = None


def portal() -> BlockingPortal:
    """The way into the loop; its thread is started by the first call."""
    global _portal
    with _lock:
        if _portal is None:
            ready: list[BlockingPortal] = []
            begun = threading.Event()

            async def serve() -> None:
                async with BlockingPortal() as own:
                    ready.append(own)
                    begun.set()
                    await own.sleep_until_stopped()

            body = partial(anyio.run, serve)
            threading.Thread(target=body, name="streammind", daemon=True).start()
            begun.wait()
            _portal = ready[0]
        return _portal


async def off_loop(work: Callable[[], T]) -> T:
    """Do blocking work in a thread of its own; what it counts is counted here."""
    token, done = current_token(), anyio.Event()
    result: list[Any] = [None, None]
    stop = threading.Event()
    counts: dict[str, int] = {}

    def body() -> None:
        abort.watch(stop)
        try:
            with counting(alone=True) as own:
                result[0] = work()
        except BaseException as error:  # whatever it is belongs to the one who waits
            result[1] = error
        counts.update(own)
        # A loop that has ended meanwhile waits for nothing.
        anyio.from_thread.run_sync(done.set, token=token)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(body,), daemon=True).start()
    try:
        await done.wait()
    except BaseException:
        stop.set()
        raise
    for name, n in counts.items():
        count(name, n)
    if result[1] is not None:
        raise result[1]
    return result[0]  # type: ignore[no-any-return]


async def together(works: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Results of works done at once, in their order; the first failure ends the others."""
    results: list[Any] = [None] * len(works)
    failed: list[tuple[int, Exception]] = []

    async def run(at: int, work: Callable[[], Awaitable[T]]) -> None:
        try:
            results[at] = await work()
        except Exception as error:  # raised below, outside the group that would wrap it
            failed.append((at, error))
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for at, work in enumerate(works):
            group.start_soon(run, at, work)
    if failed:
        raise min(failed, key=lambda item: item[0])[1]
    return results
