"""Several processes on one folder: what one leaves another takes; none ends as if all were done."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from test_identity import QUESTION, evaluate, write

from bench_lib import methods
from bench_lib.compare.job import find_runs
from bench_lib.errors import BenchError
from bench_lib.evaluate import page
from bench_lib.evaluate.job import Evaluation
from bench_lib.judge.job import Judging
from bench_lib.params.evaluate import EvalParams
from bench_lib.params.readings import JudgeParams
from bench_lib.runs.find import find_run
from bench_lib.runs.folder import Run
from bench_lib.schema import CENSORED, Response

NAMES = ("T", "U", "V")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three trajectories of one question each."""
    for seed, name in enumerate(NAMES):
        write(tmp_path / "root", name, seed)
    return tmp_path / "root"


def opened(root: Path, **given: Any) -> Evaluation:
    params = {"method": "hashing", "source": "folder", "data_root": str(root), **given}
    job = Evaluation.open(EvalParams(**params))
    job.run.begin()
    return job


def answered(job: Evaluation) -> list[str]:
    return sorted(r["trajectory"] for r in job.run.read("responses"))


def test_what_a_neighbour_holds_is_told_and_the_run_ends_as_undone(
    outputs: Path, root: Path
) -> None:
    job = opened(root)
    with Run(job.run.folder, {}).locked("trajectory U"):
        job.execute(progress=False)
    assert answered(job) == ["T", "V"]
    assert job.undone == (
        "1 of 3 asks have no answer (1 not asked); another process holds U: the same command goes "
        "on with them"
    )
    place = outputs / f"{job.run.folder.name}.html"
    with pytest.raises(BenchError, match=rf"1 of 3 asks .*; report: .*{place.name}"):
        page.finish(job)
    assert place.exists(), "what is there is shown"
    again = opened(root)
    again.execute(progress=False)
    assert not again.undone
    assert answered(again) == list(NAMES), "nothing was done twice"
    assert page.finish(again) == place


def test_what_a_killed_neighbour_left_is_taken_over(
    outputs: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = opened(root)
    neighbour = Run(job.run.folder, {}).locked("trajectory T")
    neighbour.__enter__()
    walk = job.walk

    def dies_meanwhile(episode: Any, *more: Any) -> None:
        if episode.trajectory.id == "V":
            neighbour.__exit__(None, None, None)  # the system lets go of a dead process's locks
        walk(episode, *more)

    monkeypatch.setattr(job, "walk", dies_meanwhile)
    job.execute(progress=False)
    assert not job.undone
    assert answered(job) == list(NAMES)


def test_a_neighbour_that_has_finished_meanwhile_leaves_nothing_undone(
    outputs: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, neighbour = opened(root), opened(root, trajectories=["T"])
    held = Run(job.run.folder, {}).locked("trajectory T")
    held.__enter__()
    walk = job.walk

    def finishes_meanwhile(episode: Any, *more: Any) -> None:
        if episode.trajectory.id == "V":
            held.__exit__(None, None, None)
            neighbour.execute(progress=False)
        walk(episode, *more)

    monkeypatch.setattr(job, "walk", finishes_meanwhile)
    job.execute(progress=False)
    assert not job.undone
    assert answered(job) == list(NAMES)


def test_errors_are_undone_and_what_no_other_try_can_mend_is_not(
    outputs: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def respond(self: Any, query: Any, generation: Any) -> Any:
        raise RuntimeError("no")

    with monkeypatch.context() as patch:
        patch.setattr(methods.find("hashing"), "respond", respond)
        job = opened(root)
        job.execute(progress=False)
        assert job.undone.startswith("3 of 3 asks have no answer (3 ended in an error)")
    censored = job.responses()[0].model_copy(update={"error": CENSORED})
    job.run.append("responses", censored)
    job.execute(progress=False)
    assert not job.undone
    assert censored.key in job.run.done()


def test_an_attempt_without_an_answer_is_no_run_to_compare_or_judge(
    outputs: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = evaluate(root, trajectories=["T"])

    def respond(self: Any, query: Any, generation: Any) -> Any:
        raise RuntimeError("no")

    monkeypatch.setattr(methods.find("hashing"), "respond", respond)
    failed = opened(root, seed=1)
    failed.execute(progress=False)
    found, left = find_runs(["03_eval-*"])
    assert found == [good.run.folder]
    assert left == [f"{failed.run.folder.name}: it holds no answer"]
    assert find_run("latest") == good.run.folder
    assert find_runs([failed.run.folder.name]) == ([failed.run.folder], []), "asked for by name"


def test_what_is_refused_leaves_no_folder(
    outputs: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Evaluation.open(EvalParams(method="hashing", source="folder", data_root=str(root)))
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("M", (), {"available": 1})())
    with pytest.raises(BenchError, match="memory is short"):
        job.plan()
    assert not list(outputs.glob("runs/*"))


def test_latest_is_the_last_to_get_an_answer_that_nobody_is_at_work_on(
    outputs: Path, root: Path, capsys: pytest.CaptureFixture
) -> None:
    jobs = [evaluate(root, trajectories=["T"], seed=seed) for seed in range(3)]
    folders = [job.run.folder for job in jobs]
    for age, folder in enumerate(folders):
        for path in folder.glob("responses.*"):
            os.utime(path, (1000 + age, 1000 + age))
    folders[0].joinpath("verdicts.x-1-1.jsonl").write_text("")
    assert find_run("latest") == folders[2], "judging a run makes it no later one"
    with jobs[2].run.at_work():
        assert find_run("latest") == folders[1]
        assert f"processes are at work: {folders[2].name}" in capsys.readouterr().out
        refused = pytest.raises(BenchError, match="another process is at work on")
        with jobs[1].run.at_work(), jobs[0].run.at_work(), refused:
            find_run("latest")
    assert find_run("latest") == folders[2]
    assert "at work" not in capsys.readouterr().out


def test_a_run_that_is_at_work_is_judged_with_a_word(
    outputs: Path, capsys: pytest.CaptureFixture
) -> None:
    params = EvalParams(method="blind", backbone="ideal", source="dollhouse-small", limit=1)
    job = Evaluation.open(params)
    job.execute(progress=False)
    with job.run.at_work():
        Judging.open(JudgeParams(run=job.run.folder.name))
    assert f"a process is at work on {job.run.folder.name}" in capsys.readouterr().out


def test_the_reports_path_is_told_to_whoever_asks_for_it(
    outputs: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make eval` names the report of its own run, whatever others write meanwhile."""
    monkeypatch.setenv(page.REPORTED, str(tmp_path / "told"))
    monkeypatch.setattr("bench_lib.evaluate.page.save", lambda m: outputs / m.run.folder.name)
    job, other = (opened(root, trajectories=[name], seed=i) for i, name in enumerate("TU"))
    job.execute(progress=False)
    other.execute(progress=False)
    page.finish(job)
    assert (tmp_path / "told").read_text() == f"{outputs / job.run.folder.name}\n"
    text = (Path(__file__).parent.parent / "Makefile").read_text()
    assert f"export {page.REPORTED}=" in text


def test_another_memory_comes_from_the_same_trajectories(outputs: Path, root: Path) -> None:
    first = opened(root, memory="other")
    write(root, "W", 7)
    assert opened(root, memory="other").run.folder != first.run.folder


def test_a_final_response() -> None:
    plain = Response(
        trajectory="T", session="S", candidate=QUESTION.id, probe="q", task="ER", cutoff_s=1,
        closed=True, status="error", error="RuntimeError: no",
    )  # fmt: skip
    assert not plain.final
    assert plain.model_copy(update={"error": CENSORED}).final
    assert plain.model_copy(update={"status": "refused"}).final
