"""The recordings of a StreamArena folder: where they lie, how long they are, what is said in them.

A video is `videos/ID.mp4`, `videos/ID/ID.mp4`, or the release's `videos/ID.tar`, which is opened
when the video is first needed. Lengths come from the files' indexes, so that a folder of hundreds
is looked through in a second.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_lib import paths
from bench_lib.schema import Caption, Problem, Taken
from bench_lib.sources.stream_arena import mp4
from bench_lib.sources.stream_arena.archive import Archive, Refused, extract, look
from bench_lib.sources.stream_arena.rows import Fault
from bench_lib.texts import Unreadable, records
from bench_lib.video import captions
from bench_lib.video.session import VideoError, inspect

LANGUAGES = ("zh-CN", "zh-Hans", "en", "zh-Hant")
"""Caption tracks in the order in which the paper takes the first that there is (Eq. 16)."""
MISSING = "video missing"
UNUSABLE = "video cannot be used"
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Video:
    """A recording: the file it is, or becomes when its archive is opened, and its length."""

    file: Path
    duration_s: float
    archive: Archive | None = None


def find(root: Path, name: str, manifest: dict[str, dict[str, Any]] | None) -> Video:
    """The video of that id. Raises Fault with the kind MISSING or UNUSABLE."""
    folder = root / "videos"
    tar = folder / f"{name}.tar"
    for plain in (folder / f"{name}.mp4", folder / name / f"{name}.mp4"):
        if plain.is_file():
            return Video(plain.resolve(), _length_s(plain, plain))
    if not tar.is_file():
        reason = f"{name}.mp4 or {name}.tar is not there; put it there, or leave these out"
        raise Fault(MISSING, "video_id", name, reason)
    if manifest is not None and name not in manifest:
        reason = "the manifest does not list this archive; add its bytes and sha256"
        raise Fault(UNUSABLE, "video_id", name, reason)
    try:
        archive = look(tar, name, manifest[name] if manifest is not None else None)
    except (Refused, OSError) as error:
        raise Fault(UNUSABLE, "archive", tar.name, str(error)) from None
    target = paths.cache() / "stream_arena" / archive.key / f"{name}.mp4"
    refused = refusal(target, archive)
    if refused.exists() and not target.exists():
        raise Fault(UNUSABLE, "archive", tar.name, refused.read_text(encoding="utf-8"))
    return Video(target, _length_s(tar, target, archive), archive)


def _length_s(file: Path, target: Path, archive: Archive | None = None) -> float:
    start, end = (archive.offset, archive.offset + archive.nbytes) if archive else (0, None)
    try:
        with file.open("rb") as data:
            known = mp4.length_s(data, start, file.stat().st_size if end is None else end)
        if known is not None:
            return known
        if archive:
            extract(archive, target)  # only a decoder can tell
        info = inspect(target)
        return max(info.last_s, info.first_s + info.duration_s)
    except (ValueError, OSError, Refused) as error:
        reason = f"{error}; copy it again"
        raise Fault(UNUSABLE, "video", file.name, reason) from None
    except VideoError as error:
        raise Fault(UNUSABLE, "video", file.name, error.reason) from None


def refusal(target: Path, archive: Archive) -> Path:
    """Where it is noted why a video was not taken out of an archive as it is now."""
    size, changed_ns = archive.stamp
    return target.with_name(f"{target.stem}.{size}-{changed_ns}.refused")


def manifest(root: Path, problems: list[Problem]) -> dict[str, dict[str, Any]] | None:
    """Bytes and digest of each archive by video id; None where no manifest lies in the folder."""
    path = root / "videos_manifest.jsonl"
    if not path.is_file():
        return None
    found: dict[str, dict[str, Any]] = {}
    for where, row in objects(path, problems):
        size, digest = row.get("bytes"), row.get("sha256")
        good = (
            isinstance(size, int) and isinstance(digest, str) and _SHA256.fullmatch(digest.lower())
        )
        if not good:
            value = repr((size, digest))
            reason = "needs a number of bytes and 64 hexadecimal digits; its archive is not used"
            problems.append(Problem(paths.short(path), where, "bytes, sha256", value, reason))
            continue
        found[row["video_id"]] = {"bytes": size, "sha256": str(digest).lower()}
    return found


def objects(path: Path, problems: list[Problem]) -> list[tuple[str, dict[str, Any]]]:
    """The records of a file that are objects with a `video_id`, by place; others are problems."""
    found, name = [], paths.short(path)
    try:
        entries = records.entries(path)
    except records.Unreadable as error:
        problems.append(Problem(name, "file", "JSON", "", f"{error}; it is not used"))
        return []
    for entry in entries:
        row = entry.value
        if isinstance(row, dict) and isinstance(row.get("video_id"), str):
            found.append((entry.where, row))
        else:
            reason = f"{entry.fault or 'is no JSON object with a video_id'}; it is not used"
            problems.append(Problem(name, entry.where, entry.field, repr(entry.text[:60]), reason))
    return found


def spoken(
    root: Path, name: str, until_s: float, problems: list[Problem]
) -> tuple[str, tuple[Caption, ...], Taken]:
    """The first caption track of the list that says something: its language, its lines, its file.

    A track is `captions/ID.LANGUAGE.vtt` (or `.srt`), or lies beside the videos. Empty where there
    is none.
    """
    what, silent = f"{name}: captions", list[str]()
    for language in LANGUAGES:
        for folder in (root / "captions", root / "videos", root / "videos" / name):
            for suffix in ("vtt", "srt"):
                path = folder / f"{name}.{language}.{suffix}"
                if not path.is_file():
                    continue
                try:
                    track = captions.track(path, until_s)
                except Unreadable as error:
                    problems.append(Problem(paths.short(path), "file", "text", "", str(error)))
                    continue
                if track.cues:
                    value = f"{path.name}, {len(track.cues)} cue{'s' * (len(track.cues) != 1)}"
                    how = "; ".join([track.encoding, *track.oddities, *_passed(silent)])
                    return language, track.cues, Taken(what, value, how)
                silent.append(path.name)
    return "", (), Taken(what, "none", "; ".join(_passed(silent)) or "no track is there")


def _passed(silent: list[str]) -> list[str]:
    return [f"without a cue: {', '.join(silent)}"] if silent else []
