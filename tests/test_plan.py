"""The plan counts what can be counted and refuses what would not fit."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from synthetic import movie

from bench_lib.errors import BenchError
from bench_lib.evaluate import page as report
from bench_lib.evaluate.job import Evaluation
from bench_lib.evaluate.plan import SHOWN, _source
from bench_lib.params.evaluate import EvalParams
from bench_lib.schema import Dataset, Taken


def job(**given) -> Evaluation:
    return Evaluation.open(EvalParams(**{"method": "null", "source": "dollhouse-small", **given}))


def expected(evaluation: Evaluation, what: str) -> str:
    return evaluation.plan().loc[what, "expected"]


def test_the_plan_is_what_then_happens(outputs: Path) -> None:
    evaluation = job()
    asks, frames = expected(evaluation, "asks left"), expected(evaluation, "frames sampled")
    evaluation.execute(progress=False)
    assert int(asks) == len(evaluation.responses())
    sampled = sum(s["counters"]["frames_sampled"] for s in evaluation.run.read("sessions"))
    assert abs(int(frames) - sampled) <= len(evaluation.run.read("sessions"))
    assert expected(evaluation, "asks left") == "0"


def test_replay_is_planned_with_its_prefixes(outputs: Path) -> None:
    stream, replay = job(), job(mode="replay")
    once, many = (int(expected(j, "frames sampled").replace(",", "")) for j in (stream, replay))
    assert many > 5 * once


@pytest.mark.parametrize(
    ("what", "said"), [("virtual_memory", "memory is short"), ("disk", "disk is short")]
)
def test_a_run_that_would_not_fit_is_refused_in_one_line(
    outputs: Path, monkeypatch: pytest.MonkeyPatch, what: str, said: str
) -> None:
    evaluation = job(method="raw_video", store="lossless", limit=1, tasks=["ER"])
    if what == "disk":
        monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=10))
    else:
        monkeypatch.setattr(psutil, what, lambda: SimpleNamespace(available=1000))
    with pytest.raises(BenchError, match=said) as caught:
        evaluation.plan()
    assert "\n" not in str(caught.value)
    assert not evaluation.run.read("responses")


def test_a_server_that_is_not_there_is_named_before_work_starts(outputs: Path) -> None:
    away = {"retries": 0, "timeout_s": 2.0}
    evaluation = job(
        method="simplestream", backbone="endpoint:m@http://127.0.0.1:9/v1", backbone_args=away
    )
    with pytest.raises(BenchError, match="the model cannot serve this run"):
        evaluation.plan()


def test_the_plan_names_what_was_read_and_what_was_not(outputs: Path, tmp_path: Path) -> None:
    home = tmp_path / "mine" / "week"
    movie(home / "monday.mp4", 2.0)
    (home / "._monday.mp4").write_bytes(b"x")
    said = "1\n00:00:00,500 --> 00:00:01,000\n钥匙在桌子上\n"
    (home / "monday.srt").write_bytes(said.encode("gbk"))
    (home / "candidates.jsonl").write_text('{"id": 1}')
    evaluation = job(source="folder", data_root=str(tmp_path / "mine"), question="Where?")
    plan = evaluation.plan()
    read = list(plan.loc["week: captions of monday"])
    assert read == ["monday.srt, 1 cue", "gb18030 (GBK), guessed"]
    assert plan.loc["week: not used", "expected"] == "._monday.mp4"
    assert plan.loc["week: order", "expected"] == "monday"
    (problem,) = evaluation.data.problems
    assert problem.reason in list(plan["note"])
    page = report.write(evaluation).read_text()
    for text in ("monday.srt, 1 cue", "gb18030 (GBK), guessed", "._monday.mp4", problem.reason):
        assert text in page
    assert page.count("._monday.mp4") == 1


def test_many_files_are_counted_in_the_plan() -> None:
    taken = tuple(Taken(f"f{n}", "x", "y") for n in range(500))
    rows = _source(Dataset((), (), "", taken))
    assert len(rows) == SHOWN + 1
    assert rows[-1] == ("files", "and 480 more", "all are in the report")
