"""One dialogue over one stream, as StreamArena asks: turns share it, and some asks are watches.

Questions and instructions come in time order. A question is answered on a branch and committed to
the trunk, so that the next one knows of it. An instruction to speak up goes to the trunk itself,
which is split there; from then on the first thing that the method says for it counts, until its
deadline, of which the method learns nothing. Each video is one session and is walked whole: when a
run is resumed, turns that were answered are told again with the answers on record.

A turn that failed is absent from the dialogue of later ones, also when it is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bench_lib.asks.ask import Ask, noted
from bench_lib.engine.answer import Moment, answer, asked_of, failure, spoken
from bench_lib.engine.conditions import Feed
from bench_lib.engine.walk import Walk
from bench_lib.exchange import Alert, Note, Reply
from bench_lib.memories.method import Method
from bench_lib.schema import CENSORED, SCORABLE, Key, Response
from bench_lib.tasks import WINDOW
from bench_lib.video.stream import EPSILON_S, Clip

NOT_SUPPORTED = "N/A: the method cannot speak unasked"


@dataclass
class Dialogue(Walk):
    """A walk whose turns share one dialogue. `answered` holds what an earlier process answered."""

    answered: Mapping[Key, Response] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.pool = None  # a turn must be over before the next one
        self.left = {key: ask for key, ask in self.left.items() if key not in self.answered}
        self.turns: list[Note] = []
        self.watched: dict[str, Ask] = {}

    def _streamed_notes(self) -> list[tuple[str, Note]]:
        return []

    def _waits(self) -> bool:
        return bool(self.watched)

    def _ask(self, feed: Feed, ask: Ask, clip: Clip, frame_decode_s: float) -> Clip:
        watches = self.setting.bench.task(ask.candidate.task).watches
        if watches and not self.method.watches:
            self._refuse(ask)
            return clip
        if watches or not self.method.forks:
            # What the trunk is told, it is told at that instant: it takes in the clip up to there.
            seen = clip.until(ask.probe.t_s, ask.probe.closed)
            clip = clip.after(ask.probe.t_s, ask.probe.closed)
            self._observe(feed, seen)
        at = self._moment(feed, ask, clip, frame_decode_s)
        if watches:
            self._watch(feed, ask)
        else:
            self._turn(ask, replace(at, turns=tuple(self.turns)))
        return clip

    def _refuse(self, ask: Ask) -> None:
        if ask.key in self.left:
            where = self.episode.trajectory.id
            self._store(ask, failure(ask, where, NOT_SUPPORTED, status="refused"))

    def _turn(self, ask: Ask, at: Moment) -> None:
        response = self.answered.get(ask.key)
        if response is None:
            branch, branch_s = self._branched(self.method)
            at = replace(at, branch_s=branch_s)
            response = answer(branch, ask, at, self.episode.trajectory.id, self.setting)
            self._store(ask, response)
        if response.status not in SCORABLE or (
            response.status == "refused" and not response.raw_text
        ):
            return  # nothing was said that later turns could know of
        if commits(self.method):
            query = asked_of(self.method, ask, at, self.setting)
            with self._timed("notes"):
                self.method.commit(query, Reply(response.raw_text, 0.0, 0.0, 0.0, response.stop))
        else:
            self._log("turn", at.feed, ask, ask.candidate.question, response.raw_text)

    def _watch(self, feed: Feed, ask: Ask) -> None:
        candidate, t_s = ask.candidate, ask.probe.t_s
        said = candidate.registration.text if candidate.registration else candidate.question
        try:
            note = noted(feed.position, t_s, said, feed.session)
            with self._timed("notes"):
                reply = self.method.watch(note, candidate.id)
        except Exception as error:
            # Like a question that fails: this case is lost, the stream goes on.
            self._close(ask, f"{type(error).__name__}: {error}")
            return
        if not commits(self.method):
            self._log("wish", feed, ask, said, reply)
        self.watched[candidate.id] = ask

    def _log(self, template: str, feed: Feed, ask: Ask, said: str, answered: str) -> None:
        text = self.setting.prompts.render(template, question=said, answer=answered)
        self.turns.append(noted(feed.position, ask.probe.t_s, text, feed.session))

    def _observe(self, feed: Feed, clip: Clip) -> None:
        super()._observe(feed, clip)
        if clip.frames:
            self._hear(clip.frames[-1].t_s)

    def _hear(self, now_s: float) -> None:
        """Take the first alert of each watch; end those that nobody waits for any longer."""
        if not self.watched:
            return
        with self._timed("observe"):
            alerts = self.method.alerts(now_s)
        for alert in alerts:
            ask = self.watched.get(alert.key)
            # What it said at once was its acknowledgement.
            if ask is not None and alert.observed_s > ask.probe.t_s:
                del self.watched[alert.key]
                self._spoken(ask, alert)
        for key, ask in list(self.watched.items()):
            assert ask.deadline_s is not None
            if now_s >= ask.deadline_s:
                del self.watched[key]
                self._spoken(ask, None)

    def _spoken(self, ask: Ask, alert: Alert | None) -> None:
        self._unwatch(ask)
        if ask.key in self.left:
            where = self.episode.trajectory.id
            self._store(ask, spoken(ask, where, alert, dict(self.method.state_bytes())))

    def _unwatch(self, ask: Ask) -> None:
        with self._timed("notes"):
            self.method.unwatch(ask.candidate.id)

    def _close(self, ask: Ask, reason: str) -> None:
        if ask.key in self.left:
            self._fail([ask], reason)

    def _over(self, feed: Feed) -> None:
        self._hear(feed.session.duration_s)
        for ask in list(self.watched.values()):
            if not self.trunk.missing and over_s(ask) <= feed.stretches[-1][1] + EPSILON_S:
                self._spoken(ask, None)
            else:
                self._unwatch(ask)
                self._close(ask, CENSORED)
        self.watched.clear()


def over_s(ask: Ask) -> float:
    """When a case is decided if nothing has been said: the end of its window."""
    return ask.candidate.ideal[0].start_s + WINDOW.late_s


def commits(method: Method) -> bool:
    """Whether a method keeps the dialogue by itself."""
    return type(method).commit is not Method.commit
