"""No shortcut: whoever sees no video is at chance; a planted shortcut is found by its baseline."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import pytest
from house_second_route import Route, named
from house_shortcuts import bag_of_words, by_number, letter_prior, mcq

from bench_lib.dollhouse.world import author, library
from bench_lib.dollhouse.world.chronicle import Chronicle
from bench_lib.dollhouse.world.world import World
from bench_lib.schema import Candidate, Probe, Trajectory
from bench_lib.score import shortcuts
from bench_lib.tasks import APM_BENCH

POINTS = 0.03


@lru_cache(maxsize=4)
def _composed(n: int, leak: str = "", first: int = 1000) -> tuple[tuple[World, Trajectory], ...]:
    counts = {task: 3 * count for task, count in author.COUNTS.items()}
    chosen = library.with_knobs(library.find("default"), counts=counts, leak=leak)
    seeds = range(first, first + n)
    return tuple(library.compose(chosen, f"x{seed}", seed) for seed in seeds)


def _worlds(n: int, leak: str = "") -> tuple[Sequence[Candidate], ...]:
    return tuple(trajectory.candidates for _, trajectory in _composed(n, leak))


def _length(probe: Probe) -> float:
    assert probe.interval
    return probe.interval[1] - probe.interval[0]


def test_there_are_enough_candidates_to_tell() -> None:
    assert len(mcq(_worlds(64))) >= 2000


def test_the_text_of_question_and_options_tells_nothing() -> None:
    assert abs(bag_of_words(_worlds(64)) - 0.25) < POINTS


def test_no_letter_is_right_more_often() -> None:
    assert abs(letter_prior(_worlds(64)) - 0.25) < POINTS


def test_the_length_of_a_window_tells_nothing() -> None:
    assert abs(by_number(_worlds(64), _length) - 0.5) < POINTS


def test_the_longest_option_is_not_right_more_often() -> None:
    longest = [max(c.options, key=lambda o: len(o.text)).id == c.answer for c in mcq(_worlds(64))]
    assert abs(sum(longest) / len(longest) - 0.25) < POINTS


@pytest.mark.parametrize(
    ("leak", "finds"),
    [
        ("letter", letter_prior),
        ("text", bag_of_words),
        ("length", lambda worlds: by_number(worlds, _length)),
    ],
)
def test_a_planted_shortcut_is_found(leak: str, finds) -> None:  # type: ignore[no-untyped-def]
    chance = 0.5 if leak == "length" else 0.25
    assert finds(_worlds(12, leak)) > chance + 0.2


def _missed(trajectories: Sequence[Trajectory], doubt: float) -> list[str]:
    """Tasks of which a learner knows more than chance, by over three points.

    `doubt` adds so many standard errors: few candidates tell little. Less than chance is no
    knowledge: what is learnt from pairs is mostly wrong about the pair left out.
    """
    scores = shortcuts.shortcut_scores(trajectories)
    found = []
    for name in shortcuts.LEARNT:
        for task in APM_BENCH.tasks:
            measure, chance = ("balanced accuracy", 50) if task.adaptive else ("accuracy", 25)
            one = scores[
                (scores["shortcut"] == name)
                & (scores["group"] == task.code)
                & (scores["measure"] == measure)
            ]
            if len(one):
                error = 100 * (chance / 100 * (1 - chance / 100) / one["n"].item()) ** 0.5
                if one["value"].item() - chance > 3 + doubt * error:
                    found.append(f"{task.code}, {name}: {one['value'].item():.1f}")
    return found


def test_who_learns_all_that_is_known_without_video_is_at_chance() -> None:
    trajectories = [t for _, t in _composed(64)[:24]]
    assert sum(len(t.candidates) for t in trajectories) > 800
    assert _missed(trajectories, doubt=2.5) == []


@pytest.mark.slow
def test_who_learns_it_from_many_worlds_is_at_chance_too() -> None:
    """Five hundred worlds no other test has, each candidate judged by what others teach."""
    trajectories = [t for _, t in _composed(500, first=2_000_000)]
    assert sum(len(t.candidates) for t in trajectories) > 6000
    assert _missed(trajectories, doubt=0.5) == []


def test_the_learners_would_find_a_probe_that_looks_or_comes_otherwise() -> None:
    """The control: silent probes at which nothing is seen, or which all come first."""

    def changed(probe: Probe, **new: object) -> Probe:
        return probe.model_copy(update=new) if probe.polarity == "negative" else probe

    def planted(task: str, **new: object) -> list[Trajectory]:
        out = []
        for _, trajectory in _composed(64)[:12]:
            some = [
                c.model_copy(update={"probes": tuple(changed(p, **new) for p in c.probes)})
                for c in trajectory.candidates
                if c.task == task
            ]
            out.append(trajectory.model_copy(update={"candidates": tuple(some)}))
        return out

    looks = _missed(planted("MPA", glance={"hands": "empty"}), doubt=0)
    assert {f"MPA, {name}" for name in (shortcuts.GLANCE, shortcuts.TREE)} <= {
        line.partition(":")[0] for line in looks
    }
    comes = _missed(planted("RCR", t_s=3.0), doubt=0)
    assert f"RCR, {shortcuts.TIMES}" in {line.partition(":")[0] for line in comes}


def test_the_cues_of_unasked_help_are_seen_as_often_without_it() -> None:
    due: Counter[tuple[str, bool]] = Counter()
    for world, trajectory in _composed(64):
        chronicle = Chronicle(world)
        for event in chronicle.events:
            if chronicle.cue(event):
                kind = event.act.action if event.act else ""
                due[kind, chronicle.help_due(event) is not None] += 1
        for candidate in trajectory.candidates:
            if candidate.task in ("MPA", "TPG"):
                assert len({p.glance["hands"] for p in candidate.probes}) == 1
    for kind in ("seek", "wait"):
        assert due[kind, True] > 60
        assert abs(due[kind, True] - due[kind, False]) < 0.06 * sum(due.values())


def _places(world: World, trajectory: Trajectory, candidate: Candidate) -> Counter[str] | None:
    """Seconds that a thing was seen at each place before a question, in the order of places."""
    asked = re.fullmatch(r"Where was (.*) last seen\?", candidate.question)
    if asked is None:
        return None
    (probe,) = candidate.probes
    route = Route(world, [s.id for s in trajectory.sessions])
    found: Counter[str] = Counter()
    shots = list(route.shots(probe.session, probe.t_s))
    for shot, later in zip(shots, [*shots[1:], shots[-1]], strict=True):
        for group in shot.groups:
            if group.slot < 6 and named(group) == asked[1] and shot.action != "take":
                found[f"the {group.place} in the {shot.room}"] += min(later.wall_s - shot.wall_s, 9)
    return found


def test_where_a_thing_was_first_or_mostly_is_no_better_than_a_guess() -> None:
    hits: Counter[str] = Counter()
    n = several = 0
    for world, trajectory in _composed(64):
        for candidate in trajectory.candidates:
            places = _places(world, trajectory, candidate)
            if places is None:
                continue
            n += 1
            several += len(places) > 1
            text = {o.id: o.text for o in candidate.options}[str(candidate.answer)]
            hits["first"] += next(iter(places)) == text
            hits["mostly"] += places.most_common(1)[0][0] == text
            assert len(set(places) & {o.text for o in candidate.options}) >= min(len(places), 2)
    assert n > 150
    assert several >= 0.7 * n
    assert max(hits.values()) <= (0.25 + POINTS) * n
