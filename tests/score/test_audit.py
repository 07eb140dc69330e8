"""The judge audit: agreement, correction, repeats, length and order, another judge, labels."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import planted as p
import pytest
from test_judge import FakeJudge, cases_of, set_of

from bench_lib import prompts
from bench_lib.errors import BenchError
from bench_lib.messages.case import read_case
from bench_lib.runs.folder import Run
from bench_lib.score import audit
from bench_lib.score.agreement import agreement, self_agreement
from bench_lib.score.cases import apm_cases
from bench_lib.score.judge import current, judge, stored
from bench_lib.score.labels import read_labels
from bench_lib.tasks import APM_BENCH


def rated(counts, cluster=None):
    """Rows of two raters from a confusion matrix."""
    rows = [
        (i + 1, j + 1)
        for i, row in enumerate(counts)
        for j, count in enumerate(row)
        for _ in range(count)
    ]
    frame = pd.DataFrame(rows, columns=["human", "judge"])
    name = cluster or (lambda n: f"t{n}")
    return frame.assign(trajectory=[name(n) for n in frame.index])


def test_kappa_of_a_published_table():
    found = agreement(rated([[31, 12], [4, 58]]), "human", "judge", categories=(1, 2))
    assert found.kappa.value == pytest.approx(0.6757, abs=5e-5)
    assert found.raw.value == pytest.approx(89 / 105)
    assert found.kappa.low == pytest.approx(0.532, abs=0.02)
    assert found.kappa.high == pytest.approx(0.820, abs=0.02)
    assert found.weighted.value == pytest.approx(found.kappa.value)  # two categories
    assert found.confusion.to_numpy().tolist() == [[31, 12], [4, 58]]


def test_weighted_kappa_forgives_near_misses():
    near = rated([[10, 5, 0, 0, 0], [0, 10, 5, 0, 0], [0, 0, 10, 5, 0], [0, 0, 0, 10, 5],
                  [0, 0, 0, 0, 10]])  # fmt: skip
    found = agreement(near, "human", "judge")
    assert found.weighted.value > found.kappa.value + 0.1
    assert found.mean_difference == pytest.approx(20 / 70)
    assert found.table["n"].tolist() == [70, 70, 70]


def test_clusters_widen_the_interval():
    counts = [[31, 12], [4, 58]]
    alone = agreement(rated(counts), "human", "judge", categories=(1, 2))
    blocks = agreement(rated(counts, lambda n: f"t{n // 5}"), "human", "judge", categories=(1, 2))
    assert blocks.kappa.high - blocks.kappa.low > 1.5 * (alone.kappa.high - alone.kappa.low)
    assert blocks.raw.se > 1.5 * alone.raw.se
    assert blocks.raw.note.startswith("4 of 21 clusters hold the rarer outcome")
    few = agreement(rated(counts, lambda n: f"t{n // 20}"), "human", "judge", categories=(1, 2))
    assert math.isnan(few.kappa.low)
    assert few.kappa.note == "6 clusters, fewer than 8: no interval"


@pytest.mark.parametrize(
    ("frame", "note"),
    [
        (rated([[0, 0], [0, 0]]), "n = 0"),
        (rated([[9, 0], [0, 0]]), "not defined: one category only"),
    ],
)
def test_kappa_that_cannot_be_says_why(frame, note):
    found = agreement(frame, "human", "judge", categories=(1, 2))
    assert math.isnan(found.kappa.value)
    assert found.kappa.note == note


def test_a_rating_off_the_scale_is_refused():
    with pytest.raises(ValueError, match="among"):
        agreement(rated([[1, 0], [0, 1]]), "human", "judge", categories=(2, 3))


def labelled(rng, clusters, per, rate, sensitivity, specificity):
    human = (rng.random(clusters * per) < rate).astype(int)
    right = np.where(human == 1, sensitivity, 1 - specificity)
    judged = (rng.random(len(human)) < right).astype(int)
    names = [f"t{i // per}" for i in range(len(human))]
    return pd.DataFrame({"trajectory": names, "human": human, "judge": judged})


def test_correction_recovers_the_true_rate():
    rng = np.random.default_rng(0)
    hits, naive, runs = 0, 0, 150
    for _ in range(runs):
        judged = labelled(rng, 100, 10, 0.3, 0.9, 0.8)
        known = labelled(rng, 40, 10, 0.5, 0.9, 0.8)
        found = audit.corrected_rate(judged, known)
        hits += found.rate.low <= 0.3 <= found.rate.high
        naive += abs(found.judged - 0.3) < 0.05
    assert 0.92 <= hits / runs <= 0.99
    assert naive / runs < 0.1, "the control: the judged rate itself must be biased"


def test_correction_by_hand():
    judged = pd.DataFrame({"trajectory": list("abcdefghij"), "judge": [1] * 4 + [0] * 6})
    known = pd.DataFrame({
        "trajectory": list("abcdefghij"), "human": [1] * 5 + [0] * 5,
        "judge": [1, 1, 1, 1, 0, 0, 0, 0, 0, 1],
    })  # fmt: skip
    found = audit.corrected_rate(judged, known)
    assert (found.sensitivity, found.specificity) == pytest.approx((0.8, 0.8))
    assert found.rate.value == pytest.approx((0.4 + 0.8 - 1) / 0.6)
    assert math.isnan(found.rate.low)
    assert "lie in 5 clusters, fewer than 8: no interval" in found.rate.note


def test_a_judge_that_knows_nothing_is_not_corrected():
    rng = np.random.default_rng(1)
    known = labelled(rng, 20, 10, 0.5, 0.4, 0.4)
    found = audit.corrected_rate(known, known)
    assert math.isnan(found.rate.value)
    assert "no better than chance" in found.rate.note
    empty = audit.corrected_rate(known, known[known["human"] == 1])
    assert "labels of both kinds" in empty.rate.note


def test_self_agreement_of_an_alternating_judge():
    """Public report: the same text judged 2 and 5 in turn, four times."""
    one, two = p.adaptive(), p.adaptive()
    given = [p.verdict("t", one, "p0", s, repeat=i) for i, s in enumerate((2, 5, 2, 5))]
    given += [p.verdict("t", two, "p0", 4, repeat=i) for i in range(4)]
    found = self_agreement(given)
    assert (found.replies, found.repeats, found.identical) == (2, 4, 0.5)
    assert found.pairwise == pytest.approx((4 / 12 + 1) / 2)
    assert found.spread == pytest.approx(np.std([2, 5, 2, 5], ddof=1) / 2)
    assert self_agreement([]).replies == 0


def variants(run, score):
    """Scores of the plain, padded and reversed cases by one judge."""
    trajectories, replies = set_of(20)
    texts, fake, found = prompts.load("judge_apm", "judge_apm"), FakeJudge(score=score), {}
    for variant in ("plain", "padded", "reversed"):
        cases = apm_cases(trajectories, replies, APM_BENCH, texts, variant)
        assert judge(run, cases, fake, progress=False).complete
        found[variant] = current(stored(run), cases)
    return {v: audit.shift(found["plain"], found[v]) for v in ("padded", "reversed")}


def test_a_judge_that_loves_length_is_found_out(outputs):
    run = Run.open("04_judge", "length", {"method": "null"})
    found = variants(run, lambda case, g: 4 if len(json.dumps(case["reply"])) > 250 else 2)
    change, share = found["padded"]
    assert share > 0.9  # all but the empty reasons
    assert change.value == pytest.approx(2 * share)
    assert found["reversed"][0].value == 0
    run.close()


def test_a_judge_that_minds_order_is_found_out(outputs):
    run = Run.open("04_judge", "order", {"method": "null"})
    found = variants(run, lambda case, g: 4 if next(iter(case)) == "task" else 3)
    assert found["padded"][0].value == 0
    assert found["reversed"][0].value == pytest.approx(-1)
    assert found["reversed"][1] == 1
    run.close()


def test_padding_leaves_decision_and_option_alone():
    one = p.adaptive("ERA")
    texts = prompts.load("judge_apm", "judge_apm")
    response = p.reply("t", one, "p0", p.spoken("B"))
    (case,) = apm_cases([p.trajectory("t", [one])], [response], APM_BENCH, texts, "padded")
    reply = read_case(case.messages)["reply"]
    assert (reply["decision"], reply["answer"]) == ("INTERVENE", "B")
    assert len(reply["reason"]) > 200


def test_drift_of_two_judges(outputs):
    run = Run.open("04_judge", "drift", {"method": "null"})
    trajectories, replies = set_of(10)
    cases = cases_of(trajectories, replies)
    strict, mild = FakeJudge(score=lambda c, g: 3), FakeJudge(score=lambda c, g: 4)
    mild.id = "mild"
    for fake in (strict, mild):
        judge(run, cases, fake, progress=False)
    found = current(stored(run), cases)
    parts = [[v for v in found if v.judge == name] for name in ("fake", "mild")]
    change, share = audit.shift(*parts)
    assert (change.value, share, change.n) == (1, 1, 20)
    run.close()


def test_verbosity_is_a_rank_correlation():
    frame = pd.DataFrame({"task": ["MPA"] * 6, "words": range(6), "score": [1, 1, 2, 3, 4, 5]})
    found = audit.verbosity(frame).set_index("group")
    assert found.loc["MPA", "rho"] > 0.9
    assert audit.verbosity(frame.assign(score=3))["note"].tolist() == ["no variation"] * 2


def test_labels_keep_ids_as_text(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("candidate,probe,score\n0012,NA,4\n0012,None,5\n")
    found = read_labels(path)
    assert found["candidate"].tolist() == ["0012", "0012"]
    assert found["probe"].tolist() == ["NA", "None"]
    assert found["human"].tolist() == [4, 5]
    lines = tmp_path / "labels.jsonl"
    lines.write_text('{"candidate": "0012", "probe": "p0", "score": 3, "annotator": "1"}\n')
    assert read_labels(lines)["annotator"].tolist() == ["1"]


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_tables_of_any_office_are_read(tmp_path, codec, mark):
    path = tmp_path / "labels.CSV"
    rows = [
        ["candidate", " probe", "score", "why"],
        ["caf\u0065\u0301", "p", "4", '"two\nrows\u2028"'],
    ]
    path.write_bytes("\r\n".join(map(mark.join, rows)).encode(codec))
    assert read_labels(path).values.tolist() == [["", "caf\u00e9", "p", "", 4]]


def test_lines_of_labels_end_at_newlines_only(tmp_path):
    path = tmp_path / "labels.jsonl"
    line = '{"candidate": "c\u2028\x85", "probe": "p", "score": 3}\n'
    path.write_bytes(line.encode("utf-8-sig"))
    assert read_labels(path)["candidate"].tolist() == ["c\u2028\x85"]
    path.write_bytes(line.encode() + '{"candidate": "é"}'.encode("cp1252"))
    with pytest.raises(BenchError, match="line 2 has the byte 0xE9"):
        read_labels(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("candidate,probe\nc,p\n", "line 2 lacks score"),
        ("candidate,probe,score\nc,p,9\n", "score '9' is none of 1, 2"),
        ("candidate,probe,score\nc,p,\n", "score '' is none of"),
        (
            "candidate,probe,score,why\nc,p,4,good, or so\n",
            "line 2 has 5 columns, the first",
        ),
        ("candidate,probe,score,score\nc,p,4,5\n", "names a column twice"),
        ('candidate,probe,score\nc,"p,4\n', "line 2: unexpected end of data"),
        ("candidate,probe,score\nc,p\xe9,4\n".encode("cp1252"), "line 2 has the byte 0xE9"),
        ("candidate,probe,score\nc,p,4\nc,p,5\n", "line 3: c p is labelled twice"),
    ],
)
def test_bad_labels_are_named(tmp_path, text, why):
    path = tmp_path / "labels.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BenchError, match=why):
        read_labels(path)
    with pytest.raises(BenchError, match="does not exist"):
        read_labels(tmp_path / "no.csv")
