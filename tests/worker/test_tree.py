"""Real programs that leave others behind, write without end or do not listen: all end in time."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import psutil
import pytest

from bench_lib.worker import process
from bench_lib.worker.process import Process, WorkerError

HEAD = """
import json, os, subprocess, sys, time
def request():
    return json.loads(sys.stdin.readline())
def reply(**said):
    print(json.dumps(said), flush=True)
def left_behind(**how):
    code = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(300)"
    return subprocess.Popen([sys.executable, "-c", code, sys.argv[1]], **how)
def wait_for_it():
    while not os.path.exists(sys.argv[1]) or not os.path.getsize(sys.argv[1]):
        time.sleep(0.01)
"""
DAEMON = """
if os.fork() == 0:  # a second fork: its parent is gone, its session its own
    os.setsid()
    if os.fork() == 0:
        left_behind()
        time.sleep(300)
    os._exit(0)
wait_for_it()
"""


def started(tmp_path: Path, body: str) -> Process:
    program = tmp_path / "program.py"
    program.write_text(HEAD + body)
    return Process([sys.executable, str(program), str(tmp_path / "pid")])


def left(tmp_path: Path) -> int:
    return int((tmp_path / "pid").read_text())


def gone(pid: int, within_s: float = 3.0) -> bool:
    until_s = time.monotonic() + within_s
    while time.monotonic() < until_s:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


CHILDREN = {
    "a child": "left_behind(); wait_for_it()",
    "a child in a session of its own": "left_behind(start_new_session=True); wait_for_it()",
    "a daemon": DAEMON,
}


@pytest.mark.parametrize("how", CHILDREN)
@pytest.mark.parametrize(
    ("then", "said"),
    [("sys.exit(3)", "exit code 3"), ("time.sleep(300)", "no reply to hello within 2 s")],
)
def test_what_holds_its_pipes_delays_nothing_and_ends_with_it(
    tmp_path: Path, how: str, then: str, said: str
) -> None:
    """The exit code is the worker's own; nobody waits for the one who was left behind."""
    worker = started(tmp_path, f"request()\n{CHILDREN[how]}\n{then}")
    begun = time.monotonic()
    with pytest.raises(WorkerError, match=said):
        worker.ask("hello", {}, 2.0 if "reply" in said else 30.0)
    assert time.monotonic() - begun < 8.0
    assert not worker.alive
    assert gone(left(tmp_path))
    assert gone(worker.pid)


def test_one_that_says_goodbye_takes_the_others_along(tmp_path: Path) -> None:
    worker = started(tmp_path, f"{DAEMON}\nreply(id=request()['id'])")
    worker.stop()
    assert gone(left(tmp_path))


def test_one_that_ignores_all_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE_S", 0.3)
    worker = started(
        tmp_path,
        "import signal\nfor number in (1, 2, 15):\n    signal.signal(number, signal.SIG_IGN)\n"
        "reply(id=request()['id'])\nwhile True:\n    time.sleep(1)",
    )
    assert worker.ask("hello", {}, 20.0) == {"id": 1}
    begun = time.monotonic()
    worker.stop()
    assert time.monotonic() - begun < 5.0
    assert gone(worker.pid)


def test_a_request_that_nobody_reads_is_given_up(tmp_path: Path) -> None:
    worker = started(tmp_path, "time.sleep(300)")
    with pytest.raises(WorkerError, match=r"no reply to observe within 0.5 s"):
        worker.ask("observe", {"frames": ["x" * 2**20] * 4}, 0.5)


def test_one_that_writes_while_it_is_written_to_does_not_block(tmp_path: Path) -> None:
    """Both pipes are full at once: more is written to its errors than they hold, then it reads."""
    body = "sys.stderr.write('x' * 2**20)\nsys.stderr.flush()\nreply(id=request()['id'])"
    worker = started(tmp_path, body)
    assert worker.ask("observe", {"frames": ["x" * 2**22]}, 30.0) == {"id": 1}
    worker.stop()


def test_error_output_without_end_takes_no_memory(tmp_path: Path) -> None:
    """First and last words are kept, whatever lies between, with or without ends of lines."""
    worker = started(
        tmp_path,
        "sys.stderr.write('first words')\n"
        "for _ in range(1024):\n    sys.stderr.write('x' * 2**17)\n"
        "sys.stderr.write('last words')\nsys.stderr.flush()\nrequest()\nsys.exit(3)",
    )
    before = psutil.Process().memory_info().rss
    with pytest.raises(WorkerError) as error:
        worker.ask("hello", {}, 60.0)
    assert psutil.Process().memory_info().rss - before < 32 * 2**20
    told = str(error.value)
    assert "first words" in told
    assert told.endswith("last words")
    assert "bytes ...]" in told
    assert len(told) < 5000


def test_no_thread_and_no_descriptor_is_left(tmp_path: Path) -> None:
    this = psutil.Process()
    before = this.num_fds(), this.num_threads()
    for _ in range(3):
        with pytest.raises(WorkerError):
            started(tmp_path, "sys.exit(1)").ask("hello", {}, 20.0)
    assert (this.num_fds(), this.num_threads()) == before
