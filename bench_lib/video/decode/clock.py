"""True times for packets whose timestamps do not simply go on.

A recorder's or a copier's mistakes are told from what was meant by the times around them:

- A *stray* is a packet, or a few, whose times lie apart from those before and after, while these
  go on with room for it. It is put into that room.
- A *join* is where times go back and stay there: a second recording begins. It is put behind the
  first; the tracks of a file move together. A step ahead is one only where it is longer than any
  pause (a clock of 33 bits came round), or where a transport stream says that it was broken.
- Any other step ahead is a *pause*: it is left alone, and the picture before it stands.

Times are seconds, arrays are in file order (decoding order).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_lib.video.stream import EPSILON_S

Times = NDArray[np.float64]

REORDER = 16
"""Pictures that a picture may overtake in decoding order (H.264, HEVC)."""
REACH_S = 0.25
"""Steps up to this are never looked at."""
FEW_S = 1.0
"""What lasts no longer is too little for a recording of its own."""
LONE_S = 60.0
"""A few packets at either end of a steady track, farther from the rest than this, are strays."""
LONGEST_PAUSE_S = 86_400.0
BROKEN_S = 10.0
"""A longer step ahead, at a break of a transport stream, is a join (as in ffmpeg)."""
NO_LENGTH_S = 1e-3
"""A packet that claims less says nothing of how long it lasts."""
WINDOW = 64
USUAL_S = 0.04
LIVE = 8
"""How many threads a packet may go on from."""


class Contradiction(ValueError):
    """Two clocks alternate, and neither is the exception."""


@dataclass
class Thread:
    """Packets whose times go on from one another; `runs` are half-open ranges of places."""

    runs: list[tuple[int, int]]
    lo: float
    hi: float

    @property
    def first(self) -> int:
        return self.runs[0][0]

    @property
    def last(self) -> int:
        return self.runs[-1][1] - 1

    @property
    def n(self) -> int:
        return sum(end - start for start, end in self.runs)

    def within(self, first: int, last: int) -> int:
        """How many of its packets lie between two places, both included."""
        return sum(max(0, min(end, last + 1) - max(start, first)) for start, end in self.runs)


@dataclass
class Track:
    """One track.

    Attributes:
        pos: Places in the file.
        times: Presentation times; after `settle` without strays.
        lasts: How long the packets last; 0 where unknown.
        reorders: Whether its decoder knows of pictures that overtake others.
        decoding: Decoding times where the format has its own.
        strays: After `settle`: their indices.
        cuts: After `settle`: the last index before a step, the first behind it, and the seconds
            that it leaves out (negative: back).
    """

    pos: NDArray[np.int64]
    times: Times
    lasts: Times
    reorders: bool = True
    decoding: Times | None = None
    step: float = 0.0
    reach: float = 0.0
    depth: int = 0
    strays: list[int] = field(default_factory=list)
    cuts: list[tuple[int, int, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.step = _step(self.times, self.lasts)
        self.depth = _depth(self.times, self.reorders)
        self.reach = max(REACH_S, 1.5 * (self.depth + 1) * self.step)

    @property
    def end_s(self) -> float:
        """When the last packet is over."""
        return self.until(len(self.times))

    def until(self, place: int) -> float:
        """When what lies before a place is over: its last packet's own length, or a usual one."""
        last = int(np.argmax(self.times[:place]))
        own_s = float(self.lasts[last])
        return float(self.times[last]) + (own_s if own_s > NO_LENGTH_S else self.step)


def settle(track: Track, reaches: float = -np.inf) -> None:
    """Find a track's strays and steps, and put the strays in their places.

    `reaches` is the end of the other tracks: what they reach is no stray.

    Raises:
        Contradiction: the times of two clocks alternate.
    """
    threads = _threads(track)
    threads, strays = _enclosed(threads, track)
    threads = _without_few(threads, strays, track, reaches)
    track.strays = sorted(i for thread in strays for run in thread.runs for i in range(*run))
    if track.strays:
        _place(track)
    pairs = pairwise(threads)
    track.cuts = [(one.last, two.first, two.lo - one.hi) for one, two in pairs]


def join(tracks: Sequence[Track], breaks: Sequence[int] = ()) -> list[float]:
    """Put what was joined one behind the other, pictures first; returns the instants of the joins.

    `breaks` are the places, ascending, where a transport stream says that it was broken.
    """
    found = sorted(
        (int(track.pos[i]), n, i, by)
        for n, track in enumerate(tracks)
        for before, i, by in track.cuts
        if by < 0
        or by > LONGEST_PAUSE_S
        or (by > BROKEN_S and broken(track.pos[before], track.pos[i], breaks))
    )
    clusters: list[dict[int, tuple[int, float]]] = []
    for _, n, i, by in found:
        last = clusters[-1] if clusters else {}
        if last and n not in last and abs(next(iter(last.values()))[1] - by) < 2 * FEW_S:
            last[n] = i, by
        else:
            clusters.append({n: (i, by)})
    raw = [track.times.copy() for track in tracks]
    at_s = []
    for cluster in clusters:
        pos = min(int(tracks[n].pos[i]) for n, (i, _) in cluster.items())
        places = {n: i for n, (i, _) in cluster.items()}
        for n, track in enumerate(tracks):
            if n not in places:
                i = int(np.searchsorted(np.maximum.accumulate(track.pos), pos))
                # A track that simply goes on has no part in it.
                if i < len(raw[n]) and (
                    i == 0 or abs(raw[n][i] - raw[n][i - 1] - track.step) > track.reach
                ):
                    places[n] = i
        begins = {n: float(raw[n][i : i + REORDER].min()) for n, i in places.items()}
        ends = {n: tracks[n].until(i) for n, i in places.items() if i}
        due = {n: end - begins[n] for n, end in ends.items()}
        # Pictures go on at their pace where the sound laps over by little.
        most = max(due.values(), default=0.0)
        shift = due[0] if 0 in due and most - due[0] <= REACH_S else most
        for n, i in places.items():
            tracks[n].times[i:] = raw[n][i:] + shift
        at_s.append(min(begins.values()) + shift)
    return at_s


def broken(start: int, end: int, breaks: Sequence[int]) -> bool:
    """Whether one of the ascending `breaks` lies in (start, end]."""
    at = bisect_right(breaks, start)
    return at < len(breaks) and breaks[at] <= end


def _step(times: Times, lasts: Times) -> float:
    """The usual step from one picture to the next on the screen."""
    near = min(WINDOW, len(times))
    rows = times[: len(times) // near * near].reshape(-1, near)  # far ones may share their times
    steps = np.diff(np.sort(rows, 1))
    for found in (steps[steps > NO_LENGTH_S], lasts[lasts > NO_LENGTH_S]):
        if len(found):
            return float(np.median(found))
    return USUAL_S


def _depth(times: Times, reorders: bool) -> int:
    """How many pictures a picture usually overtakes: decoding order is not presentation order."""
    n = len(times)
    padded = np.concatenate([times, np.full(REORDER + 4, np.inf)])
    later = np.stack([padded[lag : lag + n] for lag in range(1, REORDER + 5)])
    overtaken = (later[:REORDER] < times).sum(0)
    settled = (later[REORDER:] > times).all(0)  # what stays behind was not overtaken
    counts = np.bincount(overtaken[settled], minlength=REORDER + 1)
    least = max(3, n // (200 if reorders else 10))
    return max((d for d in range(REORDER + 1) if counts[d:].sum() >= least), default=0)


def _edges(track: Track) -> list[int]:
    """Before which places times do not simply go on, whatever the order of decoding."""
    times, n = track.times, len(track.times)
    overtaken, overtaking = np.zeros(n, int), np.zeros(n, int)
    past, coming = np.full(n, -np.inf), times.copy()
    for lag in range(1, min(WINDOW, n)):
        inverted = times[lag:] < times[:-lag]
        overtaken[:-lag] += inverted
        overtaking[lag:] += inverted
        past[lag:] = np.maximum(past[lag:], times[:-lag])
        coming[:-lag] = np.minimum(coming[:-lag], times[lag:])
    # A picture overtakes a few and is overtaken by a few: more than that are no order of decoding.
    astray = (overtaken > track.depth) | (overtaking > track.depth)
    astray |= _far_out(times, astray, track) | _far_out(-times[::-1], astray[::-1], track)[::-1]
    step = np.abs(np.diff(times)) > track.reach
    ahead = coming[1:] - past[1:] > track.reach  # all that follow lie behind all that preceded
    return list(np.flatnonzero(ahead | (step & (astray[1:] | astray[:-1]))) + 1)


def _far_out(times: Times, astray: NDArray[np.bool_], track: Track) -> NDArray[np.bool_]:
    """Of the last few, too few follow to tell: those that go far farther ahead than any before."""
    found = np.zeros(len(times), bool)
    few = track.depth + 1
    before = times[-WINDOW - few : -few][~astray[-WINDOW - few : -few]]
    if len(before) > few:
        usual = np.diff(np.maximum.accumulate(before)).max()
        found[-few:] = times[-few:] - before.max() > max(track.reach, 3 * usual + track.reach)
    return found


def _threads(track: Track) -> list[Thread]:
    times, step, edges = track.times, track.step, _edges(track)
    threads: list[Thread] = []
    live: list[Thread] = []  # by when they were last gone on with
    for start, end in zip([0, *edges], [*edges, len(times)], strict=True):
        lo, hi = float(times[start:end].min()), float(times[start:end].max())
        best, least = None, np.inf
        for thread in live:
            between = start - thread.last - 1
            off = lo - thread.hi - step * (between + 1)
            # What lies between needs its room, or this is no going on. A time that is a little
            # ahead may have been taken for one of the thread's.
            slack = 0.5 * step * between
            if -2 * track.reach - slack <= off <= track.reach + slack and abs(off) < least:
                best, least = thread, abs(off)
        if best is None:
            best = Thread([], lo, hi)
            threads.append(best)
        else:
            live.remove(best)
        best.runs.append((int(start), int(end)))
        best.lo, best.hi = min(best.lo, lo), max(best.hi, hi)
        live = [*live, best][-LIVE:]
    return threads


def _enclosed(threads: list[Thread], track: Track) -> tuple[list[Thread], list[Thread]]:
    """Threads that follow each other, and those that only interrupt another."""
    kept: list[Thread] = []
    strays: list[Thread] = []
    for thread in threads:
        while kept and thread.first < kept[-1].last:
            other = kept[-1]
            inside = thread.last < other.last
            lapped = thread.first, min(thread.last, other.last)
            ours, theirs = thread.within(*lapped), other.within(*lapped)
            if not inside and ours + theirs <= track.depth + 2:
                kept.append(thread)  # coded across a pause
            elif inside or (3 * ours <= theirs and (thread.n - ours) * track.step <= FEW_S):
                strays.append(thread)
            elif 3 * theirs <= ours and _few(other, track):
                strays.append(kept.pop())
                continue
            else:
                raise Contradiction(f"{other.lo:.2f} s and {thread.lo:.2f} s alternate")
            break
        else:
            kept.append(thread)
    return kept, strays


def _few(thread: Thread, track: Track) -> bool:
    return thread.n == 1 or thread.n * track.step <= FEW_S


def _without_few(
    threads: list[Thread], strays: list[Thread], track: Track, reaches: float
) -> list[Thread]:
    """Without the few packets from which, or to which, time goes back."""
    kept = list(threads)
    at = 0
    while at + 1 < len(kept):
        one, two = kept[at], kept[at + 1]
        if two.lo >= one.hi - track.reach:
            at += 1
        elif _few(one, track) and (at == 0 or two.lo >= kept[at - 1].hi - track.reach):
            strays.append(kept.pop(at))
            at = max(0, at - 1)
        elif _few(two, track) and (at + 2 == len(kept) or kept[at + 2].lo >= one.hi - track.reach):
            strays.append(kept.pop(at + 1))
        else:
            at += 1
    for end, inner in ((-1, -2), (0, 1)):
        if len(kept) > 1 and _few(kept[end], track) and _steady(kept[inner], track):
            one, two = kept[0 if end == 0 else -2], kept[1 if end == 0 else -1]
            alone = two.lo - one.hi > LONE_S and reaches < two.lo - track.reach
            if alone or _decoded_on(track, one.last, two.first):
                strays.append(kept.pop(end))
    return kept


def _decoded_on(track: Track, before: int, i: int) -> bool:
    """Whether decoding times say that there is no pause."""
    if track.decoding is None:
        return False
    return bool(abs(track.decoding[i] - track.decoding[before]) <= track.reach)


def _steady(thread: Thread, track: Track) -> bool:
    """Whether it is long, and nearly all of its packets come at one rate."""
    places = np.concatenate([np.arange(*run) for run in thread.runs])
    steps = np.diff(np.sort(track.times[places]))
    near = np.abs(steps - track.step) <= track.step / 2
    return len(steps) * track.step > 3 * FEW_S and bool(near.mean() > 0.9)


def _place(track: Track) -> None:
    """Put strays into the gaps that the others around them leave."""
    true = np.ones(len(track.times), bool)
    true[track.strays] = False
    places = np.flatnonzero(true)
    raw = track.times.copy()
    depth = track.depth
    for group in np.split(track.strays, np.flatnonzero(np.diff(track.strays) > depth + 1) + 1):
        low, high = np.searchsorted(places, [group[0], group[-1]])
        first, last = low == 0, high == len(places)
        around = 2 * depth + 1
        near = np.sort(raw[places[max(0, low - around) : high + around]])
        # Of the outermost ones some neighbours are not among these.
        near = near[
            0 if low <= around else depth : None if high + around >= len(places) else -depth or None
        ]
        # Strays of one clock keep their order, which may differ from that of decoding.
        alike = np.ptp(raw[group]) <= track.reach + 2 * track.step * len(group)
        order = group[np.argsort(raw[group], kind="stable")] if alike else group
        track.times[order] = _slots(near, len(group), track.step, first, last)


def _slots(near: Times, n: int, step: float, first: bool, last: bool) -> Times:
    """Times for `n` packets among their neighbours; at either end of the track beyond them.

    Where more than one place would do the last one is taken: no picture is shown too early.
    """
    gaps = np.diff(near)
    rooms = np.maximum(0, np.rint(gaps / step).astype(int) - 1)
    found = [
        np.linspace(a, b, int(room) + 2)[1:-1] if room <= n else b - step * np.arange(n, 0, -1)
        for a, b, room in zip(near, near[1:], rooms, strict=False)
    ]
    slots = np.concatenate([*found, near[:0]])[-n:]
    more = np.arange(1, n - len(slots) + 1)
    if last:
        return np.concatenate([slots, near[-1] + step * more])
    if first:
        start_s = max(min(near[0], 0.0), near[0] - step * len(more))
        return np.concatenate([np.linspace(start_s, near[0], len(more), endpoint=False), slots])
    if len(more):
        widest = int(np.argmax(gaps))
        return np.linspace(near[widest], near[widest + 1], n + 2)[1:-1]
    return slots


def lowest_later(times: NDArray[Any]) -> NDArray[Any]:
    """For each packet the lowest time that it or a later one has: all before it is known then."""
    return np.minimum.accumulate(times[::-1])[::-1]


def moved(tracks: Sequence[Track]) -> float:
    """Move all tracks so that the first one does not start before zero; returns by how much."""
    by = -min(float(track.times.min()) for track in tracks)
    if float(tracks[0].times.min()) >= -EPSILON_S:
        return 0.0
    for track in tracks:
        track.times += by
    return by
