"""Candidates: complete, legal, balanced, and right by a second way of working them out."""

from __future__ import annotations

from collections import Counter

import pytest
from house_second_route import Route
from house_worlds import composed

from bench_lib import sources
from bench_lib.dollhouse.world import author, library
from bench_lib.dollhouse.world.draft import Brief
from bench_lib.schema import Candidate
from bench_lib.sources.check import check
from bench_lib.tasks import APM_BENCH

SEEDS = range(16)


def _candidates(name: str) -> list[tuple[int, Candidate]]:
    return [(seed, c) for seed in SEEDS for c in composed(seed, name)[1].candidates]


@pytest.mark.parametrize("name", ["default", "small"])
def test_every_record_is_legal(name: str) -> None:
    trajectories = [composed(seed, name)[1] for seed in SEEDS]
    kept, problems = check(trajectories)
    assert not problems
    assert len(kept) == len(trajectories)


def test_the_default_set_has_the_size_it_states() -> None:
    chosen = library.find("default")
    trajectories = [library.compose(chosen, "x", seed)[1] for seed in chosen.seeds]
    candidates = [c for t in trajectories for c in t.candidates]
    assert len(trajectories) == 4
    assert all(4 <= len(t.sessions) <= 6 for t in trajectories)
    assert all(55 <= s.duration_s <= 140 for t in trajectories for s in t.sessions)
    assert 55 <= len(candidates) <= 65
    assert 75 <= sum(len(c.probes) for c in candidates) <= 110
    assert {c.task for c in candidates} == {t.code for t in APM_BENCH.tasks}


def test_the_small_set_has_every_task() -> None:
    chosen = library.find("small")
    trajectories = [library.compose(chosen, "x", seed)[1] for seed in chosen.seeds]
    candidates = [c for t in trajectories for c in t.candidates]
    assert {c.task for c in candidates} == {t.code for t in APM_BENCH.tasks}
    assert all(s.duration_s <= 40 for t in trajectories for s in t.sessions)
    assert {len(t.sessions) for t in trajectories} == {3}
    assert 34 <= sum(len(c.probes) for c in candidates) <= 46


def test_probes_have_the_shape_of_their_task() -> None:
    for _, candidate in _candidates("default"):
        task = APM_BENCH.task(candidate.task)
        if not task.adaptive:
            (probe,) = candidate.probes
            assert (probe.id, probe.polarity, probe.closed) == ("q", None, True)
            continue
        kinds = Counter(p.polarity for p in candidate.probes)
        # A held question's probes end with its answer, wherever that is among them.
        held = candidate.task == "ERA"
        assert kinds["positive"] <= 1 if held else kinds["positive"] == 1
        assert 1 - held <= kinds["negative"] <= 4
        assert len({p.session for p in candidate.probes}) == 1
        assert all(p.closed != task.interval for p in candidate.probes)
        assert all(p.reference.reason for p in candidate.probes)
        speaks = task.reply == "adaptive_text"
        assert all(
            bool(p.reference.response) == (speaks and p.polarity == "positive")
            for p in candidate.probes
        )
        assert candidate.ideal
        ideal = candidate.ideal[0]
        for probe in candidate.probes:
            assert ideal.session == probe.session
            due = probe.polarity == "positive"
            assert (
                (ideal.start_s <= probe.t_s <= ideal.end_s)
                if due
                else (not held or probe.t_s < ideal.start_s)
            )


def test_evidence_lies_where_the_task_says() -> None:
    spread = Counter()
    for seed, candidate in _candidates("default"):
        order = [s.id for s in composed(seed)[1].sessions]
        task = APM_BENCH.task(candidate.task)
        asked = order.index(candidate.probes[0].session)
        places = [order.index(m.session) for m in candidate.evidence]
        if candidate.task == "PRM":
            assert candidate.registration
            assert order.index(candidate.registration.session) < asked
        elif task.evidence == "earlier":
            assert all(place < asked for place in places)
            spread[len(set(places))] += 1
        else:
            assert all(place == asked for place in places)
        if candidate.task == "TR" and asked > 1:
            assert len(set(places)) > 1
    assert len(spread) > 2


def test_letters_are_balanced() -> None:
    letters = Counter(c.answer for _, c in _candidates("default") if c.answer)
    n = sum(letters.values())
    assert n > 150
    assert all(abs(letters[x] / n - 0.25) < 0.03 for x in "ABCD")


@pytest.mark.parametrize("name", ["default", "small"])
def test_a_second_route_gives_the_same_answers(name: str) -> None:
    """Draw lists and string handling, against the author's event log and history."""
    checked = Counter()
    for seed, candidate in _candidates(name):
        world, trajectory = composed(seed, name)
        route = Route(world, [s.id for s in trajectory.sessions])
        if candidate.answer:
            text = next(o.text for o in candidate.options if o.id == candidate.answer)
            assert route.answer(candidate) == text, candidate.id
        else:
            for probe in candidate.probes:
                due = route.due(candidate, probe)
                expected = probe.reference.response if probe.polarity == "positive" else ""
                assert due == expected, (candidate.id, probe.id)
        checked[candidate.task] += 1
    assert set(checked) == {t.code for t in APM_BENCH.tasks}


def test_the_second_route_would_notice_a_wrong_key() -> None:
    """The control: with another option as key, the routes disagree."""
    wrong = 0
    for seed, candidate in _candidates("default"):
        if candidate.answer:
            world, trajectory = composed(seed)
            other = next(o.text for o in candidate.options if o.id != candidate.answer)
            route = Route(world, [s.id for s in trajectory.sessions])
            wrong += route.answer(candidate) != other
    assert wrong == sum(bool(c.answer) for _, c in _candidates("default"))


def test_counts_are_kept_and_candidates_differ() -> None:
    counts = {"ER": 5, "STU": 3, "RCR": 2}
    chosen = library.with_knobs(library.find("default"), counts=counts)
    _, trajectory = library.compose(chosen, "x", 1)
    assert Counter(c.task for c in trajectory.candidates) == counts
    assert Brief().counts == {}
    asked = [(c.question, c.registration) for c in trajectory.candidates if c.task == "ER"]
    assert len(asked) == 5
    assert author.COUNTS.keys() == author.TASKS.keys()


def test_sources_finds_the_house_by_name_and_refuses_unknown_knobs() -> None:
    from bench_lib.errors import BenchError
    from bench_lib.sources import dollhouse

    assert "dollhouse" in sources.available()
    with pytest.raises(BenchError, match="did you mean 'noise'"):
        dollhouse.load(variant="small", nois=3)
    with pytest.raises(BenchError, match="did you mean 'small'"):
        dollhouse.load(variant="smal")
