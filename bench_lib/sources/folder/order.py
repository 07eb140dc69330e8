"""In which order a folder's videos were recorded, and how that is known.

Dates and times in the names (`names.stamp`) say it best, and numbers that people put in front of
them: they outlive copies and exports. Then the times written in the files, then numbered chapters
and weekdays in the names, then the names in natural order. A rule holds for all videos or for none.
What speaks against it is told; what is wrong is set right by listing the sessions in
trajectory.json.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from bench_lib.sources.folder.names import Stamp, natural, stamp

SURE = ("dates", "days and times", "leading numbers")
"""Kinds of stamps in names that go before the times in the files."""
SET_SINCE = datetime(1990, 1, 1, tzinfo=UTC)
"""A camera whose clock was never set writes the start of its epoch: 1904, 1970 or 1980."""
SLACK_S = 2.0
EXAMPLES = 3
Pairs = Iterator[tuple["Clip", "Clip"]]


@dataclass(frozen=True)
class Clip:
    """A video to be ordered, with its length and the time of recording that its file states."""

    file: Path
    duration_s: float = 0.0
    created: str = ""

    @property
    def stamp(self) -> Stamp | None:
        """When its name says that it was recorded."""
        return stamp(self.file.stem)

    @property
    def created_s(self) -> float | None:
        """When its file says so, in seconds since 1970; None where it does not."""
        try:
            moment = datetime.fromisoformat(self.created)
        except ValueError:
            return None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return moment.timestamp() if moment >= SET_SINCE else None


@dataclass(frozen=True)
class Order:
    """Clips in their order, the rule, and what speaks against it."""

    clips: tuple[Clip, ...]
    rule: str
    doubts: tuple[str, ...] = ()


def recorded(clips: Sequence[Clip]) -> Order:
    """The order of recording."""
    plain = tuple(sorted(clips, key=lambda clip: (natural(clip.file.stem), clip.file.name)))
    if len(plain) < 2:
        return Order(plain, "one video")
    found = [_by_names(plain), _by_files(plain)]
    doubts = [doubt for order in found for doubt in order.doubts]
    named, filed = (order if order.clips else None for order in found)
    if named and (named.rule.startswith(SURE) or not filed):
        chosen, other = named, filed
    else:
        chosen, other = filed or Order(plain, "names in natural order"), named
        if filed and not named and _numbered(plain):
            other = Order(plain, "numbers in the names")
    for a, b in pairwise(chosen.clips):
        if other and other.clips.index(b) < other.clips.index(a):
            doubts.append(f"by the {other.rule} {b.file.name} comes before {a.file.name}")
            break
    return Order(chosen.clips, chosen.rule, tuple(doubts))


def _by_names(plain: tuple[Clip, ...]) -> Order:
    """By stamps of one kind; without clips where there are none."""
    stamps = {clip: clip.stamp for clip in plain}
    kinds = {found.kind for found in stamps.values() if found}
    if not kinds:
        return Order((), "")
    if None in stamps.values():
        return Order((), "", (_partly("names", [clip for clip in plain if stamps[clip]], plain),))
    if len(kinds) > 1:
        doubt = f"the names tell the time in several ways ({', '.join(sorted(kinds))}): not used"
        return Order((), "", (doubt,))
    clips = tuple(sorted(plain, key=lambda clip: stamps[clip].key))  # type: ignore[union-attr]
    ties = _ties((a, b) for a, b in pairwise(clips) if stamps[a].key == stamps[b].key)  # type: ignore[union-attr]
    return Order(clips, f"{kinds.pop()} in the names", ties)


def _by_files(plain: tuple[Clip, ...]) -> Order:
    """By the times in the files; without clips where they are missing or cannot be right."""
    times = {clip: clip.created_s for clip in plain}
    timed = [clip for clip in plain if times[clip] is not None]
    if len(timed) < len(plain):
        return Order((), "", (_partly("files", timed, plain),) if timed else ())
    # Chapters of one recording state its start.
    keys = {clip: (times[clip], clip.stamp.key if clip.stamp else ()) for clip in plain}
    clips = tuple(sorted(plain, key=lambda clip: keys[clip]))
    gaps = [(a, b, times[b] - times[a]) for a, b in pairwise(clips) if times[a] != times[b]]  # type: ignore[operator]
    if not gaps:
        return Order((), "", ("the times in the files are all the same: not used",))
    # Some cameras state when a recording started, others when it ended.
    if any(gap_s < a.duration_s - SLACK_S for a, _, gap_s in gaps) and any(
        gap_s < b.duration_s - SLACK_S for _, b, gap_s in gaps
    ):
        doubt = "the times in the files are closer than the videos are long, as exports': not used"
        return Order((), "", (doubt,))
    ties = _ties((a, b) for a, b in pairwise(clips) if keys[a] == keys[b])
    return Order(clips, "times in the files", ties)


def _numbered(clips: tuple[Clip, ...]) -> bool:
    """Whether the names are one series that differs in its numbers alone."""
    return len({re.sub(r"\d+", "#", clip.file.stem) for clip in clips}) == 1


def _ties(pairs: Pairs) -> tuple[str, ...]:
    told = [f"{a.file.name} and {b.file.name} have one time: ordered by name" for a, b in pairs]
    rest = len(told) - EXAMPLES
    return (*told[:EXAMPLES], *([f"and {rest} more have one time"] if rest > 0 else []))


def _partly(where: str, timed: Sequence[Clip], clips: Sequence[Clip]) -> str:
    rest = next(clip for clip in clips if clip not in timed)
    return f"not all {where} tell when: {timed[0].file.name} does, {rest.file.name} does not"
