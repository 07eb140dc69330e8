"""Dollhouse films as a folder shaped like StreamArena's release, for tests and as an example.

    ROOT/question.jsonl, question.en.jsonl       in the paper's fields or the released ones
    ROOT/video_meta.jsonl, video_meta.en.jsonl, videos_manifest.jsonl
    ROOT/videos/ID.tar                           member ID/ID.mp4 (or videos/ID.mp4)
    ROOT/captions/ID.LANGUAGE.vtt
    ROOT/facts.jsonl                             what searches find

It has the real folder's traps: rows of all videos mixed and in no order, fields that nobody knows,
points and ranges in one list, whole seconds as integers, horizons of HR that count from the latest
evidence; captions whose lines roll, a better track that is an error page, worse ones that say
something else; archives with more in them than the video. `faults` adds the known defects.
"""

from __future__ import annotations

import hashlib
import html
import io
import json
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from bench_lib.dollhouse.world import library
from bench_lib.dollhouse.world.lore import store
from bench_lib.dollhouse.world.render import Look
from bench_lib.dollhouse.world.world import World
from bench_lib.schema import Candidate, Caption, Moment, Trajectory

Shape = Literal["paper", "released"]
CHINESE = "请用英文回答："
"""The films speak English only; the Chinese file asks for that."""
ABOUT = b'{"format": "mp4"}\n'


def export(
    films: Sequence[tuple[World, Trajectory]],
    root: Path,
    shape: Shape,
    look: Look,
    packed: bool = True,
    captions: bool = True,
    faults: bool = False,
) -> None:
    """Write the folder. `look` is that of the trajectories' set; archives where `packed`."""
    tables = [[_row(c, t.id, shape, n) for n, c in enumerate(t.candidates)] for _, t in films]
    mixed = [row for rows in zip_longest(*tables) for row in rows if row]
    if faults:
        mixed += list(_faulty(films[0][1], shape, len(tables[0])))
    lines = [json.dumps(row) for row in mixed] + (['{"video_id": "cut sho'] if faults else [])
    root.mkdir(parents=True, exist_ok=True)
    (root / "question.en.jsonl").write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    asked = [{**row, "question": CHINESE + row["question"]} for row in mixed]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in asked)
    (root / "question.jsonl").write_text(text, encoding="utf-8-sig")
    for name, domain in (("video_meta.jsonl", "家庭"), ("video_meta.en.jsonl", "household")):
        _lines(
            root / name,
            (
                {"video_id": t.id, "title": t.title, "domain": domain, "l2_subdomain": "chores"}
                for _, t in films
            ),
        )
    listed = []
    for world, trajectory in films:
        library.film(world, trajectory, look)
        listed.append(_video(trajectory, root / "videos", packed))
        if captions:
            _captions(trajectory, root / "captions")
    shutil.copyfile(store(), root / "facts.jsonl")
    if packed:
        _lines(root / "videos_manifest.jsonl", listed)


def _lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


def _second(t_s: float) -> float:
    return int(t_s) if t_s == int(t_s) else t_s


def _row(candidate: Candidate, video_id: str, shape: Shape, number: int) -> dict[str, Any]:
    ask_s = candidate.probes[0].t_s
    due = candidate.ideal[0] if candidate.ideal else None
    seen = (due,) if due else candidate.evidence
    ends = [moment.end_s for moment in seen]
    horizon = due.start_s - ask_s if due else ask_s - max(ends)
    row: dict[str, Any] = {
        "video_id": video_id,
        "question": candidate.question,
        "answer": candidate.references["answer"],
    }
    if shape == "paper":
        row |= {"capability": candidate.task, "query_time": _second(ask_s)}
        row["evidence"] = [
            {"t_start": m.start_s, "t_end": m.end_s, "description": m.text} for m in seen[::-1]
        ]
        row["domain"] = candidate.references["domain"]
        if "subdomain" in candidate.references:
            row["l2_subdomain"] = candidate.references["subdomain"]
        if due:
            row["monitoring_horizon"] = _second(horizon)
        if candidate.task == "HR":
            row["reasoning_pattern"] = candidate.references["pattern"]
        return row
    row |= {"qid": number, "qtype": candidate.task, "ask_sec": _second(ask_s), "round": 2}
    row["ref_sec"] = _second(due.start_s) if due else None
    row["evidence_ts_sec"] = [_point(m) for m in seen]
    row["horizon_sec"] = _second(horizon) if candidate.task in ("HR", "Pro") else None
    return row


def _point(moment: Moment) -> Any:
    if moment.end_s == moment.start_s:
        return _second(moment.start_s)
    return [_second(moment.start_s), _second(moment.end_s)]


def _faulty(trajectory: Trajectory, shape: Shape, number: int) -> Iterator[dict[str, Any]]:
    """One row of each known defect; all but the last two are about the trajectory's video."""
    end_s = trajectory.sessions[0].duration_s
    times: tuple[tuple[str, float, float, float, float | None], ...] = (
        # task, ask, evidence from, to, horizon
        ("HR", 20.0, 30.0, 31.0, None),  # evidence after the question
        ("Pro", 20.0, 20.0, 22.0, None),  # trigger not after the question
        ("Pro", 20.0, end_s + 9, end_s + 9, None),  # due time beyond the video
        ("HR", end_s + 5, 10.0, 12.0, None),  # question beyond the video
        ("Pro", 20.0, 25.0, end_s + 30, None),  # evidence beyond the video
        ("HR", 40.0, 10.0, 12.0, 3.0),  # horizon contradicts the times
        ("HR", 50.0, 10.0, 12.0, None),  # question occurs twice
        ("HR", 50.0, 10.0, 12.0, None),  # video missing
        ("Chat", 50.0, 10.0, 12.0, None),  # unparsable row
    )
    for k, (task, ask_s, start_s, stop_s, horizon) in enumerate(times):
        name = "not-there-00" if k == 7 else trajectory.id
        row: dict[str, Any] = {"video_id": name, "question": f"Faulty {k}?", "answer": "none"}
        if shape == "paper":
            kept = [{"t_start": start_s, "t_end": stop_s, "description": ""}]
            row |= {"capability": task, "query_time": ask_s, "evidence": kept}
            row["monitoring_horizon"] = horizon
            if k == 6:
                first = trajectory.candidates[0]
                row |= {"question": first.question, "capability": first.task}
                row |= {"query_time": first.probes[0].t_s, "evidence": []}
        else:
            row |= {"qid": 0 if k == 6 else number + k, "qtype": task, "ask_sec": ask_s}
            row |= {"ref_sec": start_s, "evidence_ts_sec": [[start_s, stop_s]]}
            row["horizon_sec"] = horizon
        yield row


def _video(trajectory: Trajectory, folder: Path, packed: bool) -> dict[str, Any]:
    """Put a film there; returns the manifest's row of its archive."""
    folder.mkdir(exist_ok=True)
    name, film = trajectory.id, trajectory.sessions[0].spans[0].file
    if not packed:
        shutil.copyfile(film, folder / f"{name}.mp4")
        return {}
    path = folder / f"{name}.tar"
    with tarfile.open(path, "w") as tar:
        inside = tarfile.TarInfo(name)
        inside.type, inside.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(inside)
        about = tarfile.TarInfo(f"{name}/{name}.info.json")
        about.size = len(ABOUT)
        tar.addfile(about, io.BytesIO(ABOUT))
        tar.add(film, f"{name}/{name}.mp4")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"video_id": name, "bytes": path.stat().st_size, "sha256": digest}


def _captions(trajectory: Trajectory, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    said = trajectory.sessions[0].captions
    for language, text in (
        ("zh-CN", "<html><body>HTTP 429: too many requests</body></html>\n"),
        ("en", rolling(said)),
        ("zh-Hant", "WEBVTT\n\n00:01.000 --> 00:02.000\n這不是要用的\n"),
        ("fr", "WEBVTT\n\n00:01.000 --> 00:02.000\nPas celle-ci.\n"),
    ):
        (folder / f"{trajectory.id}.{language}.vtt").write_text(text, encoding="utf-8")


def rolling(said: Sequence[Caption]) -> str:
    """WebVTT as YouTube makes it by itself: each cue shows the line before once more."""
    blocks = ["WEBVTT\nKind: captions\nLanguage: en"]
    before = " "
    for n, caption in enumerate(said):
        joined = n > 0 and caption.start_s <= said[n - 1].end_s + 0.0101
        line = html.escape(caption.text, quote=False)
        first, *rest = line.split(" ")
        step_s = (caption.end_s - caption.start_s) / (len(rest) + 1)
        timed = "".join(
            f"<{_clock(caption.start_s + step_s * k)}><c> {word}</c>"
            for k, word in enumerate(rest, 1)
        )
        times = f"{_clock(caption.start_s)} --> {_clock(caption.end_s)} align:start position:0%"
        blocks.append(f"{times}\n{before if joined else ' '}\n{first}{timed}")
        ends = f"{_clock(caption.end_s)} --> {_clock(caption.end_s + 0.01)} align:start position:0%"
        blocks.append(f"{ends}\n{line}\n ")
        before = line
    return "\n\n".join(blocks) + "\n"


def _clock(t_s: float) -> str:
    ms = round(t_s * 1000)
    return f"{ms // 3_600_000:02d}:{ms // 60_000 % 60:02d}:{ms // 1000 % 60:02d}.{ms % 1000:03d}"
