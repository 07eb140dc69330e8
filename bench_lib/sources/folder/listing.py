"""What lies in a folder of a user's: videos, captions, records, and what is not used with why."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from bench_lib.sources.folder.names import natural
from bench_lib.texts import folded

VIDEOS = (
    ".mp4", ".m4v", ".mov", ".qt", ".mkv", ".webm", ".avi", ".divx", ".mts", ".m2ts", ".m2t",
    ".ts", ".trp", ".tp", ".mod", ".tod", ".vob", ".mpg", ".mpeg", ".mpe", ".m1v", ".m2v",
    ".mp2v", ".m2p", ".mpv", ".mxf", ".gxf", ".3gp", ".3gpp", ".3g2", ".3gp2", ".wmv", ".asf",
    ".flv", ".f4v", ".ogv", ".ogm", ".rm", ".rmvb", ".dv", ".dif", ".insv", ".360", ".h264",
    ".264", ".avc", ".h265", ".265", ".hevc", ".ivf", ".nut", ".y4m",
)  # fmt: skip
CAPTIONS = (".srt", ".vtt")
RECORDS = ("trajectory.json", "candidates.jsonl")
DROPPING = "left by a system or a program"
UNFINISHED = "not finished, or a temporary copy"
SMALL = "a small copy that a camera made for looking through"
NESTED = "a folder: list what is in it in trajectory.json, or move it up"
LOOSE = "in no folder of its own: each trajectory is a folder"
UNLISTED = "not listed in trajectory.json"
UNOWNED = "captions of no video here: their names must begin with a video's"
ODD = "its name holds control characters, or bytes that are no UTF-8: rename it"
NO_FILE = "no file that can be read"
OTHER = "neither video, captions (.srt, .vtt) nor one of trajectory.json and candidates.jsonl"
_ODD = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_SYSTEM = re.compile(
    r"\..*|~\$.*|(?:eh)?thumbs\.db|desktop\.ini|icon\r?|__macosx|@eadir|[@#]recycle|"
    r"\$recycle\.bin|recycler|system volume information|lost\+found|lost\.dir|ntuser\..*|"
    r"found\.\d{3}|.*\.sync-conflict-.*|.*conflicted copy.*",
    re.S,
)
_UNFINISHED = re.compile(
    r"~.*|.*~|.*\.(?:part|crdownload|download|opdownload|partial|filepart|tmp|temp|bak|swp|aria2|"
    r"ytdl|!qb|!ut|bc!|icloud)|.*\.part-frag\d+.*|.*\.(?:temp|tmp)\.[^.]+",
    re.S,
)
_SMALL = re.compile(r".*\.(?:lrv|lrf|thm|pek)|lrv_.*", re.S)


@dataclass(frozen=True)
class Listing:
    """The files of a folder in natural order; `unused` holds names by the reason."""

    videos: tuple[Path, ...] = ()
    captions: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()
    named: dict[str, list[Path]] = field(default_factory=dict)
    unused: dict[str, list[str]] = field(default_factory=dict)

    @property
    def files(self) -> tuple[Path, ...]:
        """Everything that could be used and is no folder."""
        return tuple(path for alike in self.named.values() for path in alike if not path.is_dir())

    def find(self, name: str) -> Path | None:
        """The file of that name, else the only one that differs in case or Unicode form alone."""
        alike = self.named.get(folded(name), [])
        exact = [path for path in alike if path.name == name]
        return (exact or alike)[0] if exact or len(alike) == 1 else None


def look(home: Path) -> Listing:
    """List a folder. Raises OSError where it cannot be read."""
    kinds: dict[str, list[Path]] = {"videos": [], "captions": [], "folders": []}
    named: dict[str, list[Path]] = {}
    unused: dict[str, list[str]] = {}
    for path in sorted(home.iterdir(), key=lambda path: natural(path.name)):
        kind, reason = _kind(path)
        if reason:
            unused.setdefault(reason, []).append(path.name)
            continue
        named.setdefault(folded(path.name), []).append(path)
        kinds.setdefault(kind, []).append(path)
    videos, captions, folders = (tuple(kinds[k]) for k in ("videos", "captions", "folders"))
    return Listing(videos, captions, folders, named, unused)


def _kind(path: Path) -> tuple[str, str]:
    """What an entry is, or why it is not used."""
    name, suffix = folded(path.name), path.suffix.lower()
    for pattern, reason in ((_SYSTEM, DROPPING), (_UNFINISHED, UNFINISHED), (_SMALL, SMALL)):
        if pattern.fullmatch(name):
            return "", reason
    if _ODD.search(path.name):
        return "", ODD
    if path.is_dir():
        return "folders", ""
    # A link to nothing stays in the list: the video that should be there is missed.
    if not path.is_file() and (path.exists() or not path.is_symlink()):
        return "", NO_FILE
    if suffix in VIDEOS:
        return "videos", ""
    if suffix in CAPTIONS:
        return "captions", ""
    return ("records", "") if name in RECORDS else ("", OTHER)


def listed(names: list[str], most: int = 50) -> str:
    """Names in a row; behind `most` they are counted."""
    shown = [_ODD.sub(lambda odd: repr(odd[0])[1:-1], name) for name in names[:most]]
    return ", ".join([*shown, *([f"and {len(names) - most:,} more"] if len(names) > most else [])])
