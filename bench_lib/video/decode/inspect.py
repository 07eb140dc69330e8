"""What a file claims and what is in it: opened, its first picture decoded, its tail read."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import av

from bench_lib.video.decode.protocol import TOLERANCE_S, VideoError, VideoInfo, check_file
from bench_lib.video.stream import EPSILON_S

TAIL_S = 1.0


def opened(file: str) -> Any:
    """An open PyAV container. Raises VideoError `missing`, `empty` or `corrupt`."""
    check_file(file)
    try:
        return av.open(f"file:{file}")  # a colon in a name must not be taken for a protocol
    except av.error.FFmpegError as error:
        raise VideoError("corrupt", file, f"no decoder can open it ({error.strerror})") from None


def best_video(container: Any, file: str) -> Any:
    """The main picture track; a cover image is none. Raises VideoError `no_video`."""
    covers = av.stream.Disposition.attached_pic
    tracks = [s for s in container.streams.video if not s.disposition & covers]
    best = container.streams.best("video")
    if best in tracks:
        return best
    if tracks:
        return tracks[0]
    sound = "only sound" if container.streams.audio else "no picture track"
    raise VideoError("no_video", file, f"has {sound}")


def quarter_turns(frame: Any) -> int:
    """How many counter-clockwise quarter turns make a stored picture upright (0 to 3)."""
    return round(frame.rotation / 90) % 4


def inspect_file(file: str) -> VideoInfo:
    """Read both ends of a file; what lies between is read only where there is no other way.

    Raises:
        VideoError: `missing`, `empty`, `corrupt` or `no_video`. A truncated file is no error here:
            its pictures are good until they stop.
    """
    nbytes = check_file(file)
    with opened(file) as container:
        stream = best_video(container, file)
        frame, first_s = _first(container, stream, file)
        turns = quarter_turns(frame)
        size = (frame.height, frame.width)
        ends = _ends(container, stream, file)
        last_s, end_s = ends.get(stream.index, (first_s, first_s))
        if stream.average_rate:
            end_s = max(end_s, last_s + 1 / float(stream.average_rate))
        length_s = (container.duration or 0) / av.time_base
        if stream.duration is not None:
            claimed_s = float((stream.start_time or 0) + stream.duration) * float(stream.time_base)
            truncated = end_s < claimed_s - TOLERANCE_S
        else:
            # The length is the file's: its longest track, which may be the sound, must reach it.
            claimed_s = length_s
            truncated = max(e for _, e in [*ends.values(), (0, end_s)]) < claimed_s - TOLERANCE_S
        return VideoInfo(
            file=file,
            size=(size[1], size[0]) if turns % 2 else size,
            first_s=first_s,
            last_s=max(last_s, first_s),
            duration_s=max(end_s, claimed_s) - first_s,
            fps=float(stream.average_rate or 0.0),
            codec=stream.codec_context.name,
            rotation_deg=turns * 90,
            has_audio=bool(container.streams.audio),
            nbytes=nbytes,
            truncated=truncated,
            created=_created(container, stream),
        )


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
        end_s = info.last_s + (1 / info.fps if info.fps else TOLERANCE_S)
    else:
        end_s = info.first_s + info.duration_s + TOLERANCE_S
    if t_s > end_s + EPSILON_S:
        told = f"has pictures until {info.last_s:.2f} s, and one at {t_s:.2f} s is needed"
        raise VideoError("truncated", info.file, told)


def _first(container: Any, stream: Any, file: str) -> tuple[Any, float]:
    """The first picture that is shown, and its time."""
    reason = "no picture can be decoded"
    packets = container.demux(stream)
    while True:
        try:
            packet = next(packets)
            frames = packet.decode()
        except StopIteration:
            raise VideoError("corrupt", file, reason) from None
        except av.error.FFmpegError as error:
            reason = f"no picture can be decoded ({error.strerror})"
            continue
        for frame in frames:
            stamp = frame.pts if frame.pts is not None else frame.dts
            if stamp is not None and stamp * stream.time_base >= -EPSILON_S:
                return frame, float(stamp * stream.time_base)


def _ends(container: Any, stream: Any, file: str) -> dict[int, tuple[float, float]]:
    """By index of each track of pictures or sound: when its last packet starts, and when it ends.

    Read from the last key frame on. Where nothing is found there, the file is cut short, and what
    there is of it is read.
    """
    start_s = (container.start_time or 0) / av.time_base
    length_s = (container.duration or 0) / av.time_base
    # Some formats count the length from the start offset, some from zero: go behind both.
    for goal_s in (start_s + length_s - TAIL_S, length_s - TAIL_S):
        with suppress(av.error.FFmpegError):
            container.seek(int(goal_s * av.time_base))
            ends = _read_on(container)
            if stream.index in ends:
                return ends
    with opened(file) as fresh:
        return _read_on(fresh)


def _read_on(container: Any) -> dict[int, tuple[float, float]]:
    """As `_ends`, from where the container stands to its end or to the first damage."""
    ends: dict[int, tuple[float, float]] = {}
    with suppress(av.error.FFmpegError):
        for packet in container.demux():
            if packet.stream.type not in ("video", "audio"):
                continue
            if packet.pts is None or not packet.size or packet.is_corrupt:
                continue
            at_s = float(packet.pts * packet.time_base)
            end_s = at_s + float((packet.duration or 0) * packet.time_base)
            was = ends.get(packet.stream_index, (at_s, end_s))
            ends[packet.stream_index] = (max(was[0], at_s), max(was[1], end_s))
    return ends
