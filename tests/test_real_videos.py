"""The main job on real footage: a film scene with speech, then a brook, as one trajectory."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from bench_lib.evaluate import page as evaluation_page
from bench_lib.evaluate.job import Evaluation
from bench_lib.params.evaluate import EvalParams
from bench_lib.sources import load

MEDIA = Path(__file__).parent / "media"
TEXTS = {"A": "a brook", "B": "a car", "C": "snow", "D": "a man"}
OPTIONS = [{"id": letter, "text": text} for letter, text in TEXTS.items()]
CANDIDATES = [
    {
        "id": "people", "task": "ER", "question": "Who was seen before the water?",
        "options": OPTIONS, "answer": "D",
        "probes": [{"id": "q", "session": "2_water", "t_s": 1.0}],
        "evidence": [{"session": "1_scene", "start_s": 1.0, "end_s": 4.0}],
    },
    {
        "id": "brook", "task": "ACR", "question": "What is there?", "options": OPTIONS,
        "answer": "A", "probes": [{"id": "q", "session": "2_water", "t_s": 3.0}],
    },
    {
        "id": "bottle", "task": "PRM",
        "registration": {"session": "1_scene", "t_s": 2.0, "text": "Tell me when there is water."},
        "probes": [
            {"id": "n", "session": "1_scene", "t_s": 5.0, "closed": False,
             "polarity": "negative", "interval": [3.0, 5.0]},
            {"id": "p", "session": "2_water", "t_s": 2.5, "closed": False,
             "polarity": "positive", "interval": [0.5, 2.5]},
        ],
    },
]  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    home = tmp_path / "mine" / "film_and_water"
    home.mkdir(parents=True)
    shutil.copy(MEDIA / "friday_speech.mp4", home / "1_scene.mp4")
    shutil.copy(MEDIA / "friday_speech.vtt", home / "1_scene.vtt")
    shutil.copy(MEDIA / "stream_of_water.mp4", home / "2_water.mp4")
    (home / "candidates.jsonl").write_text("\n".join(map(json.dumps, CANDIDATES)))
    return home.parent


def test_a_folder_of_videos_is_a_trajectory(root: Path) -> None:
    (trajectory,) = load("folder", str(root)).trajectories
    assert [s.id for s in trajectory.sessions] == ["1_scene", "2_water"]
    assert [round(s.duration_s, 1) for s in trajectory.sessions] == [6.2, 3.0]
    assert len(trajectory.sessions[0].captions) == 5
    assert len(trajectory.candidates) == 3


@pytest.mark.parametrize("method", ["fluxmem", "simplestream"])
def test_the_main_job_on_real_footage(root: Path, outputs: Path, method: str) -> None:
    given = {"source": "folder", "data_root": str(root), "max_pixels": 12_544, "fps": 2.0}
    job = Evaluation.open(EvalParams(method=method, **given))
    assert "asks left" in job.plan().index
    job.execute(progress=False)
    found = {(r.candidate, r.probe): r for r in job.responses()}
    assert len(found) == 4
    assert not [r.error for r in found.values() if r.status in ("error", "refused", "not_run")]
    assert found["brook", "q"].timings["prefix_s"] == pytest.approx(6.2 + 3.0, abs=0.1)
    assert found["brook", "q"].counters["frames_encoded"] > 0
    facts = job.run.manifest()["facts"]["pictures"]
    assert {name for names in facts.values() for name in names} == {"1_scene.mp4", "2_water.mp4"}
    assert all("8 bits, transfer bt709" in how for how in facts)
    page = evaluation_page.write(job).read_text()
    assert page.count("data:image/jpeg") >= 2, "frames of the footage are shown"


def test_a_free_question_needs_no_candidates(root: Path, outputs: Path) -> None:
    (root / "film_and_water" / "candidates.jsonl").unlink()
    job = Evaluation.open(
        EvalParams(
            method="simplestream", source="folder", data_root=str(root), max_pixels=12_544,
            question="What can be heard?", at="2_water 00:01.5",
        )
    )  # fmt: skip
    job.execute(progress=False)
    (response,) = job.responses()
    assert response.task == "FREE"
    assert response.cutoff_s == 1.5
    assert response.status != "error", response.error
    assert "What can be heard?" in evaluation_page.write(job).read_text()
