"""Questions and descriptions beside one's own videos, as editors of all systems save them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from folder_home import fill, load
from synthetic import question


@pytest.fixture(autouse=True)
def video(home: Path, film: Path) -> None:
    fill(home, film, "a.mp4")


def line(name: str, said: str = "Where is it?") -> str:
    made = question(name, "a", 1.0).model_copy(update={"question": said})
    return json.dumps(made.model_dump(mode="json"), ensure_ascii=False)


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_questions_in_any_encoding_of_json(home: Path, codec: str) -> None:
    said = "钥匙在哪里？\u2028\x85"
    text = line("q1", said) + "\r\n" + line("q2") + "\r\n"
    (home / "candidates.jsonl").write_bytes(text.encode(codec))
    (home / "trajectory.json").write_bytes('{"title": "厨房"}'.encode(codec))
    data = load(home)
    (trajectory,) = data.trajectories
    assert not data.problems
    assert [c.id for c in trajectory.candidates] == ["q1", "q2"]
    assert trajectory.candidates[0].question == said
    assert trajectory.title == "厨房"


def test_a_line_in_another_encoding_costs_itself(home: Path) -> None:
    text = line("q1").encode() + b"\n" + line("q2", "钥匙在哪里").encode("gbk") + b"\n"
    (home / "candidates.jsonl").write_bytes(text + line("q3").encode())
    data = load(home)
    assert [c.id for c in data.trajectories[0].candidates] == ["q1", "q3"]
    (problem,) = data.problems
    assert problem.file.endswith("candidates.jsonl")
    assert problem.record == "line 2"
    assert "save the file as UTF-8" in problem.reason


def test_a_description_in_another_encoding_costs_its_trajectory_alone(
    home: Path, film: Path
) -> None:
    fill(home.parent / "u", film, "a.mp4")
    (home / "trajectory.json").write_bytes('{\n"title": "厨房"}'.encode("gbk"))
    data = load(home)
    assert [t.id for t in data.trajectories] == ["u"]
    (problem,) = data.problems
    assert problem.file.endswith("trajectory.json")
    assert "line 2 has the byte" in problem.reason


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "-1e999"])
def test_numbers_that_are_none_cost_their_record(home: Path, number: str) -> None:
    (home / "candidates.jsonl").write_text(
        line("q1").replace('"t_s": 1.0', f'"t_s": {number}') + "\n" + line("q2")
    )
    data = load(home)
    assert [c.id for c in data.trajectories[0].candidates] == ["q2"]
    (problem,) = data.problems
    assert (problem.record, problem.field) == ("line 1", "probes[0].t_s")
