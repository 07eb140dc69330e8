"""Runs beside runs: shared probes only, Holm over the table, warnings about what is missing."""

from __future__ import annotations

import math

import numpy as np
import planted as p
import pytest

from bench_lib.errors import BenchError
from bench_lib.score import compare
from bench_lib.score.instances import instances


def world(trajectories=12, per=4):
    return [
        p.trajectory(f"t{i}", [*(p.choice() for _ in range(per)), p.adaptive()])
        for i in range(trajectories)
    ]


def run(sets, accuracy, seed=0, judge=4, broken=()):
    """A run that is right with this probability; `broken` trajectories have errors only."""
    rng = np.random.default_rng(seed)
    replies, verdicts = [], []
    for trajectory in sets:
        status = "error" if trajectory.id in broken else None
        for candidate in trajectory.candidates:
            if candidate.task == "ER":
                letter = "A" if rng.random() < accuracy else "B"
                replies.append(p.reply(trajectory.id, candidate, "q", p.said(letter), status))
                continue
            for probe, text in (("p0", p.SPEAK), ("n0", p.SILENT)):
                replies.append(p.reply(trajectory.id, candidate, probe, text, status))
                if judge:
                    verdicts.append(p.verdict(trajectory.id, candidate, probe, judge))
    return instances(sets, replies, verdicts)


def test_a_better_run_is_better_on_shared_probes():
    sets = world()
    runs = {"base": run(sets, 0.2), "good": run(sets, 0.9, seed=1), "same": run(sets, 0.2)}
    runs["fair"] = run(sets, 0.6, seed=2)
    found = compare.differences(runs, "base", ["ER", "MPA"]).set_index(["system", "group"])
    good = found.loc[("good", "ER")]
    assert good["value"] > 40
    assert good["low"] > 0
    assert (good["n"], good["clusters"], good["test"]) == (48, 12, "jackknife t(10)")
    assert good["p_holm"] == pytest.approx(2 * good["p"]), "two rows of the table have a test"
    assert found.loc[("fair", "ER"), "p_holm"] == pytest.approx(found.loc[("fair", "ER"), "p"])
    for same in (("same", "ER"), ("good", "MPA")):
        assert found.loc[same, "value"] == 0
        assert math.isnan(found.loc[same, "p_holm"])
        assert "differ in 0 of 12 clusters" in found.loc[same, "note"]


def test_only_what_both_have_scored_counts():
    sets = world()
    half = run(sets, 0.9, seed=1, broken={"t0", "t1", "t2"})
    found = compare.differences(
        {"base": run(sets, 0.9, seed=1), "half": half}, "base", ["ER"]
    ).iloc[0]
    assert found["value"] == 0  # the same replies where both have some
    assert (found["n"], found["clusters"], found["left_out"]) == (36, 9, 3 * 6)
    both = run(sets, 0.9, seed=1, broken={"t10", "t11"})
    other = compare.differences({"half": half, "both": both}, "half", ["ER"]).iloc[0]
    assert (other["n"], other["left_out"]) == (28, (3 + 2) * 6), "on either side"
    assert "missing replies differ: 0.0% and 25.0%" in found["note"]


def test_a_candidate_that_lost_a_polarity_in_one_run_leaves_both():
    sets = world(4)
    whole, partial = run(sets, 0.5), run(sets, 0.5)
    lost = partial.rows["probe"].eq("n0") & partial.rows["trajectory"].eq("t0")
    rows = partial.rows.assign(g=partial.rows["g"].mask(lost))
    found = compare.differences(
        {"a": whole, "b": partial.__class__(rows, partial.bench)}, "a", ["MPA"]
    )
    assert (found["n"].iloc[0], found["left_out"].iloc[0]) == (3, 1)


def test_runs_whose_judge_failed_differently_are_marked():
    """Public report: a ranking that was made by failed judge calls."""
    sets = world()
    runs = {"base": run(sets, 0.5), "unjudged": run(sets, 0.5, judge=None)}
    found = compare.differences(runs, "base", ["ER", "MPA"]).set_index("group")
    assert "judge failures differ: 0.0% and 100.0%" in found.loc["MPA", "note"]
    assert math.isnan(found.loc["MPA", "value"])
    assert found.loc["ER", "value"] == 0


def test_overall_needs_all_tasks():
    sets = world()
    found = compare.differences({"a": run(sets, 0.5), "b": run(sets, 0.6)}, "a").iloc[0]
    assert math.isnan(found["value"])
    assert found["note"].startswith("nothing scored for")


def test_bad_names_are_named():
    sets = world(2)
    runs = {"base": run(sets, 0.5), "other": run(sets, 0.5)}
    with pytest.raises(BenchError, match="did you mean 'base'"):
        compare.differences(runs, "bas")
    with pytest.raises(BenchError, match="no group"):
        compare.differences(runs, "base", ["XY"])
    assert compare.differences({"base": runs["base"]}, "base").empty


def test_runs_stand_beside_published_rows():
    found = compare.beside({"mine": run(world(), 0.5)}, ["oasis", "qwen3_vl_8b/text_summary"])
    assert found["system"].unique().tolist() == [
        "mine", "oasis/specialised", "qwen3_vl_8b/text_summary",
    ]  # fmt: skip
    er = found[found["group"] == "ER"]
    assert er["origin"].tolist() == ["run", "published", "published"]
    assert not er["value"].isna().any()
    assert compare.beside({}).empty
    arena = compare.beside({}, ["streammind"], "streamarena")
    assert arena.loc[arena["group"] == "HR", "value"].tolist() == [34.9]


def test_alarms_name_what_spoils_a_score():
    """Public reports: 23.5 % from replies of nothing but exclamation marks; half a run broken."""
    items = [p.choice() for _ in range(30)]
    replies = [p.reply("t", c, "q", "!" * 16) for c in items[:10]]
    replies += [p.reply("t", c, "q", p.said("C")) for c in items[10:]]
    found = compare.alarms(instances([p.trajectory("t", [*items, p.choice()])], replies))
    assert "10 of 30 replies are unreadable for one reason: repeats itself" in found
    assert "1 of 31 instances have no reply of the method" in found
    assert "every one of 20 replies names the same option: C" in found
    assert compare.alarms(instances([], [])) == []
