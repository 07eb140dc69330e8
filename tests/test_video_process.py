"""The decoding process: watched, ended, reused; nothing is left behind and nobody hangs."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from barcode import number, seen, session, write
from decoders import decoders

from bench_lib.schema import Session
from bench_lib.video.decode import client
from bench_lib.video.decode import feed as decode_feed
from bench_lib.video.session import VideoError, inspect, open_session

BIG = (240, 320)
"""Frames of 230 kB: a few of them fill the pipe, so that the process is still at work."""
SPIN = """
import re
import bench_lib.video.decode.process as decode
# Catastrophic backtracking: it holds the interpreter lock, as a spinning decoder does.
decode.inspect_file = lambda file, alive: re.match(r"(a+)+$", "a" * 60 + "b")
decode.main()
"""
CRASH = """
import ctypes
import bench_lib.video.decode.process as decode
decode.inspect_file = lambda file, alive: ctypes.string_at(0)
decode.main()
"""
BROKEN = "raise RuntimeError('no such library')"


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    client.end_idle()
    yield
    client.end_idle()


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("film") / "film.mp4", range(0, 30_000, 100))


@pytest.fixture
def recorded(film: Path) -> Session:
    return session((film, 0, 30))


def left() -> tuple[list[int], int, int]:
    """Children, descriptors and threads of this process."""
    gc.collect()  # what earlier tests left
    me = psutil.Process()
    return [child.pid for child in me.children()], me.num_fds(), threading.active_count()


def test_closing_early_leaves_nothing(recorded: Session) -> None:
    before = left()
    with open_session(recorded, 10, [(0, 30)], BIG) as stream:
        shown = [number(s.frame.pixels()) for s, _ in zip(stream, range(3), strict=False)]
        children, _, threads = left()
        assert (len(children), threads) == (len(before[0]) + 1, before[2] + 1)
    assert shown == [0, 1, 2]
    assert left() == before
    open_session(recorded, 10, [(0, 30)], BIG)  # dropped without being closed
    assert left() == before


def test_a_process_is_used_again_and_few_are_kept(recorded: Session) -> None:
    def used() -> int:
        seen(recorded, 1)
        (child,) = decoders()
        return child.pid

    first = used()
    assert used() == first
    inspect(recorded.spans[0].file)
    streams = [open_session(recorded, 1, [(0, 30)]) for _ in range(4)]
    for stream in streams:
        list(stream)
        stream.close()
    assert len(decoders()) <= client.IDLE_LIMIT
    os.kill(first, signal.SIGKILL)  # dies while idle: the next pass does not notice
    assert len(seen(recorded, 1)) == 30


def test_a_killed_process_is_an_error_and_not_a_hang(recorded: Session) -> None:
    with open_session(recorded, 10, [(0, 30)], BIG) as stream:
        samples = iter(stream)
        next(samples)
        (child,) = decoders()
        child.kill()
        with pytest.raises(VideoError, match="film") as error:
            list(samples)
    assert error.value.kind == "crashed"
    assert "signal 9" in str(error.value)
    assert len(seen(recorded, 1)) == 30


def test_a_process_that_stands_still_is_ended(
    recorded: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decode_feed, "QUEUE_BYTES", 1)
    with open_session(recorded, 10, [(0, 30)], BIG, timeout_s=2) as stream:
        samples = iter(stream)
        next(samples)
        (child,) = decoders()
        child.suspend()
        with pytest.raises(VideoError, match="film") as error:
            list(samples)
    assert error.value.kind == "timeout"
    assert not psutil.pid_exists(child.pid)


def test_a_consumer_may_take_its_time(recorded: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the decoder is watched: the clock stands while nobody reads."""
    monkeypatch.setattr(decode_feed, "QUEUE_BYTES", 1)
    seen(recorded, 1)  # it has started
    with open_session(recorded, 10, [(0, 30)], BIG, timeout_s=2) as stream:
        samples = iter(stream)
        next(samples)
        time.sleep(3.2)  # longer than both watches, its own and ours
        assert len(list(samples)) == 299


@pytest.mark.parametrize(
    ("program", "kind", "told"),
    [(SPIN, "timeout", "3 s"), (CRASH, "crashed", "signal 11"), (BROKEN, "crashed", "library")],
)
def test_an_endless_or_crashing_file_costs_itself(
    film: Path, monkeypatch: pytest.MonkeyPatch, program: str, kind: str, told: str
) -> None:
    monkeypatch.setattr(client, "COMMAND", [sys.executable, "-c", program])
    before = left()
    copy = film.with_name(f"{kind}{len(program)}.mp4")
    copy.write_bytes(film.read_bytes())
    with pytest.raises(VideoError, match=told) as error:
        inspect(copy, timeout_s=3)
    assert error.value.kind == kind
    assert left() == before
    monkeypatch.undo()
    assert inspect(copy).codec == "h264"


def test_an_endless_file_is_the_one_that_is_named(
    film: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = SPIN.replace("decode.main()", "") + (
        "usual = decode.AvReader\n"
        "decode.AvReader = lambda file, alive: (\n"
        "    decode.inspect_file(file, alive) if 'second' in file else usual(file, alive)\n"
        ")\n"
        "decode.main()\n"
    )
    monkeypatch.setattr(client, "COMMAND", [sys.executable, "-c", program])
    second = tmp_path / "second.mp4"
    second.write_bytes(film.read_bytes())
    got = []
    recorded = session((film, 0, 5), (second, 0, 5))
    with open_session(recorded, 1, [(0, 10)], timeout_s=2) as stream:
        samples = iter(stream)
        for _ in range(5):
            got.append(number(next(samples).frame.pixels()))
        with pytest.raises(VideoError, match="second") as error:
            next(samples)
    assert error.value.kind == "timeout"
    assert got == [0, 10, 20, 30, 40]


def test_an_answer_that_cannot_be_read_is_an_error(
    film: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = "import os; os.write(1, b'\\x05\\0\\0\\0\\0\\0\\0\\0nonsense'); input()"
    monkeypatch.setattr(client, "COMMAND", [sys.executable, "-c", program])
    with pytest.raises(VideoError, match="cannot be read"):
        seen(session((film, 0, 5)), 1)


def test_a_process_without_its_caller_ends_itself(film: Path) -> None:
    """Even one that spins and holds the interpreter lock."""
    worker = subprocess.Popen([sys.executable, "-c", SPIN], stdin=-1, stdout=-1)
    assert worker.stdin
    request = {"kind": "inspect", "file": str(film), "timeout_s": 0.3}
    worker.stdin.write(json.dumps(request).encode() + b"\n")
    worker.stdin.flush()
    assert worker.wait(20) == -signal.SIGALRM
    worker.stdin.close()
    idle = subprocess.Popen(client.COMMAND, stdin=-1, stdout=-1)
    assert idle.stdin
    idle.stdin.close()
    assert idle.wait(20) == 0


def test_streams_side_by_side_do_not_mix(film: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "b.mp4", range(0, 30_000, 100), numbers=range(1000, 1300))
    one, two = session((film, 0, 30)), session((other, 0, 30))
    with open_session(one, 3, [(0, 30)]) as a, open_session(two, 3, [(0, 30)]) as b:
        pairs = [
            (number(x.frame.pixels()), number(y.frame.pixels())) for x, y in zip(a, b, strict=True)
        ]
    assert [y - x for x, y in pairs] == [1000] * 90
    found: dict[int, dict[int, int]] = {}
    threads = [
        threading.Thread(target=lambda i=i: found.update({i: seen([one, two][i % 2], 3)}))
        for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[2] == {k: x for k, (x, _) in enumerate(pairs)}
    assert found[1] == found[3] == {k: y for k, (_, y) in enumerate(pairs)}


def test_memory_ahead_of_the_consumer_is_bounded(
    recorded: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 2_000_000
    monkeypatch.setattr(decode_feed, "QUEUE_BYTES", limit)
    with open_session(recorded, 10, [(0, 30)], BIG) as stream:
        feed = stream._feed  # type: ignore[attr-defined]
        held = [0]
        for sample in stream:
            while sample.t_s == 0 and held[-1] <= limit - 240 * 320 * 3:
                time.sleep(0.01)  # until no further frame fits
                held.append(feed.ready_bytes)
            held.append(feed.ready_bytes)
    assert max(held) <= limit


def test_a_script_without_a_main_guard_and_with_chatter_works(film: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\n"
        "from bench_lib.schema import Session, Span\n"
        "from bench_lib.video.session import inspect, open_session\n"
        f"span = Span(file={str(film)!r}, start_s=0, end_s=30)\n"
        "s = Session(id='S', index=0, spans=(span,), duration_s=30)\n"
        "with open_session(s, 1, [(0, 30)]) as stream:\n"
        "    print(len(list(stream)))\n"
        "stream = open_session(s, 10, [(0, 30)], (240, 320))\n"
        "next(iter(stream))  # and the program ends with a stream at work\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "30", "")


def test_a_forked_child_keeps_its_hands_off(recorded: Session) -> None:
    seen(recorded, 1)
    child = os.fork()
    if child == 0:
        os._exit(0 if not client._idle else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert len(seen(recorded, 1)) == 30


def test_the_decoding_process_is_light() -> None:
    code = "import sys, bench_lib.video.decode.process; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert not {"torch", "pandas", "pydantic", "decord"} & set(loaded.split())
