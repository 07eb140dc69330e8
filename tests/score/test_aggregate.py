"""Scores of planted probe sets, worked by hand from the protocol's equations."""

from __future__ import annotations

import json
import math
import sys

import numpy as np
import pandas as pd
import planted as p
import pytest

from bench_lib.errors import BenchError
from bench_lib.score import adaptive, aggregate, availability, failures, table
from bench_lib.score.instances import instances
from bench_lib.tasks import APM_BENCH


def row(frame, group, measure=None):
    found = frame[frame["group"] == group]
    if measure is not None:
        found = found[found["measure"] == measure]
    assert len(found) == 1
    return found.iloc[0]


def built(plan, *, asked=None, verdicts=None):
    """`plan`: trajectory -> list of (candidate, {probe: text | (text, judge score) | status})."""
    trajectories, responses, given = [], [], []
    for name, items in plan.items():
        trajectories.append(p.trajectory(name, [candidate for candidate, _ in items]))
        for candidate, replies in items:
            for probe, what in replies.items():
                text, score = what if isinstance(what, tuple) else (what, None)
                status = text if text in {"error", "refused", "not_run"} else None
                responses.append(p.reply(name, candidate, probe, text, status))
                if score is not None:
                    given.append(p.verdict(name, candidate, probe, score))
    return instances(trajectories, responses, given if verdicts is None else verdicts, asked=asked)


def test_accuracy_counts_unreadable_replies_as_wrong_and_errors_as_missing():
    one, two, three, four = (p.choice() for _ in range(4))
    data = built({
        "t1": [(one, {"q": p.said("A")}), (two, {"q": "no idea"})],
        "t2": [(three, {"q": p.said("A")}), (four, {"q": "error"})],
    })  # fmt: skip
    found = row(aggregate.task_scores(data), "ER")
    assert found["value"] == pytest.approx(100 * 2 / 3)
    assert (found["n"], found["expected"], found["clusters"]) == (3, 4, 2)
    assert found["note"] == "1 error; 2 clusters, fewer than 8: no interval"
    assert found["measure"] == "accuracy"


def test_equation_1_by_hand():
    one = p.adaptive(positive=2, negative=1)  # positives 5 and 0 (gate), negative 4
    two = p.adaptive(positive=0, negative=2)  # one polarity: negatives 3 and 0 (gate)
    three = p.adaptive(positive=1, negative=1)  # unreadable fails on either polarity
    data = built({
        "t1": [(one, {"p0": (p.SPEAK, 5), "p1": p.SILENT, "n0": (p.SILENT, 4)}),
               (two, {"n0": (p.SILENT, 3), "n1": p.SPEAK})],
        "t2": [(three, {"p0": (p.SPEAK, 1), "n0": "?"})],
    })  # fmt: skip
    scores = [(2.5 + 4) / 2, 1.5, (1 + 0) / 2]
    found = row(aggregate.task_scores(data), "MPA")
    assert found["value"] == pytest.approx(20 * np.mean(scores))
    assert found["note"].startswith("1 of 3 candidates have one polarity; 2 clusters, fewer than 8")
    assert (found["n"], found["expected"], found["clusters"]) == (7, 7, 2)


def test_a_passed_gate_is_worth_at_least_20_and_a_failed_one_nothing():
    one = p.adaptive()
    worst = built({"t": [(one, {"p0": (p.SPEAK, 1), "n0": (p.SILENT, 1)})]})
    best = built({"t": [(one, {"p0": (p.SPEAK, 5), "n0": (p.SILENT, 5)})]})
    none = built({"t": [(one, {"p0": p.SILENT, "n0": p.SPEAK})]})
    values = [row(aggregate.task_scores(d), "MPA")["value"] for d in (worst, best, none)]
    assert values == pytest.approx([20, 100, 0])


def test_unjudged_probes_give_bounds_and_no_value():
    one, two = p.adaptive(), p.adaptive()
    data = built({"t": [(one, {"p0": (p.SPEAK, 5), "n0": p.SILENT}),
                        (two, {"p0": p.SILENT, "n0": (p.SILENT, 3)})]})  # fmt: skip
    found = row(aggregate.task_scores(data), "MPA")
    assert math.isnan(found["value"])
    assert found["bound_low"] == pytest.approx(20 * np.mean([(5 + 1) / 2, 1.5]))
    assert found["bound_high"] == pytest.approx(20 * np.mean([(5 + 5) / 2, 1.5]))
    assert "1 unjudged" in found["note"]
    assert (found["n"], found["clusters"]) == (3, 1)
    assert table.shown(found) == "45.0 to 65.0"
    # The capability needs all five tasks; here four were not asked.
    assert math.isnan(row(aggregate.capability_scores(data), "Adaptive Response")["value"])


def test_all_judge_calls_failed_is_neither_zero_nor_a_crash():
    one = p.adaptive()
    failed = [p.verdict("t", one, probe, None, error="server gone") for probe in ("p0", "n0")]
    data = built({"t": [(one, {"p0": p.SPEAK, "n0": p.SILENT})]}, verdicts=failed)
    found = row(aggregate.task_scores(data), "MPA")
    assert math.isnan(found["value"])
    assert (found["bound_low"], found["bound_high"]) == pytest.approx((20, 100))
    assert math.isnan(row(adaptive.quality_scores(data), "MPA")["value"])
    assert failures.judge_failures(data)["judge_error"].tolist() == ["server gone"]
    assert failures.judge_failures(data)["count"].tolist() == [2]


def test_a_failed_judge_call_leaves_the_mean_alone():
    """Public report: scores 5, 4, 5 and two failed calls are 4.67 of 3, not 2.8 of 5."""
    items = [p.adaptive(positive=1, negative=0) for _ in range(5)]
    scores = [5, 4, 5, None, None]
    verdicts = [
        p.verdict("t", c, "p0", s, error="" if s else "timeout")
        for c, s in zip(items, scores, strict=True)
    ]
    data = built({"t": [(c, {"p0": p.SPEAK}) for c in items]}, verdicts=verdicts)
    found = row(adaptive.quality_scores(data), "MPA")
    assert found["value"] / 20 == pytest.approx(14 / 3)
    assert (found["n"], found["expected"]) == (3, 5)
    assert "2 passed probes unjudged" in found["note"]


def test_a_candidate_whose_polarity_is_missing_by_failure_is_left_out():
    one, two = p.adaptive(), p.adaptive()
    data = built({"t": [(one, {"p0": (p.SPEAK, 5), "n0": "error"}),
                        (two, {"p0": (p.SPEAK, 3), "n0": (p.SILENT, 3)})]})  # fmt: skip
    found = row(aggregate.task_scores(data), "MPA")
    assert found["value"] == pytest.approx(60)
    assert "1 candidates left out" in found["note"]


def test_capabilities_and_overall_are_plain_means():
    plan = {"t1": [], "t2": []}
    for name in plan:
        for code in ("ER", "EST", "TR", "ACR", "CT", "OCR", "STU"):
            right = code in {"ER", "ACR"} or name == "t1"
            plan[name].append((p.choice(code), {"q": p.said("A" if right else "B")}))
        for code in ("ERA", "RCR", "MPA", "PRM", "TPG"):
            speak = p.spoken("B") if code == "ERA" else p.SPEAK
            plan[name].append((p.adaptive(code), {"p0": (speak, 4), "n0": (p.SILENT, 4)}))
    data = built(plan)
    found = aggregate.capability_scores(data)
    csu, rtp = (100 + 50 + 50) / 3, (100 + 150) / 4
    assert row(found, "Cross-session Understanding")["value"] == pytest.approx(csu)
    assert row(found, "Real-time Perception")["value"] == pytest.approx(rtp)
    assert row(found, "Adaptive Response")["value"] == pytest.approx(80)
    overall = row(found, "Overall")
    assert overall["value"] == pytest.approx((csu + rtp + 80) / 3)
    assert (overall["n"], overall["expected"]) == (34, 34)
    assert overall["estimator"] == "mean over capabilities"
    assert math.isnan(overall["low"])
    assert overall["note"] == "2 clusters, fewer than 8: no interval"


def test_a_capability_with_a_task_that_was_not_asked_is_a_dash():
    data = built({"t1": [(p.choice("ER"), {"q": p.said("A")})],
                  "t2": [(p.choice("EST"), {"q": p.said("A")})]})  # fmt: skip
    found = row(aggregate.capability_scores(data), "Cross-session Understanding")
    assert math.isnan(found["value"])
    assert "nothing scored for TR" in found["note"]
    assert table.shown(found) == table.DASH


def test_decision_rates_ignore_the_option_and_pool_before_averaging():
    era = p.adaptive("ERA", positive=1, negative=3)
    mpa = p.adaptive("MPA", positive=3, negative=1)
    data = built({
        "t1": [(era, {"p0": p.spoken("D"), "n0": p.SILENT, "n1": p.SILENT, "n2": p.SPEAK})],
        "t2": [(mpa, {"p0": p.SPEAK, "p1": p.SILENT, "p2": "?", "n0": p.SILENT})],
    })  # fmt: skip
    found = adaptive.decision_scores(data)
    assert row(found, "ERA", "positive rate")["value"] == 100  # the option was wrong
    assert row(found, "ERA", "balanced accuracy")["value"] == pytest.approx((100 + 200 / 3) / 2)
    assert row(found, "MPA", "balanced accuracy")["value"] == pytest.approx((100 / 3 + 100) / 2)
    pooled = row(found, adaptive.POOLED, "balanced accuracy")
    assert pooled["value"] == pytest.approx((50 + 75) / 2)
    assert row(found, adaptive.POOLED, "positive rate")["n"] == 4
    assert row(adaptive.gate_rates(data), "ERA")["value"] == pytest.approx((0 + 200 / 3) / 2)
    assert row(adaptive.gate_rates(data), "MPA")["value"] == pytest.approx((100 / 3 + 100) / 2)


def test_one_polarity_alone_has_a_rate_but_no_balance():
    data = built({"t": [(p.adaptive(positive=0, negative=2), {"n0": p.SILENT, "n1": p.SPEAK})]})
    found = adaptive.decision_scores(data)
    assert row(found, "MPA", "negative rate")["value"] == 50
    assert row(found, "MPA", "positive rate")["note"] == "n = 0"
    balanced = row(found, "MPA", "balanced accuracy")
    assert math.isnan(balanced["value"])
    assert balanced["note"] == "nothing scored for positive"


def test_equation_3_by_hand():
    one = p.adaptive(positive=2, negative=1)
    two = p.adaptive()
    three = p.adaptive()
    data = built({
        "t1": [(one, {"p0": (p.SPEAK, 5), "p1": (p.SPEAK, 2), "n0": p.SPEAK})],
        "t2": [(two, {"p0": (p.SPEAK, 3), "n0": (p.SILENT, 4)}),
               (three, {"p0": p.SILENT, "n0": "?"})],
    })  # fmt: skip
    found = row(adaptive.quality_scores(data), "MPA")
    assert found["value"] == pytest.approx(20 * np.mean([3.5, 3.5]))
    assert (found["n"], found["expected"]) == (2, 3)
    assert "1 of 3 candidates have no judged probe" in found["note"]


def test_format_failures_by_kind_with_denominators():
    one, two, three, four, five = (p.choice() for _ in range(5))
    data = built({"t": [(one, {"q": "A, B"}), (two, {"q": "<think>A"}), (three, {"q": "Answer: A"}),
                        (four, {"q": "refused"}), (five, {"q": p.said("A")})]})  # fmt: skip
    found = failures.format_failures(data).set_index("group").loc["ER"]
    assert (found["expected"], found["scored"], found["unparsed"]) == (5, 5, 2)
    assert (found["rate_pct"], found["refused_pct"]) == (40, 20)
    assert found["reasoning never ends in an answer"] == 1
    assert (found["repaired"], found["refused"], found["ok"]) == (1, 1, 1)
    assert failures.format_failures(data)["group"].tolist() == ["ER", failures.ALL]


def test_cut_replies_are_counted_whether_readable_or_not():
    one, two = p.choice(), p.choice()
    data = instances(
        [p.trajectory("t", [one, two])],
        [p.reply("t", one, "q", p.said("A") + " so", stop="length"),
         p.reply("t", two, "q", "Let me think about", stop="length")],
    )  # fmt: skip
    found = failures.format_failures(data).set_index("group").loc["ER"]
    assert (found["cut"], found["cut at the length limit"], found["repaired"]) == (2, 1, 1)


def test_availability_halves_and_original():
    source = [p.choice(answer="B") for _ in range(2)]
    here = p.choice(answer="B", letters="ABCDE", availability="available",
                    source_candidate_id=source[0].id)  # fmt: skip
    gone = p.choice(answer="E", letters="ABCDE", availability="unavailable",
                    source_candidate_id=source[1].id)  # fmt: skip
    cut = built({"t1": [(here, {"q": p.said("C")})], "t2": [(gone, {"q": p.said("E")})]})
    full = built({"t1": [(source[0], {"q": p.said("B")})], "t2": [(source[1], {"q": p.said("B")})]})
    found = availability.availability_scores(cut, full)
    values = [row(found, "all", m)["value"] for m in found["measure"]]
    assert values == [100, 0, 100, 50]
    assert row(aggregate.task_scores(cut), "ER")["expected"] == 0  # another question, apart


# Strata


def test_strata_of_a_candidate():
    far = p.choice(evidence=(("S1", 60.0), ("S2", 30.0)))
    near = p.choice(evidence=(("S3", 60.0),))
    reminder = p.adaptive("PRM", evidence=())
    data = built({"t": [(far, {}), (near, {}), (reminder, {})]})
    rows = data.rows.groupby("candidate").first()
    assert rows.loc[far.id, "distance"] == 2
    assert rows.loc[far.id, "evidence_items"] == 2
    assert rows.loc[far.id, "gap_h"] == pytest.approx(2 * 10.5 + (600 - 60) / 3600)
    assert rows.loc[far.id, "day"] == "other day"
    assert (rows.loc[near.id, "distance"], rows.loc[near.id, "day"]) == (0, "same day")
    assert rows.loc[reminder.id, "distance"] == 2  # the registration is the anchor
    assert rows.loc[far.id, "history_h"] == pytest.approx(1 + 600 / 3600)
    assert set(data.rows["status"]) == {"not_run"}


def test_split_keeps_empty_strata_and_adds_up():
    items = [p.choice(evidence=((s, 60.0),)) for s in ("S1", "S2", "S3", "S3")]
    data = built({"t": [(c, {"q": p.said("A")}) for c in items[:2]],
                  "u": [(c, {"q": p.said("B")}) for c in items[2:]]})  # fmt: skip
    found = aggregate.split(data, "distance")
    er = found[found["group"] == "ER"].set_index("stratum")
    assert er["n"].tolist() == [2, 1, 1, 0, 0]
    assert er.loc["0", "value"] == 0
    assert er.loc["2", "value"] == 100
    assert er.loc["4+", "note"] == "not asked; n = 0"
    assert er["n"].sum() == row(aggregate.task_scores(data), "ER")["n"]
    with pytest.raises(BenchError, match="did you mean 'distance'"):
        aggregate.split(data, "distanc")


# Odd records


def test_nothing_at_all_is_a_table_of_dashes():
    data = instances([], [])
    for frame in (aggregate.task_scores(data), aggregate.capability_scores(data),
                  adaptive.decision_scores(data), adaptive.quality_scores(data),
                  adaptive.gate_rates(data), availability.availability_scores(data)):  # fmt: skip
        assert len(frame)
        assert frame["value"].isna().all()
        assert (frame["note"] != "").all()
        json.dumps(table.records(frame), allow_nan=False)
        cells = table.wide(frame).drop(columns=["n", "expected", "clusters", "note"])
        assert cells.isin(["–", ""]).all(axis=None)
    assert failures.format_failures(data)["expected"].tolist() == [0]
    assert len(aggregate.split(data, "distance")) == 5 * 12


def test_one_trajectory_has_a_value_and_no_interval():
    data = built({"t": [(p.choice(), {"q": p.said("A")}), (p.choice(), {"q": p.said("B")})]})
    found = row(aggregate.task_scores(data), "ER")
    assert (found["value"], found["note"]) == (50, "one cluster, fewer than 8: no interval")
    assert math.isnan(found["low"])


def test_duplicates_count_once_and_a_retry_replaces_its_error():
    one = p.choice()
    replies = [
        p.reply("t", one, "q", "", "error"),
        p.reply("t", one, "q", p.said("A")),
        p.reply("t", one, "q", p.said("B")),
        p.reply("t", one, "q", "", "error"),
    ]
    data = instances([p.trajectory("t", [one])], replies)
    assert row(aggregate.task_scores(data), "ER")["value"] == 0
    assert len(data.rows) == 1
    assert data.notes[0].startswith("1 instances were answered more than once, 1 replies differed")


def test_of_two_failures_the_newest_says_why():
    one = p.choice()
    replies = [
        p.reply("t", one, "q", "", "error").model_copy(update={"error": why})
        for why in ("out of memory", "timed out")
    ]
    assert instances([p.trajectory("t", [one])], replies).rows["why"].tolist() == ["timed out"]


def test_pending_is_expected_less_found_not_a_count_of_lines():
    """Public report: five expected, ids 0, 1, 3, 4 there: 2 is the one that is missing."""
    items = [p.choice() for _ in range(5)]
    replies = [p.reply("t", items[i], "q", p.said("A")) for i in (0, 1, 3, 4)]
    data = instances([p.trajectory("t", items)], replies)
    assert data.rows.loc[data.rows["status"] == "not_run", "candidate"].tolist() == [items[2].id]
    found = row(aggregate.task_scores(data), "ER")
    assert (found["value"], found["n"], found["expected"]) == (100, 4, 5)


def test_strangers_are_noted_and_left_out():
    one, other = p.choice(), p.choice()
    data = instances([p.trajectory("t", [one])], [p.reply("t", other, "q", p.said("A"))])
    assert "1 responses belong to no expected instance" in data.notes[0]
    assert row(aggregate.task_scores(data), "ER")["n"] == 0


def test_two_judges_are_never_mixed():
    one = p.adaptive()
    verdicts = [p.verdict("t", one, "p0", 5), p.verdict("t", one, "p0", 1, judge="other")]
    parts = ([p.trajectory("t", [one])], [p.reply("t", one, "p0", p.SPEAK)], verdicts)
    with pytest.raises(BenchError, match="verdicts of 2 judges; choose one: other, toy"):
        instances(*parts)
    assert instances(*parts, judge="other").rows["judged"].dropna().tolist() == [1]
    with pytest.raises(BenchError, match="did you mean 'other'"):
        instances(*parts, judge="othr")


def test_repeats_of_a_judge_are_averaged():
    one = p.adaptive()
    verdicts = [p.verdict("t", one, "p0", s, repeat=i) for i, s in enumerate((5, 4, None, 4))]
    data = instances([p.trajectory("t", [one])], [p.reply("t", one, "p0", p.SPEAK)], verdicts)
    assert data.rows["g"].dropna().tolist() == [pytest.approx(13 / 3)]


def test_refusals_count_as_wrong_and_their_share_stands_beside_the_score():
    items = [p.choice() for _ in range(4)]
    replies = [p.reply("t", items[0], "q", p.said("A")), p.reply("t", items[1], "q", p.said("A")),
               p.reply("t", items[2], "q", "I'm sorry, I can't help with that."),
               p.reply("t", items[3], "q", "", "refused")]  # fmt: skip
    data = instances([p.trajectory("t", items)], replies)
    row = aggregate.task_scores(data).set_index("group").loc["ER"]
    assert (row["value"], row["n"], row["refused_pct"]) == (50, 4, 50)


def test_a_score_outside_the_range_is_refused_and_never_clamped():
    one = p.adaptive()
    with pytest.raises(BenchError, match=r"score 9 .* lies outside 1 to 5"):
        instances([p.trajectory("t", [one])], [], [p.verdict("t", one, "p0", 9)])


def test_a_verdict_on_a_failed_gate_changes_nothing():
    one = p.adaptive()
    data = built({"t": [(one, {"p0": (p.SILENT, 5), "n0": (p.SPEAK, 5)})]})
    assert row(aggregate.task_scores(data), "MPA")["value"] == 0


def test_half_of_a_broken_run_is_visible():
    """Public report: 0.8, NaN, NaN shown as 0.8 with nothing said."""
    items = [p.choice() for _ in range(3)]
    data = built({"t": [(items[0], {"q": p.said("A")}), *((c, {"q": "error"}) for c in items[1:])]})
    found = table.wide(aggregate.task_scores(data)).loc["ER"]
    assert (found["n"], found["expected"]) == (1, 3)
    assert found["note"].startswith("2 error")


def test_macro_and_micro_are_named():
    """Public report: tasks of 10 right and 1,000 wrong are 50 as a macro, 0.99 as a micro mean."""
    tasks = [("ER", 10, "A"), ("EST", 1000, "B"), ("TR", 1, "A")]
    plan = {"t": [(p.choice(code), {"q": p.said(x)}) for code, n, x in tasks for _ in range(n)]}
    found = row(aggregate.capability_scores(built(plan)), "Cross-session Understanding")
    assert found["value"] == pytest.approx(200 / 3)
    assert found["estimator"] == "mean over tasks"


# Work


def calls(function):
    """Python and C calls made while a function runs."""
    seen = 0

    def tracer(frame, event, arg):
        nonlocal seen
        seen += event in {"call", "c_call"}

    sys.setprofile(tracer)
    try:
        function()
    finally:
        sys.setprofile(None)
    return seen


def many(candidates):
    rng = np.random.default_rng(0)
    plan = {f"t{i}": [] for i in range(10)}
    codes = [task.code for task in APM_BENCH.tasks if task.adaptive]
    for number in range(candidates):
        code = codes[number % 5]
        speak = p.spoken("B") if code == "ERA" else p.SPEAK
        score = int(rng.integers(1, 6))
        plan[f"t{number % 10}"].append(
            (p.adaptive(code), {"p0": (speak, score), "n0": (p.SILENT, 6 - score)})
        )
    return built(plan)


def test_tables_do_not_loop_over_probes():
    small, large = many(50), many(500)

    def tables(data):
        return lambda: (
            aggregate.task_scores(data),
            aggregate.capability_scores(data),
            adaptive.decision_scores(data),
            adaptive.quality_scores(data),
            failures.format_failures(data),
            aggregate.split(data, "distance"),
        )

    tables(small)()
    assert calls(tables(large)) < 1.3 * calls(tables(small))


def test_pandas_gives_no_warning(recwarn):
    data = many(20)
    aggregate.task_scores(data)
    aggregate.split(data, "gap_h", adaptive.decision_scores)
    assert not [w for w in recwarn if issubclass(w.category, (FutureWarning, RuntimeWarning))]
    assert isinstance(data.rows, pd.DataFrame)
