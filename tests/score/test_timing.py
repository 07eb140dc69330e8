"""When a system spoke: placements, the first-alert rule, and StreamArena's scores by hand."""

from __future__ import annotations

import math

import planted as p
import pytest

from bench_lib.benches.arena.scores import arena_instances, arena_scores
from bench_lib.errors import BenchError
from bench_lib.schema import (
    Candidate,
    Moment,
    Probe,
    Registration,
    Response,
    Session,
    Span,
    Trajectory,
    Verdict,
)
from bench_lib.score import aggregate, timing
from bench_lib.score.instances import instances
from bench_lib.tasks import REACTIVE, Bench, Task, Window

ARENA = Bench(
    "arena",
    tuple(Task(code, code, code, "free", "current") for code in ("RTP", "HR", "Tool", "Pro")),
    "apm",
    "shared",
)


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (math.inf, "none"),
        (99.4, "premature"),
        (99.5, "on time"),
        (102.0, "on time"),
        (102.1, "late"),
    ],
)
def test_the_first_alert_decides(first, expected):
    assert timing.alert_timing(first, due_s=100.0) == expected


def test_the_window_is_a_parameter():
    assert timing.alert_timing(98.0, 100.0, Window(early_s=2.0)) == "on time"


@pytest.mark.parametrize(
    ("t_s", "expected"),
    [(4, "early"), (5, "inside"), (10, "inside"), (12, "late"), (18, "early"), (31, "late")],
)
def test_places_against_two_intervals(t_s, expected):
    assert timing.place(t_s, [(5, 10), (20, 30)]) == expected


def test_interventions_against_the_ideal_interval():
    ideal = (Moment(session="S3", start_s=295, end_s=300),)
    good, early, never = (p.adaptive(ideal=ideal) for _ in range(3))
    replies = [
        p.reply("t", good, "p0", p.SPEAK), p.reply("t", good, "n0", p.SILENT),
        p.reply("t", early, "p0", p.SPEAK), p.reply("t", early, "n0", p.SPEAK),
        p.reply("t", never, "p0", p.SILENT), p.reply("t", never, "n0", p.SILENT),
    ]  # fmt: skip
    trajectories = [p.trajectory("t", [good, early, never])]
    found = timing.interventions(instances(trajectories, replies), trajectories)
    assert found["placement"].tolist() == ["inside", "early", "none"]
    assert found["lead_s"].tolist()[:2] == [-5, 195]
    counts = timing.placements(found).loc["MPA"]
    assert counts.to_dict() == {"early": 1, "inside": 1, "late": 0, "none": 1, "n": 3}
    assert timing.placements(found.iloc[:0]).empty


def test_interventions_an_hour_count_runs_once():
    probes = tuple(Probe(id=f"d{i}", session="S1", t_s=10.0 * i) for i in range(6))
    dense = Candidate(id="dense", task="MPA", probes=probes)
    texts = [p.SPEAK, p.SPEAK, p.SILENT, p.SPEAK, p.SILENT, p.SILENT]
    replies = [p.reply("t", dense, probe.id, text) for probe, text in zip(probes, texts)]  # noqa: B905
    data = instances([p.trajectory("t", [dense])], replies)
    found = timing.interventions_an_hour(data, every_s=10).iloc[0]
    assert (found["probes"], found["interventions"]) == (6, 2)
    assert found["per_hour"] == pytest.approx(2 / (60 / 3600))
    nothing = timing.interventions_an_hour(instances([], []), every_s=10)
    assert nothing.empty
    # Dense probes belong to no score.
    assert aggregate.task_scores(data).set_index("group").loc["MPA", "n"] == 0


# StreamArena


def question(ident, task, asked, evidence=(), due=None, **references):
    kwargs = {}
    if due is not None:
        kwargs["ideal"] = (Moment(session="V", start_s=due, end_s=due),)
        kwargs["registration"] = Registration(session="V", t_s=asked, text="Tell me.")
    return Candidate(
        id=ident, task=task, question="?", references=references,
        evidence=tuple(Moment(session="V", start_s=t, end_s=t) for t in evidence),
        probes=(Probe(id="q", session="V", t_s=asked),), **kwargs,
    )  # fmt: skip


def video(name, candidates):
    session = Session(
        id="V", index=0, spans=(Span(file="v", start_s=0, end_s=7200),), duration_s=7200
    )
    return Trajectory(id=name, source="toy", sessions=(session,), candidates=tuple(candidates))


def answered(name, candidate, status="ok", alert=None):
    return Response(
        trajectory=name, session="V", candidate=candidate.id, probe="q", task=candidate.task,
        cutoff_s=candidate.probes[0].t_s, closed=True, status=status, text="an answer",
        timings={} if alert is None else {"alert_s": alert},
    )  # fmt: skip


def judged(candidate, score):
    return Verdict(trajectory="v1", candidate=candidate.id, probe="q", judge="toy", score=score)


def scored(candidates, responses, verdicts, **kwargs):
    return arena_instances([video("v1", candidates)], responses, verdicts, bench=ARENA, **kwargs)


def test_arena_scores_by_hand():
    near, far = question("a", "HR", 1000, [900]), question("b", "HR", 5000, [100, 4500])
    due = [question(f"p{i}", "Pro", 10, due=100 + i) for i in range(4)]
    responses = [
        answered("v1", near), answered("v1", far),
        answered("v1", due[0], alert=100.0),  # on time and right
        answered("v1", due[1], alert=101.5),  # on time, wrong content
        answered("v1", due[2], alert=60.0),  # premature
        answered("v1", due[3]),  # none
    ]  # fmt: skip
    verdicts = [judged(near, 1), judged(far, 0), judged(due[0], 1), judged(due[1], 0),
                judged(due[2], 1)]  # fmt: skip
    data = scored([near, far, *due], responses, verdicts)
    found = arena_scores(data).set_index("group")
    assert found.loc["HR", "value"] == 50
    assert found.loc["Pro", "value"] == 25
    assert found.loc[REACTIVE, "n"] == 2
    assert data.rows.set_index("candidate").loc["p2", "timing"] == "premature"
    assert found.loc["RTP", "note"] == "n = 0"
    by_gap = aggregate.split(data, "gap", arena_scores)
    hr = by_gap[by_gap["group"] == "HR"].set_index("stratum")["n"]
    assert hr.loc[["L1, up to 5 min", "L2, 5-15 min"]].tolist() == [1, 1]
    earliest = scored([near, far], responses[:2], verdicts[:2], gap="earliest")
    assert earliest.rows["gap"].tolist() == ["L1, up to 5 min", "L4, over 30 min"]


def test_arena_keeps_apart_what_is_missing():
    ok, lost, unread, open_ = (question(x, "HR", 50, [10]) for x in "abcd")
    responses = [answered("v1", ok), answered("v1", lost, "error"),
                 answered("v1", unread, "unparsed"), answered("v1", open_)]  # fmt: skip
    data = scored([ok, lost, unread, open_], responses, [judged(ok, 1)])
    found = arena_scores(data).set_index("group").loc["HR"]
    assert math.isnan(found["value"])
    assert (found["bound_low"], found["bound_high"]) == pytest.approx((100 / 3, 200 / 3))
    assert found["note"] == "1 error, 1 unjudged: bounds for 0 and 1"
    assert (found["n"], found["expected"]) == (2, 4)


def test_an_unsupported_task_is_not_a_zero():
    tool = question("a", "Tool", 50)
    found = arena_scores(scored([tool], [answered("v1", tool, "not_run")], []), ["Tool"])
    row = found.set_index("group").loc["Tool"]
    assert math.isnan(row["value"])
    assert row["note"].startswith("N/A")


def test_arena_refuses_what_makes_no_sense():
    tool = question("a", "Tool", 50)
    with pytest.raises(BenchError, match="neither 0 nor 1"):
        scored([tool], [], [judged(tool, 5)])
    with pytest.raises(BenchError, match="no due time"):
        scored([question("b", "Pro", 50)], [], [])
    with pytest.raises(BenchError, match="latest"):
        scored([], [], [], gap="middle")
