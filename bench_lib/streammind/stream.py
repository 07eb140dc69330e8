"""One stream with its memory and workers; a branch of it is a view with an overlay for its writes.

The trunk observes, writes memory and watches. A branch reads the trunk's log at the version at
which it was taken; what it writes itself goes to its own overlay and is dropped with it; work under
way belongs to the trunk and carries a later `recorded_s`. On the way to its question a branch's
writer ticks as the trunk's would. A branch that was told something (`follows`) stays at the trunk's
side: it leaves the writing to the trunk and reads its newest version after each clip. All methods
are for the event loop, which is the only one to change anything here.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus

from bench_lib.measure import count
from bench_lib.prompts import PromptSet
from bench_lib.schema import Caption
from bench_lib.search.tools import Provider
from bench_lib.speech.windows import Ear, Listen
from bench_lib.streammind import hearing, jobs
from bench_lib.streammind.bank import Bank
from bench_lib.streammind.clock import Lockstep, Realtime
from bench_lib.streammind.frame_buffer import FrameBuffer
from bench_lib.streammind.frame_store import FrameStore
from bench_lib.streammind.log import Entry, Log
from bench_lib.streammind.memory_writer import Writing
from bench_lib.streammind.models import Call, Models, Path
from bench_lib.streammind.monitor import Alert, Monitor
from bench_lib.streammind.scene import Scene
from bench_lib.streammind.schedule import Apply, Job, Pending
from bench_lib.streammind.settings import Settings
from bench_lib.streammind.threads import off_loop, together
from bench_lib.video.picture import Picture
from bench_lib.video.stream import SAMPLE_RATE, SessionInfo

TRACE = 1024
"""Calls kept for looking at; the log keeps everything that matters."""


class Stream:
    """See the module.

    Args:
        settings, models, texts, provider: What the workers are, and are asked with.
        listen: Speech recognition for the sound of the stream, where it is given.
    """

    def __init__(
        self,
        settings: Settings,
        models: Models,
        texts: PromptSet,
        provider: Provider | None = None,
        listen: Listen | None = None,
    ) -> None:
        s = settings
        self.settings, self.models, self.texts = s, models, texts
        self.provider = provider if s.has("search") else None
        self.trunk: Stream | None = None
        self.version: int | None = None
        self.follows = False
        self.log = Log()
        self._bank: Bank | None = Bank()
        self.ring = FrameBuffer(s.ring_s)
        self.store = FrameStore(s.store_frames, s.store_lookback_s, s.store_bits, s.store_change)
        self.ear = Ear(s.audio_window_s, s.audio_min_rms, s.audio_most, listen)
        self.listening, self.unheard, self.heard_once = 0, 0, False
        self.clock: Lockstep | Realtime = Lockstep() if s.clock == "lockstep" else Realtime(s.speed)
        self.offset_s = 0.0
        self.writing = Writing()
        self.writer_next_s, self.writer_busy = math.inf, False
        self.monitors: dict[str, Monitor] = {}
        self.monitors_ever = 0
        self.alerts: list[Alert] = []
        self.pending = Pending()
        self.skipped: Counter[str] = Counter()
        self.trace: deque[Call] = deque(maxlen=TRACE)
        self.sink: Callable[[Call], None] | None = None
        self.failure: Exception | None = None
        self._group: TaskGroup | None = None
        self._stopped: anyio.Event | None = None

    # ---- sessions, frames, sound

    def begin(self, info: SessionInfo) -> None:
        """A session starts: its second 0 is the stream's next whole second after its last frame."""
        if self.trunk is not None:
            self._follow()
            self.offset_s = self.trunk.offset_s
        else:
            self.offset_s = math.floor(self.clock.now_s) + 1.0 if self.bank.places else 0.0
            at = self.offset_s
            body = {"id": info.id, "index": info.index, "wall_s": info.wall_start_s}
            self.write("session", at, at, body, at)
            self.writing = replace(self.writing, covered_s=at, described_s=at)
            if self.settings.has("memory_writer"):
                self.writer_next_s = at + self.settings.writer_every_s
        for watch in self.monitors.values():
            watch.next_s = max(watch.next_s, self.offset_s)

    async def observe(
        self,
        pictures: Sequence[Picture],
        captions: Sequence[Caption] = (),
        sound: tuple[Any, float] | None = None,
    ) -> None:
        """Take in what comes next, and do what is due on the way; raises ChatError."""
        self._raise()
        for caption in captions:
            start_s, end_s = (self.offset_s + t for t in (caption.start_s, caption.end_s))
            self.ear.add(start_s, end_s, caption.text, end_s)
        if sound is not None:
            samples, start_s = sound
            # The first frame brings silence from before the session: windows count from its start.
            before = max(0, round(-start_s * SAMPLE_RATE))
            start_s = self.offset_s + max(0.0, start_s)
            await hearing.hear(self, self.ear.windows(samples[before:], start_s))
        for picture in pictures:
            await self.advance(picture.t_s, before=True)
            count("frames_evicted", self.ring.push(picture))
        if pictures:
            await self.advance(pictures[-1].t_s)
        if self.follows:
            self._follow()
        self._raise()

    async def end(self) -> None:
        """A session is over: the writer closes all events, the ring and the ear are emptied."""
        await self._drain()
        if not self.follows and self.settings.has("memory_writer"):
            now_s = self.clock.now_s
            if now_s > self.writing.covered_s or self.writing.event:
                await self._build()
                await self._work([jobs.writer_job(self, now_s, final=True)], now_s)
            self.writer_next_s = math.inf
            await self._drain()
        self.ring.clear()
        self.ear.clear()
        self.store.forget()
        self._raise()

    async def advance(self, to_s: float, before: bool = False) -> None:
        """Move the clock to an instant; with `before`, what is due at it waits for its frame."""
        while True:
            due_s = min(self.pending.next_s, self._tick_s())
            if due_s > to_s + 1e-9 or (before and due_s > to_s - 1e-9):
                break
            await self.clock.reach(due_s)
            self.pending.arrive(due_s)
            await self._ticks(due_s)
        await self.clock.reach(to_s)

    async def _drain(self) -> None:
        while self.pending.next_s < math.inf:
            await self.clock.reach(self.pending.next_s)
            self.pending.arrive(self.pending.next_s)
        while self.writer_busy or self.listening or any(m.busy for m in self.monitors.values()):
            await anyio.sleep(0.005)  # calls under way in real time

    # ---- ticks

    def _ours(self) -> list[Monitor]:
        """The monitors that tick here: a branch leaves the trunk's to the trunk."""
        return [m for m in self.monitors.values() if not m.resting]

    def _tick_s(self) -> float:
        ticks = [m.next_s for m in self._ours()]
        if not self.follows:
            ticks.append(self.writer_next_s)
        return min(ticks, default=math.inf)

    async def _ticks(self, t_s: float) -> None:
        """Start everything that is due; in lockstep also see it through."""
        due: list[Job] = []
        if not self.follows and self.writer_next_s <= t_s + 1e-9:
            self.writer_next_s += self.settings.writer_every_s
            if self.writer_busy:
                self._skip("memory_writer", t_s)
            else:
                await self._build()
                due.append(jobs.writer_job(self, t_s))
        for watch in self._ours():
            if watch.next_s <= t_s + 1e-9:
                watch.next_s += self.settings.monitor_every_s
                if watch.busy:
                    self._skip("monitor", t_s)
                else:
                    due.append(jobs.monitor_job(self, watch, t_s))
        if isinstance(self.clock, Realtime):
            for job in due:
                self.calls.start_soon(self._live_job, job)
        else:
            await self._work(due, t_s)

    async def _work(self, due: Sequence[Job], t_s: float) -> None:
        """See jobs through, whose results arrive when they are over in the video's time."""
        try:
            applies = await together([job.work for job in due])
        except BaseException:
            for job in due:  # what was asked until then is kept for looking at
                job.free()
                self.called(job.path, t_s)
            raise
        for job, apply in zip(due, applies, strict=True):
            self._arrives(job, apply, t_s + job.path.lasts_s)
        self.pending.arrive(t_s)

    def _arrives(self, job: Job, apply: Apply, at_s: float) -> None:
        def arrive(recorded_s: float) -> None:
            job.free()
            self.called(job.path, recorded_s)
            apply(recorded_s)

        self.pending.add(at_s, arrive)

    @property
    def calls(self) -> TaskGroup:
        """Where calls in real time run."""
        group = self._group or (self.trunk._group if self.trunk else None)
        assert group is not None, "a stream in real time must be live"
        return group

    async def _live_job(self, job: Job) -> None:
        try:
            apply = await job.work()
        except Exception as error:  # raised by the next call from outside
            self.failure = self.failure or error
            self.called(job.path, self.clock.now_s)
        else:
            self.called(job.path, self.clock.now_s)
            apply(self.clock.now_s)
        finally:
            job.free()

    def _skip(self, worker: str, t_s: float) -> None:
        self.skipped[worker] += 1
        count(f"{worker}_skipped")
        self.write("skip", t_s, t_s, {"worker": worker}, t_s)

    def stop_monitor(self, key: str, why: str, recorded_s: float) -> None:
        """A monitor ends, its call under way with it; one that is not active is noted."""
        watch = self.monitors.pop(key, None)
        body = {"what": why if watch else "not active", "id": key}
        self.write("monitor", recorded_s, recorded_s, body, recorded_s)
        if watch is not None and watch.scope is not None:
            watch.scope.cancel()

    # ---- memory

    def say(self, role: str, text: str, t_s: float, recorded_s: float, qid: str = "") -> None:
        """A turn of the dialogue."""
        self.write("turn", t_s, t_s, {"role": role, "text": text, "qid": qid}, recorded_s)

    def write(
        self, kind: str, start_s: float, end_s: float, body: Mapping[str, Any], recorded_s: float
    ) -> None:
        """Append to the log, or to a branch's overlay."""
        entry = Entry(kind, start_s, end_s, recorded_s, body)
        self.log.append(entry)
        if self._bank is not None:
            self._bank.take(entry)

    @property
    def bank(self) -> Bank:
        """The memory bank as it is now; a branch builds its own when its writer needs it."""
        if self._bank is None:
            self._bank = self.bank_at(math.inf)
        return self._bank

    async def _build(self) -> None:
        """The same off the loop: after hours it takes a while, and other streams go on here."""
        if self._bank is None:
            bank = await off_loop(partial(self.bank_at, math.inf))
            for entry in self.entries()[bank.upto :]:  # written meanwhile
                bank.take(entry)
            self._bank = bank

    def entries(self) -> list[Entry]:
        """The log that is read here: the trunk's at this version, then the overlay."""
        below = list(self.trunk.log.until(self.version)) if self.trunk is not None else []
        return [*below, *self.log.until()]

    def bank_at(self, t_s: float) -> Bank:
        """The memory bank as of an instant, rebuilt from the log."""
        return Bank.at(self.entries(), t_s)

    def scene(self, t_s: float, path: Path, bank: Bank) -> Scene:
        """What a worker is handed at an instant."""
        kept = (self.trunk.store if self.follows and self.trunk else self.store).frames
        return Scene(
            t_s,
            self.settings,
            self.models,
            self.texts,
            bank,
            self.ring.until(t_s),
            kept,
            self.ear.until(t_s, self.settings.ring_s),
            path,
            self.provider,
        )

    def called(self, path: Path, recorded_s: float) -> None:
        """Keep a path's calls for looking at, and what was rejected for good."""
        self.trace.extend(path.calls)
        for call in path.calls:
            if self.sink is not None:
                self.sink(call)
            if call.rejected:
                body = {"worker": call.worker, "raw": list(call.rejected), "error": call.error}
                self.write("rejected", call.t_s, call.t_s, body, recorded_s)

    def _raise(self) -> None:
        failure = self.failure or (self.trunk.failure if self.trunk is not None else None)
        if failure is not None:
            raise failure

    # ---- branches, life

    def branch(self) -> Stream:
        """A view at this version; see the module."""
        other = Stream.__new__(Stream)
        other.__dict__.update(self.__dict__)
        other.trunk = self.trunk or self
        other.version = self.version if self.trunk is not None else len(self.log)
        other.log = Log(self.log.until()) if self.trunk is not None else Log()
        other.follows, other._bank = False, None
        # What is under way is the trunk's: here nothing would ever end it.
        other.writer_busy, other.listening = False, 0
        if self.follows:
            other.writing = other.trunk.writing
            other.writer_next_s = other.trunk.writer_next_s
        other.ring, other.ear = self.ring.copy(), self.ear.copy()
        other.store = (other.trunk.store if self.follows else self.store).copy()
        other.clock = self.clock.copy()
        resting = self.trunk is None
        other.monitors = {key: m.copy(resting) for key, m in self.monitors.items()}
        other.alerts, other.pending = list(self.alerts), Pending()
        other.skipped, other.trace = Counter(self.skipped), deque(maxlen=TRACE)
        other._group = None
        return other

    def _follow(self) -> None:
        assert self.trunk is not None
        self.version = len(self.trunk.log)

    async def live(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Hold the stream's task group open, for calls in real time, until `stop`."""
        self._stopped = anyio.Event()
        async with anyio.create_task_group() as self._group:
            task_status.started()
            await self._stopped.wait()
            self._group.cancel_scope.cancel()

    async def stop(self) -> None:
        """Cancel everything under way."""
        if self._stopped is not None:
            self._stopped.set()

    def nbytes(self) -> dict[str, int]:
        """Bytes of what is kept: frames of ring and store, texts of log and speech."""
        below = self.trunk.log.nbytes(self.version) if self.trunk is not None else 0
        frames = {**self.store.frames, **{f.id: f for f in self.ring.until(math.inf)}}
        return {
            "frames": sum(len(f.jpeg) for f in frames.values()),
            "text": below + self.log.nbytes() + self.ear.nbytes,
        }
