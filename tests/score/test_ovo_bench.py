"""OVO-Bench's rule on planted records, and on the shipped answers where they are at hand.

The shipped answers are not in this repository (their licence is non-commercial). To run the golden
test, clone the benchmark and set `OVO_BENCH_RESULTS` to its `results` folder.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from bench_lib.errors import BenchError
from bench_lib.score import ovo_bench as ovo

RESULTS = os.environ.get("OVO_BENCH_RESULTS", "")
GOLDEN = {  # backward, real-time, forward, total, probes, without a reply
    "Gemini": (62.54, 69.32, 57.15, 63.00, 3035, 35),
    "QWen2VL_7B_": (46.46, 55.98, 48.74, 50.39, 3035, 0),
    "QWen2VL_72B_": (57.58, 61.92, 49.30, 56.27, 3035, 0),
    "InternVL2": (43.44, 60.39, 46.60, 50.15, 3035, 0),
    "LLaVA_OneVision": (43.71, 64.02, 50.50, 52.74, 3035, 0),
    "LLaVA_Video": (40.40, 63.52, 54.82, 52.91, 3035, 0),
    "LongVU": (35.01, 57.61, 47.50, 46.71, 3035, 0),
    "FlashVStream": (27.38, 28.37, 45.09, 33.61, 3035, 5),
    "GPT": (60.75, 64.46, 52.92, None, 1709, 27),
}


@pytest.mark.skipif(not RESULTS, reason="set OVO_BENCH_RESULTS to the benchmark's results folder")
@pytest.mark.parametrize("folder", sorted(GOLDEN))
def test_shipped_answers_score_to_the_published_numbers(folder):
    frame = ovo.probes(ovo.read_results(Path(RESULTS) / folder))
    found = ovo.ovo_scores(frame).set_index("group")
    *scores, count, missing = GOLDEN[folder]
    assert len(frame) == count
    assert int((~frame["answered"]).sum()) == missing
    if folder == "GPT":  # answers to REC and SSR are not shipped: the group is CRR alone
        assert math.isnan(found.loc["Forward", "value"])
        assert found.loc["CRR", "value"] == pytest.approx(scores[2], abs=0.006)
        assert math.isnan(found.loc["Total", "value"])
        scores = scores[:2]
    for name, wanted in zip(("Backward", "Real-time", "Forward", "Total"), scores, strict=False):
        assert found.loc[name, "value"] == pytest.approx(wanted, abs=0.006)


@pytest.mark.skipif(not RESULTS, reason="set OVO_BENCH_RESULTS to the benchmark's results folder")
@pytest.mark.parametrize("folder", sorted(GOLDEN))
def test_our_parser_gives_no_credit_that_the_letter_rule_withholds(folder):
    records = ovo.read_results(Path(RESULTS) / folder)
    official, parsed = (ovo.probes(records, rule)["correct"] for rule in ("official", "parsed"))
    assert (parsed <= official).mean() > 0.99


def choice(reply, key="B", task="EPM", video="v"):
    return {"task": task, "video": video, "response": reply, "ground_truth": key}


@pytest.mark.parametrize(
    ("record", "official", "parsed"),
    [
        (choice("B"), 1, 1),
        (choice("A, B, C, D"), 1, 0),  # every option is named
        (choice("A man in Blue"), 1, 0),  # the letter is that of another word
        (choice(None), 0, 0),
        (choice(["B"]), 1, 1),  # stored as a list
    ],
)
def test_letters(record, official, parsed):
    assert ovo.probes([record])["correct"].tolist() == [official]
    assert ovo.probes([record], "parsed")["correct"].tolist() == [parsed]


def test_each_record_has_its_own_letters():
    five = {**choice("E", "E"), "options": ["a", "b", "c", "d", "a red cup"]}
    records = [choice("E", "E"), five, {**five, "response": "A red cup."},
               {**choice("E", "B"), "options": ["a", "b"]}]  # fmt: skip
    assert ovo.probes(records, "parsed")["correct"].tolist() == [1, 1, 1, 0]


def test_a_refusal_is_never_right_and_its_share_is_told():
    sorry = "As an AI model, I can't help with that."
    records = [choice(sorry, "A"), choice("B"), choice("B"), choice("B")]
    for rule in ("official", "parsed"):
        frame = ovo.probes(records, rule)
        assert frame["correct"].tolist() == [0, 1, 1, 1]
        assert ovo.ovo_scores(frame).set_index("group").loc["EPM", "refused_pct"] == 25


def test_forward_rules():
    rec = {"task": "REC", "video": "v", "test_info": [
        {"count": 3, "response": "3 times"}, {"count": 3, "response": "3 times in 10 seconds"},
        {"count": 0, "response": "none"}, {"count": 2, "response": ["2"]}]}  # fmt: skip
    assert ovo.probes([rec])["correct"].tolist() == [1, 0, 0, 1]
    crr = {"task": "CRR", "video": "v", "test_info": [
        {"type": 0, "response": "No, not yet"}, {"type": 1, "response": "Y"},
        {"type": 1, "response": "No"}, {"type": 0, "response": None}]}  # fmt: skip
    assert ovo.probes([crr])["correct"].tolist() == [1, 1, 0, 0]


def test_groups_are_means_of_tasks_and_the_total_of_groups():
    records = []
    for number, task in enumerate(ovo.TASKS):
        if task in ovo.GROUPS["Forward"]:
            info = {"count": 1, "type": 1, "response": "1 Yes" if number % 2 else "no"}
            records.append({"task": task, "video": f"v{number}", "test_info": [info]})
        else:
            records += [choice("B" if number % 2 else "A", task=task)] * (number + 1)
    found = ovo.ovo_scores(ovo.probes(records)).set_index("group")["value"]
    assert found["Backward"] == pytest.approx(100 / 3)
    assert found["Real-time"] == pytest.approx(50)
    assert found["Total"] == pytest.approx((100 / 3 + 50 + found["Forward"]) / 3)


def test_folders_without_results_are_named(tmp_path):
    with pytest.raises(BenchError, match="holds no result file"):
        ovo.read_results(tmp_path)
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(BenchError, match="is no result file"):
        ovo.read_results(tmp_path)
