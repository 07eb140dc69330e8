"""hashing: remembers a digest of every clip; its reply and logits depend on all it was shown."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from bench_lib.exchange import Generation, Note, Query, Reply
from bench_lib.measure import count
from bench_lib.memories.method import Method
from bench_lib.video.stream import Clip, SessionInfo

_calls: dict[str, int] = {}
_lock = threading.Lock()


def _mark(what: str) -> None:
    """Log a call where TEST_LOG says, and die as kill -9 does where TEST_DIE says `what:count`."""
    with _lock:
        _calls[what] = _calls.get(what, 0) + 1
        if log := os.environ.get("TEST_LOG"):
            with Path(log).open("a") as file:
                file.write(f"{what}\n")
        if os.environ.get("TEST_DIE") == f"{what}:{_calls[what]}":
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class State:
    digests: tuple[str, ...] = ()
    frames: int = 0


@dataclass(kw_only=True)
class Hashing(Method):
    """Sensitive on purpose: to every pixel, to where clips are cut, to notes and sessions."""

    notes_touch_state: ClassVar[bool] = True
    clip_frames: int = 4

    def reset(self, trajectory_id: str, seed: int) -> None:
        self.state = State((f"{trajectory_id} {seed}",))

    def begin_session(self, info: SessionInfo) -> None:
        self._add(f"session {info.id} {info.index} {info.wall_start_s} {info.frame_size}")

    def observe(self, clip: Clip) -> None:
        _mark("observe")
        text = hashlib.sha256()
        for frame in clip.frames:
            text.update(f"{frame.t_s:.4f}".encode() + frame.pixels().tobytes())
        text.update("".join(c.text for c in clip.captions).encode())
        count("frames_encoded", len(clip.frames))
        self._add(text.hexdigest())
        self.state = replace(self.state, frames=self.state.frames + len(clip.frames))

    def note(self, note: Note) -> None:
        self._add(f"note {note.text}")

    def end_session(self, recorded_bytes: int) -> None:
        _mark("end_session")
        self._add("end")

    def respond(self, query: Query, generation: Generation) -> Reply:
        _mark("respond")
        said = "|".join(note.text for note in query.notes)
        text = "\n".join((*self.state.digests, query.text, said))
        value = hashlib.sha256(text.encode()).digest()
        letter = "ABCD"[value[0] % 4]
        reply = f'{{"answer": "{letter}", "trace": "{value.hex()}"}}'
        if query.contract.startswith("adaptive"):
            decision = ("INTERVENE", "SILENT")[value[1] % 2]
            reply = f'{{"decision": "{decision}", "answer": "{letter}", "reason": "{value.hex()}"}}'
        now = time.perf_counter()
        logits = np.frombuffer(value, np.uint8).astype(np.float32)
        return Reply(text=reply, ready_at=now, first_token_at=now, done_at=now, logits=logits)

    def _add(self, text: str) -> None:
        self.state = replace(self.state, digests=(*self.state.digests, text))
