"""The rule judge: full marks for the reference, fewer for less, none for what it cannot read."""

from __future__ import annotations

from collections import Counter

import pytest
from house_worlds import answered, composed, oracle

from bench_lib import prompts
from bench_lib.dollhouse.ideal.observer import IdealChat
from bench_lib.exchange import Generation
from bench_lib.messages.chat import ContractBroken
from bench_lib.schema import Candidate, Probe, Response, Trajectory
from bench_lib.score.cases import apm_cases
from bench_lib.tasks import APM_BENCH

PROMPTS = prompts.load("judge_apm")


def _response(
    trajectory: Trajectory, candidate: Candidate, probe: Probe, text: str, reason: str
) -> Response:
    positive = probe.polarity == "positive"
    return Response(
        trajectory=trajectory.id,
        session=probe.session,
        candidate=candidate.id,
        probe=probe.id,
        task=candidate.task,
        polarity=probe.polarity,
        cutoff_s=probe.t_s,
        closed=probe.closed,
        status="ok",
        decision="INTERVENE" if positive else "SILENT",
        option=candidate.answer if positive else None,
        text=text if positive else "",
        reason=reason,
    )


def _score(trajectory: Trajectory, response: Response) -> int:
    (case,) = apm_cases([trajectory], [response], APM_BENCH, PROMPTS)
    return IdealChat().complete(case.messages, case.contract, Generation()).value.score


def _probes():  # type: ignore[no-untyped-def]
    for seed in range(4):
        world, trajectory = composed(seed)
        for candidate in trajectory.candidates:
            for probe in candidate.probes:
                if probe.polarity:
                    yield world, trajectory, candidate, probe


def test_the_references_themselves_get_full_marks() -> None:
    for _, trajectory, candidate, probe in _probes():
        reference = probe.reference
        response = _response(trajectory, candidate, probe, reference.response, reference.reason)
        assert _score(trajectory, response) == 5, (candidate.id, probe.id)


def test_the_ideal_observer_gets_full_marks_with_the_evidence() -> None:
    scores: Counter[int] = Counter()
    for world, trajectory, candidate, probe in _probes():
        evidence = oracle(world, trajectory, candidate, probe)
        parsed, _ = answered(trajectory, candidate, probe, evidence)
        response = _response(trajectory, candidate, probe, parsed.text, parsed.reason)
        scores[_score(trajectory, response)] += 1
    assert set(scores) == {5}


def test_less_is_worth_less() -> None:
    _, trajectory, candidate, probe = next(
        x for x in _probes() if x[2].task == "PRM" and x[3].polarity == "positive"
    )
    right, why = probe.reference.response, probe.reference.reason
    other = "Please remember this: fix the black robot."
    elsewhere = "It is so now that the sign reads GATE 13."
    graded = [
        _score(trajectory, _response(trajectory, candidate, probe, text, reason))
        for text, reason in (
            (right, why),
            (right, elsewhere),
            (f"{right} {other}", why),
            (other, why),
            ("I cannot tell from what is shown.", "I cannot tell from what is shown."),
        )
    ]
    assert graded == [5, 4, 3, 2, 1]


def test_what_it_cannot_read_is_missing_and_not_low() -> None:
    _, trajectory, candidate, probe = next(_probes())
    response = _response(trajectory, candidate, probe, "Well, well.", "Because I say so.")
    (case,) = apm_cases([trajectory], [response], APM_BENCH, PROMPTS)
    with pytest.raises(ContractBroken):
        IdealChat().complete(case.messages, case.contract, Generation())
