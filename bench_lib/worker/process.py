"""One worker process: a request goes in, its reply comes out, and it always ends."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from bench_lib.errors import BenchError
from bench_lib.exchange import Refused
from bench_lib.worker import tree
from bench_lib.worker.pipe import REPLY_BYTES, Closed, Flooded, Late, Pipe, Words
from bench_lib.worker.values import decoded, text_of

GRACE_S = 5.0
"""What a worker has to end by itself after `bye`."""
SHOWN = 300
"""Characters of what it wrote wrongly that a message shows."""
TOLD = 2000
"""Characters of a worker's own reason that are kept."""
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
        self._number, self._said = 0, ""
        self._mark = uuid.uuid4().hex
        env = {k: v for k, v in os.environ.items() if k not in FOREIGN}
        try:
            self._process = subprocess.Popen(
                self.command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**env, "PYTHONUNBUFFERED": "1", tree.MARK: self._mark},
                start_new_session=True,
            )
        except OSError as error:
            raise WorkerError(f"worker {self.command[0]!r} cannot be started: {error}") from None
        into, out, err = self._process.stdin, self._process.stdout, self._process.stderr
        assert into is not None
        assert out is not None
        assert err is not None
        self._ended = False
        self._pipe, self._words = Pipe(into, out, lambda: not self.alive), Words(err)

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return not self._ended and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def ask(self, op: str, body: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """The reply to a request.

        Raises:
            WorkerError: the worker said so, or ended, or was ended since it was late or wrote
                something else; with what it wrote to standard error.
            Refused: the model declines.
        """
        self._number += 1
        # Escaped, so that every text can be sent, halves of characters among them.
        request = json.dumps({"id": self._number, "op": op, **body}).encode() + b"\n"
        until_s = time.monotonic() + timeout_s
        try:
            self._pipe.send(request, until_s)
            reply = self._reply(op, until_s)
        except Late:
            raise self._over(f"the worker gave no reply to {op} within {timeout_s:g} s") from None
        except Flooded:
            raise self._over(
                f"the worker wrote more than {REPLY_BYTES // 2**20} MiB to standard output at {op}"
            ) from None
        except Closed:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)  # its output ends before it does
            code = self._process.returncode
            what = "shut its output" if code is None else f"ended (exit code {code})"
            raise self._over(f"the worker {what} at {op}") from None
        if "error" in reply:
            why = text_of(reply, op, "error")[:TOLD]
            if reply.get("kind") == "refused":
                raise Refused(why)
            raise WorkerError(f"the worker failed at {op}: {why}")
        return reply

    def _reply(self, op: str, until_s: float) -> dict[str, Any]:
        """The reply to the newest request; one that comes twice is passed over."""
        while True:
            line = self._pipe.line(until_s)
            try:
                reply = decoded(line)
                number = reply.get("id")
                if type(number) is not int or not 0 < number <= self._number:
                    raise ValueError(f"its id is {number!r}, not {self._number}")
            except ValueError as error:
                shown = line.decode("utf-8", "replace").strip()[:SHOWN]
                raise self._over(
                    f"the worker wrote to standard output what is no reply to {op}: {shown!r} "
                    f"({str(error)[:SHOWN]}; print to standard error instead)"
                ) from None
            if number == self._number:
                return reply

    def _over(self, why: str) -> WorkerError:
        """The error to raise, the process having been ended."""
        words = self.kill()
        return WorkerError(f"{why}; its last words:\n{words}" if words else why)

    def kill(self) -> str:
        """End it, and what it started, now; what it wrote to standard error."""
        if not self._ended:
            self._ended = True
            tree.end(self.pid, self._mark)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE_S)
            self._pipe.close()
            self._said = self._words.close()
        return self._said

    def stop(self) -> None:
        """Let it end by itself, then end it."""
        if self.alive:
            with contextlib.suppress(WorkerError, Refused):
                self.ask("bye", {}, GRACE_S)
        if self.alive:
            self._pipe.shut()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE_S)
        self.kill()
