"""Faulty records are left out by name, field and value; the others stay."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic import OPTIONS, question

from bench_lib.schema import (
    Candidate,
    Moment,
    Option,
    Probe,
    Registration,
    Session,
    Trajectory,
    clock,
)
from bench_lib.sources.check import check
from bench_lib.video import captions


def home(*candidates: Candidate, **fields) -> Trajectory:
    sessions = tuple(
        Session(id=f"S{i}", index=i, spans=(), duration_s=10.0, wall_start_s=100.0 * i)
        for i in range(3)
    )
    return Trajectory(id="T", source="x", **{"sessions": sessions, **fields}, candidates=candidates)


GOOD = question("good", "S2", 5.0, evidence=[Moment(session="S0", start_s=1, end_s=2)])
PRM = Candidate(
    id="prm",
    task="PRM",
    registration=Registration(session="S0", t_s=3.0, text="x"),
    probes=(Probe(id="p", session="S1", t_s=5, polarity="positive", interval=(2, 5)),),
)


def changed(candidate: Candidate, **fields) -> Candidate:
    return candidate.model_copy(update={"id": "bad", **fields})


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (changed(GOOD, id="GOOD"), "id"),
        (changed(GOOD, task="XX"), "task"),
        (changed(GOOD, answer="E"), "answer"),
        (changed(GOOD, question=" "), "question"),
        (changed(GOOD, options=OPTIONS[:1]), "options"),
        (changed(GOOD, options=(*OPTIONS, Option(id="A", text="new"))), "options.id"),
        (changed(GOOD, options=(*OPTIONS, Option(id="E", text="THING A "))), "options.text"),
        (changed(GOOD, probes=()), "probes"),
        (changed(GOOD, probes=(Probe(id="q", session="S9", t_s=1),)), "probes.session"),
        (changed(GOOD, probes=(Probe(id="q", session="S2", t_s=11),)), "probes.t_s"),
        (changed(GOOD, probes=(Probe(id="q", session="S2", t_s=1, polarity="positive"),)),
         "probes.polarity"),
        (changed(GOOD, evidence=(Moment(session="S2", start_s=6, end_s=7),)), "evidence.end_s"),
        (changed(GOOD, evidence=(Moment(session="S0", start_s=7, end_s=6),)), "evidence"),
        (changed(GOOD, evidence=(Moment(session="S7", start_s=1, end_s=2),)), "evidence.session"),
        (changed(PRM, registration=None), "registration"),
        (changed(PRM, registration=Registration(session="S1", t_s=6, text="x")),
         "registration.t_s"),
        (changed(PRM, probes=(Probe(id="p", session="S1", t_s=5, polarity="positive"),)),
         "probes.interval"),
        (changed(PRM, probes=(*PRM.probes, PRM.probes[0].model_copy(
            update={"id": "n", "polarity": "negative"}))), "probes"),
    ],
)  # fmt: skip
def test_a_faulty_candidate_is_quarantined(bad: Candidate, field: str) -> None:
    (kept,), problems = check([home(GOOD, bad, PRM)])
    assert [c.id for c in kept.candidates] == ["good", "prm"]
    (problem,) = problems
    assert problem.field == field
    assert bad.id in problem.record
    assert problem.value in str(problem)


def test_a_faulty_trajectory_costs_only_itself() -> None:
    twice = home(GOOD, sessions=(home().sessions[0], home().sessions[0]))
    overlap = home().sessions[1].model_copy(update={"wall_start_s": 3.0})
    overlapping = home(PRM, sessions=(home().sessions[0], overlap)).model_copy(update={"id": "U"})
    kept, problems = check([twice, overlapping, home(GOOD).model_copy(update={"id": "V"})])
    assert [t.id for t in kept] == ["V"]
    assert {p.field for p in problems} == {"sessions.id", "sessions.wall_start_s"}


def test_captions_of_both_kinds(tmp_path: Path) -> None:
    srt = tmp_path / "a.srt"
    srt.write_text(
        "\ufeff1\r\n00:00:01,500 --> 00:00:02,250\r\n<i>Hello</i>\r\nyou\r\n\r\n"
        "2\r\n00:01:00,000 --> 00:01:01,000\r\n\r\n\r\n3\n00:00:00,100 --> 00:00:00,900\nfirst\n"
    )
    assert [(c.start_s, c.end_s, c.text) for c in captions.read(srt)] == [
        (0.1, 0.9, "first"),
        (1.5, 2.25, "Hello you"),
    ]
    vtt = tmp_path / "a.vtt"
    vtt.write_text("WEBVTT\n\nNOTE x\n\n00:01.000 --> 00:02.000 line:80%\n<u>Ho</u> &amp; hum\n")
    assert [(c.end_s, c.text) for c in captions.read(vtt)] == [(2.0, "Ho & hum")]


def test_the_clock_counts_days() -> None:
    assert clock(None) == ""
    assert clock(86_400 + 10 * 3600 + 3 * 60 + 12.9) == "DAY2 10:03:12"
