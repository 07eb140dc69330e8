"""A file looked through from end to end, undecoded: what times its packets really have.

That is done where something speaks for it: in formats whose clocks may start anew (transport and
program streams), where the ends of a file contradict what it says of itself, and where times jump
while it is read. The outcome is kept for the files at hand.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from bench_lib.video.decode.clock import (
    BROKEN_S,
    REACH_S,
    REORDER,
    Contradiction,
    Track,
    broken,
    join,
    lowest_later,
    moved,
    settle,
)
from bench_lib.video.decode.files import best_audio, best_video, opened
from bench_lib.video.decode.protocol import VideoError

Ticks = NDArray[np.int64]
NONE = np.iinfo(np.int64).min
JUMP_S = 1.0
ROUNDED_S = 0.005
"""Times of containers are rounded, to a millisecond in Matroska."""
KEPT = 4
OWN_DECODING_TIMES = ("mov", "mpegts")
"""Formats that store them; for others they are computed from presentation times."""
RESTARTS = 0x200
"""libavformat's AVFMT_TS_DISCONT: clocks of this format may start anew within a file."""


class Unsteady(Exception):
    """Times jump, and the file has been looked through: it must be read anew."""


@dataclass(frozen=True)
class Ends:
    """A track's extent: when its first and its last packet start, and when it is over."""

    first_s: float
    last_s: float
    end_s: float


@dataclass(frozen=True)
class Clock:
    """What looking through a file found.

    Attributes:
        stamps: By index of the track, presentation and decoding times in ticks of its packets with
            content, in file order; none at all where the file's own are right.
        ends: By index of the track, its true extent.
        claimed_s: The latest end by the file's own times, which its header counts with.
        moved_s: How much later everything is than by the file's own times, for a negative start.
        notes: What was put right, for people.
    """

    stamps: dict[int, tuple[Ticks, Ticks]] = field(default_factory=dict)
    ends: dict[int, Ends] = field(default_factory=dict)
    claimed_s: float = 0.0
    moved_s: float = 0.0
    notes: tuple[str, ...] = ()


_known: dict[tuple[str, int, int], Clock] = {}


def known(file: str) -> Clock | None:
    """The clock of a file that was looked through before."""
    return _known.get(status_key(file))


def scan(file: str, alive: Callable[[], None] = lambda: None) -> Clock:
    """Look a file through. Raises VideoError `corrupt` where its times cannot be made sense of."""
    key = status_key(file)
    if key not in _known:
        found = _scan(file, alive)
        while len(_known) >= KEPT:
            _known.pop(next(iter(_known)))
        _known[key] = found
    return _known[key]


def packets(
    container: Any, stream: Any, file: str, alive: Callable[[], None], clock: Clock | None
) -> Iterator[Any]:
    """The packets of a track from where its container stands, with true times.

    With a clock that has stamps the container must stand at its start.

    Raises:
        Unsteady: the file was not looked through, times jump, and they must be put right.
    """
    if clock and stream.index in clock.stamps:
        yield from _stamped(container, stream, *clock.stamps[stream.index])
    elif clock:
        yield from container.demux(stream)
    else:
        yield from _watched(container, stream, file, alive)


def _stamped(container: Any, stream: Any, pts: Ticks, dts: Ticks) -> Iterator[Any]:
    n = 0
    for packet in container.demux(stream):
        if packet.size and n < len(pts):
            packet.pts = None if pts[n] == NONE else int(pts[n])
            packet.dts = None if dts[n] == NONE else int(dts[n])
            n += 1
        yield packet


def _watched(container: Any, stream: Any, file: str, alive: Callable[[], None]) -> Iterator[Any]:
    """One packet behind, so that none is let out before its neighbour was seen."""
    back_s, ahead_s = steps_s(stream)
    held: Any = None
    last_s: float | None = None
    incoming = container.demux(stream)
    while True:
        try:
            packet = next(incoming)
        except StopIteration:
            break
        except av.error.FFmpegError:
            if held is not None:
                yield held
            raise
        if packet.pts is not None and packet.size and not packet.is_discard:
            at_s = float(packet.pts * stream.time_base)
            if last_s is not None and not -back_s <= at_s - last_s <= ahead_s:
                if scan(file, alive).stamps:
                    raise Unsteady
                back_s = ahead_s = np.inf
            last_s = at_s
        if held is not None:
            yield held
        held = packet
    if held is not None:
        yield held


def steps_s(stream: Any) -> tuple[float, float]:
    """How far two packets of a track that follow each other may lie apart, back and ahead."""
    usual_s = 1 / float(stream.base_rate) if getattr(stream, "base_rate", None) else 0.0
    if reorders(stream):
        most_s = max(JUMP_S, (REORDER + 1) * usual_s)
        return most_s, most_s
    return ROUNDED_S, max(REACH_S, 4 * usual_s)


def reorders(stream: Any) -> bool:
    """Whether pictures may overtake others on their way to the screen."""
    return bool(getattr(stream.codec_context, "reorder_depth", 0))


def restarts(container: Any) -> bool:
    """Whether the clock of this format may start anew within a file."""
    return bool(container.format.flags & RESTARTS)


def status_key(file: str) -> tuple[str, int, int]:
    """A file as it is now. Raises OSError."""
    status = Path(file).stat()
    return file, status.st_size, status.st_mtime_ns


def _longs() -> array[int]:
    return array("q")  # hours of packets


@dataclass
class _Rows:
    """The packets of one track as they come."""

    stream: Any
    pos: array[int] = field(default_factory=_longs)
    pts: array[int] = field(default_factory=_longs)
    dts: array[int] = field(default_factory=_longs)
    lasts: array[int] = field(default_factory=_longs)
    valid: array[int] = field(default_factory=_longs)

    def track(self) -> Track:
        base = float(self.stream.time_base)
        used = np.array(self.valid, bool)
        pts, lasts = np.array(self.pts, np.int64), np.array(self.lasts, np.float64)
        places = np.array(self.pos, np.int64)[used]
        decoding = None
        if self.stream.container.format.name.startswith(OWN_DECODING_TIMES):
            decoding = np.array(self.dts, np.int64)[used] * base
        return Track(places, pts[used] * base, lasts[used] * base, reorders(self.stream), decoding)

    def stamps(self, track: Track) -> tuple[Ticks, Ticks]:
        used = np.flatnonzero(self.valid)
        pts = np.array(self.pts, np.int64)
        dts = np.full(len(pts), NONE, np.int64)
        pts[used] = np.rint(track.times / float(self.stream.time_base)).astype(np.int64)
        dts[used] = lowest_later(pts[used])
        return pts, dts


def _scan(file: str, alive: Callable[[], None]) -> Clock:
    with opened(file) as container:
        streams = [best_audio(container)]
        with suppress(VideoError):
            streams = [best_video(container, file), *streams]
        rows = {s.index: _Rows(s) for s in streams if s}
        with suppress(av.error.FFmpegError):  # a file cut short is looked through to its end
            for n, packet in enumerate(container.demux([row.stream for row in rows.values()])):
                if packet.size:
                    row = rows[packet.stream_index]
                    row.pos.append(n if packet.pos is None else packet.pos)
                    row.pts.append(NONE if packet.pts is None else packet.pts)
                    row.dts.append(NONE if packet.dts is None else packet.dts)
                    row.lasts.append(packet.duration or 0)
                    row.valid.append(packet.pts is not None and not packet.is_discard)
                if n % 256 == 0:
                    alive()
        rows = {index: row for index, row in rows.items() if any(row.valid)}
        tracks = {index: row.track() for index, row in rows.items()}
        claimed_s = max((track.end_s for track in tracks.values()), default=0.0)
        notes, moved_s, mended = _mended(file, list(tracks.values()), container)
        return Clock(
            {index: row.stamps(tracks[index]) for index, row in rows.items()} if mended else {},
            {
                index: Ends(float(t.times.min()), float(t.times.max()), t.end_s)
                for index, t in tracks.items()
            },
            claimed_s,
            moved_s,
            notes,
        )


def _mended(file: str, tracks: list[Track], container: Any) -> tuple[tuple[str, ...], float, bool]:
    """Mend the tracks in place: what there is to say, the move, whether any time was changed."""
    notes: list[str] = []
    reached = -np.inf
    try:
        for track in reversed(tracks):  # pictures last: they are held against the sound
            settle(track, reached)
            reached = track.end_s
    except Contradiction as error:
        told = f"its timestamps contradict each other: {error}"
        raise VideoError("corrupt", file, told) from None
    strays = sum(len(track.strays) for track in tracks)
    if strays:
        at_s = min(float(t.times[t.strays].min()) for t in tracks if t.strays)
        told, whose = (
            ("1 packet has a stray timestamp", "its")
            if strays == 1
            else (f"{strays} packets have stray timestamps", "their")
        )
        notes.append(f"{told}, from {at_s:.2f} s on: put between {whose} neighbours")
    steps = [(t, *cut) for t in tracks for cut in t.cuts if cut[2] > JUMP_S]
    found = breaks(file) if steps and container.format.name == "mpegts" else []
    joins = join(tracks, found)
    if joins:
        places = ", ".join(f"{t:.2f} s" for t in joins[:5]) + (" ..." if len(joins) > 5 else "")
        notes.append(f"joined from {len(joins) + 1} recordings, the next begins at {places}")
    by_s = moved(tracks) if tracks else 0.0
    if by_s:
        notes.append(f"starts {by_s:.2f} s before zero: moved by that")
    mended = bool(notes)
    for track, before, i, lost_s in steps:
        if lost_s <= BROKEN_S and broken(int(track.pos[before]), int(track.pos[i]), found):
            notes.append(f"broken at {track.times[i]:.2f} s: the {lost_s:.2f} s before are missing")
    return tuple(notes), by_s, mended


def breaks(file: str) -> list[int]:
    """Where in a transport stream the counters of its packets do not go on."""
    data = np.memmap(file, np.uint8, "r")
    for size, sync in ((188, 0), (192, 4), (204, 0)):
        if len(data) > sync + 2 * size and (data[sync : sync + 3 * size : size] == 0x47).all():
            break
    else:
        return []
    cells = data[: len(data) // size * size].reshape(-1, size)
    head = np.array(cells[:, sync : sync + 6])
    pids = (head[:, 1].astype(np.int64) & 0x1F) << 8 | head[:, 2]
    carries = head[:, 3] >> 4 & 1
    counter = head[:, 3] & 15
    told = (head[:, 3] & 0x20 != 0) & (head[:, 4] > 0) & (head[:, 5] & 0x80 != 0)
    found = []
    for pid in np.unique(pids[pids != 0x1FFF]):
        own = np.flatnonzero(pids == pid)
        due = (counter[own[:-1]] + carries[own[1:]]) & 15
        repeated = counter[own[1:]] == counter[own[:-1]]
        found.append(own[1:][((counter[own[1:]] != due) & ~repeated) | told[own[1:]]])
    return [int(at) * size for at in np.unique(np.concatenate(found))] if found else []
