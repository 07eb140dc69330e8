"""What a tick sets off: one call of the memory writer, or one check of a monitor."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from bench_lib.streammind import memory_writer, monitor
from bench_lib.streammind.bank import Bank
from bench_lib.streammind.models import Path
from bench_lib.streammind.monitor import Monitor
from bench_lib.streammind.records import write_tick
from bench_lib.streammind.schedule import Apply, Job

if TYPE_CHECKING:
    from bench_lib.streammind.stream import Stream


def writer_job(stream: Stream, t_s: float, final: bool = False) -> Job:
    """The writer's next tick; `final` closes all events. The stream is busy until it is free."""
    scene = stream.scene(t_s, Path(f"memory_writer@{t_s:g}"), stream.bank)
    at, stream.writer_busy = stream.writing, True

    async def work() -> Apply:
        found = await memory_writer.tick(scene, at, final)

        def apply(recorded_s: float) -> None:
            def write(kind: str, start_s: float, end_s: float, body: Mapping[str, Any]) -> None:
                stream.write(kind, start_s, end_s, body, recorded_s)

            write_tick(found, stream.bank, stream.store, stream.settings, write)
            stream.writing = found.writing

        return apply

    def free() -> None:
        stream.writer_busy = False

    return Job(scene.path, work, free)


def monitor_job(stream: Stream, watch: Monitor, t_s: float) -> Job:
    """A check of a watched condition, which ends where the monitor is stopped meanwhile."""
    light = Bank()
    light.places = (stream.trunk or stream).bank.places
    scene = stream.scene(t_s, Path(f"{watch.id}@{t_s:g}"), light)
    watch.busy = True
    watch.checks += 1

    async def work() -> Apply:
        with anyio.CancelScope() as watch.scope:
            verdict = await monitor.check(scene, watch)
            return partial(_judge, stream, watch, verdict)
        return lambda recorded_s: None  # cancelled while the call was under way

    def free() -> None:
        watch.busy, watch.scope = False, None

    return Job(scene.path, work, free)


def _judge(stream: Stream, watch: Monitor, verdict: Mapping[str, Any], recorded_s: float) -> None:
    if stream.monitors.get(watch.id) is not watch:
        return  # cancelled meanwhile
    if verdict["error"]:
        at_s = verdict["observed_s"]
        stream.write("check_failed", at_s, at_s, dict(verdict), recorded_s)
    if not monitor.fires(watch, verdict, stream.settings):
        return
    alert = monitor.fire(watch, verdict, recorded_s)
    stream.alerts.append(alert)
    picture = stream.ring.find(verdict["frame"])
    if picture is not None:
        stream.store.keep(picture, recorded_s)
    at_s = alert.observed_s
    stream.write("alert", at_s, at_s, {**verdict, "qid": watch.qid}, recorded_s)
    stream.say("assistant", alert.text, at_s, recorded_s, watch.qid)
    if watch.wish.mode == "once":
        stream.stop_monitor(watch.id, "ended", recorded_s)
