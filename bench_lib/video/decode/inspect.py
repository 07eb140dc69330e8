"""What a file claims and what is in it: opened, its first picture decoded, its tail read.

Where its ends contradict what it says of itself, or its format lets clocks start anew, it is looked
through from end to end (`scan`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import av
import numpy as np

from bench_lib.video.decode.clock import NO_LENGTH_S, REORDER
from bench_lib.video.decode.files import best_audio, best_video, opened
from bench_lib.video.decode.protocol import TOLERANCE_S, VideoError, VideoInfo, check_file
from bench_lib.video.decode.scan import (
    Clock,
    Ends,
    Unsteady,
    known,
    packets,
    restarts,
    scan,
    status_key,
    steps_s,
)
from bench_lib.video.decode.upright import bits, mapping, transfer, turn_of
from bench_lib.video.stream import EPSILON_S

TAIL_S = 1.0
_infos: dict[tuple[str, int, int], VideoInfo] = {}


def inspect_file(file: str, alive: Callable[[], None] = lambda: None) -> VideoInfo:
    """Read both ends of a file, once; what lies between only where there is no other way.

    Raises:
        VideoError: `missing`, `empty`, `corrupt` or `no_video`. A truncated file is no error here:
            its pictures are good until they stop.
    """
    nbytes = check_file(file)
    key = status_key(file)
    if key not in _infos:
        _infos[key] = _inspected(file, nbytes, alive)
    return _infos[key]


def clock_of(file: str, alive: Callable[[], None] = lambda: None) -> Clock | None:
    """What looking through a file found; None where nothing spoke for doing that (yet)."""
    with suppress(VideoError):  # whoever reads the file meets the same error
        if inspect_file(file, alive).notes:
            return scan(file, alive)
    return known(file)


def _inspected(file: str, nbytes: int, alive: Callable[[], None]) -> VideoInfo:
    with opened(file) as container:
        stream = best_video(container, file)
        if restarts(container):
            scan(file, alive)
        frame, first_s = _first(file, alive)
        found = _extent(container, stream, file, first_s, alive)
        clock = known(file)
        if clock and clock.stamps:
            frame, first_s = _first(file, alive)
        try:
            turn, mapped = turn_of(frame), mapping(frame)
        except ValueError as error:
            raise VideoError("corrupt", file, str(error)) from None
        size = (frame.height, frame.width)
        return VideoInfo(
            file=file,
            size=(size[1], size[0]) if turn.quarters % 2 else size,
            zero_s=found.zero_s,
            first_s=first_s,
            last_s=max(found.last_s, first_s),
            duration_s=found.end_s - first_s,
            fps=float(stream.average_rate or 0.0),
            codec=stream.codec_context.name,
            rotation_deg=turn.quarters * 90,
            mirrored=turn.mirrored,
            bits=bits(frame),
            transfer=transfer(frame),
            mapping=mapped,
            has_audio=best_audio(container) is not None,
            nbytes=nbytes,
            truncated=found.truncated,
            created=_created(container, stream),
            notes=clock.notes if clock else (),
        )


@dataclass(frozen=True)
class _Extent:
    """Where the pictures of a file end, and the zero of its own clock."""

    last_s: float
    end_s: float
    truncated: bool
    zero_s: float


def _extent(
    container: Any, stream: Any, file: str, first_s: float, alive: Callable[[], None]
) -> _Extent:
    """Read from the file's end; looked through where it contradicts what the file claims."""
    ends, odd = _ends(container, stream, file)
    own = ends.get(stream.index, Ends(first_s, first_s, first_s))
    reached_s = own.end_s
    if stream.duration is None:
        # The length is the file's: its longest track, which may be the sound, must reach it.
        claimed_s = (container.duration or 0) / av.time_base
        reached_s = max([reached_s, *(end.end_s for end in ends.values())])
    else:
        claimed_s = float((stream.start_time or 0) + stream.duration) * float(stream.time_base)
    low_s, high_s = claimed_s - TOLERANCE_S, claimed_s + max(0.0, first_s) + TOLERANCE_S
    clock = scan(file, alive) if odd or not low_s <= reached_s <= high_s else known(file)
    zero_s, mended = 0.0, False
    if clock and stream.index in clock.ends:
        own, reached_s = clock.ends[stream.index], clock.claimed_s
        zero_s, mended = clock.moved_s, bool(clock.stamps)
        if restarts(container):
            claimed_s = reached_s = own.end_s  # what the library says is a guess
            zero_s = max(0.0, min(end.first_s for end in clock.ends.values()))
    short = reached_s < claimed_s - TOLERANCE_S
    whole = short and _whole(stream, container.size)
    truncated = short and not whole
    trusted = truncated or not (mended or whole)
    end_s = max(own.end_s, claimed_s) if trusted else own.end_s
    return _Extent(own.last_s, end_s, truncated, zero_s)


def _created(container: Any, stream: Any) -> str:
    """When the file says that it was recorded; Apple's own field outlives its exports."""
    for key in ("com.apple.quicktime.creationdate", "creation_time", "date"):
        for tags in (container.metadata, stream.metadata):
            if tags.get(key):
                return tags[key]
    return ""


def check_end(info: VideoInfo, t_s: float) -> None:
    """Raise VideoError `truncated` where `t_s` lies behind the last picture and what it covers.

    The last picture stands until the end of its track, and a little longer for spans whose ends
    are rounded; in a file that is cut short, no longer than the others.
    """
    if info.truncated:
        end_s = info.last_s + (min(1 / info.fps, TOLERANCE_S) if info.fps else TOLERANCE_S)
    else:
        end_s = info.first_s + info.duration_s + TOLERANCE_S
    if t_s > end_s + EPSILON_S:
        told = f"has pictures until {info.last_s:.2f} s, and one at {t_s:.2f} s is needed"
        raise VideoError("truncated", info.file, told)


def _first(file: str, alive: Callable[[], None]) -> tuple[Any, float]:
    """The first picture that is shown, and its time; the packets behind it are looked at, too."""
    while True:
        with suppress(Unsteady), opened(file) as container:
            return _first_of(container, file, alive)


def _first_of(container: Any, file: str, alive: Callable[[], None]) -> tuple[Any, float]:
    stream = best_video(container, file)
    reason = "no picture can be decoded"
    found: tuple[Any, float] | None = None
    incoming = packets(container, stream, file, alive, known(file))
    for n in range(1_000_000_000):
        if found and n > REORDER:
            break
        try:
            packet = next(incoming)
            early = packet.pts is not None and packet.pts < 0 and not packet.is_discard
            if early and not known(file) and scan(file, alive).stamps:
                raise Unsteady
            frames = [] if found else packet.decode()
        except StopIteration:
            break
        except av.error.FFmpegError as error:
            reason = f"no picture can be decoded ({error.strerror})"
            continue
        for frame in frames:
            stamp = frame.pts if frame.pts is not None else frame.dts
            if not found and not frame.is_corrupt and stamp is not None:
                at_s = float(stamp * stream.time_base)
                found = (frame, at_s) if at_s >= -EPSILON_S else None
    if not found:
        raise VideoError("corrupt", file, reason)
    return found


def _ends(container: Any, stream: Any, file: str) -> tuple[dict[int, Ends], bool]:
    """By index of each track of pictures or sound its end, and whether there is anything odd.

    Read from the last key frame on. Where nothing is found there, the file is cut short, and what
    there is of it is read.
    """
    if known(file):
        return {}, False
    start_s = (container.start_time or 0) / av.time_base
    length_s = (container.duration or 0) / av.time_base
    # Some formats count the length from the start offset, some from zero: go behind both.
    for goal_s in (start_s + length_s - TAIL_S, length_s - TAIL_S):
        with suppress(av.error.FFmpegError):
            container.seek(int(goal_s * av.time_base))
            ends, odd = _read_on(container)
            if stream.index in ends:
                return ends, odd or _out_of_order(stream)
    with opened(file) as fresh:
        return _read_on(fresh)


def _whole(stream: Any, nbytes: int) -> bool:
    """Whether an MP4 file holds all that its index names, whatever its edit list says."""
    if not stream.container.format.name.startswith("mov") or not stream.frames:
        return False  # fragmented ones have no index of the whole
    return all(entry.pos + entry.size <= nbytes for entry in stream.index_entries)


def _out_of_order(stream: Any) -> bool:
    """Whether the index of a Matroska file, its key frames by time, goes back in the file."""
    if not stream.container.format.name.startswith("matroska"):
        return False
    places = [entry.pos for entry in stream.index_entries]
    return any(later < place for place, later in pairwise(places))


def _read_on(container: Any) -> tuple[dict[int, Ends], bool]:
    """As `_ends`, from where the container stands to its end or to the first damage."""
    found: dict[int, list[tuple[float, float]]] = {}
    steps = {s.index: steps_s(s) for s in container.streams if s.type in ("video", "audio")}
    odd = False
    with suppress(av.error.FFmpegError):
        for packet in container.demux():
            if packet.stream_index not in steps:
                continue
            if packet.pts is None or not packet.size or packet.is_corrupt or packet.is_discard:
                continue
            at_s = float(packet.pts * packet.time_base)
            track = found.setdefault(packet.stream_index, [])
            if track:
                back_s, ahead_s = steps[packet.stream_index]
                odd = odd or not -back_s <= at_s - track[-1][0] <= ahead_s
            track.append((at_s, float((packet.duration or 0) * packet.time_base)))
    return {index: _ends_of(track) for index, track in found.items()}, odd


def _ends_of(track: list[tuple[float, float]]) -> Ends:
    times = np.unique([at_s for at_s, _ in track])
    last_s, own_s = max(track)
    usual_s = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    return Ends(times[0], last_s, last_s + (own_s if own_s > NO_LENGTH_S else usual_s))
