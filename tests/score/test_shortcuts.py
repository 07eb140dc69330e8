"""Shortcut baselines: what they must score on planted sets, and that they learn nothing at home."""

from __future__ import annotations

import math

import numpy as np
import planted as p
import pytest

from bench_lib.schema import Caption, Option, Registration
from bench_lib.score import learners, shortcuts, side_info
from bench_lib.tasks import APM_BENCH


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


def at(task, times, **extra):
    """A candidate with a probe at each time: positive where `times` says so."""
    one = p.adaptive(task, positive=1, negative=len(times) - 1)
    probes = tuple(
        probe.model_copy(
            update={"t_s": float(t), "interval": (t - 5.0, float(t)), "id": f"{t}",
                    "polarity": polarity, **{k: v[polarity] for k, v in extra.items()}}
        )
        for probe, (t, polarity) in zip(one.probes, times, strict=True)
    )  # fmt: skip
    return one.model_copy(update={"probes": probes})


EARLY = ((100, "positive"), (400, "negative"))


def many(make, count=30):
    """Trajectories with a candidate each; both sides of a split need a few rows."""
    return [p.trajectory(f"t{i}", [make(i)]) for i in range(count)]


def test_a_time_that_leaks_is_found_and_one_that_does_not_is_not():
    leaky = many(lambda i: at("MPA", [(t + i, polarity) for t, polarity in EARLY]))
    found = shortcuts.shortcut_scores(leaky)
    for name in (shortcuts.TIMES, shortcuts.TREE, shortcuts.LOGISTIC):
        assert value(found, name, "MPA", "balanced accuracy")["value"] == 100
    assert found[found["shortcut"] == shortcuts.GLANCE].empty
    fair = many(
        lambda i: at("MPA", [(t + i, EARLY[k ^ i & 1][1]) for k, (t, _) in enumerate(EARLY)])
    )
    found = shortcuts.shortcut_scores(fair)
    assert value(found, shortcuts.TIMES, "MPA", "balanced accuracy")["value"] < 75


def test_an_icon_that_leaks_is_found_whatever_the_source_calls_it():
    icons = {"glance": {"positive": {"lamp": "lit"}, "negative": {"lamp": "dark"}}}
    turns = [EARLY, tuple((t, EARLY[1 - k][1]) for k, (t, _) in enumerate(EARLY))]
    found = shortcuts.shortcut_scores(many(lambda i: at("TPG", turns[i % 2], **icons)))
    assert value(found, shortcuts.GLANCE, "TPG", "balanced accuracy")["value"] == 100
    assert value(found, shortcuts.TREE, "TPG", "balanced accuracy")["value"] == 100
    assert value(found, shortcuts.TIMES, "TPG", "balanced accuracy")["value"] < 75


@pytest.mark.parametrize("word", ["really", "a"])
def test_options_that_give_the_key_away_are_found(word):
    def make(i):
        one = p.choice(answer="ABCD"[i % 4])
        texts = {x: f"thing number {(i + k) % 7}" for k, x in enumerate("ABCD")}
        texts[one.answer] = f"{word} {texts[one.answer]}"
        return one.model_copy(
            update={"options": tuple(Option(id=x, text=t) for x, t in texts.items())}
        )

    found = shortcuts.shortcut_scores(many(make, 40))
    for name in (shortcuts.TREE, shortcuts.LOGISTIC):
        assert value(found, name, "ER", "accuracy")["value"] == 100
    assert found[(found["shortcut"] == shortcuts.TIMES) & (found["group"] == "ER")].empty


def test_what_is_said_after_the_probe_is_not_known():
    said = tuple(
        Caption(start_s=t - 1.0, end_s=float(t), text=text)
        for t, text in ((50, "rain today"), (150, "option A please"), (250, "option B please"))
    )
    one = p.choice(answer="A", session="S1")
    one = one.model_copy(update={"probes": (one.probes[0].model_copy(update={"t_s": 200.0}),)})
    home = p.trajectory("t", [one])
    sessions = (home.sessions[0].model_copy(update={"captions": said}), *home.sessions[1:])
    rows = side_info.choices([home.model_copy(update={"sessions": sessions})], APM_BENCH)
    by_option = rows.set_index("option")
    assert by_option.loc["A", "said:mentioned"] == 50
    assert by_option.loc["B", "said:mentioned"] == side_info.NEVER_S
    assert (by_option["said:captions"] == 2).all()
    assert by_option.loc["A", "said:mentioned rank"] == 0


def test_times_count_from_what_was_asked_and_know_no_later_probe():
    one = at("PRM", ((100, "negative"), (200, "positive"), (300, "negative")))
    one = one.model_copy(
        update={"registration": Registration(session="S1", t_s=5.0, text="Tell me.")}
    )
    rows = side_info.decisions([p.trajectory("t", [one])], APM_BENCH)
    assert rows["time:earlier probes"].tolist() == [0, 1, 2]
    assert rows["time:interval"].tolist() == [5, 5, 5]
    gap = 2 * 10.5 * p.HOUR
    assert rows["time:since asked"].tolist() == [gap + 95, gap + 195, gap + 295]
    assert rows["time:sessions since asked"].tolist() == [2, 2, 2]


def test_learners_find_what_they_can_and_weigh_both_classes_alike():
    rng = np.random.default_rng(0)
    x = rng.random((400, 3))
    inside = (x[:, 0] > 0.3) & (x[:, 0] < 0.7)
    assert ((learners.tree(x, inside)(x) > 0.5) == inside).mean() > 0.95
    sloped = x[:, 1] > x[:, 2]
    assert ((learners.logistic(x, sloped)(x) > 0.5) == sloped).mean() > 0.95
    rare = rng.random(400) < 0.1
    for learner in (learners.tree, learners.logistic):
        assert 0.2 < (learner(x, rare)(x) > 0.5).mean() < 0.8


def test_no_candidates_give_an_empty_table():
    assert shortcuts.shortcut_scores([]).empty
