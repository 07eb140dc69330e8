"""StreamArena's items: every stratum filled, every answer right, nothing known without looking."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from house_worlds import shown, told

from bench_lib.benches.arena.scores import GAP_S, WAIT_S
from bench_lib.dollhouse.ideal import arena_rules, grading
from bench_lib.dollhouse.ideal.recall import gather
from bench_lib.dollhouse.ideal.rules import holds
from bench_lib.dollhouse.world import library
from bench_lib.dollhouse.world.arena_sentences import Watch
from bench_lib.dollhouse.world.grammar import Item, read
from bench_lib.dollhouse.world.lore import lore, store
from bench_lib.dollhouse.world.sentences import CannotTell
from bench_lib.dollhouse.world.world import World
from bench_lib.schema import Candidate, Trajectory, clock
from bench_lib.sources.check import check
from bench_lib.tasks import STREAM_ARENA

PATTERNS = {"single_point", "multi_count", "multi_recall", "multi_compare", "temporal_range"}

GIRL = "It is so now that the girl is in the study."


@pytest.fixture(scope="module")
def videos() -> list[tuple[World, Trajectory]]:
    chosen = library.find("arena")
    return [library.compose(chosen, "arena", seed) for seed in chosen.seeds]


def _items(videos: list[tuple[World, Trajectory]], task: str) -> list[Candidate]:
    return [c for _, t in videos for c in t.candidates if c.task == task]


def _stratum(value: float, ends: tuple[float, ...]) -> int:
    return sum(value > end for end in ends)


def test_records_are_legal_and_videos_long(videos: list[tuple[World, Trajectory]]) -> None:
    assert not check([t for _, t in videos])[1]
    assert len(videos) >= 2
    assert all(t.sessions[0].duration_s >= 2400 for _, t in videos)
    assert {c.task for _, t in videos for c in t.candidates} == {
        task.code for task in STREAM_ARENA.tasks
    }


def test_every_pattern_gap_and_wait_occurs(videos: list[tuple[World, Trajectory]]) -> None:
    asked = _items(videos, "HR")
    assert {c.references["pattern"] for c in asked} == PATTERNS
    gaps = [c.probes[0].t_s - max(m.end_s for m in c.evidence) for c in asked]
    assert all(gap >= 0 for gap in gaps)
    assert {_stratum(gap, GAP_S) for gap in gaps} == {0, 1, 2, 3}
    watches = _items(videos, "Pro")
    waits = [c.ideal[0].start_s - c.registration.t_s for c in watches if c.registration]
    assert all(wait > 0 for wait in waits)
    assert {_stratum(wait, WAIT_S) for wait in waits} == {0, 1, 2}
    assert max(len(c.evidence) for c in asked) >= 5


def test_more_watches_run_at_once_than_an_agent_has_monitors(
    videos: list[tuple[World, Trajectory]],
) -> None:
    for _, trajectory in videos:
        spans = [
            (c.registration.t_s, c.ideal[0].start_s)
            for c in trajectory.candidates
            if c.registration
        ]
        assert max(sum(a <= t < b for a, b in spans) for t in range(2400)) > 8


def test_with_all_that_was_shown_every_answer_is_right(
    videos: list[tuple[World, Trajectory]],
) -> None:
    right: Counter[str] = Counter()
    for world, trajectory in videos:
        facts = "\n".join(d["text"] for d in lore(world.house.singles).documents())
        session = trajectory.sessions[0]
        pictures = shown(world, trajectory, session.id, 0, 1e9)
        for candidate in trajectory.candidates:
            t_s = candidate.probes[0].t_s
            if candidate.task == "Pro":
                continue
            heard = [c.text for c in session.captions if c.end_s <= t_s]
            asked = f"It is {clock((session.wall_start_s or 0) + t_s)}. {candidate.question}"
            looked_up = [facts] if candidate.task == "Tool" else []
            prefix = pictures[: int(t_s) + 1]
            reply = told((*heard, *looked_up, asked), prefix, "free", 512)
            assert grading.agrees(reply, candidate.references["answer"]), candidate.id
            right[candidate.task] += 1
            if candidate.task == "Tool":
                assert told((*heard, asked), prefix, "free", 512) == CannotTell().say()
            if candidate.task == "HR":
                recent = told((asked,), prefix[-8:], "free", 512)
                assert not grading.agrees(recent, candidate.references["answer"]) or (
                    t_s - min(m.start_s for m in candidate.evidence) < 30
                )
    assert set(right) == {"RTP", "HR", "Tool"}


def test_watches_come_true_at_their_due_time_and_not_before(
    videos: list[tuple[World, Trajectory]],
) -> None:
    for world, trajectory in videos:
        film = world.films[0]
        for candidate in trajectory.candidates:
            if candidate.task != "Pro" or not candidate.registration:
                continue
            (watch,) = read(candidate.question)
            assert isinstance(watch, Watch)
            asked, due = int(candidate.registration.t_s), int(candidate.ideal[0].start_s)
            seen = [holds(watch.condition, film.picture(t)) for t in range(asked, due + 1)]
            assert seen[-1]
            assert not any(seen[:-1])


def test_the_fact_store_knows_every_thing_and_no_film(
    videos: list[tuple[World, Trajectory]],
) -> None:
    world, _ = videos[0]
    documents = lore(world.house.singles).documents()
    assert len({d["id"] for d in documents}) == len(documents)
    named = {d["title"] for d in documents}
    assert all(f"{i.colour} {i.kind}" in named for i in world.house.singles)
    assert all("DAY" not in d["text"] for d in documents)
    kept = [json.loads(line)["text"] for line in store().read_text().splitlines()]
    assert {d["text"] for d in documents} <= set(kept)


def test_what_must_be_looked_up_is_named_step_by_step() -> None:
    house = "DAY1 09:00:00, study: I put the red key at the shelf."
    question = "What is the price of the thing that I put at the shelf in the study?"
    known = gather([], read(f"{house} {question}"), None)
    assert arena_rules.wanted(known) == ["red key"]
    assert arena_rules.put_there(read(question)[0], known) == Item("red", "key")  # type: ignore[arg-type]
    made = gather([], read(f"{house} The maker of the red key is Elm. {question}"), None)
    assert arena_rules.wanted(made) == ["red key", "Elm"]


@pytest.mark.parametrize(
    ("reply", "reference", "agrees"),
    [
        ("the red cup.", "the red cup", True),
        ("I think it was the red cup", "the red cup", True),
        ("the red cup or the blue cup", "the red cup", False),
        ("the blue cup", "the red cup", False),
        ("the red cup, the blue key", "the red cup, the blue key", True),
        ("the blue key, the red cup", "the red cup, the blue key", False),
        ("9", "9", True),
        ("9 or 10", "9", False),
        ("42 coins", "42 coins", True),
        (GIRL, GIRL, True),
        (GIRL.replace("girl", "boy"), GIRL, False),
        ("I cannot tell from what is shown.", "9", False),
    ],
)  # fmt: skip
def test_the_binary_rule_judge(reply: str, reference: str, agrees: bool) -> None:
    assert grading.agrees(reply, reference) is agrees
