"""stream_arena: StreamArena's questions over long videos, from a folder of one's own.

    DATA_ROOT/
        question.jsonl               questions in Chinese, one JSON object a line
        question.en.jsonl            the same in English
        video_meta.jsonl             optional (and video_meta.en.jsonl): title, domain
        videos_manifest.jsonl        optional: video_id, bytes, sha256 of each archive
        videos/ID.mp4 or ID.tar      recordings, plain or as released (member ID/ID.mp4)
        captions/ID.zh-CN.vtt        optional: YouTube's own tracks (zh-CN, zh-Hans, en, zh-Hant)

Question rows have the paper's fields or the released ones (`rows`). Each video is a trajectory of
one session, its questions are in time order. What contradicts itself (`defects`), or cannot be
read, is left out, named and counted. Archives are opened into the cache when a trajectory is
prepared; there also speech is transcribed, where `asr` names a recogniser and a video has no
captions.

Knobs, in the source's name (`stream_arena?licence=cc-by-nc-4.0&language=zh`):
    licence     `cc-by-nc-4.0`: the annotations are used for non-commercial ends, with attribution
    language    of the questions: `en` or `zh`
    horizon     `check` or `ignore` the annotated horizon, whose meaning is not published
    asr         a recogniser (`bench_lib.speech`), such as `faster_whisper:models/small`; a folder
                is looked for in DATA_ROOT
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench_lib import paths
from bench_lib.content import ends
from bench_lib.errors import BenchError, nearest
from bench_lib.schema import Dataset, Problem, Taken, Trajectory
from bench_lib.sources.stream_arena import items, videos
from bench_lib.sources.stream_arena.archive import Archive, Refused, extract
from bench_lib.video.session import VideoError

KNOBS = {"licence": "", "language": "en", "horizon": "check", "asr": ""}
LICENCE = "cc-by-nc-4.0"
FILES = {"en": "question.en.jsonl", "zh": "question.jsonl"}
SOURCE = "stream_arena"


@dataclass(frozen=True)
class _Media:
    archive: Archive | None
    asr: str
    home: Path


_media: dict[str, _Media] = {}
"""By the file of a trajectory's session: what there is to do before it is opened."""


def load(
    data_root: str = "",
    *,
    licence: str = KNOBS["licence"],
    language: str = KNOBS["language"],
    horizon: str = KNOBS["horizon"],
    asr: str = KNOBS["asr"],
) -> Dataset:
    """Read the questions of one language and look at the videos. See the module.

    Raises:
        BenchError: the licence is not acknowledged, a knob has no such value, there is no question
            file, or no question is left.
    """
    if licence.casefold() != LICENCE:
        raise BenchError(
            f"licence={licence!r}: the data card of StreamArena puts its annotations under "
            "CC BY-NC 4.0 (the paper says CC BY 4.0; the stricter one holds): use them for "
            "non-commercial ends and name the authors. Say that you do: "
            f"stream_arena?licence={LICENCE}"
        )
    for knob, value, known in (
        ("language", language, tuple(FILES)),
        ("horizon", horizon, ("check", "ignore")),
    ):
        if value not in known:
            raise BenchError(f"source {SOURCE}: {knob}={value!r}; {nearest(value, known)}")
    root = Path(data_root).expanduser()
    path = root / FILES[language]
    if not data_root or not path.is_file():
        other = "zh" if language == "en" else "en"
        there = bool(data_root) and (root / FILES[other]).is_file()
        raise BenchError(
            f"data_root {data_root!r} holds no {FILES[language]}; give the folder of the release"
            + (f", or language={other}, which is there" if there else "")
        )
    problems: list[Problem] = []
    told = items.Told()
    found = items.trajectories(root, path, language, horizon == "check", problems, told)
    if not found:
        reason = f"; the first of {len(problems)} reasons: {problems[0]}" if problems else ""
        raise BenchError(f"{paths.short(path)}: no question can be asked{reason}")
    for trajectory, video in found:
        transcribes = "" if trajectory.sessions[0].captions else asr
        _media[str(video.file)] = _Media(video.archive, transcribes, root)
    trajectories = tuple(trajectory for trajectory, _ in found)
    taken = (*told.taken, *_kinds(trajectories))
    return Dataset(trajectories, tuple(problems), _note(language, told, asr), taken)


def _kinds(trajectories: tuple[Trajectory, ...]) -> Iterator[Taken]:
    """How many videos each domain and subdomain has, and how many questions."""
    for name in ("domain", "subdomain"):
        videos, asked = Counter[str](), Counter[str]()
        for trajectory in trajectories:
            kinds = Counter(c.references.get(name, "") for c in trajectory.candidates)
            asked += kinds
            videos.update(kinds.keys())
        for kind, n in videos.most_common():
            yield Taken(name, kind or "not told", f"videos: {n}, questions: {asked[kind]}")


def _note(language: str, told: items.Told, asr: str) -> str:
    left = ", ".join(f"{n} {kind}" for kind, n in sorted(told.faults.items()))
    speech = Counter(told.tracks)
    silent = speech.pop("", 0)
    heard = [f"{n} {name}" for name, n in speech.items()]
    if silent:
        heard.append(f"{silent} transcribed by {asr}" if asr else f"{silent} without")
    return (
        f"StreamArena, questions in {language}, CC BY-NC 4.0: {told.asked - told.lost} of "
        f"{told.asked} questions{f'; left out: {left}' if left else ''}; "
        f"captions: {', '.join(heard)}"
    )


def recorded(file: str) -> str:
    """What a video is known by: the file, or the archive that it is taken out of."""
    media = _media.get(file)
    return ends(str(media.archive.path) if media and media.archive else file)


def prepare(trajectory: Trajectory) -> Trajectory:
    """Open a trajectory's archive and transcribe it, where that is to be done and has not been.

    An archive that turns out not to be what its manifest says costs its video: nothing is taken
    out, the reason is told, and the next load leaves its questions out.

    Raises:
        BenchError: the trajectory was not loaded in this process, the cache has no room, or the
            recogniser cannot be used.
    """
    session = trajectory.sessions[0]
    (span,) = session.spans
    media, target = _media.get(span.file), Path(span.file)
    if media is None:
        raise BenchError(f"trajectory {trajectory.id} was not loaded in this process")
    if media.archive:
        try:
            extract(media.archive, target)
        except Refused as error:
            target.parent.mkdir(parents=True, exist_ok=True)
            refused = videos.refusal(target, media.archive)
            refused.write_text(str(error), encoding="utf-8")
            warnings.warn(f"{paths.short(media.archive.path)} {error}", stacklevel=2)
            return trajectory
    if not media.asr:
        return trajectory
    from bench_lib.speech import recogniser
    from bench_lib.speech.transcript import transcript

    spans = ((span.file, span.start_s, span.end_s),)
    try:
        heard = transcript(spans, partial(recogniser, media.asr, media.home))
    except VideoError as error:
        # Whoever opens the file for its pictures or its sound meets the same, and says so.
        warnings.warn(f"not transcribed: {error}", stacklevel=2)
        return trajectory
    session = session.model_copy(update={"captions": heard})
    return trajectory.model_copy(update={"sessions": (session,)})
