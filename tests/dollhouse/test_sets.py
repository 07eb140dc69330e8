"""The larger sets: exact in size, lazily rendered, and answerable as they should be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from house_worlds import answered, cut, oracle, shown

from bench_lib import sources
from bench_lib.dollhouse.world import library
from bench_lib.errors import BenchError
from bench_lib.opening import chat
from bench_lib.sources import dollhouse
from bench_lib.sources.check import check

LARGE = library.find("large")


def test_the_large_set_has_the_size_of_the_benchmark() -> None:
    composed = [library.compose(LARGE, "large", seed) for seed in LARGE.seeds]
    trajectories = [t for _, t in composed]
    candidates = [c for t in trajectories for c in t.candidates]
    assert (len(trajectories), sum(len(t.sessions) for t in trajectories)) == (104, 549)
    assert len(candidates) == 2719
    assert Counter(c.task for c in candidates) == library.LARGE
    assert not check(trajectories[::10])[1]
    for world, trajectory in composed[::26]:
        for candidate in trajectory.candidates:
            for probe in candidate.probes:
                evidence = oracle(world, trajectory, candidate, probe)
                assert answered(trajectory, candidate, probe, evidence)[1], candidate.id


def test_a_world_of_the_large_set_does_not_depend_on_the_others() -> None:
    alone = library.compose(LARGE, "large", 57)[1]
    library.compose(LARGE, "large", 3)
    assert library.compose(LARGE, "large", 57)[1] == alone


def test_it_is_rendered_one_trajectory_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    data = dollhouse.load(
        variant="large", seeds=(4, 5), totals={"ER": 2}, sessions=4, film_s=(6, 8), fps=1, size=112
    )
    one, two = data.trajectories
    assert not list(tmp_path.rglob("*.mp4"))
    sources.prepare(one)
    assert all(Path(s.spans[0].file).exists() for s in (*one.sessions, *one.between))
    assert not any(Path(s.spans[0].file).exists() for s in two.sessions)
    monkeypatch.setattr(dollhouse, "_undrawn", {})
    with pytest.raises(BenchError, match="was not loaded in this process"):
        sources.prepare(two)


def test_half_of_the_availability_questions_are_within_reach() -> None:
    chosen, original = library.find("availability"), library.find("recall")
    halves: Counter[str] = Counter()
    for seed in chosen.seeds:
        world, trajectory = library.compose(chosen, "dollhouse-availability", seed)
        source = library.compose(original, "dollhouse-recall", seed)[1]
        known = {c.id: c for c in source.candidates}
        order = [s.id for s in trajectory.sessions]
        for candidate in trajectory.candidates:
            (probe,) = candidate.probes
            half = candidate.references["availability"]
            halves[half] += 1
            at = order.index(probe.session)
            places = {order.index(m.session) for m in candidate.evidence}
            assert (places <= {at - 1, at - 2}) == (half == "available")
            assert [o.id for o in candidate.options] == list("ABCDE")
            four = known[candidate.references["source_candidate_id"]]
            assert candidate.question.startswith(four.question)
            assert candidate.answer == (four.answer if half == "available" else "E")
            pictures = [p for s in order[at - 2 : at] for p in shown(world, trajectory, s, 0, 1e9)]
            pictures += shown(world, trajectory, probe.session, 0, cut(probe))
            assert answered(trajectory, candidate, probe, pictures)[1], candidate.id
    assert halves["available"] == halves["unavailable"] >= 20


def test_unknown_sets_and_impossible_wishes_are_named() -> None:
    with pytest.raises(BenchError, match="did you mean 'arena'"):
        library.find("aerna")
    greedy = library.with_knobs(LARGE, totals={"TPG": 104 * 5})
    with pytest.raises(BenchError, match="ask for fewer"):
        library.compose(greedy, "large", 0)


@pytest.mark.parametrize(
    ("name", "model", "strip"),
    [
        ("dollhouse-small", "ideal", True),
        ("dollhouse-small", "endpoint:ideal@http://localhost:8000/v1", True),
        ("dollhouse-small", "tiny", False),
        ("dollhouse-small", "endpoint:tiny@http://localhost:8000/v1", False),
        ("dollhouse-small?strip=true", "tiny", True),
        ("dollhouse-small?strip=false", "ideal", False),
    ],
)
def test_the_code_strip_is_drawn_for_the_ideal_observer_alone(
    name: str, model: str, strip: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    drawn: list[bool] = []
    monkeypatch.setattr(library, "film", lambda world, trajectory, look: drawn.append(look.strip))
    sources.load(name, program=chat.program(model))
    assert set(drawn) == {strip}


def test_knobs_stand_in_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    drawn: list[object] = []
    monkeypatch.setattr(library, "film", lambda world, trajectory, look: drawn.append(look))
    sources.load("dollhouse-small?strip=false&noise=8&fps=2")
    assert {(look.strip, look.noise, look.fps) for look in drawn} == {(False, 8.0, 2)}  # type: ignore[attr-defined]
    for bad, told in (("strip=8", "true or false"), ("fps=much", "a number"), ("nois=1", "noise")):
        with pytest.raises(BenchError, match=told):
            sources.load(f"dollhouse-small?{bad}")
