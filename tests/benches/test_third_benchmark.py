"""A benchmark of one file, with a source of one file, goes through 03, 04, 09 and their pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench_lib import benches, sources
from bench_lib.compare import page as compare_page
from bench_lib.compare.job import Comparison
from bench_lib.errors import BenchError
from bench_lib.evaluate import page
from bench_lib.evaluate.job import Evaluation
from bench_lib.judge import page as judge_page
from bench_lib.judge.job import Judging
from bench_lib.params.evaluate import EvalParams
from bench_lib.params.readings import CompareParams, JudgeParams
from bench_lib.tasks import Bench, Task

TESTS = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _third(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benches, "__path__", [*benches.__path__, str(TESTS / "extra_benches")])
    monkeypatch.setattr(sources, "__path__", [*sources.__path__, str(TESTS / "extra_sources")])


def run(home: Path, seed: int, **more: object) -> Evaluation:
    job = Evaluation.open(
        EvalParams(method="null", source="quiz", data_root=str(home), seed=seed, **more)
    )
    job.execute(progress=False)
    return job


def test_it_is_evaluated_judged_and_compared(tmp_path: Path, outputs: Path) -> None:
    first, second = run(tmp_path, 1, name="one"), run(tmp_path, 2, name="two")
    assert [len(job.responses()) for job in (first, second)] == [4, 4]
    assert first.bench.name == "quiz"
    text = page.write(first).read_text()
    for word in ("Seeing", "Recalling", "What is there", "What was there"):
        assert word in text
    assert "Episodic Recall" not in text
    judging = Judging.open(JudgeParams(run=first.run.folder.name, judge="tiny"))
    assert "n = 0: no adaptive reply passed the gate" in judge_page.of(judging).html
    names = [job.run.folder.name for job in (first, second)]
    compared = Comparison.open(CompareParams(runs=names))
    assert list(compared.materials) == ["one", "two"]
    assert compared.bench is benches.find("quiz")
    told = compare_page.of(compared).html
    assert "NOW" in told
    assert "THEN" in told


def test_runs_of_two_benchmarks_are_never_mixed(tmp_path: Path, outputs: Path) -> None:
    first = run(tmp_path, 1, name="one")
    other = Evaluation.open(EvalParams(method="null", source="dollhouse-small", limit=1))
    other.execute(progress=False)
    names = [job.run.folder.name for job in (first, other)]
    compared = Comparison.open(CompareParams(runs=names))
    assert list(compared.materials) == ["one"]
    assert [text for text in compared.left_out if "it is about apm, the others about quiz" in text]


def test_its_tasks_are_chosen_by_code(tmp_path: Path, outputs: Path) -> None:
    job = run(tmp_path, 1, tasks=["THEN"])
    assert {response.task for response in job.responses()} == {"THEN"}


def test_two_benchmarks_never_share_a_code() -> None:
    with pytest.raises(BenchError, match="'ER' of other is one of apm"):
        Bench("other", (Task("ER", "Other", "Other", "choice", "current"),), "apm")


def test_an_unknown_benchmark_is_one_line() -> None:
    with pytest.raises(BenchError, match="did you mean 'apm'"):
        benches.find("app")
