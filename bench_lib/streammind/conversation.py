"""Turns of the user: a reactive one stops the clock, a proactive one lets it run.

Hyper-parameters (C.5): `log_characters` of the dialogue that workers are shown, and `monitors`, the
most that are active. In lockstep what a proactive turn leads to comes when the front is done by the
latency model; in real time it comes when it comes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from bench_lib.measure import count
from bench_lib.streammind import monitor
from bench_lib.streammind.clock import Realtime
from bench_lib.streammind.front import Outcome, Request, turn
from bench_lib.streammind.models import Path, turn_place
from bench_lib.streammind.stream import Stream
from bench_lib.streammind.threads import off_loop


async def ask(stream: Stream, request: Request, t_s: float, path: Path) -> Outcome:
    """A reactive question: the clock stands still until it is answered; raises ChatError."""
    await stream.advance(t_s)
    stream.clock.pause()
    try:
        outcome = await _turn(stream, request, t_s, path)
    finally:
        stream.clock.resume()
        stream.called(path, t_s)
    stream.say("user", request.text, t_s, t_s, request.qid)
    return _effects(stream, outcome, request, t_s)


async def tell(stream: Stream, request: Request, t_s: float) -> Outcome:
    """A proactive turn: the stream goes on meanwhile.

    Raises:
        ChatError: no model could be asked.
    """
    await stream.advance(t_s)
    path = Path(turn_place(t_s, request.qid or request.text))
    stream.say("user", request.text, t_s, t_s, request.qid)
    try:
        outcome = await _turn(stream, request, t_s, path)
    except BaseException:
        stream.called(path, t_s)
        raise
    if isinstance(stream.clock, Realtime):
        stream.called(path, stream.clock.now_s)
        return _effects(stream, outcome, request, stream.clock.now_s)
    done: list[Outcome] = []

    def apply(recorded_s: float) -> None:
        stream.called(path, recorded_s)
        done.append(_effects(stream, outcome, request, recorded_s))

    stream.pending.add(t_s + path.lasts_s, apply)
    stream.pending.arrive(t_s)
    return done[0] if done else outcome


async def _turn(stream: Stream, request: Request, t_s: float, path: Path) -> Outcome:
    # After hours this takes a while, and other streams are on this loop.
    bank = await off_loop(partial(stream.bank_at, t_s))
    scene = stream.scene(t_s, path, bank)
    return await turn(scene, request, [m.told() for m in stream.monitors.values()])


def over(stream: Stream, qid: str) -> None:
    """A proactive turn is over: its monitors end and make room for others."""
    for watch in [m for m in stream.monitors.values() if m.qid == qid]:
        stream.stop_monitor(watch.id, "ended", stream.clock.now_s)


def _effects(stream: Stream, outcome: Outcome, request: Request, recorded_s: float) -> Outcome:
    """Cancel and start monitors, in this order; the words to the user say what was done."""
    reply, text = outcome.reply, outcome.text
    if reply is not None and outcome.action in ("monitor", "cancel"):
        for key in dict.fromkeys(reply.cancel_ids):
            stream.stop_monitor(key, "cancelled", recorded_s)
        if outcome.action == "monitor" and reply.monitor is not None:
            wish, most = reply.monitor, stream.settings.monitors
            free = len(stream.monitors) < most
            body = {"what": "started" if free else "refused", "id": "", **wish.model_dump()}
            if free:
                stream.monitors_ever += 1
                body["id"] = key = f"w{stream.monitors_ever}"
                stream.monitors[key] = monitor.started(
                    key, wish, request.qid, recorded_s, stream.settings
                )
                text = text or f"I will tell you when this is so: {wish.condition}"
            else:
                count("monitors_refused")
                text = f"I cannot watch for this: {most} conditions are watched already, the most."
            stream.write("monitor", recorded_s, recorded_s, body, recorded_s)
    stream.say("assistant", text, recorded_s, recorded_s, request.qid)
    return replace(outcome, text=text)
