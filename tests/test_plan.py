"""The plan counts what can be counted and refuses what would not fit."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from bench_lib.errors import BenchError
from bench_lib.evaluate.job import Evaluation
from bench_lib.params.evaluate import EvalParams


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
