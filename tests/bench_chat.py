"""What the chat layer itself costs: `python tests/bench_chat.py`. Prints a table, asserts nothing.

Times are CPU seconds of this process where the work is its own, and wall seconds against a server
on this machine that answers at once.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "chat"))

from scripted_server import FREE, GREEDY, Server, connect, user

from bench_lib import methods
from bench_lib.chat.cache import CachedChat
from bench_lib.chat.recorded import ScriptedChat
from bench_lib.exchange import Query
from bench_lib.messages.chat import Chat, ChatReply
from bench_lib.messages.lexical import embed
from bench_lib.video.stream import ArrayFrame, Clip, SessionInfo

FRAMES = 1024
SIZE = (280, 350)


def cpu_s(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def wall_s(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


class Instant(Chat):
    """Answers at once."""

    id = "instant"

    def complete(self, messages, contract, generation):
        return ChatReply("ok")


def noisy(n: int) -> tuple[ArrayFrame, ...]:
    """Frames of about the JPEG size of real video: smooth fields with a little noise."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[: SIZE[0], : SIZE[1]]
    frames = []
    for i in range(n):
        field = 120 + 60 * np.sin(x / 30 + i / 9) + 50 * np.cos(y / 40 - i / 7)
        picture = field[..., None] + rng.integers(-6, 7, (*SIZE, 3))
        frames.append(ArrayFrame(float(i), picture.clip(0, 255).astype(np.uint8)))
    return tuple(frames)


def main() -> None:
    rows: list[tuple[str, str]] = []
    frames = noisy(FRAMES)
    request = user("What now?", *frames)
    with tempfile.TemporaryDirectory() as folder, Server(lambda e: e.reply("ok")) as server:
        endpoint = connect(server, concurrency=8)

        def body():
            return endpoint.wire.body("toy", request, FREE, GREEDY)

        rows.append((f"body of {FRAMES} frames, first time, CPU s", f"{cpu_s(body):.2f}"))
        rows.append(("the same again, frames encoded already, CPU s", f"{cpu_s(body):.3f}"))
        mib = len(json.dumps(body())) / 2**20
        rows.append(("its size as data URLs, MiB", f"{mib:.1f}"))
        files = connect(server, media="file", media_folder=f"{folder}/media")
        size = len(json.dumps(files.wire.body("toy", request, FREE, GREEDY))) / 2**20
        rows.append(("its size as file references, MiB", f"{size:.2f}"))

        cached = CachedChat(Instant(), f"{folder}/replies")
        cold = cpu_s(lambda: cached.complete(user("What now?", *noisy(FRAMES)), FREE, GREEDY))
        rows.append((f"cache key of {FRAMES} new frames (and making them), CPU s", f"{cold:.2f}"))
        cached.complete(request, FREE, GREEDY)
        warm = cpu_s(lambda: [cached.complete(request, FREE, GREEDY) for _ in range(20)]) / 20
        rows.append(("kept reply to known frames, CPU ms", f"{warm * 1e3:.1f}"))
        texts = [user(f"q{i}") for i in range(500)]
        miss = cpu_s(lambda: [cached.complete(t, FREE, GREEDY) for t in texts]) / 500
        hit = cpu_s(lambda: [cached.complete(t, FREE, GREEDY) for t in texts]) / 500
        rows.append(("text request: written, CPU us", f"{miss * 1e6:.0f}"))
        rows.append(("text request: read, CPU us", f"{hit * 1e6:.0f}"))

        for workers in (1, 8):
            with ThreadPoolExecutor(workers) as pool:
                calls = [user(f"{workers} {i}") for i in range(400)]
                took = wall_s(lambda c=calls, p=pool: list(p.map(_asks(endpoint), c)))
            rows.append((f"streamed text calls a second, {workers} threads", f"{400 / took:.0f}"))

        method = methods.load("raw_video").attach(ScriptedChat(["ok"] * 10))
        method.reset("t", 42)
        for index in range(3):
            method.begin_session(SessionInfo(f"S{index}", index, 0.0, SIZE))
            for start in range(0, 3600, 8):
                at = (start + k for k in range(8))
                method.observe(
                    Clip(index, tuple(ArrayFrame(float(t), frames[0].array) for t in at))
                )
            if index < 2:
                method.end_session(10**9)
        query = Query("What now?", 2, 3599.0)
        took = cpu_s(lambda: [method.messages(query) for _ in range(5)]) / 5
        rows.append(("raw_video: messages from 3 h of frames, CPU ms", f"{took * 1e3:.0f}"))
        took = cpu_s(lambda: embed(["the red mug stands on the shelf"] * 2000)) / 2000
        rows.append(("lexical vector of a sentence, CPU us", f"{took * 1e6:.0f}"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rows.append(("peak memory, GiB", f"{peak:.2f}"))
    for name, value in rows:
        print(f"{name:60s} {value:>10s}")


def _asks(endpoint: Chat) -> Callable[[list], str]:
    return lambda request: endpoint.complete(request, FREE, GREEDY).text


if __name__ == "__main__":
    main()
