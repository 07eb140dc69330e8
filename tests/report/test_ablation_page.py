"""06_ablations: runs found by what identifies them, spreads, gains and availability by hand."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench_lib.ablate import job as ablating
from bench_lib.ablate import page, tables
from bench_lib.ablate.job import Ablation, conditioned
from bench_lib.compare import tables as compare_tables
from bench_lib.compare.job import Comparison
from bench_lib.errors import BenchError
from bench_lib.evaluate.job import Evaluation
from bench_lib.judge import page as judge_page
from bench_lib.judge.job import Judging
from bench_lib.params.evaluate import EvalParams
from bench_lib.params.readings import AblationParams, CompareParams, JudgeParams
from bench_lib.readings.material import Material
from bench_lib.report.tables import Row, Table
from bench_lib.schema import SCORABLE, Candidate, Option, Probe, Response, Session, Span, Trajectory
from bench_lib.score.instances import instances

Build = Callable[..., Material]
SYSTEMS = {"one": {"method": "null"}, "two": {"method": "null", "seed": 7}}


@pytest.fixture
def made(build: Build, monkeypatch: pytest.MonkeyPatch) -> Ablation:
    """Two systems; `two` has no oracle run. Their records are as made, not read again."""
    worse = lambda r: r.model_copy(update={"passed": False, "option": "C"})  # noqa: E731
    better = lambda r: r.model_copy(update={"passed": True, "option": "B"})  # noqa: E731
    runs = [
        build(3),
        build(3, seed=7, change=lambda r: worse(r) if r.task == "ER" and r.option else r),
        build(3, condition="oracle", change=lambda r: better(r) if r.option else r),
    ]
    known = {m.run.folder: m for m in runs}
    monkeypatch.setattr(ablating, "read", lambda folders, judge: ([known[folders[0]]], []))
    params = AblationParams(
        systems=SYSTEMS, conditions=["standard", "oracle"], source="dollhouse", backbone="tiny",
        availability="",
    )  # fmt: skip
    return Ablation.open(params)


def rows_of(table: Table, group: str) -> dict[str, Row]:
    """Rows below a heading."""
    found: dict[str, Row] = {}
    here = ""
    for row in table.rows:
        if row.kind == "group":
            here = row.cells[0].text
        elif here == group:
            found[row.cells[0].text] = row
    return found


def accuracy(material: Material, tasks: tuple[str, ...]) -> float:
    means = []
    for task in tasks:
        own = [
            bool(r["passed"])
            for r in material.run.read("responses")
            if r["task"] == task and r["status"] in SCORABLE
        ]
        means.append(100 * sum(own) / len(own))
    return sum(means) / len(means)


def test_runs_are_found_by_what_identifies_them(made: Ablation) -> None:
    assert set(made.found) == {("one", "standard"), ("two", "standard"), ("one", "oracle")}
    assert made.found["one", "standard"].params.seed == 42
    assert made.found["two", "standard"].params.seed == 7


def test_a_missing_run_prints_the_command_that_makes_it(made: Ablation) -> None:
    mine = [text for text in made.missing if "name two" in text and "oracle" in text]
    assert len(mine) == 1
    words = shlex.split(mine[0].replace("\\\n", " "))
    given = {words[i + 1]: words[i + 2] for i, word in enumerate(words) if word in ("-p", "-r")}
    assert given == {"method": "null", "condition": "oracle", "seed": "7", "name": "two"}
    assert mine[0] in page.runs(made)._repr_html_().replace("&#39;", "'")


def test_a_complete_run_prints_nothing(made: Ablation, build: Build) -> None:
    unfinished = [r for r in made.found["one", "standard"].responses if r.status == "error"]
    assert unfinished, "the made run has errors, which the same command tries again"
    clean = build(1, seed=99, change=lambda r: None if r.status == "error" else r)
    asks = {key: ask for key, ask in clean.asks.items() if key in clean.run.responses()}
    whole = Material(clean.run, clean.params, clean.bench, clean.trajectories, asks)
    job = Ablation(made.params, {("one", "standard"): clean.params}, {("one", "standard"): whole})
    assert job.missing == []


def test_scores_and_their_spread(made: Ablation) -> None:
    rows = rows_of(tables.scores(made), "Cross-session Understanding")
    tasks = ("ER", "EST", "TR")
    shown = [accuracy(made.found[s, "standard"], tasks) for s in ("one", "two")]
    for system, value in zip(("one", "two"), shown, strict=True):
        assert rows[system].cells[1].text == f"{value:.2f}"
    spread = rows["spread over systems"].cells[1]
    mean = sum(shown) / 2
    assert spread.text == f"{math.sqrt(sum((v - mean) ** 2 for v in shown) / 2):.2f}"
    assert spread.sub == "2 systems"
    assert rows["two"].cells[2].text == "—"
    assert "no run" in rows["two"].cells[2].why
    assert "has 1" in rows["spread over systems"].cells[2].why


def test_the_oracle_gain_is_paired(made: Ablation) -> None:
    right = [
        {
            (r["candidate"], r["probe"]): (r["task"], bool(r["passed"]))
            for r in made.found["one", condition].run.read("responses")
            if r["status"] in SCORABLE
        }
        for condition in ("standard", "oracle")
    ]
    shared = set(right[0]) & set(right[1])
    gains = []
    for task in ("ER", "EST", "TR"):
        own = [k for k in shared if right[0][k][0] == task]
        gains.append(100 * sum(right[1][k][1] - right[0][k][1] for k in own) / len(own))
    table = tables.gains(made)
    row = next(r for r in table.rows if r.cells[2].text == "Cross-session Understanding")
    assert row.cells[3].text == f"{sum(gains) / 3:+.2f}"
    assert "two, oracle" in table.note


def five(name: str, half: str, source: str) -> Candidate:
    letters = "ABCDE" if half else "ABCD"
    more = {"availability": half, "source_candidate_id": source} if half else {}
    return Candidate(
        id=name, task="ER", question="Where?", answer="E" if half == "unavailable" else "A",
        options=tuple(Option(id=x, text=x) for x in letters),
        probes=(Probe(id="q", session="S1", t_s=5.0),), references=more,
    )  # fmt: skip


def house(name: str, candidates: list[Candidate]) -> Trajectory:
    span = Span(file="v.mp4", start_s=0, end_s=10)
    session = Session(id="S1", index=0, spans=(span,), duration_s=10)
    return Trajectory(id=name, source="made", sessions=(session,), candidates=tuple(candidates))


def said(trajectory: str, candidate: Candidate, option: str) -> Response:
    return Response(
        trajectory=trajectory, session="S1", candidate=candidate.id, probe="q", task="ER",
        cutoff_s=5.0, closed=True, status="ok", option=option, passed=option == candidate.answer,
    )  # fmt: skip


def test_evidence_availability_by_hand() -> None:
    old = [house(f"R{t}", [five(f"o{t}{i}", "", "") for i in range(4)]) for t in range(3)]
    new = [
        house(f"V{t}", [five(f"v{t}{i}", ("available", "unavailable")[i % 2], f"o{t}{i}")
                        for i in range(4)])
        for t in range(3)
    ]  # fmt: skip
    first = [said(t.id, c, "A" if c.id != "o00" else "B") for t in old for c in t.candidates]
    second = [said(t.id, c, "A" if c.id != "v12" else "E") for t in new for c in t.candidates]
    found: dict[tuple[str, str], Any] = {
        ("s", "original"): SimpleNamespace(scored=instances(old, first)),
        ("s", "availability"): SimpleNamespace(scored=instances(new, second)),
    }
    job = Ablation(AblationParams(), dict.fromkeys(found), found)  # type: ignore[arg-type]
    cells = [cell.text for cell in tables.evidence(job).rows[0].cells]
    # 11 of 12 originals, 5 of 6 available, 0 of 6 unavailable; o00 gains, v12 loses its question.
    assert cells == ["s", "91.67", "83.33", "0.00", "41.67", "+0.00"]
    del found["s", "original"]
    lone = tables.evidence(job).rows[0].cells
    assert (lone[1].text, lone[5].text) == ("—", "—")
    assert "original" in lone[5].why


def test_without_runs_everything_is_a_command(outputs: Path) -> None:
    job = Ablation.open(AblationParams())
    assert len(job.missing) == len(job.wanted) == 18
    assert "18 of 18 runs missing" in page.runs(job)._repr_html_()
    assert "first section prints commands" in page.scores(job)._repr_html_()
    assert "Nothing" in page.write(job).absent
    assert not list(outputs.rglob("*.html"))


def test_conditions_are_read_strictly() -> None:
    assert conditioned("recent_sessions 0") == {"condition": "recent_sessions", "recent": 0}
    with pytest.raises(BenchError, match="only recent_sessions"):
        conditioned("oracle 2")
    with pytest.raises(BenchError, match="condition"):
        Ablation.open(AblationParams(conditions=["orakle"]))
    with pytest.raises(BenchError, match="system 'x'"):
        Ablation.open(AblationParams(systems={"x": {"method": "null", "no_such": 1}}))


def test_real_runs_from_evaluation_to_comparison(outputs: Path) -> None:
    """simplestream sees the present only: perception is whole, earlier sessions are lost."""
    for condition in ("standard", "oracle"):
        job = Evaluation.open(
            EvalParams(method="simplestream", source="dollhouse-small", backbone="ideal",
                       condition=condition)
        )  # fmt: skip
        job.execute(progress=False)
    judging = Judging.open(JudgeParams(run="latest"))
    judging.execute(progress=False)
    judge_page.write(judging)
    ablation = Ablation.open(
        AblationParams(systems={"simplestream": {"method": "simplestream"}}, availability="",
                       conditions=["standard", "oracle"])
    )  # fmt: skip
    assert ablation.missing == []
    table = tables.scores(ablation)
    assert rows_of(table, "Real-time Perception")["simplestream"].cells[1].text == "100.00"
    assert rows_of(table, "Cross-session Understanding")["simplestream"].cells[1].text == "0.00"
    assert "unjudged" in rows_of(table, "Adaptive Response")["simplestream"].cells[1].sub
    assert rows_of(table, "Adaptive Response")["simplestream"].cells[2].text != "—"
    comparison = Comparison.open(CompareParams(runs=["03_eval-simple*"]))
    assert list(comparison.materials) == ["simplestream", "simplestream, oracle"]
    shown = compare_tables.main(comparison)
    assert "unjudged" in shown.rows[1].cells[1].text
    assert "rule judge" in shown.rows[2].cells[1].text
    metrics = json.loads((judging.material.run.folder / "metrics.json").read_text())
    value = next(r["value"] for r in metrics["capabilities"] if r["group"] == "Adaptive Response")
    assert f"{value:.2f}†" == shown.rows[2].cells[-2].text
