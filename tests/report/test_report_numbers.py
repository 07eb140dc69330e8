"""Every number of the tables, taken once more from the files of the run by plain loops."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from statistics import mean, median

import numpy as np
import pytest
from scipy import stats as sps

from bench_lib.report import score_table, tables, time_tables
from bench_lib.report.text import DASH, duration, size

TASKS = {
    "Cross-session Understanding": ["ER", "EST", "TR"],
    "Real-time Perception": ["ACR", "CT", "OCR", "STU"],
    "Adaptive Response": ["ERA", "RCR", "MPA", "PRM", "TPG"],
}
SCORED = ("ok", "repaired", "unparsed", "refused")
SIGNS = {None: "", "positive": " +", "negative": " −"}


def records(material, kind):
    files = sorted(material.run.folder.glob(f"{kind}.*.jsonl"))
    return [json.loads(line) for f in files for line in f.read_text().splitlines()]


def keys(material):
    """The right option of each candidate."""
    return {c.id: c.answer for t in material.trajectories.values() for c in t.candidates}


def right(record, answers):
    """The gate, from the protocol's table."""
    if record["status"] in ("unparsed", "refused"):
        return False
    if record["polarity"] == "negative":
        return record["decision"] == "SILENT"
    letter = record["option"] == answers[record["candidate"]]
    if record["polarity"] is None:
        return letter
    return record["decision"] == "INTERVENE" and (letter or record["task"] != "ERA")


def decided(record):
    return record["decision"] == {"positive": "INTERVENE", "negative": "SILENT"}[record["polarity"]]


def limits(items):
    """Korn and Graubard's limits of the mean over tasks, as shown, by leaving trajectories out."""
    codes, groups = sorted({i["task"] for i in items}), sorted({i["trajectory"] for i in items})

    def score(rows):
        return mean(mean(r["right"] for r in rows if r["task"] == c) for c in codes)

    whole = score(items)
    parts = [score([i for i in items if i["trajectory"] != g]) for g in groups]
    variance = sum((part - whole) ** 2 for part in parts) * (len(groups) - 1) / len(groups)
    least, rarer = 0.0, {}
    for c in codes:
        own = [i["right"] for i in items if i["task"] == c]
        least += mean(own) * (1 - mean(own)) / len(own) / len(codes) ** 2
        rarer[c] = mean(own) <= 0.5
    told = len({i["trajectory"] for i in items if i["right"] == rarer[i["task"]]})
    if told < 8:
        return DASH
    free = whole * (1 - whole) / max(variance, least)
    free *= (sps.t.ppf(0.975, len(items) - 1) / sps.t.ppf(0.975, told - 1)) ** 2
    hits = whole * free
    low = sps.beta.ppf(0.025, hits, free - hits + 1)
    return f"{100 * low:.1f} to {100 * sps.beta.ppf(0.975, hits + 1, free - hits):.1f}"


@pytest.fixture
def run(build):
    return build(trajectories=12)


@pytest.fixture
def scored(run):
    found = [r for r in records(run, "responses") if r["status"] in SCORED]
    answers = keys(run)
    return [{**r, "right": right(r, answers)} for r in found]


def table_of(run):
    made = score_table.scores(run)
    shown = {}
    capability = ""
    for row in made.rows:
        if row.kind == "group":
            capability = row.cells[0].text
            continue
        name = capability if row.kind == "mean" else row.cells[0].text
        shown[name] = row.cells
    return shown


def test_tasks_come_in_the_fixed_order_whether_asked_or_not(build):
    shown = table_of(build(tasks=("PRM",)))
    wanted = [name for capability, codes in TASKS.items() for name in [*codes, capability]]
    assert list(shown) == wanted
    assert shown["ER"][2].text == DASH
    assert shown["ER"][2].why == "nothing of this was asked"
    assert shown["PRM"][2].text != DASH


def test_accuracy_its_n_and_its_interval(run, scored):
    shown, shows = table_of(run), 0
    for code in TASKS["Cross-session Understanding"] + TASKS["Real-time Perception"]:
        own = [r for r in scored if r["task"] == code]
        value, interval, n, groups = shown[code][2:6]
        assert value.text == f"{100 * mean(r['right'] for r in own):.2f}", code
        refused = 100 * mean(r["status"] == "refused" for r in own)
        told = f"/ 24, {refused:.1f} % refused" if refused else "/ 24"
        assert (n.text, n.sub) == (str(len(own)), told)
        assert groups.text == str(len({r["trajectory"] for r in own}))
        assert interval.text == limits(own), code
        shows += interval.text != DASH
        assert [cell.text for cell in shown[code][6:]] == ["N/A"] * 4
    assert 3 <= shows < 7, "else one of both ways was not seen"


def test_capability_means_weigh_tasks_equally(run, scored):
    shown = table_of(run)
    for capability in ("Cross-session Understanding", "Real-time Perception"):
        codes = TASKS[capability]

        def score(items, codes=codes):
            return mean(100 * mean(r["right"] for r in items if r["task"] == c) for c in codes)

        own = [r for r in scored if r["task"] in codes]
        assert shown[capability][2].text == f"{score(own):.2f}"
        assert shown[capability][3].text == limits(own) != DASH
        assert shown[capability][4].text == str(len(own))


def test_adaptive_tasks_by_polarity_gate_and_bounds(run, scored):
    shown = table_of(run)
    asked = Counter(r["task"] for r in records(run, "responses"))
    for code in TASKS["Adaptive Response"]:
        own = [r for r in scored if r["task"] == code]
        sides = [[r for r in own if r["polarity"] == p] for p in ("positive", "negative")]
        rates = [100 * mean(decided(r) for r in side) for side in sides]
        cells = shown[code]
        assert cells[2].text == f"{mean(rates):.2f}"
        assert [c.text for c in cells[6:8]] == [f"{rate:.2f}" for rate in rates]
        assert [c.sub for c in cells[6:8]] == [f"n {len(side)}" for side in sides]
        gate = mean(100 * mean(r["right"] for r in side) for side in sides)
        assert cells[8].text == f"{gate:.2f}"
        low, high = (bound(own, g) for g in (1, 5))
        assert cells[9].text == f"{low:.1f} to {high:.1f}"
        entered = sum(not r["right"] for r in own)
        assert cells[9].sub == f"n {entered} / {asked[code]}", "judged ones and failed gates"


def bound(own, g):
    """Eq. 1 with every passed probe given `g`; candidates with an unscored polarity left out."""
    sides = defaultdict(lambda: defaultdict(list))
    for r in own:
        sides[r["candidate"]][r["polarity"]].append(g * r["right"])
    whole = [c for c in sides.values() if len(c) == 2]
    return 20 * mean(mean(mean(side) for side in c.values()) for c in whole)


def test_pooled_decisions_pool_before_they_balance(run, scored):
    own = [r for r in scored if r["polarity"]]
    rates = [
        100 * mean(decided(r) for r in own if r["polarity"] == p) for p in ("positive", "negative")
    ]
    cells = table_of(run)["Adaptive Response"]
    assert cells[2].text == f"{mean(rates):.2f}"
    assert [c.text for c in cells[6:8]] == [f"{rate:.2f}" for rate in rates]


def test_outcomes_add_up_and_match_the_records(run):
    answers = keys(run)
    counted = defaultdict(Counter)
    for r in records(run, "responses"):
        label = r["task"] + SIGNS[r["polarity"]]
        end = r["status"]
        if end in ("ok", "repaired"):
            end = "passed" if right(r, answers) else "failed"
        counted[label][end] += 1
        counted[label]["repaired"] += r["status"] == "repaired"
        counted[label]["cut"] += r["stop"] == "length"
        counted[label]["asks"] += 1
    made = tables.statuses(run)
    assert {row.cells[0].text for row in made.rows} == set(counted)
    for row in made.rows:
        found = dict(zip(made.columns[1:], (int(c.text) for c in row.cells[1:]), strict=True))
        own = counted[row.cells[0].text]
        assert found == {name: own[name.replace(" ", "_")] for name in made.columns[1:]}
        assert found["asks"] == sum(list(found.values())[1:8])


def test_times(run):
    told = [r["timings"] for r in records(run, "responses") if r["timings"]]
    rows = {row.cells[0].text: row.cells for row in time_tables.times(run).rows}
    kinds = ("observe", "session_start", "session_end", "notes")
    memory = [sum(t[f"{kind}_s"] for kind in kinds) for t in told]
    ratio = [(m + t["ttft_prep_s"]) / t["prefix_s"] for m, t in zip(memory, told, strict=True)]
    expected = {
        "First token, from the question": [t["ttft_query_s"] for t in told],
        "First token, with preparation": [t["ttft_prep_s"] for t in told],
        "First token, end to end": [t["ttft_e2e_s"] for t in told],
        "Rest of the reply": [t["total_s"] - t["ttft_prep_s"] for t in told],
        "Whole reply": [t["total_s"] for t in told],
        "Whole reply, as APM-Bench": [t["generation_s"] for t in told],
        "First token, as APM-Bench": [t["ttft_prep_s"] for t in told],
    }
    for name, values in expected.items():
        found = [c.text for c in rows[name][1:]]
        parts = (median(values), np.percentile(values, 95), mean(values))
        assert found == [*(duration(part) for part in parts), str(len(told))], name
    assert rows["Real-time factor"][1].text == f"{median(ratio):.3f}"
    assert rows["Real-time factor"][2].text == f"{np.percentile(ratio, 95):.3f}"
    assert rows["Video decoding"][1].text == "0.02"


def test_decoding_is_not_in_the_real_time_factor(build):
    def slower(record):
        timings = {k: v * (50 if k == "decode_s" else 1) for k, v in record.timings.items()}
        return record.model_copy(update={"timings": timings})

    def factor(material):
        return time_tables.times(material).rows[7].cells[1].text

    plain = factor(build(trajectories=2))
    assert factor(build(trajectories=2, change=slower, seed=7)) == plain


def test_peaks_are_the_latest_of_equal_ones(run):
    made = tables.state(run)
    by_name = {row.cells[0].text: [c.text for c in row.cells[1:]] for row in made.rows}
    for name in run.trajectories:
        own = [r for r in records(run, "sessions") if r["trajectory"] == name]
        held = [{k: v for k, v in r["prior_bytes"].items() if k != "weights"} for r in own]
        peak = max(
            (sum(h.values()) + r["note_bytes"], r["prior_s"])
            for h, r in zip(held, own, strict=True)
        )
        hour = peak[0] * 3600 / peak[1]
        assert by_name[name] == [size(peak[0]), duration(peak[1]), size(hour)]
    assert "mean of 12" in by_name


def test_work_is_the_sum_of_all_counters(run):
    stream, branches = Counter(), Counter()
    for r in records(run, "sessions"):
        stream.update(r["counters"])
    for r in records(run, "responses"):
        branches.update(r["counters"])
    for row in tables.work(run).rows:
        name = row.cells[0].text.replace(" ", "_")
        found = [int(c.text.replace(",", "")) for c in row.cells[1:]]
        assert found == [stream[name], branches[name]], name
    assert len(tables.work(run).rows) == len({*stream, *branches})


def test_a_walk_done_again_is_said_and_not_counted_twice(build):
    material = build(trajectories=2)
    before = tables.work(material).rows
    again = records(material, "sessions")[0]
    material.run.append("sessions", {**again, "duration_s": again["duration_s"] / 2})
    fresh = type(material)(
        material.run, material.params, material.bench, material.trajectories, material.asks
    )
    made = tables.work(fresh)
    assert made.rows == before
    assert re.search(r"\b1 walks? of a session", made.note)


def test_a_score_is_rounded_in_one_way_wherever_it_stands(run):
    """Two digits for the score, one for its interval and its bounds, in all tables of a run."""
    from bench_lib.report import analysis_tables

    cells = table_of(run)
    part = next(r for r in analysis_tables.baselines(run).rows if r.cells[0].text == "this run")
    columns = analysis_tables.baselines(run).columns
    for code in TASKS["Cross-session Understanding"]:
        assert part.cells[columns.index(code)].text == cells[code][2].text
    strata = analysis_tables.splits(run)
    texts = [c for row in strata.rows if row.kind != "group" for c in row.cells[1:]]
    for cell in texts:
        assert re.fullmatch(r"\d+\.\d\d|\d+\.\d to \d+\.\d|—", cell.text), cell.text
        assert re.fullmatch(r"(\[\d+\.\d, \d+\.\d\] |unjudged, )?n [\d,]+/[\d,]+, G \d+|", cell.sub)
        if re.match(r"\d+\.\d\d$", cell.text):
            assert bool(cell.why) != cell.sub.startswith("["), "no interval has a reason"
