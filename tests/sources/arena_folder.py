"""Folders shaped like StreamArena's release, with short dollhouse films."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from bench_lib import sources
from bench_lib.dollhouse.world import export_stream_arena, library
from bench_lib.dollhouse.world.world import World
from bench_lib.schema import Dataset, Trajectory

NAME = "stream_arena?licence=cc-by-nc-4.0"
COUNTS = {"RTP": 4, "HR": 8, "Tool": 4, "Pro": 6}
HOUSE = library.with_knobs(library.find("arena"), film_s=(150, 150), counts=COUNTS)


@lru_cache
def films() -> tuple[tuple[World, Trajectory], ...]:
    """Two films of two and a half minutes with StreamArena's items."""
    return tuple(library.compose(HOUSE, "film", seed) for seed in (3, 4))


def export(root: Path, shape: str = "released", **how: Any) -> Path:
    """A folder of the films."""
    export_stream_arena.export(films(), root, shape, HOUSE.look, **how)  # type: ignore[arg-type]
    return root


def load(root: Path, **knobs: str) -> Dataset:
    """The folder as a source."""
    return sources.load(NAME + "".join(f"&{k}={v}" for k, v in knobs.items()), str(root))


ROW = {
    "video_id": "v",
    "qid": 1,
    "qtype": "HR",
    "question": "What was it?",
    "answer": "a cup",
    "ask_sec": 3,
    "evidence_ts_sec": [1, [1.5, 2]],
}
PAPER_ROW = {
    "video_id": "v",
    "capability": "HR",
    "question": "What was it?",
    "answer": "a cup",
    "query_time": 3,
    "evidence": [{"t_start": 1, "t_end": 2, "description": "a cup"}],
    "reasoning_pattern": "single_point",
}


def rows(root: Path, *found: Any, video: Path | None = None) -> Path:
    """A folder with these rows (texts as they are) about one video called v."""
    root.mkdir(exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row) for row in found]
    (root / "question.en.jsonl").write_text("\n".join(lines))
    if video:
        (root / "videos").mkdir(exist_ok=True)
        (root / "videos" / "v.mp4").write_bytes(video.read_bytes())
    return root
