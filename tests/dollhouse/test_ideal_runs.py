"""The ideal observer through the whole workbench: what memory lets through, and nothing else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bench_lib.evaluate.job import Evaluation
from bench_lib.params.evaluate import EvalParams
from bench_lib.schema import Response
from bench_lib.tasks import APM_BENCH


def _run(method: str, source: str = "dollhouse-small", **params: object) -> list[Response]:
    chosen = EvalParams(method=method, source=source, backbone="ideal", name=method, **params)  # type: ignore[arg-type]
    evaluation = Evaluation.open(chosen)
    evaluation.execute(progress=False)
    return evaluation.responses()


def test_without_memory_only_the_present_is_answered(outputs: Path) -> None:
    passed: Counter[tuple[str, bool]] = Counter()
    for response in _run("simplestream"):
        task = APM_BENCH.task(response.task)
        needs_past = task.evidence == "earlier" and response.polarity != "negative"
        passed[task.evidence, bool(response.passed)] += 1
        assert bool(response.passed) != needs_past, response
        assert response.status == ("unparsed" if needs_past and not task.adaptive else "ok")
    assert passed["earlier", False] > 8
    assert passed["current", True] > 12


def test_summaries_carry_what_later_sessions_need(outputs: Path) -> None:
    responses = _run("text_summary")
    assert len(responses) > 30
    assert all(response.passed for response in responses)


@pytest.mark.slow
@pytest.mark.parametrize("condition", ["oracle", "standard", "raw_lifelong"])
def test_with_the_evidence_everything_passes(outputs: Path, condition: str) -> None:
    responses = _run("raw_video", condition=condition)
    assert len(responses) > 30
    assert all(response.passed for response in responses)


@pytest.mark.slow
def test_what_lies_out_of_reach_is_detected(outputs: Path) -> None:
    responses = _run("raw_video", "dollhouse-availability", condition="recent_sessions")
    assert len(responses) > 40
    assert all(response.passed for response in responses)
