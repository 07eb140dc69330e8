"""One worker process: a request goes in, its reply comes out, and it always ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from bench_lib.errors import BenchError
from bench_lib.methods.base import Refused

GRACE_S = 5.0
"""What a worker has to end by itself after `bye`."""
SHOWN = 300
"""Characters of what it wrote wrongly that a message shows."""
FOREIGN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
"""Variables of this interpreter that would mislead another one."""


class WorkerError(BenchError):
    """A request to a worker failed. The process goes on unless `Process.alive` says otherwise."""


class Process:
    """See the module; requests are served one at a time.

    Raises:
        WorkerError: the program cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.command = list(command)
        self._number = 0
        self._late = False
        self._stderr: deque[str] = deque(maxlen=20)
        env = {k: v for k, v in os.environ.items() if k not in FOREIGN}
        try:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**env, "PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )
        except OSError as error:
            raise WorkerError(f"worker {self.command[0]!r} cannot be started: {error}") from None
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._stderr.append(line.decode("utf-8", "replace").rstrip())

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def ask(self, op: str, body: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """The reply to a request.

        Raises:
            WorkerError: the worker said so, or ended, or was ended since it was late or wrote
                something else; with the last lines of its standard error.
            Refused: the model declines.
        """
        self._number += 1
        line = json.dumps({"id": self._number, "op": op, **body}, ensure_ascii=False)
        reply = self._reply(op, line, timeout_s)
        if "error" in reply:
            if reply.get("kind") == "refused":
                raise Refused(str(reply["error"]))
            raise WorkerError(f"the worker failed at {op}: {reply['error']}")
        return reply

    def _reply(self, op: str, line: str, timeout_s: float) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        watchdog = threading.Timer(timeout_s, self._overdue)
        watchdog.daemon = True
        watchdog.start()
        try:
            stdin.write(line.encode() + b"\n")
            stdin.flush()
            answer = stdout.readline()
        except OSError:
            answer = b""
        finally:
            watchdog.cancel()
        if self._late:
            self.kill()
            raise WorkerError(
                f"the worker gave no reply to {op} within {timeout_s:g} s{self._last()}"
            )
        if not answer.endswith(b"\n"):
            self.kill()
            code = self._process.returncode
            raise WorkerError(f"the worker ended (exit code {code}) at {op}{self._last()}")
        try:
            reply = json.loads(answer)
            if not isinstance(reply, dict) or reply.get("id") != self._number:
                raise ValueError
        except ValueError:
            self.kill()
            shown = answer.decode("utf-8", "replace").strip()[:SHOWN]
            raise WorkerError(
                f"the worker wrote to standard output what is no reply to {op}: {shown!r} "
                f"(print to standard error instead){self._last()}"
            ) from None
        return reply

    def _overdue(self) -> None:
        self._late = True
        self._signal()

    def _signal(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _last(self) -> str:
        self._listener.join(1.0)
        lines = "\n".join(self._stderr)
        return f"; its last words:\n{lines}" if lines else ""

    def kill(self) -> None:
        """End it, and what it started, now."""
        self._signal()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def stop(self) -> None:
        """Let it end by itself, then end it."""
        if self.alive:
            with contextlib.suppress(WorkerError, Refused):
                self.ask("bye", {}, GRACE_S)
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                assert self._process.stdin is not None
                self._process.stdin.close()
                self._process.wait(GRACE_S)
        self.kill()
