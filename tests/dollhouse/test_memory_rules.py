"""The ideal observer's rules for prompt-written memories."""

from __future__ import annotations

import json

import pytest
from house_worlds import composed, history, oracle, texts

from bench_lib.dollhouse.ideal.observer import respond
from bench_lib.dollhouse.world.grammar import read
from bench_lib.dollhouse.world.sentences import Fact
from bench_lib.methods.oasis import search_of
from bench_lib.replies.parse import parse
from bench_lib.tasks import APM_BENCH


def facts(text: str) -> set[Fact]:
    return {sentence for sentence in read(text) if isinstance(sentence, Fact)}


def asks(*tasks: str):
    for seed in range(6):
        world, trajectory = composed(seed, "default")
        for candidate in trajectory.candidates:
            if candidate.task in tasks:
                for probe in candidate.probes:
                    yield world, trajectory, candidate, probe


def test_two_notes_become_one_with_all_their_facts() -> None:
    world, trajectory, _, probe = next(asks("TR"))
    pictures = history(world, trajectory, probe)
    half = len(pictures) // 2
    one, two = (respond(part, "caption", 10_000) for part in (pictures[:half], pictures[half:]))
    joined = respond([f"[a] {one}\n[b] {two}"], "merge", 10_000)
    assert facts(joined) == facts(respond([one, two], "caption", 10_000))
    assert len(facts(joined)) > 10
    short = respond([f"[a] {one}\n[b] {two}"], "merge", 60)
    assert 0 < len(facts(short)) < len(facts(joined))


def test_a_thought_says_what_earlier_ones_do_not() -> None:
    world, trajectory, _, probe = next(asks("TR"))
    pictures = history(world, trajectory, probe)
    first = respond(pictures, "thought", 10_000)
    assert len(facts(first)) > 10
    second = respond([first, *pictures], "thought", 10_000)
    assert not facts(second) & facts(first)


def test_an_account_of_turns_says_each_thing_once() -> None:
    one = "Question: Where was the red cup last seen?\nAnswer: at the shelf"
    two = "Question: What do I do now?"
    account = respond([one, one, two], "history", 100)
    assert account.splitlines() == ["Where was the red cup last seen?", "What do I do now?"]


@pytest.mark.parametrize("task", ["ER", "EST", "TR"])
def test_it_searches_for_what_is_asked_and_answers_once_it_is_shown(task: str) -> None:
    for world, trajectory, candidate, probe in asks(task):
        said = texts(trajectory, candidate, probe)
        now = history(world, trajectory, probe)[-2:]
        kind = APM_BENCH.task(task).reply
        wanted = search_of(respond([*said, *now], f"lookup_{kind}", 512))
        assert wanted is not None
        assert candidate.question.split("?")[0] in wanted
        shown = oracle(world, trajectory, candidate, probe)
        answer = respond([*said, *shown], f"lookup_{kind}", 512)
        assert search_of(answer) is None
        assert parse(kind, answer).option == candidate.answer


@pytest.mark.parametrize("task", ["ACR", "CT", "OCR", "STU", "PRM", "RCR"])
def test_it_does_not_search_for_the_present(task: str) -> None:
    seen = 0
    for world, trajectory, candidate, probe in asks(task):
        if probe.polarity == "negative" and task == "RCR":
            continue
        shown = history(world, trajectory, probe)
        kind = APM_BENCH.task(task).reply
        reply = respond([*texts(trajectory, candidate, probe), *shown], f"lookup_{kind}", 512)
        assert search_of(reply) is None, candidate.id
        seen += 1
    assert seen > 5


def test_unasked_it_looks_for_what_goes_with_the_view() -> None:
    for world, trajectory, candidate, probe in asks("MPA", "TPG"):
        now = history(world, trajectory, probe)[-2:]
        reply = respond([*texts(trajectory, candidate, probe), *now], "lookup_adaptive_text", 512)
        wanted = search_of(reply)
        if wanted is None:
            assert json.loads(reply.split("<answer>")[1].split("</answer>")[0])["decision"]
        else:
            assert facts(wanted) <= set(now[-1].facts())
