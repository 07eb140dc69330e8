"""Recorded files opened, and the tracks that a viewer gets: pictures and sound."""

from __future__ import annotations

from typing import Any

import av
from av.stream import Disposition

from bench_lib.video.decode.protocol import VideoError, check_file

ASIDE = (
    Disposition.comment
    | Disposition.hearing_impaired
    | Disposition.visual_impaired
    | Disposition.clean_effects
    | Disposition.descriptions
    | Disposition.dependent
)
"""Sound that is made for somebody or something else than a plain viewer."""


def opened(file: str) -> Any:
    """An open PyAV container. Raises VideoError `missing`, `empty` or `corrupt`."""
    check_file(file)
    try:
        return av.open(f"file:{file}")  # a colon in a name must not be taken for a protocol
    except av.error.FFmpegError as error:
        raise VideoError("corrupt", file, f"no decoder can open it ({error.strerror})") from None


def best_video(container: Any, file: str) -> Any:
    """The main picture track; a cover image is none. Raises VideoError `no_video`."""
    tracks = [s for s in container.streams.video if not s.disposition & Disposition.attached_pic]
    best = container.streams.best("video")
    if best in tracks:
        return best
    if tracks:
        return tracks[0]
    sound = "only sound" if container.streams.audio else "no picture track"
    raise VideoError("no_video", file, f"has {sound}")


def best_audio(container: Any) -> Any:
    """The sound that a player plays unasked, None where there is none that can be decoded.

    The default track; of several, or of none, the first that is not made for a special purpose.
    """
    tracks = [s for s in container.streams.audio if s.codec_context is not None]
    tracks.sort(
        key=lambda s: (not s.disposition & Disposition.default, bool(s.disposition & ASIDE))
    )
    return tracks[0] if tracks else None
