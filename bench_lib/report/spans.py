"""When the processes of a run worked, from the names and times of the files they wrote."""

from __future__ import annotations

from pathlib import Path


def spans(folder: Path) -> list[tuple[float, float]]:
    """From start to last record of each process that wrote, in seconds since the epoch."""
    found: dict[str, tuple[float, float]] = {}
    for path in folder.glob("*.jsonl"):
        stamp = path.name.split(".", 1)[1]
        begun = int(path.stem.rsplit("-", 1)[1]) / 1000
        last = max(path.stat().st_mtime, found.get(stamp, (0.0, 0.0))[1])
        found[stamp] = (begun, last)
    return sorted(found.values())


def overlapping(intervals: list[tuple[float, float]]) -> int:
    """The largest number of intervals that hold one instant."""
    edges = sorted([(start, 1) for start, _ in intervals] + [(end, -1) for _, end in intervals])
    open_now = most = 0
    for _, step in edges:
        open_now += step
        most = max(most, open_now)
    return most


def busy_s(intervals: list[tuple[float, float]]) -> float:
    """Seconds in which at least one interval was open."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total
