"""No shortcut: whoever sees no video is at chance; a planted shortcut is found by its baseline."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pytest
from house_shortcuts import bag_of_words, by_number, letter_prior, mcq

from bench_lib.dollhouse.world import author, library
from bench_lib.schema import Candidate, Probe

POINTS = 0.03


@lru_cache(maxsize=4)
def _worlds(n: int, leak: str = "") -> tuple[Sequence[Candidate], ...]:
    counts = {task: 3 * count for task, count in author.COUNTS.items()}
    chosen = library.with_knobs(library.find("default"), counts=counts, leak=leak)
    return tuple(library.compose(chosen, "x", 1000 + seed)[1].candidates for seed in range(n))


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
