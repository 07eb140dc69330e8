"""Dense probes lie where they should, count in no score, and time what the system does."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_lib.asks.dense import dense, densely, is_dense, unscored
from bench_lib.asks.selection import select
from bench_lib.evaluate import reading
from bench_lib.evaluate.job import Evaluation
from bench_lib.params.evaluate import EvalParams
from bench_lib.report import analysis_tables, moment_tables
from bench_lib.schema import Candidate, Probe, Registration, Session, Span, Trajectory
from bench_lib.tasks import APM_BENCH

INSTANT, ANNOUNCED, CHOICE = (APM_BENCH.task(code) for code in ("RCR", "MPA", "ER"))


def owner(length_s: float = 60.0) -> Trajectory:
    spans = (Span(file="v.mp4", start_s=0, end_s=length_s),)
    sessions = [Session(id=f"S{i}", index=i, spans=spans, duration_s=length_s) for i in range(3)]
    return Trajectory(id="T", source="made", sessions=tuple(sessions))


def case(task: str, *probes: Probe, said: Registration | None = None) -> Candidate:
    return Candidate(id="c", task=task, probes=probes, registration=said)


def at(t_s: float, session: str = "S1", start_s: float | None = None, name: str = "p") -> Probe:
    span = None if start_s is None else (start_s, t_s)
    return Probe(id=name, session=session, t_s=t_s, polarity="positive", interval=span)


@given(st.floats(0.25, 90), st.floats(0, 59))
def test_instants_fill_the_session_after_the_registration(every_s: float, said_s: float) -> None:
    said = Registration(session="S1", t_s=said_s, text="Tell me.")
    found = dense(INSTANT, owner(), case("RCR", at(30.0), at(40.0, "S2"), said=said), every_s)
    for name, start_s in (("S1", said_s), ("S2", 0.0)):
        times = [probe.t_s for probe in found if probe.session == name]
        assert all(start_s < t < 60 for t in times)
        assert len(times) == pytest.approx((60 - start_s) / every_s, abs=1.01)
        gaps = [b - a for a, b in zip([start_s, *times], times, strict=False)]
        assert all(gap == pytest.approx(every_s, abs=1e-5) for gap in gaps)
    assert len({probe.id.lower() for probe in found}) == len(found)
    assert not any(probe.polarity or probe.interval for probe in found)


def test_an_announced_interval_is_filled_from_its_start_and_left_open() -> None:
    found = dense(ANNOUNCED, owner(), case("MPA", at(22.0, start_s=10.0)), 5.0)
    assert [(p.t_s, p.interval, p.closed) for p in found] == [
        (15.0, (10.0, 15.0), False),
        (20.0, (10.0, 20.0), False),
    ]


def test_only_adaptive_tasks_are_asked_and_only_when_wanted() -> None:
    assert dense(CHOICE, owner(), case("ER", at(30.0)), 5.0) == []
    assert dense(INSTANT, owner(), case("RCR", at(30.0)), 0.0) == []


def test_ids_tell_dense_from_annotated() -> None:
    found = dense(INSTANT, owner(), case("RCR", at(30.0)), 2.5)
    assert all(is_dense(p.id) and unscored(p.id) == "dense" for p in found)
    for name in ("p0", "q", "every", "everyone-7", "every5", "e"):
        assert not is_dense(name)
    whole = densely(
        APM_BENCH, owner().model_copy(update={"candidates": (case("RCR", at(30.0)),)}), 9
    )
    assert [p.id for p in whole.candidates[0].probes][:2] == ["p", "every9s-S1-9"]


def test_a_dense_run_has_the_scores_of_a_plain_one(outputs: Path) -> None:
    given = {"method": "simplestream", "backbone": "ideal", "source": "dollhouse-small"}
    plain = Evaluation.open(EvalParams(**given))
    plain.execute(progress=False)
    before = reading.gather(plain)
    scores = before.found.metrics()
    assert moment_tables.hourly(before).absent
    probed = Evaluation.open(EvalParams(**given, probe_every_s=5.0))
    assert probed.run.folder == plain.run.folder, "dense asks join the run"
    asks = [ask for own in select(probed.trajectories, probed.params).values() for ask in own]
    more = [ask for ask in asks if is_dense(ask.probe.id)]
    probed.execute(progress=False)
    after = reading.gather(probed)
    assert after.found.metrics() == scores
    assert after.scored.notes == after.timed.notes == ()
    assert len(after.responses) == len(before.responses) + len(more)
    table = moment_tables.hourly(after)
    total = table.rows[-1].cells
    assert int(total[1].text) == len(more)
    # By hand: runs of INTERVENE in time order, of each candidate and session.
    runs, last = 0, {}
    spoke = {r.probe: r.decision for r in after.responses if is_dense(r.probe)}
    for ask in sorted(more, key=lambda a: (a.candidate.id, a.probe.session, a.probe.t_s)):
        key = ask.candidate.id, ask.probe.session
        now = next(r.decision for r in after.responses if r.key == ask.key) == "INTERVENE"
        runs += now and not last.get(key, False)
        last[key] = now
    assert spoke
    assert int(total[2].text) == runs > 0
    assert float(total[4].text) == pytest.approx(runs / (len(more) * 5 / 3600), abs=0.06)
    placed = moment_tables.placements(after)
    assert sum(int(c.text) for row in placed.rows for c in row.cells[1:5]) == sum(
        int(row.cells[-1].text) for row in placed.rows
    )
    assert not analysis_tables.splits(after).absent
