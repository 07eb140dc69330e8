"""Observe once, branch at each probe.

The trunk walks the feeds of an episode. Before it takes in a clip that is not wholly visible at the
next cutoff, that probe is answered on a branch, which observes the visible part of the clip by
itself. So an answer depends on the stream and its own probe, never on which others are asked, and
the cost is O(T + Q). Replay is the same walk with one ask per episode.

What goes wrong stays small: an unreadable video costs the asks of its session, a failing method
those of its episode; each is a record with a status and a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from bench_lib.asks.ask import Ask, registrations
from bench_lib.engine.answer import Moment, Setting, answer, failure
from bench_lib.engine.conditions import Episode, Feed
from bench_lib.engine.kept import States
from bench_lib.exchange import Note
from bench_lib.measure import MEMORY, count, counting, timing
from bench_lib.memories.method import Method
from bench_lib.schema import Response
from bench_lib.video.clips import clips
from bench_lib.video.session import SessionStream, VideoError, inspect, open_session, session_bytes
from bench_lib.video.stream import Clip, SessionInfo, Size, visible


@dataclass
class Trunk:
    """Where a walk is: what resuming needs beside the method's own state.

    `spent_s` is what the memory took by kind (`measure.MEMORY`).
    """

    position: int = 0
    size: Size | None = None
    spent_s: dict[str, float] = field(default_factory=dict)
    decode_s: float = 0.0
    fed_s: float = 0.0
    missing: list[str] = field(default_factory=list)


@dataclass
class Walk:
    """One episode on its way. `emit(kind, record)` stores what comes out, at once.

    `pool` answers branches of message models while the stream goes on.
    """

    method: Method
    episode: Episode
    setting: Setting
    states: States
    emit: Callable[[str, Any], None]
    pool: Executor | None = None
    progress: Callable[[float], object] = lambda seconds: None
    trunk: Trunk = field(default_factory=Trunk)

    def __post_init__(self) -> None:
        self.left = {ask.key: ask for ask in self.episode.asks}
        self.open: list[Future[None]] = []
        self.branches: dict[str, Method] = {}  # by candidate: they began at a registration
        self.branch_spent_s: dict[str, dict[str, float]] = {}
        self.work_s: dict[str, float] = {}  # of this session
        self.told_work_s: dict[str, float] = {}  # of this session, on those branches
        self.notes = self._streamed_notes()
        self.told: set[str] = set()  # candidates whose notes are in the memory

    def run(self) -> None:
        """Walk all feeds, after the last one whose state was kept; emits a record for every ask."""
        try:
            kept = None if self.notes else self.states.newest(self.episode, self.method)
            if kept is None:
                self.method.reset(self.episode.trajectory.id, self.setting.seed)
            else:
                self.trunk = Trunk(**kept)
            for feed in self.episode.feeds[self.trunk.position :]:
                self._session(feed, last=feed is self.episode.feeds[-1])
        except Exception as error:
            # Whatever a method raises, the other episodes go on and this one says what happened.
            self._fail(list(self.left.values()), f"{type(error).__name__}: {error}")
        finally:
            self._settle()

    def _session(self, feed: Feed, last: bool) -> None:
        due = self.episode.due(feed)
        record: dict[str, Any] = {
            "trajectory": self.episode.trajectory.id,
            "episode": self.episode.id,
            "session": feed.session.id,
            "position": feed.position,
            "duration_s": feed.duration_s,
            "prior_s": self.trunk.fed_s,
            "prior_bytes": dict(self.method.state_bytes()),
            "note_bytes": self._logged_bytes(feed),
            "served": "",
            "error": "",
        }
        clip_s: list[float] = []
        recorded_bytes = 0
        self.work_s, self.told_work_s = dict.fromkeys(MEMORY, 0.0), dict.fromkeys(MEMORY, 0.0)
        with counting() as counts:
            try:
                with self._opened(feed) as stream:
                    self._begin(feed)
                    self._feed(feed, due, stream, last, clip_s)
                    record["served"] = stream.served
                    counts["source_frames_decoded"] = stream.decoded_frames
                recorded_bytes = session_bytes(feed.session)
            except VideoError as error:
                record["error"] = str(error)
                self.trunk.missing.append(feed.session.id)
                self._fail(due, str(error))
            self._settle()
            if not last:
                for owner, member in self._members():
                    with self._timed("session_end", owner):
                        member.end_session(recorded_bytes)
        self._over(feed)
        self.trunk.fed_s += feed.duration_s
        self.trunk.position = feed.position + 1
        kept, seen = self.method.tokens()
        record |= {
            "clip_s": [round(seconds, 6) for seconds in clip_s],
            "work_s": self.work_s,
            "told_work_s": self.told_work_s,
            "counters": dict(counts),
            "tokens_kept": kept,
            "tokens_seen": seen,
        }
        self.emit("sessions", record)
        if not last and not self.notes and not self.told:
            saved = self.states.keep(self.episode, vars(self.trunk), self.method)
            if saved:
                at = {name: record[name] for name in ("trajectory", "episode", "position")}
                self.emit("saves", {**at, **saved})

    def _over(self, feed: Feed) -> None:
        """What is left to do when a session has been fed."""

    def _opened(self, feed: Feed) -> SessionStream:
        if self.trunk.size is None:
            self.trunk.size = self.method.frame_size(inspect(feed.session.spans[0].file).size)
        return open_session(
            feed.session,
            self.method.fps,
            feed.stretches,
            self.trunk.size,
            audio=self.method.wants_audio,
            reader=self.setting.reader,
            store=self.setting.store,
        )

    def _begin(self, feed: Feed) -> None:
        assert self.trunk.size is not None
        session = feed.session
        info = SessionInfo(session.id, feed.position, session.wall_start_s, self.trunk.size)
        for owner, member in self._members():
            with self._timed("session_start", owner):
                member.begin_session(info)
        self._deliver(feed, 0.0)

    def _feed(
        self, feed: Feed, due: list[Ask], stream: SessionStream, last: bool, clip_s: list[float]
    ) -> None:
        """Feed one session and answer its asks, which leave `due`."""
        frames, decoded_s = 0, 0.0
        for clip in clips(
            stream, feed.session.captions, feed.stretches, feed.position, self.method.clip_frames
        ):
            self.trunk.decode_s += stream.decode_s - decoded_s
            decoded_s = stream.decode_s
            frames += len(clip.frames)
            count("frames_sampled", len(clip.frames))
            closing = len(clip.frames) < self.method.clip_frames
            while due and (closing or not _whole(clip, due[0])):
                clip = self._ask(feed, due.pop(0), clip, decoded_s / max(1, frames))
            if last and not due and not self._waits():
                return
            before_s = self.work_s["observe"]
            self._observe(feed, clip)
            clip_s.append(self.work_s["observe"] - before_s)
        while due:
            self._ask(feed, due.pop(0), Clip(feed.position, ()), 0.0)
        self._deliver(feed, feed.session.duration_s)

    def _waits(self) -> bool:
        """Whether something is still to come of what was asked."""
        return False

    def _observe(self, feed: Feed, clip: Clip) -> None:
        """The trunk takes a clip in, and so does each branch that was told something."""
        if clip.empty:
            return
        for owner, member in self._members():
            with self._timed("observe", owner):
                member.observe(clip)
        if clip.frames:
            self._deliver(feed, clip.frames[-1].t_s)
            self.progress(len(clip.frames) / self.method.fps)

    @contextmanager
    def _timed(self, kind: str, owner: str = "") -> Iterator[None]:
        """Time work of the trunk, or of the branch of a candidate that was told something."""
        spent, work = self.trunk.spent_s, self.work_s
        if owner:
            # Its memory is that of the trunk up to here.
            spent = self.branch_spent_s.setdefault(owner, dict(spent))
            work = self.told_work_s
        with timing(kind, spent, work):
            yield
            self.method.settle()

    def _ask(self, feed: Feed, ask: Ask, clip: Clip, frame_decode_s: float) -> Clip:
        """Put an ask; returns what is left of the clip for the trunk."""
        at = self._moment(feed, ask, clip, frame_decode_s)
        # The branch is taken here, at its place in the stream, even if the pool answers later.
        branch, branch_s = self._branched(self.branches.get(ask.candidate.id, self.method))
        at = replace(at, branch_s=branch_s)

        def work() -> None:
            self._store(ask, answer(branch, ask, at, self.episode.trajectory.id, self.setting))

        if self.pool is None:
            work()
        else:
            self.open.append(self.pool.submit(work))
        return clip

    def _branched(self, base: Method) -> tuple[Method, float]:
        """What answers, and the seconds that taking it took."""
        if not base.forks:
            return base, 0.0
        took: dict[str, float] = {}
        with timing("branch", took):
            branch = base.branch()
        return branch, took["branch"]

    def _moment(self, feed: Feed, ask: Ask, clip: Clip, frame_decode_s: float) -> Moment:
        """Where an ask is put in the stream."""
        probe, candidate = ask.probe, ask.candidate
        late = tuple(
            note
            for owner, note in self.notes
            if owner == candidate.id and _said(note, feed, probe.t_s)
        )
        return Moment(
            fed=tuple(f.session for f in self.episode.feeds),
            feed=feed,
            tail=clip.until(probe.t_s, probe.closed),
            late=late,
            streamed=candidate.id in self.told or bool(late),
            spent_s=dict(self.branch_spent_s.get(candidate.id, self.trunk.spent_s)),
            decode_s=self.trunk.decode_s,
            frame_decode_s=frame_decode_s,
            prefix_s=self.trunk.fed_s + _before(feed, probe.t_s),
            missing=tuple(self.trunk.missing),
        )

    def _store(self, ask: Ask, response: Response) -> None:
        self.emit("responses", response)
        self.left.pop(ask.key, None)

    def _fail(self, asks: list[Ask], reason: str) -> None:
        for ask in asks:
            missing = tuple(self.trunk.missing)
            self._store(ask, failure(ask, self.episode.trajectory.id, reason, missing))
        asks.clear()

    def _settle(self) -> None:
        """Wait for the answers that the pool still works on; a state is kept only after them."""
        for future in self.open:
            future.result()
        self.open.clear()

    def _members(self) -> Iterator[tuple[str, Method]]:
        yield "", self.method
        yield from self.branches.items()

    def _streamed_notes(self) -> list[tuple[str, Note]]:
        """Notes that reach the memory in the stream, with their candidates, in time order."""
        if not (self.setting.delivery == "stream" and self.method.notes_touch_state):
            return []
        fed = tuple(feed.session for feed in self.episode.feeds)
        notes = {
            (ask.candidate.id, note)
            for ask in self.episode.asks
            for note in registrations(
                self.setting.bench,
                self.setting.prompts,
                ask,
                fed,
                self.episode.feed(ask.probe.session).session,
            )
        }
        return sorted(notes, key=lambda item: (item[1].session, item[1].t_s, item[0]))

    def _deliver(self, feed: Feed, t_s: float) -> None:
        """Tell what was said by `t_s`, each to the branch of its candidate."""
        while self.notes and _said(self.notes[0][1], feed, t_s):
            owner, note = self.notes.pop(0)
            self.told.add(owner)
            if not self.method.forks:
                with self._timed("notes"):
                    self.method.note(note)
                continue
            with self._timed("notes", owner):
                if owner not in self.branches:
                    self.branches[owner] = self.method.branch()
                self.branches[owner].note(note)

    def _logged_bytes(self, feed: Feed) -> int:
        """Text of the wearer's registrations in completed sessions, where a log keeps them."""
        if self.notes or self.told or not self.method.persistent:
            return 0
        before = {f.session.id for f in self.episode.feeds[: feed.position]}
        said = [c.registration for c in self.episode.trajectory.candidates if c.registration]
        return sum(len(r.text.encode()) for r in said if r.session in before)


def _whole(clip: Clip, ask: Ask) -> bool:
    """Whether all of a clip is visible at an ask's cutoff."""
    ends = [frame.t_s for frame in clip.frames[-1:]] + [c.end_s for c in clip.captions]
    return all(visible(end, ask.probe.t_s, ask.probe.closed) for end in ends)


def _said(note: Note, feed: Feed, t_s: float) -> bool:
    return (note.session, note.t_s) <= (feed.position, t_s)


def _before(feed: Feed, t_s: float) -> float:
    """Seconds of a feed that lie before an instant."""
    return sum(max(0.0, min(end, t_s) - start) for start, end in feed.stretches)
