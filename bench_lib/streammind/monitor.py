"""Monitor Workers: one watched condition each, checked every two seconds of video.

Hyper-parameters (C.5, Monitor Worker): `monitor_every_s` 2, `monitor_frames` 4, decoding `monitor`
(T 0.2, 512 tokens), `monitor_confidence` 0.6, `monitors` 8 at once, `monitor_gap_s` 3 between
alerts of a repeating one, `monitor_records` 60 frames and `monitor_summaries` 200 texts kept of
them. A one-time monitor ends after firing; there is no time to live on the agent's side. An alert
carries the time of the newest frame that the check saw, taken before delivery, and the time of its
delivery; the first is what the paper scores.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from bench_lib.measure import count
from bench_lib.messages.chat import ChatError
from bench_lib.streammind import contracts
from bench_lib.streammind.contracts import MonitorReply, Wish
from bench_lib.streammind.scene import Scene
from bench_lib.streammind.settings import Settings


@dataclass(frozen=True)
class Alert:
    """A monitor spoke: stream times of what it saw and of its delivery."""

    monitor: str
    qid: str
    text: str
    observed_s: float
    delivered_s: float
    confidence: float


@dataclass
class Monitor:
    """A watched condition and where it is in its rhythm; a resting one ticks elsewhere."""

    id: str
    wish: Wish
    qid: str
    since_s: float
    next_s: float
    frames: deque[str]
    summaries: deque[str]
    busy: bool = False
    resting: bool = False
    checks: int = 0
    fired_s: float | None = None
    scope: anyio.CancelScope | None = field(default=None, repr=False)

    def told(self) -> str:
        """The monitor for the front."""
        return f"[{self.id}] {self.wish.mode}: {self.wish.condition}"

    def copy(self, resting: bool = False) -> Monitor:
        """A second one at the same point, with nothing under way."""
        return replace(
            self,
            frames=deque(self.frames, self.frames.maxlen),
            summaries=deque(self.summaries, self.summaries.maxlen),
            busy=False,
            resting=resting or self.resting,
            scope=None,
        )


def started(key: str, wish: Wish, qid: str, t_s: float, settings: Settings) -> Monitor:
    """A new monitor, whose first check is due at once."""
    return Monitor(
        key,
        wish,
        qid,
        t_s,
        t_s,
        deque(maxlen=settings.monitor_records),
        deque(maxlen=settings.monitor_summaries),
    )


async def check(scene: Scene, monitor: Monitor) -> Mapping[str, Any]:
    """One check: the body of a `check` entry, `observed_s` among it.

    A check that fails says so in `error`, and sees nothing; raises ChatError where asking again
    cannot help.
    """
    s = scene.settings
    frames = scene.latest(s.monitor_frames)
    observed_s = frames[-1].t_s if frames else scene.t_s
    body: dict[str, Any] = {"monitor": monitor.id, "observed_s": observed_s, "error": ""}
    if not frames:
        return {**body, "satisfied": False, "confidence": 0.0, "message": "", "frame": ""}
    history = list(monitor.summaries)[-8:]
    parts = [
        "Earlier alerts of this condition:\n" + "\n".join(history) if history else "",
        scene.speech(s.monitor_every_s + s.audio_window_s),
        *scene.labelled(frames),
        f"[now {scene.timeline.label(scene.t_s)}]",
        f"The condition: {monitor.wish.condition}",
        f"What to say: {monitor.wish.message_hint}" if monitor.wish.message_hint else "",
    ]
    try:
        reply = await scene.ask("monitor", contracts.contract("monitor", MonitorReply), parts)
        verdict = reply.value if reply.stop != "refused" else None
    except ChatError as error:
        if error.final:
            raise
        count("checks_failed")
        body["error"], verdict = type(error).__name__, None
    return {
        **body,
        "satisfied": bool(verdict and verdict.satisfied),
        "confidence": verdict.confidence if verdict else 0.0,
        "message": (verdict.message or monitor.wish.condition) if verdict else "",
        "frame": frames[-1].id,
    }


def fires(monitor: Monitor, verdict: Mapping[str, Any], settings: Settings) -> bool:
    """Whether a verdict becomes an alert."""
    if not verdict["satisfied"] or verdict["confidence"] < settings.monitor_confidence:
        return False
    if monitor.fired_s is None:
        return True
    gap_s = verdict["observed_s"] - monitor.fired_s
    return monitor.wish.mode == "repeat" and gap_s >= settings.monitor_gap_s - 1e-6


def fire(monitor: Monitor, verdict: Mapping[str, Any], delivered_s: float) -> Alert:
    """The alert; the monitor remembers it."""
    monitor.fired_s = verdict["observed_s"]
    monitor.frames.append(verdict["frame"])
    monitor.summaries.append(f"{verdict['observed_s']:g} s: {verdict['message']}")
    return Alert(
        monitor.id,
        monitor.qid,
        verdict["message"],
        verdict["observed_s"],
        delivered_s,
        verdict["confidence"],
    )
