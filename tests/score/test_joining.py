"""Which record of an instance counts: the same for StreamArena's questions and APM-Bench's."""

from __future__ import annotations

import itertools

import pytest

from bench_lib.benches.arena.scores import arena_instances
from bench_lib.errors import BenchError
from bench_lib.schema import Candidate, Probe, Response, Session, Span, Trajectory, Verdict
from bench_lib.score.instances import instances
from bench_lib.tasks import APM_BENCH, STREAM_ARENA

STATUSES = ("ok", "refused", "error", "unparsed")


def records(task: str, *statuses: str) -> tuple[list[Trajectory], list[Response]]:
    """One question, and its records in the order in which they were written."""
    span = Span(file="v.mp4", start_s=0.0, end_s=9.0)
    session = Session(id="S", index=0, spans=(span,), duration_s=9.0)
    probe = Probe(id="p", session="S", t_s=5.0)
    options = [{"id": x, "text": x} for x in "ABCD"] if task == "ER" else []
    candidate = Candidate(
        id="q", task=task, question="?", probes=(probe,), options=options,
        answer="A" if options else None,
    )  # fmt: skip
    where = {"trajectory": "T", "session": "S", "candidate": "q", "probe": "p", "task": task}
    said = [
        Response(**where, cutoff_s=5.0, closed=True, status=status, error=f"number {n}")
        for n, status in enumerate(statuses)
    ]
    return [Trajectory(id="T", source="s", sessions=(session,), candidates=(candidate,))], said


@pytest.mark.parametrize("statuses", list(itertools.product(STATUSES, repeat=3)))
def test_both_benchmarks_choose_the_same_record(statuses: tuple[str, ...]) -> None:
    """The newest that did not fail, else the newest."""
    sound = [n for n, status in enumerate(statuses) if status != "error"]
    newest = sound[-1] if sound else len(statuses) - 1
    for task, join, bench in (("ER", instances, APM_BENCH), ("RTP", arena_instances, STREAM_ARENA)):
        found = join(*records(task, *statuses), [], bench=bench)
        assert list(found.rows["why"]) == [f"number {newest}"]
        assert bool(found.notes) == (len(sound) > 1)


def test_several_judges_are_noticed_by_both() -> None:
    for task, join, bench in (("ER", instances, APM_BENCH), ("RTP", arena_instances, STREAM_ARENA)):
        where = {"trajectory": "T", "candidate": "q", "probe": "p"}
        verdicts = [Verdict(**where, judge=name, repeat=0, score=1) for name in ("one", "two")]
        with pytest.raises(BenchError, match="verdicts of 2 judges; choose one: one, two"):
            join(*records(task, "ok"), verdicts, bench=bench)
        assert join(*records(task, "ok"), verdicts, bench=bench, judge="two").judge == "two"


def test_a_grade_of_another_scale_is_named() -> None:
    verdict = Verdict(trajectory="T", candidate="q", probe="p", judge="j", repeat=0, score=4)
    with pytest.raises(BenchError, match="judge score 4 of T q p is neither 0 nor 1"):
        arena_instances(*records("RTP", "ok"), [verdict], bench=STREAM_ARENA)
