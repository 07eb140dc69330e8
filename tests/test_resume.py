"""Killed at any moment and started again, a run equals the uninterrupted one."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from synthetic import household, movie

from bench_lib.runs.folder import Run
from bench_lib.schema import Candidate, Key, Probe

HERE = Path(__file__).parent
SESSION_CLIPS = 3
"""Ten frames in clips of four."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two trajectories of three sessions as a folder of one's own videos."""
    root = tmp_path_factory.mktemp("data")
    for seed in range(2):
        home = root / f"T{seed}"
        made = household(home, seed=seed)
        sessions = [
            {"id": s.id, "video": Path(s.spans[0].file).name, "wall_start": "DAY1 10:00:00"}
            for s in made.sessions
        ]
        for k, session in enumerate(sessions):
            session["wall_start"] = f"DAY{k + 1} 10:00:00"
        (home / "trajectory.json").write_text(json.dumps({"sessions": sessions}))
        lines = [
            c.model_copy(update={"id": f"{c.id}-{seed}"}).model_dump_json() for c in made.candidates
        ]
        (home / "candidates.jsonl").write_text("\n".join(lines))
    return root


def evaluate(
    data: Path, outputs: Path, log: Path, die: str = "", **params: Any
) -> subprocess.CompletedProcess:
    given = {
        "method": "hashing", "source": "folder", "data_root": str(data),
        "registration_delivery": "log", **params,
    }  # fmt: skip
    environment = {
        **os.environ, "BENCH_OUTPUTS": str(outputs), "TEST_DIE": die, "TEST_LOG": str(log),
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, str(HERE / "run_eval.py"), json.dumps(given)],
        env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def records(outputs: Path) -> dict[Key, dict[str, Any]]:
    """Responses by key without what is measured in seconds."""
    (folder,) = (outputs / "runs").iterdir()
    return {
        key: response.model_dump(exclude={"timings"})
        for key, response in Run.at(folder).responses().items()
    }


def calls(log: Path) -> Counter[str]:
    return Counter(log.read_text().split()) if log.exists() else Counter()


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Counter[str]]:
    """The uninterrupted run, and the calls it made."""
    outputs = tmp_path_factory.mktemp("whole")
    done = evaluate(data, outputs, outputs / "log")
    assert done.returncode == 0, done.stderr
    assert len(records(outputs)) == 14
    return outputs, calls(outputs / "log")


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("states", ["last", "none"])
@pytest.mark.parametrize("die", ["observe:5", "respond:5", "end_session:3"])
def test_a_killed_run_goes_on(
    data: Path,
    tmp_path: Path,
    whole: tuple[Path, Counter[str]],
    die: str,
    states: str,
    workers: int,
) -> None:
    log = tmp_path / "log"
    killed = evaluate(data, tmp_path / "o", log, die, states=states, workers=workers)
    assert killed.returncode == -9, killed.stderr
    resumed = evaluate(data, tmp_path / "o", log, states=states, workers=workers)
    assert resumed.returncode == 0, resumed.stderr
    assert records(tmp_path / "o") == records(whole[0])
    redone = calls(log)["observe"] - whole[1]["observe"]
    at_most = SESSION_CLIPS if states == "last" else 3 * SESSION_CLIPS
    assert redone <= at_most * workers
    (folder,) = (tmp_path / "o" / "runs").iterdir()
    lines = [
        (r["trajectory"], r["candidate"], r["probe"]) for r in Run.at(folder).read("responses")
    ]
    assert len(lines) == len(set(lines)), "an answer was asked for twice"


@pytest.mark.slow
@pytest.mark.parametrize("draw", range(10))
def test_a_run_killed_anywhere_goes_on(
    data: Path, tmp_path: Path, whole: tuple[Path, Counter[str]], draw: int
) -> None:
    dice = random.Random(draw)
    log = tmp_path / "log"
    for _ in range(dice.randint(1, 3)):
        what = dice.choice(sorted(whole[1]))
        evaluate(data, tmp_path / "o", log, f"{what}:{dice.randint(1, whole[1][what])}", workers=2)
    resumed = evaluate(data, tmp_path / "o", log, workers=2)
    assert resumed.returncode == 0, resumed.stderr
    assert records(tmp_path / "o") == records(whole[0])


def test_a_finished_run_asks_nothing_again(
    data: Path, whole: tuple[Path, Counter[str]], tmp_path: Path
) -> None:
    again = evaluate(data, whole[0], tmp_path / "log")
    assert again.returncode == 0, again.stderr
    assert not calls(tmp_path / "log")


def test_shards_limits_and_tasks_fill_one_run(
    data: Path, tmp_path: Path, whole: tuple[Path, Counter[str]]
) -> None:
    log = tmp_path / "log"
    steps: list[dict[str, Any]] = [
        {"limit": 1},
        {"tasks": ["PRM"]},
        *({"shard": f"{k}/8"} for k in range(1, 9)),
        {"limit": 0, "workers": 2},
    ]
    for step in steps:
        done = evaluate(data, tmp_path / "o", log, **step)
        # An empty shard is a success; a shard of a source with fewer trajectories has none.
        assert done.returncode == 0, done.stderr
    assert records(tmp_path / "o") == records(whole[0])
    assert calls(log)["respond"] == whole[1]["respond"]


def test_eight_processes_at_once_equal_one(
    data: Path, tmp_path: Path, whole: tuple[Path, Counter[str]]
) -> None:
    given = {"method": "hashing", "source": "folder", "data_root": str(data),
             "registration_delivery": "log"}  # fmt: skip
    environment = {**os.environ, "BENCH_OUTPUTS": str(tmp_path / "o"), "TEST_LOG": ""}
    jobs = [
        subprocess.Popen(
            [sys.executable, str(HERE / "run_eval.py"), json.dumps({**given, "shard": f"{k}/4"})],
            env=environment, stdout=subprocess.DEVNULL,
        )
        for k in range(1, 5)
    ]  # fmt: skip
    assert [job.wait(timeout=240) for job in jobs] == [0] * 4
    assert records(tmp_path / "o") == records(whole[0])


def test_saved_memories_answer_new_questions(data: Path, tmp_path: Path) -> None:
    """Another decoding over the states of a run costs its questions and the current sessions."""
    log, again = tmp_path / "log", tmp_path / "again"
    first = evaluate(data, tmp_path / "o", log, states="all")
    assert first.returncode == 0, first.stderr
    name = Path(first.stdout.strip()).name
    late = {"tasks": ["TR", "PRM"], "temperature": 0.5}
    asked = evaluate(data, tmp_path / "o", again, states_from=name, **late)
    assert asked.returncode == 0, asked.stderr
    assert calls(again)["observe"] <= 2 * (SESSION_CLIPS + 2), "an earlier session was touched"
    fresh = evaluate(data, tmp_path / "p", tmp_path / "fresh", **late)
    assert fresh.returncode == 0, fresh.stderr

    def texts(folder: str) -> dict:
        return {k: r.raw_text for k, r in Run.at(Path(folder)).responses().items()}

    assert texts(asked.stdout.strip()) == texts(fresh.stdout.strip())


def test_states_that_were_not_kept_are_named(data: Path, tmp_path: Path) -> None:
    first = evaluate(data, tmp_path / "o", tmp_path / "log", states="none")
    name = Path(first.stdout.strip()).name
    asked = evaluate(data, tmp_path / "o", tmp_path / "log", states_from=name, seed=1)
    assert asked.returncode == 0
    (response, *_) = Run.at(Path(asked.stdout.strip())).responses().values()
    assert response.status == "error" or response.task == "OCR"
    errors = [r.error for r in Run.at(Path(asked.stdout.strip())).responses().values() if r.error]
    assert any("states: all" in error for error in errors)


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One video with StreamArena's questions, which share a dialogue."""
    root = tmp_path_factory.mktemp("stream")
    movie(root / "film" / "film.mp4", 24)
    items = [
        Candidate(
            id=f"{task}-{at_s:g}",
            task=task,
            question=f"What of {at_s:g}?",
            references={"answer": "nothing"},
            probes=(Probe(id="P1", session="film", t_s=at_s),),
        )
        for task, at_s in (("RTP", 3), ("HR", 9.5), ("Tool", 16), ("HR", 20), ("RTP", 23))
    ]
    lines = [item.model_dump_json() for item in items]
    (root / "film" / "candidates.jsonl").write_text("\n".join(lines))
    return root


@pytest.mark.parametrize("die", ["respond:1", "respond:3", "observe:4"])
def test_a_killed_dialogue_goes_on(stream: Path, tmp_path: Path, die: str) -> None:
    done = evaluate(stream, tmp_path / "whole", tmp_path / "log")
    assert done.returncode == 0, done.stderr
    killed = evaluate(stream, tmp_path / "run", tmp_path / "one", die=die)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = evaluate(stream, tmp_path / "run", tmp_path / "two")
    assert again.returncode == 0, again.stderr
    whole = records(tmp_path / "whole")
    assert records(tmp_path / "run") == whole
    assert len(whole) == 5
    asked = calls(tmp_path / "one")["respond"] + calls(tmp_path / "two")["respond"]
    assert asked <= 6, "an answer on record is not asked for again"


def test_a_part_of_a_dialogue_is_another_run(stream: Path, tmp_path: Path) -> None:
    for given in ({}, {"tasks": ["HR"]}, {"limit": 1}):
        assert evaluate(stream, tmp_path, tmp_path / "log", **given).returncode == 0
    assert len(list((tmp_path / "runs").iterdir())) == 3


@pytest.mark.parametrize(
    "given", [{"mode": "replay"}, {"condition": "oracle"}, {"memory": "empty"}]
)
def test_what_has_no_meaning_in_a_dialogue_is_refused(
    stream: Path, tmp_path: Path, given: dict[str, Any]
) -> None:
    refused = evaluate(stream, tmp_path, tmp_path / "log", **given)
    assert refused.returncode != 0
    assert "share one dialogue" in refused.stderr.splitlines()[-1]
