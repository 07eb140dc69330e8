"""Listening to a stream: off the loop, measured, and a call that fails costs its window alone.

Recognition takes the video seconds that the latency model gives `listen` in lockstep, in real time
as long as it takes; the text is readable from then on (Eq. 16).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from bench_lib.errors import BenchError
from bench_lib.measure import count
from bench_lib.speech.windows import Window
from bench_lib.streammind.clock import Realtime
from bench_lib.streammind.models import UNFIT, Call, Path
from bench_lib.streammind.threads import off_loop

if TYPE_CHECKING:
    from bench_lib.streammind.stream import Stream

WORKER = "listen"


async def hear(stream: Stream, windows: Sequence[Window]) -> None:
    """Hear what was said; in real time the stream goes on meanwhile, one window after the other."""
    if isinstance(stream.clock, Realtime):
        stream.listening += len(windows)
        stream.calls.start_soon(_hear_live, stream, windows)
        return
    for window in windows:
        await _listen(stream, window)


async def _hear_live(stream: Stream, windows: Sequence[Window]) -> None:
    for window in windows:
        try:
            await _listen(stream, window)
        except Exception as error:  # raised by the next call from outside
            stream.failure = stream.failure or error
        finally:
            stream.listening -= 1


async def _listen(stream: Stream, window: Window) -> None:
    """Hear one window, and keep what it took.

    Raises:
        BenchError: not one of the first windows could be heard.
        ChatError: the recogniser refuses for good.
    """
    recognise = stream.ear.listen
    assert recognise is not None
    path = Path(f"{WORKER}@{window.end_s:g}")
    lasts_s = stream.models.latency.of(WORKER, path.name)
    begun = time.perf_counter()
    text, error = "", ""
    try:
        text = await off_loop(partial(recognise, window.samples))
        stream.heard_once = True
    except Exception as failure:  # of whatever library listens
        if getattr(failure, "final", False):
            raise
        error = f"{type(failure).__name__}: {failure}"
        count("windows_failed")
        stream.unheard += 1
        if not stream.heard_once and stream.unheard >= UNFIT:
            raise BenchError(
                f"speech recognition failed on each of its first {UNFIT} windows: {error}"
            ) from failure
    took_s = time.perf_counter() - begun
    path.add(
        Call(WORKER, "", "", window.end_s, f"{path.name}/0", (), "", text, (), error, took_s,
             took_s, lasts_s)
    )  # fmt: skip
    at_s = stream.clock.arrived(window.end_s, lasts_s)
    stream.called(path, at_s)
    if error:
        stream.write("unheard", window.start_s, window.end_s, {"error": error}, at_s)
    else:
        stream.ear.take(window, text, at_s)
