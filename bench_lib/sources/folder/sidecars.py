"""Captions beside a video: which file is taken, and how its cues lie in the recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench_lib import paths
from bench_lib.schema import Caption, Problem
from bench_lib.sources.folder.names import DAY_S, natural
from bench_lib.texts import Unreadable, folded
from bench_lib.video import captions


def beside(videos: Sequence[Path], files: Sequence[Path]) -> dict[Path, list[Path]]:
    """The caption files of each video, the one to be taken first in front.

    A file belongs to the video with the longest name that its own begins with: `a.srt`, `a.en.srt`,
    `a.mp4.srt`. Those without a language go first, forced ones (signs alone) last, `.srt` before
    `.vtt`, else natural order decides.
    """
    found: dict[Path, list[Path]] = {video: [] for video in videos}
    for file in sorted(files, key=lambda file: (_rank(file, videos), natural(file.name))):
        if (video := _owner(file, videos)) is not None:
            found[video].append(file)
    return found


def _owner(file: Path, videos: Sequence[Path]) -> Path | None:
    name = folded(file.stem)
    fits = [
        v for v in videos if f"{name}.".startswith((f"{folded(v.stem)}.", f"{folded(v.name)}."))
    ]
    return max(fits, key=lambda video: len(video.stem), default=None)


def _rank(file: Path, videos: Sequence[Path]) -> tuple[bool, bool, str]:
    owner, name = _owner(file, videos), folded(file.stem)
    plain = owner is not None and name in (folded(owner.stem), folded(owner.name))
    return "forced" in name, not plain, file.suffix.lower()


@dataclass(frozen=True)
class Stretch:
    """Where a video lies in its session: it starts at `at_s` and lasts `length_s` (0: unknown).

    Captions count from a moment `lead_s` before its first picture. `clock_s` is the wall clock at
    its start, `inferred` where a name tells it.
    """

    at_s: float
    length_s: float
    lead_s: float = 0.0
    clock_s: float | None = None
    inferred: bool = False


@dataclass(frozen=True)
class Spoken:
    """The lines of a video on its session's clock, where they come from, and what was passed by."""

    lines: tuple[Caption, ...] = ()
    file: Path | None = None
    how: str = ""
    rest: tuple[Path, ...] = ()


def spoken(
    files: Sequence[Path],
    stretch: Stretch,
    problems: list[Problem],
    encoding: str = "",
    otherwise: str = "",
) -> Spoken:
    """What the first file that says something says; the encodings are those of `captions.track`."""
    for n, file in enumerate(files):
        name = paths.short(file)
        try:
            track = captions.track(file, stretch.length_s or None, encoding, otherwise)
        except Unreadable as error:
            problems.append(Problem(name, "file", "text", "", str(error)))
            continue
        problems += [Problem(name, "cues", "text", track.encoding, odd) for odd in track.oddities]
        if track.cues:
            lines, how = _placed(file, track, stretch, problems)
            return Spoken(tuple(lines), file, f"{track.encoding}{how}", tuple(files[n + 1 :]))
        problems.append(Problem(name, "file", "cues", "0", "holds no cue; it is passed by"))
    return Spoken()


def _placed(
    file: Path, track: captions.Track, stretch: Stretch, problems: list[Problem]
) -> tuple[list[Caption], str]:
    """Cues on the session's clock; those beyond the video are left out, and are a problem."""
    cues, length_s, how = [_moved(cue, -stretch.lead_s) for cue in track.cues], stretch.length_s, ""
    if length_s and stretch.clock_s is not None:
        # Cues of EgoLife, and of cameras that note the clock, tell the time of day.
        off_s = stretch.clock_s % DAY_S
        clocked = [_moved(cue, -off_s + DAY_S * (cue.start_s < off_s)) for cue in track.cues]
        if _inside(clocked, length_s) > _inside(cues, length_s):
            cues, start = clocked, _clock(off_s)
            how = f", times of day from {start} on"
            if stretch.inferred:
                reason = f"are times of day: {start}, the video's start by its name, is taken off"
                problems.append(Problem(paths.short(file), "cues", "times", start, reason))
    end_s = length_s or float("inf")
    kept: list[Caption] = []
    lost: list[Caption] = []
    for cue in cues:
        (kept if cue.end_s >= 0 and cue.start_s < end_s else lost).append(cue)
    if lost:
        value = f"{_clock(lost[0].start_s)} to {_clock(lost[-1].end_s)}"
        reason = f"lie outside the {length_s:.1f} s of the video and are left out"
        if not kept:
            reason += "; if they are times of day, give wall_start in trajectory.json"
        problems.append(Problem(paths.short(file), f"{len(lost)} cues", "times", value, reason))
    held = [
        cue.model_copy(update={"start_s": max(0.0, cue.start_s), "end_s": min(cue.end_s, end_s)})
        for cue in kept
    ]
    return sorted((_moved(c, stretch.at_s) for c in held), key=lambda c: (c.end_s, c.start_s)), how


def _inside(cues: Sequence[Caption], length_s: float) -> int:
    return sum(cue.end_s >= 0 and cue.start_s < length_s for cue in cues)


def _moved(cue: Caption, by_s: float) -> Caption:
    start_s, end_s = round(cue.start_s + by_s, 6), round(cue.end_s + by_s, 6)
    return cue.model_copy(update={"start_s": start_s, "end_s": end_s})


def _clock(t_s: float) -> str:
    whole = int(t_s % DAY_S)
    return f"{whole // 3600:02d}:{whole % 3600 // 60:02d}:{whole % 60:02d}"
