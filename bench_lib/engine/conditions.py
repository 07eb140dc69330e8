"""Which spans are fed, and what is asked of what was fed: the conditions of APM-Bench.

An episode is one life of a trunk: a list of feeds in order and the asks that it serves. `standard`
feeds all sessions once; `raw_lifelong` adds the recorded footage between them; `recent_sessions`
empties the memory before each queried session and feeds the k before it; `oracle` feeds only the
annotated evidence before the cutoff (protocol, sections 12, 14 and 16.29). The replay mode is the
same with one ask per episode. Two controls show what a memory is worth: `recent_sessions` with
k = 0 empties it, and `foreign` fills it with another trajectory's sessions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bench_lib.asks.ask import Ask
from bench_lib.schema import Session, Trajectory
from bench_lib.tasks import Bench
from bench_lib.video.stream import EPSILON_S

Stretch = tuple[float, float]


@dataclass(frozen=True)
class Feed:
    """A session as it is fed: its place in the episode and the half-open stretches of it."""

    position: int
    session: Session
    stretches: tuple[Stretch, ...]

    @property
    def duration_s(self) -> float:
        """Seconds of video fed."""
        return sum(end - start for start, end in self.stretches)


@dataclass(frozen=True)
class Episode:
    """Feeds in order, and the asks that are put on the way."""

    id: str
    trajectory: Trajectory
    feeds: tuple[Feed, ...]
    asks: tuple[Ask, ...]

    def feed(self, session_id: str) -> Feed:
        """The feed of a session."""
        return next(f for f in self.feeds if f.session.id == session_id)

    def due(self, feed: Feed) -> list[Ask]:
        """The asks whose cutoff lies in a feed, in time order."""
        asks = [a for a in self.asks if a.probe.session == feed.session.id]
        return sorted(asks, key=lambda a: (a.probe.t_s, a.probe.closed, a.key))

    def needed(self) -> Episode:
        """The same without what lies after its last ask."""
        last = max(self.feed(a.probe.session).position for a in self.asks)
        final = self.feeds[last]
        end_s = max(reach(a) for a in self.due(final))
        cut = tuple((s, min(e, end_s)) for s, e in final.stretches if s < end_s)
        return replace(self, feeds=(*self.feeds[:last], replace(final, stretches=cut)))


def reach(ask: Ask) -> float:
    """The end of a half-open stretch that holds exactly what an ask needs.

    That is what is visible at its cutoff, or all until nobody waits for the method to speak up.
    """
    if ask.deadline_s is not None:
        return ask.deadline_s + 2 * EPSILON_S
    return ask.probe.t_s + (2 * EPSILON_S if ask.probe.closed else 0.0)


def episodes(
    bench: Bench,
    trajectory: Trajectory,
    asks: Sequence[Ask],
    condition: str = "standard",
    recent: int = 2,
    one_each: bool = False,
) -> list[Episode]:
    """The episodes that serve `asks` under a condition; `one_each` gives each ask its own."""
    if one_each:
        return [
            replace(e, id=f"{e.id}:{ask.candidate.id}.{ask.probe.id}")
            for ask in asks
            for e in episodes(bench, trajectory, [ask], condition, recent)
        ]
    if not asks:
        return []
    sessions = trajectory.sessions
    if condition in ("standard", "raw_lifelong"):
        between = trajectory.between if condition == "raw_lifelong" else ()
        # Footage precedes the session whose index it carries: False sorts before True.
        fed = sorted([*sessions, *between], key=lambda s: (s.index, s in sessions))
        return [Episode(condition, trajectory, _whole(fed), tuple(asks)).needed()]
    if condition == "recent_sessions":
        found = []
        for at, session in enumerate(sessions):
            here = tuple(a for a in asks if a.probe.session == session.id)
            if here:
                window = sessions[max(0, at - recent) : at + 1]
                found.append(
                    Episode(f"recent{recent}:{session.id}", trajectory, _whole(window), here)
                )
        return [e.needed() for e in found]
    groups: dict[tuple[str, str], list[Ask]] = {}
    for ask in asks:
        groups.setdefault((ask.candidate.id, ask.probe.session), []).append(ask)
    return [_oracle(bench, trajectory, group) for group in groups.values()]


def foreign(trajectory: Trajectory, other: Trajectory, asks: Sequence[Ask]) -> list[Episode]:
    """Episodes in which another trajectory's sessions stand for the earlier ones, in equal number.

    Where the other one has fewer, all of its sessions are fed.
    """
    found = []
    for at, session in enumerate(trajectory.sessions):
        here = tuple(ask for ask in asks if ask.probe.session == session.id)
        if here:
            borrowed = [
                s.model_copy(update={"id": f"{other.id}:{s.id}"}) for s in other.sessions[:at]
            ]
            feeds = _whole([*borrowed, session])
            name = f"foreign:{other.id}:{session.id}"
            found.append(Episode(name, trajectory, feeds, here).needed())
    return found


def by_session(episode: Episode) -> list[Episode]:
    """The same episode once for each session that is asked about, for runs from saved states."""
    groups = [(feed, episode.due(feed)) for feed in episode.feeds]
    return [replace(episode, asks=tuple(asks)).needed() for _, asks in groups if asks]


def _whole(sessions: Iterable[Session]) -> tuple[Feed, ...]:
    return tuple(Feed(i, s, ((0.0, s.duration_s),)) for i, s in enumerate(sessions))


def _oracle(bench: Bench, trajectory: Trajectory, asks: list[Ask]) -> Episode:
    candidate, current = asks[0].candidate, asks[0].probe.session
    end_s = max(reach(ask) for ask in asks)
    stretches: dict[str, list[Stretch]] = {current: []}
    if candidate.registration:
        stretches.setdefault(candidate.registration.session, [])
    for moment in candidate.evidence:
        stretches.setdefault(moment.session, []).append((moment.start_s, moment.end_s))
    if bench.task(candidate.task).adaptive:
        stretches[current] = [(0.0, end_s)]
    order = [s for s in trajectory.sessions if s.id in stretches]
    order = order[: [s.id for s in order].index(current) + 1]
    feeds = []
    for position, session in enumerate(order):
        limit = end_s if session.id == current else session.duration_s
        feeds.append(Feed(position, session, _merged(stretches[session.id], limit)))
    return Episode(f"oracle:{candidate.id}:{current}", trajectory, tuple(feeds), tuple(asks))


def _merged(stretches: list[Stretch], limit: float) -> tuple[Stretch, ...]:
    """Sorted, joined where they overlap, cut at `limit`."""
    merged: list[Stretch] = []
    for start, end in sorted(stretches):
        end = min(end, limit)
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif start < end:
            merged.append((start, end))
    return tuple(merged)
