"""Trees shaped like EgoLife and HD-EPIC, with the traps of the real ones."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import av
import pytest

from bench_lib.dollhouse.world import export_egolife, export_hd_epic, library, pieces
from bench_lib.dollhouse.world.render import Look
from bench_lib.dollhouse.world.world import World
from bench_lib.schema import Trajectory
from bench_lib.video import captions

LOOK = Look(fps=1, size=112, strip=False)


@pytest.fixture(scope="module")
def house() -> tuple[World, Trajectory]:
    counts = {"ER": 6, "EST": 4, "TR": 6}
    chosen = library.with_knobs(library.find("small"), counts=counts, films=(3, 3))
    return library.compose(chosen, "export", 12)


@pytest.fixture(scope="module")
def egolife(house: tuple[World, Trajectory], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("EgoLife")
    export_egolife.export(*house, root, look=LOOK)
    return root


@pytest.fixture(scope="module")
def hd_epic(house: tuple[World, Trajectory], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("HD-EPIC")
    export_hd_epic.export(house[0], root, look=Look(fps=1, size=112, clock=False))
    return root


def _seconds(name: str) -> float:
    """Absolute seconds of a clip's name: frames at 20 a second, with carry."""
    day, code = re.fullmatch(r"DAY(\d)_A1_JAKE_(\d{8})", name).groups()  # type: ignore[union-attr]
    h, m, s, frames = (int(code[i : i + 2]) for i in (0, 2, 4, 6))
    return (int(day) - 1) * 86_400 + h * 3600 + m * 60 + s + frames / 20


def test_clips_tile_the_films_on_the_grid(house: tuple[World, Trajectory], egolife: Path) -> None:
    clips = sorted((egolife / "A1_JAKE").glob("DAY*/*.mp4"), key=lambda p: _seconds(p.stem))
    spans = []
    for clip in clips:
        with av.open(str(clip)) as container:
            length = sum(1 for _ in container.decode(video=0))
        spans.append((_seconds(clip.stem), _seconds(clip.stem) + length))
    expected = []
    for film in house[0].films:
        at = film.wall_start_s
        while at < film.wall_start_s + film.duration_s:
            end = min(film.wall_start_s + film.duration_s, at - at % 30 + 30)
            expected.append((float(at), float(end)))
            at = end
    assert spans == expected
    assert any(start % 30 for start, _ in spans)


def test_pieces_show_what_the_film_shows(house: tuple[World, Trajectory]) -> None:
    film = house[0].films[1]
    for part in pieces.on_grid(film, 10):
        offset = part.wall_start_s - film.wall_start_s
        assert [part.picture(t) for t in range(part.duration_s)] == [
            film.picture(offset + t) for t in range(part.duration_s)
        ]


def test_speech_is_found_at_its_hour(house: tuple[World, Trajectory], egolife: Path) -> None:
    spoken = []
    for path in sorted((egolife / "EgoLifeCap" / "Transcript" / "A1_JAKE").glob("DAY*/*.srt")):
        day, hour = re.search(r"DAY(\d)_(\d\d)000000", path.stem).groups()  # type: ignore[union-attr]
        base = (int(day) - 1) * 86_400 + int(hour) * 3600
        spoken += [base + c.start_s for c in captions.read(path)]
        assert re.search(r"[\u4e00-\u9fff]", path.read_text(encoding="utf-8"))
    said = [f.wall_start_s + c.start_s for f in house[0].films for c in f.captions]
    assert len(spoken) == len(said)
    # One to three digits after the comma: .25 may have become .2.
    assert all(abs(a - b) < 0.06 for a, b in zip(sorted(spoken), sorted(said), strict=True))


def test_questions_have_the_published_keys_and_shapes(egolife: Path) -> None:
    records = json.loads((egolife / "EgoLifeQA" / "EgoLifeQA_A1_JAKE.json").read_text())
    assert len(records) >= 8
    shapes = set()
    for record in records:
        assert {"ID", "query_time", "type", "question", "choice_a", "answer"} <= record.keys()
        assert record["answer"] in "ABCD"
        assert record["keywords"] == record[f"choice_{record['answer'].lower()}"]
        target = record["target_time"]
        one = target[0] if isinstance(target, list) else target
        shapes.add((type(target).__name__, *sorted(one), len(one.get("time", "")) > 8))
    assert len(shapes) >= 3


def test_sessions_and_recipes_of_the_kitchen_set(
    house: tuple[World, Trajectory], hd_epic: Path
) -> None:
    videos = sorted((hd_epic / "Videos" / "P01").glob("*.mp4"))
    assert len(videos) == len(house[0].films)
    assert all(re.fullmatch(r"P01-202402\d\d-\d{6}", v.stem) for v in videos)
    lengths = (hd_epic / "Videos" / "P01" / "durations.txt").read_text().split()
    assert lengths[0] == videos[0].stem
    notes = hd_epic / "annotations"
    recipes = json.loads((notes / "high-level" / "complete_recipes.json").read_text())
    assert len(recipes) == 2
    for recipe in recipes.values():
        (capture,) = recipe["captures"]
        assert len(capture["videos"]) > 1
        assert capture["videos"] == sorted(capture["videos"], reverse=True)
        timed = {**capture["step_times"], **capture["prep_times"]}
        assert set(recipe["steps"]) - set(timed)
        assert all(t["video"] in capture["videos"] for times in timed.values() for t in times)
        assert len(timed) == 2


def test_the_activity_table_has_the_real_ones_faults(hd_epic: Path) -> None:
    path = hd_epic / "annotations" / "high-level" / "activities" / "P01_recipe_timestamps.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    known = {v.stem for v in (hd_epic / "Videos" / "P01").glob("*.mp4")}
    assert any(row["end_time"] == "end" for row in rows)
    assert any("," in row["recipe_id"] for row in rows)
    assert any(row["video_id"] not in known for row in rows)
    numbers = [r for r in rows if r["end_time"] != "end"]
    assert any(float(r["end_time"]) < float(r["start_time"]) for r in numbers)
    header = (hd_epic / "annotations" / "narrations-and-action-segments").glob("*_classes.csv")
    assert all(p.read_text().startswith("id,key,instances,category") for p in header)
