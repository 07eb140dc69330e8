"""folder: a user's own videos.

    DATA_ROOT/
        kitchen_week/                a trajectory
            trajectory.json          optional: title, participant, sessions
            monday.mp4 tuesday.mp4   its sessions in the order of their recording
            monday.srt               optional captions beside a video (.srt or .vtt)
            candidates.jsonl         optional: one schema.Candidate a line, or one JSON list

Without trajectory.json each video is a session named after its file. The order of recording is that
of dates and times or leading numbers in the names, else of the times in the files, else of the
names (`order`). Times of day in the names are the wall clock. Captions are those with the video's
name, with or without a language (`sidecars`); cues that tell the time of day are counted from the
session's wall clock.

`trajectory.json` may hold `title`, `participant` and `sessions`, a list of objects in their order
with `video` (a file name, or several recorded in one go), and optionally `id`, `wall_start` ("DAY2
10:03:12"), `captions` (a file name) and their `encoding`. Times in candidates are seconds in their
session. A video that cannot be read stays in the list and costs the probes of its session. What was
taken, and what was not used, is told.

Knob, in the source's name (`folder?encoding=gb18030`):
    encoding    of captions that are neither marked nor UTF-8, instead of a guess
"""

from __future__ import annotations

from pathlib import Path

from bench_lib import paths
from bench_lib.errors import BenchError
from bench_lib.schema import Dataset, Problem, Trajectory
from bench_lib.sources.folder import listing, reading
from bench_lib.sources.folder.described import Fault
from bench_lib.texts import encodings

KNOBS = {"encoding": ""}


def load(data_root: str, *, encoding: str = KNOBS["encoding"]) -> Dataset:
    """Read every trajectory folder below `data_root`."""
    root = Path(data_root).expanduser()
    if not data_root or not root.is_dir():
        raise BenchError(
            f"data_root {data_root!r} is no folder; give the folder that holds one folder per "
            "trajectory, each with its session videos"
        )
    otherwise = encodings.known(encoding) if encoding else ""
    try:
        found = listing.look(root)
    except OSError as error:
        raise BenchError(f"data_root {data_root!r} cannot be read ({error.strerror})") from None
    trajectories: list[Trajectory] = []
    problems: list[Problem] = []
    taken = reading.unused(paths.short(root), found, {listing.LOOSE: found.files})
    for home in found.folders:
        try:
            trajectories.append(reading.read(home, otherwise, problems, taken))
        except Fault as fault:
            problems.append(fault.problem)
        except OSError as error:
            reason = f"cannot be read ({error.strerror})"
            problems.append(Problem(paths.short(home), "folder", "files", "", reason))
    if not trajectories:
        raise BenchError(_nothing(root, found, problems))
    return Dataset(tuple(trajectories), tuple(problems), taken=tuple(taken), own=True)


def _nothing(root: Path, found: listing.Listing, problems: list[Problem]) -> str:
    name = paths.short(root)
    if found.videos and not found.folders:
        return (
            f"data_root {name} holds videos itself; give the folder above it, or put each "
            "trajectory's videos into a folder of their own"
        )
    reason = f" ({problems[0]})" if problems else ""
    return f"no trajectory below {name}: no folder holds a video{reason}"
