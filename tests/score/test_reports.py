"""Faults that users have reported of public harnesses, as the smallest input and what must come.

Each test is one kind of report; further ones are among the cases of the parser, and in the tests of
the judge (failed calls, ranges, repeats), of aggregation (missing, duplicates) and of comparison.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import planted as p
import pytest
from test_judge import FakeJudge, cases_of, graded, set_of

from bench_lib.messages.chat import TransportError
from bench_lib.replies.parse import parse_adaptive, parse_choice
from bench_lib.runs.folder import Run
from bench_lib.score import adaptive, aggregate, compare, failures, paired, table, timing, verdicts
from bench_lib.score.instances import instances
from bench_lib.score.judge import current, judge, judge_name, stored
from bench_lib.tasks import Window


def er(data):
    return aggregate.task_scores(data).set_index("group").loc["ER"]


def test_1_case_folding_must_not_read_the_article():
    assert parse_choice("The answer is B because a car moves.").option == "B"
    assert parse_choice("d").option == "D"
    assert parse_choice("b. 4").option == "B"


def test_2_the_first_capital_letter_is_no_answer():
    assert parse_choice("Based on the clip, the correct answer is (A).").option == "A"
    text = "The reference point is the door. The correct answer is (B)."
    assert parse_choice(text).option == "B"


def test_3_wrappers_are_stripped_and_the_last_box_wins():
    assert parse_choice("ANSWER: **A**").option == "A"
    assert parse_choice("ANSWER: $A$").option == "A"
    assert parse_choice(r"\boxed{C} and so \boxed{\text{B}}").option == "B"


def test_4_chinese_and_full_width():
    assert parse_choice("不选A，只有选项B是对的。").option == "B"
    assert parse_choice("答案：（Ｂ）").option == "B"


def test_5_reasoning_that_never_ends_is_no_answer_and_the_raw_text_stays():
    one = p.choice()
    response = p.reply("t", one, "q", "<think>Option A looks likely. So maybe", stop="length")
    assert (response.status, response.passed) == ("unparsed", False)
    assert response.raw_text.startswith("<think>")
    found = failures.format_failures(instances([p.trajectory("t", [one])], [response]))
    assert found["cut"].iloc[0] == found["reasoning never ends in an answer"].iloc[0] == 1


@pytest.mark.parametrize("text", ["!" * 16, "The answer is " * 400])
def test_6_loops_are_unreadable_and_pointed_out(text):
    items = [p.choice() for _ in range(5)]
    data = instances([p.trajectory("t", items)], [p.reply("t", c, "q", text) for c in items])
    assert er(data)["value"] == 0
    assert any("repeats itself" in sentence for sentence in compare.alarms(data))


def test_7_failed_judge_calls_are_missing():
    items = [p.adaptive(positive=1, negative=0) for _ in range(5)]
    scores = dict(zip((c.id for c in items), (5, 4, 5), strict=False))
    given = [p.verdict("t", c, "p0", scores.get(c.id), error="FAIL") for c in items]
    replies = [p.reply("t", c, "p0", p.SPEAK) for c in items]
    data = instances([p.trajectory("t", items)], replies, given)
    row = adaptive.quality_scores(data).set_index("group").loc["MPA"]
    assert row["value"] / 20 == pytest.approx(14 / 3)
    assert f"{row['n']}/{row['expected']}" == "3/5"


@pytest.mark.parametrize(
    "reply", ['{"score": 9}', graded(9), "[ERROR] 429 after 5 tries", "[[90]]"]
)
def test_8_no_number_is_taken_from_prose_and_none_is_clamped(reply):
    with pytest.raises(ValueError, match=r"key|outside|JSON object"):
        verdicts.parse_apm(reply)


def test_9_a_judge_that_wavers_is_measured(outputs):
    from bench_lib.score.agreement import self_agreement

    run = Run.open("04_judge", "wavers", {"method": "null"})
    trajectories, replies = set_of(3)
    fake = FakeJudge(score=lambda case, generation: (2, 5)[generation.seed % 2])
    judge(run, cases_of(trajectories, replies), fake, repeats=4, progress=False)
    found = self_agreement(stored(run))
    assert (found.replies, found.identical) == (6, 0)
    assert found.pairwise == pytest.approx(1 / 3)
    run.close()


def test_10_what_is_pending_is_what_is_not_there(outputs):
    run = Run.open("04_judge", "gap", {"method": "null"})
    trajectories, replies = set_of(5)
    cases = cases_of(trajectories, replies)
    fake = FakeJudge(lambda number: TransportError("down") if number == 2 else None)
    judge(run, cases, fake, workers=1, progress=False)
    missing = [v for v in stored(run) if v.score is None]
    judge(run, cases, fake, workers=1, progress=False)
    assert len(fake.asked) == len(cases) + 1
    again = [v for v in stored(run) if v.probe == missing[0].probe]
    assert [v.score is None for v in again if v.candidate == missing[0].candidate] == [True, False]
    assert len(current(stored(run), cases)) == len(cases)
    run.close()


def test_11_a_verdict_belongs_to_a_judge_its_settings_and_the_very_reply():
    class Other(FakeJudge):
        @property
        def identity(self):
            return {"id": self.id, "thinking": "on"}

    assert judge_name(Other()) != judge_name(FakeJudge())
    trajectories, replies = set_of(1)
    changed = [replies[0].model_copy(update={"text": "Another text."}), replies[1]]
    first, second = (cases_of(trajectories, given) for given in (replies, changed))
    assert [a.digest == b.digest for a, b in zip(first, second, strict=True)] == [False, True]


def test_12_errors_do_not_vanish_from_the_count():
    items = [p.choice() for _ in range(3)]
    replies = [p.reply("t", items[0], "q", p.said("A"))]
    replies += [p.reply("t", c, "q", "", "error") for c in items[1:]]
    row = er(instances([p.trajectory("t", items)], replies))
    assert (row["n"], row["expected"]) == (1, 3)
    assert row["note"] == "2 error; one cluster, fewer than 8: no interval"


def test_13_an_interval_belongs_to_its_own_estimator():
    sets, replies = [], []
    for number in range(10):
        few = [p.choice("ER")]
        many = [p.choice("EST") for _ in range(100)] + [p.choice("TR")]
        sets.append(p.trajectory(f"t{number}", few + many))
        replies += [p.reply(f"t{number}", c, "q", p.said("A" if c.task != "EST" else "B"))
                    for c in few + many]  # fmt: skip
    data = instances(sets, replies)
    row = aggregate.capability_scores(data).set_index("group").loc["Cross-session Understanding"]
    assert row["value"] == pytest.approx(200 / 3)  # the pooled mean would be 2
    assert row["estimator"] == "mean over tasks"


# Reserve


def test_a_distractor_after_the_answer():
    text = "The answer is C because I computed the integral."
    assert parse_choice(text, "ABCDEFGHI").option == "C"


def test_the_reply_template_is_no_answer():
    assert parse_choice("Answer: $B").option == "B"
    assert parse_choice("Answer: $LETTER").option is None
    assert parse_adaptive('{"decision": "INTERVENE|SILENT", "reason": "..."}').decision is None


def test_other_reasoning_tags():
    assert parse_choice("[THINK] A? [/THINK] B").option == "B"
    assert parse_choice("Perhaps A.</think> B").option == "B"


def test_a_judge_that_thinks_aloud():
    text = f"<think>Okay, I need to evaluate this. Perhaps 2.</think>\n{graded(4)}"
    assert verdicts.parse_apm(text).score == 4
    with pytest.raises(ValueError, match="not one JSON object"):
        verdicts.parse_apm("Okay, I need to evaluate this reply against the reference.")


def test_a_failed_judge_never_draws_an_option():
    one = p.choice()
    data = instances([p.trajectory("t", [one])], [p.reply("t", one, "q", "hard to say")])
    assert data.rows["option"].isna().all()
    assert er(data)["value"] == 0


def test_the_proactive_window_has_both_sides():
    window = Window(early_s=2, late_s=2)
    places = [timing.alert_timing(t, 10.0, window) for t in (7.9, 8.0, 12.0, 12.1)]
    assert places == ["premature", "on time", "on time", "late"]


@pytest.mark.parametrize("letter", "ABCD")
def test_plain_letters_are_not_scored_zero(letter):
    one = p.choice(answer=letter)
    data = instances([p.trajectory("t", [one])], [p.reply("t", one, "q", letter)])
    assert er(data)["value"] == 100


def test_padding_of_the_last_batch_counts_once():
    """Five samples on two workers give six records, one of them twice."""
    items = [p.choice() for _ in range(5)]
    replies = [p.reply("t", c, "q", p.said("A" if i else "B")) for i, c in enumerate(items)]
    data = instances([p.trajectory("t", items)], [*replies, replies[0]])
    assert (er(data)["value"], er(data)["n"]) == (80, 5)
    assert "0 replies differed" in data.notes[0]


def test_a_join_on_a_repeated_key_is_refused():
    rows = pd.DataFrame({"probe": ["a", "a", "b"], "task": "x", "trajectory": "t", "value": 1.0})
    with pytest.raises(pd.errors.MergeError):
        paired.compare(rows, rows, "value", "task", ["probe"])


def test_tables_on_disk_are_strict_json():
    frame = aggregate.task_scores(instances([], []))
    text = json.dumps(table.records(frame), allow_nan=False)
    assert json.loads(text)[0]["value"] is None
    infinite = pd.DataFrame([{"value": np.inf, "low": np.nan}])
    assert table.records(infinite) == [{"value": None, "low": None}]
