"""A folder as a trajectory: which files are its sessions, in which order, with which captions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bench_lib import paths
from bench_lib.schema import Caption, Problem, Session, Span, Taken, Trajectory
from bench_lib.sources.check import SLACK_S
from bench_lib.sources.folder import described, listing, sidecars
from bench_lib.sources.folder.described import Entry, Fault
from bench_lib.sources.folder.listing import Listing, listed, look
from bench_lib.sources.folder.names import DAY_S, stamp
from bench_lib.sources.folder.order import Clip, recorded
from bench_lib.sources.folder.sidecars import Stretch
from bench_lib.texts import composed, folded
from bench_lib.video.session import VideoError, inspect


def read(home: Path, otherwise: str, problems: list[Problem], taken: list[Taken]) -> Trajectory:
    """The trajectory of a folder; `otherwise` is the encoding of captions that tell none.

    Raises Fault, or OSError where the folder cannot be read.
    """
    return _Folder(home, look(home), otherwise, problems, taken).trajectory()


def unused(where: str, found: Listing, more: Mapping[str, Iterable[Path]]) -> list[Taken]:
    """What is told of files that are not used, by the reason."""
    named = {why: [path.name for path in files] for why, files in more.items()}
    return [
        Taken(f"{where}: not used", listed(names), why)
        for why, names in {**found.unused, **named}.items()
        if names
    ]


@dataclass(frozen=True)
class _Part:
    """A session to be: its id, its files, their spans, and how long their captions lead these."""

    id: str
    entry: Entry
    files: tuple[Path, ...]
    spans: tuple[Span, ...]
    leads_s: tuple[float, ...]

    @property
    def duration_s(self) -> float:
        return sum(span.end_s - span.start_s for span in self.spans)


@dataclass(frozen=True)
class _Folder:
    home: Path
    found: Listing
    otherwise: str
    problems: list[Problem]
    taken: list[Taken]

    @property
    def name(self) -> str:
        return composed(self.home.name)

    def trajectory(self) -> Trajectory:
        file = self.found.find("trajectory.json")
        about = described.about(file)
        entries, rule = about.sessions, "as listed in trajectory.json"
        if entries is None:
            entries, rule = self._recorded()
        if not entries:
            raise Fault(file or self.home, "folder", "videos", [], "holds no video")
        parts = [self._part(id, entry) for id, entry in zip(_ids(entries), entries, strict=True)]
        self._tell("order", ", ".join(part.id for part in parts), rule)
        sessions = tuple(self._sessions(parts))
        if not any(session.captions for session in sessions) and not self.found.captions:
            self._tell("captions", "none", "no .srt or .vtt file")
        self._tell_unused({file for part in parts for file in part.files})
        asked = described.candidates(self.found.find("candidates.jsonl"), self.problems)
        return Trajectory(
            id=self.name,
            source="folder",
            title=about.title or self.name,
            participant=about.participant,
            sessions=sessions,
            candidates=tuple(asked),
        )

    def _tell(self, what: str, value: str, how: str) -> None:
        self.taken.append(Taken(f"{self.name}: {what}", value, how))

    def _tell_unused(self, used: set[Path]) -> None:
        owned = {file for files in self._sides.values() for file in files}
        more = {
            listing.UNLISTED: [file for file in self.found.videos if file not in used],
            listing.UNOWNED: [file for file in self.found.captions if file not in owned],
            listing.NESTED: [
                folder
                for folder in self.found.folders
                if not any(folder in file.parents for file in used)
            ],
        }
        self.taken.extend(unused(self.name, self.found, more))

    def _recorded(self) -> tuple[tuple[Entry, ...], str]:
        """Every video in the order of recording, and how it is known."""
        clips = []
        for file in self.found.videos:
            try:
                info = inspect(file)
                clips.append(Clip(file, info.duration_s, info.created))
            except VideoError:
                clips.append(Clip(file))
        order = recorded(clips)
        entries = tuple(Entry(video=clip.file.name) for clip in order.clips)
        return entries, "; ".join([order.rule, *order.doubts])

    def _part(self, id: str, entry: Entry) -> _Part:
        files = tuple(self.found.find(name) or self.home / name for name in entry.videos)
        spans, leads_s = [], []
        for file in files:
            lead_s = 0.0
            try:
                info = inspect(file)
                lead_s = info.first_s - info.zero_s
                start_s, end_s = info.first_s, max(info.last_s, info.first_s + info.duration_s)
                for note in info.notes:
                    name = paths.short(file)
                    self.problems.append(Problem(name, f"session {id}", "video", "times", note))
            except VideoError as error:
                # The engine meets the same error when it opens the file, and says so at each probe.
                start_s = end_s = 0.0
                name = paths.short(file)
                problem = Problem(name, f"session {id}", "video", error.kind, error.reason)
                self.problems.append(problem)
            spans.append(Span(file=str(file.resolve()), start_s=start_s, end_s=end_s))
            leads_s.append(lead_s)
        return _Part(id, entry, files, tuple(spans), tuple(leads_s))

    def _sessions(self, parts: Sequence[_Part]) -> Iterable[Session]:
        inferred = not any(part.entry.wall_start for part in parts)
        clocks = self._clocks(parts) if inferred else [p.entry.wall_s for p in parts]
        for n, (part, clock_s) in enumerate(zip(parts, clocks, strict=True)):
            yield Session(
                id=part.id,
                index=n,
                spans=part.spans,
                duration_s=part.duration_s,
                wall_start_s=clock_s,
                captions=tuple(self._captions(part, clock_s, inferred)),
            )

    def _clocks(self, parts: Sequence[_Part]) -> list[float | None]:
        """Starts on the wall clock by the names, where all tell the time of day and none overlap.

        Day 1 is that of the first session.
        """
        told = [stamp(part.files[0].stem) for part in parts]
        stamps = [one for one in told if one]
        starts = [one.wall_s for one in stamps if one.wall_s is not None]
        if len(starts) < len(parts) or len({one.kind for one in stamps}) > 1:
            return [None] * len(parts)
        if stamps[0].kind == "dates":
            starts = [start_s - starts[0] // DAY_S * DAY_S for start_s in starts]
        ends = [start_s + part.duration_s for start_s, part in zip(starts, parts, strict=True)]
        if any(start_s < end_s - SLACK_S for start_s, end_s in zip(starts[1:], ends, strict=False)):
            self._tell("wall clock", "none", "by the times in their names sessions overlap")
            return [None] * len(parts)
        how = "day 1 is that of the first" if stamps[0].kind == "dates" else "day 1 is theirs"
        self._tell("wall clock", "times in the names", how)
        return list(starts)

    def _captions(self, part: _Part, clock_s: float | None, inferred: bool) -> Iterable[Caption]:
        entry, at_s = part.entry, 0.0
        pieces: list[tuple[list[Path], Stretch]] = []
        for file, span, lead_s in zip(part.files, part.spans, part.leads_s, strict=True):
            now_s = None if clock_s is None else clock_s + at_s
            stretch = Stretch(at_s, span.end_s - span.start_s, lead_s, now_s, inferred)
            pieces.append((self._beside(file), stretch))
            at_s += stretch.length_s
        if entry.captions:
            file = self.found.find(entry.captions) or self.home / entry.captions
            pieces = [([file], Stretch(0.0, at_s, part.leads_s[0], clock_s, inferred))]
        for files, stretch in pieces:
            said = sidecars.spoken(files, stretch, self.problems, entry.encoding, self.otherwise)
            if said.file:
                value = f"{said.file.name}, {len(said.lines)} cue{'s' * (len(said.lines) != 1)}"
                self._tell(f"captions of {part.id}", value, said.how)
            elif self.found.captions:
                how = "none that can be read" if files else "none with its name"
                self._tell(f"captions of {part.id}", "none", how)
            rest = {f"{said.file and said.file.name} is taken": said.rest}
            self.taken.extend(unused(self.name, Listing(), rest))
            yield from said.lines

    @cached_property
    def _sides(self) -> dict[Path, list[Path]]:
        return sidecars.beside(self.found.videos, self.found.captions)

    def _beside(self, file: Path) -> list[Path]:
        """The caption files of a video, which may lie in a folder below."""
        if file.parent == self.home or not file.parent.is_dir():
            return self._sides.get(file, [])
        near = look(file.parent)
        return sidecars.beside(near.videos, near.captions).get(file, [])


def _ids(entries: Sequence[Entry]) -> list[str]:
    """Session ids; where files differ in their kind alone, it is part of theirs."""
    stems = Counter(folded(Path(entry.videos[0]).stem) for entry in entries)
    own = [(entry.id, Path(entry.videos[0])) for entry in entries]
    return [
        composed(id or (file.name if stems[folded(file.stem)] > 1 else file.stem))
        for id, file in own
    ]
