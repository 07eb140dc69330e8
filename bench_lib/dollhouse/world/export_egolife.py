"""A dollhouse world as a tree shaped like EgoLife, for the tests of organizers.

    ROOT/A1_JAKE/DAY1/DAY1_A1_JAKE_09301708.mp4            clips of 30 s on the wall clock's grid
    ROOT/EgoLifeCap/Transcript/A1_JAKE/DAY1/A1_JAKE_DAY1_09000000.srt    speech, one file an hour
    ROOT/EgoLifeCap/DenseCaption/A1_JAKE/DAY1/A1_JAKE_DAY1_09000000.srt  what is seen
    ROOT/EgoLifeQA/EgoLifeQA_A1_JAKE.json

It has the real tree's traps: the first clip of a run starts off the grid; recording has gaps; the
last two digits of a time are frames at 20 fps and now and then not below 20; cue times count from
the start of the file's hour; some cues lack their English line and milliseconds have one to three
digits; `target_time` has four shapes; some fields of a question give its answer away.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench_lib.dollhouse.world import pieces, render
from bench_lib.dollhouse.world.camera import Film
from bench_lib.dollhouse.world.grammar import read
from bench_lib.dollhouse.world.render import Look
from bench_lib.dollhouse.world.sentences import Heard
from bench_lib.dollhouse.world.world import DAY_S, World
from bench_lib.schema import Candidate, Trajectory

CLIP_S = 30
FPS = 20
TYPES = {"ER": "EventRecall", "EST": "EntityLog", "TR": "TaskMaster"}
CHINESE = {
    "grandmother": "奶奶", "grandfather": "爷爷", "girl": "女孩", "boy": "男孩",
    "builder": "工人", "wizard": "巫师", "clown": "小丑",
}  # fmt: skip


def code(wall_s: int, carried: bool = False) -> str:
    """A wall-clock second as HHMMSSFF; `carried` writes it as 20 frames after the second before."""
    second = wall_s % DAY_S - carried
    frames = FPS if carried else 0
    return f"{second // 3600:02d}{second // 60 % 60:02d}{second % 60:02d}{frames:02d}"


def export(
    world: World,
    trajectory: Trajectory,
    root: Path,
    person: str = "A1_JAKE",
    look: Look | None = None,
) -> list[Path]:
    """Write the tree; returns the clips in time order. Clips that exist are kept."""
    look = look or Look(fps=2)
    clips = []
    for film in world.films:
        for number, clip in enumerate(pieces.on_grid(film, CLIP_S)):
            day = f"DAY{clip.wall_start_s // DAY_S + 1}"
            # Now and then a release is not normalised: 20 frames for one second.
            stamp = code(clip.wall_start_s, carried=number % 7 == 3)
            path = root / person / day / f"{day}_{person}_{stamp}.mp4"
            if not path.exists():
                render.write(clip, look, path)
            clips.append(path)
    _transcripts(world.films, root / "EgoLifeCap", person)
    _captions(world.films, root / "EgoLifeCap", person)
    _questions(trajectory, root / "EgoLifeQA" / f"EgoLifeQA_{person}.json")
    return clips


def _srt(root: Path, kind: str, person: str, cues: Sequence[tuple[float, float, str]]) -> None:
    """Cues in wall-clock seconds, one file for each hour of each day."""
    hours: defaultdict[int, list[tuple[float, float, str]]] = defaultdict(list)
    for start_s, end_s, text in cues:
        hours[int(start_s // 3600)].append((start_s, end_s, text))
    for hour, own in hours.items():
        day, within = hour // 24 + 1, hour % 24
        folder = root / kind / person / f"DAY{day}"
        folder.mkdir(parents=True, exist_ok=True)
        blocks = [
            f"{n}\n{_cue(start_s - hour * 3600, n)} --> {_cue(end_s - hour * 3600, n)}\n{text}\n"
            for n, (start_s, end_s, text) in enumerate(own, 1)
        ]
        path = folder / f"{person}_DAY{day}_{within:02d}000000.srt"
        path.write_text("\n".join(blocks), encoding="utf-8")


def _cue(seconds: float, n: int) -> str:
    """A cue's time; the number of digits after the comma changes from cue to cue."""
    whole = int(seconds)
    digits = f"{round(seconds % 1 * 1000):03d}"[: 1 + n % 3]
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d},{digits}"


def _transcripts(films: Sequence[Film], root: Path, person: str) -> None:
    cues: list[tuple[float, float, str]] = []
    for film in films:
        for caption in film.captions:
            said = next(x for x in read(caption.text) if isinstance(x, Heard))
            speaker = film.shot_at(caption.start_s).picture.person
            lines = [f"{CHINESE[speaker]}: 号码 {said.number}。"]
            if len(cues) % 5 != 4:
                lines.append(f"{speaker.capitalize()}: number {said.number}.")
            start, end = film.wall_start_s + caption.start_s, film.wall_start_s + caption.end_s
            cues.append((start, end, "\n".join(lines)))
    _srt(root, "Transcript", person, cues)


def _captions(films: Sequence[Film], root: Path, person: str) -> None:
    cues: list[tuple[float, float, str]] = []
    for film in films:
        for shot in film.shots:
            told = " ".join(fact.say() for fact in film.picture(shot.start_s).facts())
            start = film.wall_start_s + shot.start_s
            cues.append((float(start), float(start + shot.end_s - shot.start_s), told))
    _srt(root, "DenseCaption", person, cues)


def _questions(trajectory: Trajectory, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    records = [
        _question(trajectory, candidate, n)
        for n, candidate in enumerate(c for c in trajectory.candidates if c.task in TYPES)
    ]
    path.write_text(json.dumps(records, indent=1, ensure_ascii=False), encoding="utf-8")


def _question(trajectory: Trajectory, candidate: Candidate, n: int) -> dict[str, Any]:
    (probe,) = candidate.probes
    times = [_stamp(trajectory, m.session, m.start_s) for m in candidate.evidence]
    texts = {f"choice_{o.id.lower()}": o.text for o in candidate.options}
    return {
        "ID": str(n + 1),
        "query_time": _stamp(trajectory, probe.session, probe.t_s),
        "type": TYPES[candidate.task],
        "need_audio": False,
        "need_name": False,
        "last_time": n % 2 == 0,
        "trigger": candidate.evidence[-1].text,
        "question": candidate.question,
        **texts,
        "answer": candidate.answer,
        "target_time": _target(times, n),
        "keywords": next(o.text for o in candidate.options if o.id == candidate.answer),
        "reason": " ".join(m.text for m in candidate.evidence),
    }


def _stamp(trajectory: Trajectory, session: str, t_s: float) -> dict[str, str]:
    wall_s = int((trajectory.session(session).wall_start_s or 0) + t_s)
    return {"date": f"DAY{wall_s // DAY_S + 1}", "time": code(wall_s)}


def _target(times: list[dict[str, str]], n: int) -> Any:
    """One time, several glued together, a list within, or a list of times."""
    first = times[0]
    if len(times) == 1:
        return first
    if n % 3 == 0:
        glued = first["time"] + "".join(f"{t['date']}_{t['time']}" for t in times[1:])
        return {"date": first["date"], "time": glued}
    if n % 3 == 1 and len({t["date"] for t in times}) == 1:
        return {"date": first["date"], "time_list": [t["time"] for t in times]}
    return times
