"""A message model that answers by contract, and streams of plain frames for it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bench_lib import methods
from bench_lib.exchange import Generation, Query
from bench_lib.messages.chat import Chat, ChatError, ChatReply, Frames, Text
from bench_lib.messages.contract import checked
from bench_lib.schema import Caption
from bench_lib.video.stream import ArrayFrame, Clip, SessionInfo

SIZE = (36, 64)
QUIET = {
    "front": {"action": "answer", "answer": "noted"},
    "monitor": {"satisfied": False, "confidence": 0.9},
    "memory_writer": {"boundary": False, "text": "something"},
    "summary": {"summary": "a summary"},
    "router": {"answer": "routed"},
    "fallback": "fallen back",
    "recall": {"report": "recalled"},
    "search": {"report": "searched"},
    "distil": {"text": "distilled"},
    "verify": {"frames": []},
}
Rule = Callable[["Asked"], Any]


class Asked:
    """One request: its text, the times of its frames in stream seconds, their ids."""

    def __init__(self, messages: Any, contract: Any, generation: Generation) -> None:
        parts = [p for m in messages for p in m.parts]
        self.messages, self.contract, self.generation = messages, contract, generation
        self.worker = (
            contract.name.split("_")[0] if contract.name != "memory_writer" else "memory_writer"
        )
        self.text = "\n".join(p.text for p in parts if isinstance(p, Text))
        self.system = messages[0].parts[0].text
        self.user = "\n".join(p.text for p in messages[1].parts if isinstance(p, Text))
        self.frames = [f.t_s for p in parts if isinstance(p, Frames) for f in p.frames]
        self.ids = [f.id for p in parts if isinstance(p, Frames) for f in p.frames]
        now = re.findall(r"\[now (?:DAY\d+ )?(\d\d):(\d\d):(\d\d)\]", self.text)
        self.now_s = (
            int(now[-1][0]) * 3600 + int(now[-1][1]) * 60 + int(now[-1][2]) if now else None
        )


class ByContract(Chat):
    """Answers with `QUIET`, or what a worker's rule gives: an object, a text, or an error."""

    def __init__(self, **rules: Any) -> None:
        self.id, self.rules = "by-contract", rules
        self.asked: list[Asked] = []
        self._lock = threading.Lock()

    def complete(self, messages, contract, generation):  # type: ignore[no-untyped-def]
        return checked(self._send, messages, contract, generation)

    def _send(self, messages: Any, contract: Any, generation: Generation) -> ChatReply:
        asked = Asked(messages, contract, generation)
        with self._lock:
            self.asked.append(asked)
        rule = self.rules.get(asked.worker, QUIET[asked.worker])
        said = rule(asked) if callable(rule) else rule
        if isinstance(said, ChatError):
            raise said
        return ChatReply(said if isinstance(said, str) else json.dumps(said, ensure_ascii=False))

    def of(self, worker: str) -> list[Asked]:
        """The requests to a worker in the order of their instants."""
        return sorted((a for a in self.asked if a.worker == worker), key=lambda a: a.now_s or 0)


def frame(t_s: float, level: int = 0) -> ArrayFrame:
    """A frame that differs from all others: its time as grey bars."""
    pixels = np.full((*SIZE, 3), level, np.uint8)
    bits = format(round(t_s * 2) % 65536, "016b")
    for at, bit in enumerate(bits):
        pixels[:, at * 4 : at * 4 + 4] = 255 if bit == "1" else level
    return ArrayFrame(t_s, pixels)


def agent(chat: Any = None, seed: int = 42, **args: Any) -> Any:
    """A trunk that has begun its first session."""
    method = methods.load("streammind", **args).attach(chat or ByContract())
    method.reset("t", seed)
    return method


def begin(method: Any, index: int = 0, wall_s: float | None = None) -> Any:
    method.begin_session(SessionInfo(f"S{index}", index, wall_s, SIZE))
    return method


def feed(
    method: Any,
    start_s: float,
    end_s: float,
    captions: Mapping[float, str] | None = None,
    fps: float = 2.0,
    draw: Callable[[float], ArrayFrame] = frame,
) -> Any:
    """Frames of `[start_s, end_s)` in clips of four seconds; captions by their end."""
    times = [i / fps for i in range(round(start_s * fps), round(end_s * fps))]
    said = dict(captions or {})
    for at in range(0, len(times), 8):
        chunk = times[at : at + 8]
        own = [t for t in sorted(said) if t <= chunk[-1]]
        spoken = tuple(Caption(start_s=t - 1, end_s=t, text=said.pop(t)) for t in own)
        method.observe(Clip(0, tuple(draw(t) for t in chunk), spoken))
    return method


def ask(method: Any, text: str, t_s: float, kind: str = "free", **more: Any) -> Any:
    """A reactive question on a branch."""
    return method.branch().respond(Query(text, 0, t_s, contract=kind, **more), Generation())


def monitor_for(condition: str, mode: str = "once") -> dict[str, Any]:
    """A front's reply that starts a monitor."""
    return {"action": "monitor", "monitor": {"condition": condition, "mode": mode}}


def entries(method: Any, kind: str) -> list[Any]:
    return [e for e in method.stream.entries() if e.kind == kind]
