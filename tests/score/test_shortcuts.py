"""Shortcut baselines: what they must score on planted sets, and that they learn nothing at home."""

from __future__ import annotations

import math

import planted as p
import pytest

from bench_lib.score import shortcuts


def windows(task, positive_s, negative_s):
    """An interval candidate with windows of these lengths."""
    one = p.adaptive(task, positive=1, negative=2)
    probes = tuple(
        probe.model_copy(
            update={
                "interval": (
                    probe.t_s - (positive_s if probe.polarity == "positive" else negative_s),
                    probe.t_s,
                )
            }
        )
        for probe in one.probes
    )
    return one.model_copy(update={"probes": probes})


def leaky(count=4, positive_s=6.0, negative_s=29.0):
    made = [
        (windows("MPA", positive_s, negative_s), p.choice(answer="AABB"[i])) for i in range(count)
    ]
    return [p.trajectory(f"t{i}", candidates) for i, candidates in enumerate(made)]


def value(frame, shortcut, group, measure):
    rows = frame[(frame["shortcut"] == shortcut) & (frame["group"] == group)]
    return rows[rows["measure"] == measure].iloc[0]


def test_constant_decisions_are_at_50_with_one_rate_full():
    found = shortcuts.shortcut_scores(leaky())
    for name, full in ((shortcuts.SILENT, "negative"), (shortcuts.SPEAK, "positive")):
        assert value(found, name, "MPA", "balanced accuracy")["value"] == 50
        assert value(found, name, "MPA", f"{full} rate")["value"] == 100
    silent = value(found, shortcuts.SILENT, "MPA", "gated judge")
    assert math.isnan(silent["value"])
    assert (silent["bound_low"], silent["bound_high"]) == pytest.approx((10, 50))


def test_a_length_that_leaks_is_found_and_one_that_does_not_is_not():
    found = shortcuts.shortcut_scores(leaky())
    assert value(found, shortcuts.LENGTH, "MPA", "balanced accuracy")["value"] == 100
    fair = shortcuts.shortcut_scores(leaky(positive_s=20, negative_s=20))
    assert value(fair, shortcuts.LENGTH, "MPA", "balanced accuracy")["value"] == 50
    turned = shortcuts.shortcut_scores(leaky(positive_s=29, negative_s=6))
    assert value(turned, shortcuts.LENGTH, "MPA", "balanced accuracy")["value"] == 100


def test_the_leak_table_says_how_much():
    leak = shortcuts.length_leak(leaky()).iloc[0]
    assert (leak["positive_median_s"], leak["negative_median_s"]) == (6, 29)
    assert (leak["positive_n"], leak["negative_n"], leak["separation"]) == (4, 8, 1)
    assert shortcuts.length_leak(leaky(positive_s=20, negative_s=20))["separation"].tolist() == [
        0.5
    ]
    assert shortcuts.length_leak([]).empty


def test_the_letter_comes_from_other_trajectories():
    """Each trajectory has a letter of its own: a prior learnt at home would be right."""
    sets = [p.trajectory(f"t{i}", [p.choice(answer="ABCD"[i])] * 1) for i in range(4)]
    found = shortcuts.shortcut_scores(sets)
    assert value(found, shortcuts.LETTER, "ER", "accuracy")["value"] == 0
    same = [p.trajectory(f"t{i}", [p.choice(answer="C")]) for i in range(4)]
    found = shortcuts.shortcut_scores(same)
    assert value(found, shortcuts.LETTER, "ER", "accuracy")["value"] == 100


def test_five_options_have_a_prior_of_their_own():
    sets = [
        p.trajectory(f"t{i}", [p.choice(answer="A"), p.choice("EST", answer="E", letters="ABCDE")])
        for i in range(3)
    ]
    found = shortcuts.shortcut_scores(sets)
    assert value(found, shortcuts.LETTER, "EST", "accuracy")["value"] == 100


def test_one_trajectory_teaches_nothing():
    found = shortcuts.shortcut_scores(leaky(1))
    row = value(found, shortcuts.LETTER, "ER", "accuracy")
    assert (row["n"], row["expected"]) == (0, 1)
    assert math.isnan(row["value"])


def test_the_option_of_era_follows_the_prior():
    sets = [p.trajectory(f"t{i}", [p.adaptive("ERA", answer="B")]) for i in range(3)]
    replies = shortcuts.always(sets, "INTERVENE")
    assert {r.option for r in replies} == {"B"}
    assert [r.passed for r in replies if r.polarity == "positive"] == [True] * 3
    assert {r.option for r in shortcuts.always(sets, "SILENT")} == {None}


def test_no_candidates_give_an_empty_table():
    assert shortcuts.shortcut_scores([]).empty
