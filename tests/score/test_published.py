"""Every formula of the package against the published figures that determine it."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

from bench_lib.errors import BenchError
from bench_lib.score import published, stats
from bench_lib.score.cells import Cells, grouped, macro, pooled, scaled
from bench_lib.score.storage import PriorState, peak_bytes, peaks, storage_per_hour
from bench_lib.tasks import APM_BENCH

TASKS = [task.code for task in APM_BENCH.tasks]
CHOICE = [task.code for task in APM_BENCH.tasks if not task.adaptive]
ADAPTIVE = published.ADAPTIVE
PLACES = [
    [i for i, task in enumerate(APM_BENCH.tasks) if task.capability == name]
    for name in APM_BENCH.capabilities
]
ROUNDING = 0.0101
"""A mean recomputed from figures of two decimals may differ by this."""


def counts():
    found = published.table("task_counts").set_index("task")["candidates_count"]
    return {task.upper(): count for task, count in found.items()}


def cells(values, weights=None):
    """One cluster whose cell means are the given percentages."""
    weights = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=float)
    sums = np.asarray(values, dtype=float) * weights
    return Cells(tuple(map(str, range(len(values)))), ("all",), sums[None], weights[None])


def rows(name, paper="apm_bench"):
    frame = published.table(name, paper)
    return [pytest.param(row, id=f"{row['method']}-{row.get('memory_protocol', '')}")
            for row in frame.to_dict("records")]  # fmt: skip


@pytest.mark.parametrize("row", rows("table_4_tasks"))
def test_overall_is_the_mean_of_capability_means(row):
    values = [row[f"{code.lower()}_pct"] for code in TASKS]
    assert cells(values).value(grouped(PLACES)) == pytest.approx(row["overall_pct"], abs=ROUNDING)


@pytest.mark.parametrize("row", rows("table_3_main"))
def test_capability_scores_are_plain_means_of_tasks(row):
    tasks = published.table("table_4_tasks")
    same = (tasks["method"] == row["method"]) & (tasks["memory_protocol"] == row["memory_protocol"])
    values = tasks[same].iloc[0]
    for key, places in zip(("cross_session", "perception", "adaptive"), PLACES, strict=True):
        own = [values[f"{TASKS[i].lower()}_pct"] for i in places]
        assert cells(own).value(macro) == pytest.approx(row[f"{key}_pct"], abs=ROUNDING)
    assert row["overall_pct"] == values["overall_pct"]


def test_a_mean_weighted_by_candidates_is_not_what_was_published():
    """The control of the two tests above."""
    wrong = 0
    for row in published.table("table_4_tasks").to_dict("records"):
        values = [row[f"{code.lower()}_pct"] for code in CHOICE[:3]]
        weights = [counts()[code] for code in CHOICE[:3]]
        wrong += abs(cells(values, weights).value(pooled) - np.mean(values)) > ROUNDING
    assert wrong > 15


@pytest.mark.parametrize("row", rows("table_4_tasks"))
def test_accuracies_are_whole_numbers_of_right_answers(row):
    for code in CHOICE:
        n = counts()[code]
        right = round(row[f"{code.lower()}_pct"] * n / 100)
        value = cells([100 * right / n], [n]).value(pooled)
        assert value == pytest.approx(row[f"{code.lower()}_pct"], abs=0.00501)


@pytest.mark.parametrize("row", rows("table_6_decision"))
def test_pooled_decision_accuracy(row):
    n = [published.fact("positive_probes_count"), published.fact("negative_probes_count")]
    given = [row["overall_positive_pct"], row["overall_negative_pct"]]
    right = [round(rate * count / 100) for rate, count in zip(given, n, strict=True)]
    made = Cells(("p", "n"), ("all",), np.array([right], float), np.array([n], float))
    assert 100 * made.total[0] / made.total[1] == pytest.approx(given, abs=0.00501)
    assert made.value(scaled(macro, 100)) == pytest.approx(row["overall_ba_pct"], abs=ROUNDING)


def joined(*names):
    keys = ["method", "memory_protocol"]
    frames = [published.table(name) for name in names]
    out = frames[0]
    for frame in frames[1:]:
        out = out.merge(frame, on=keys, suffixes=("", "_other"), validate="one_to_one")
    return out


def test_the_gate_equals_the_decision_but_for_the_option_of_era():
    both = joined("table_6_decision", "table_7_response_quality")
    assert len(both) == 21
    for code in ADAPTIVE:
        gap = both[f"{code.lower()}_ba_pct"] - both[f"{code.lower()}_gate_pass_pct"]
        if code == "ERA":
            assert (gap > -0.06).all()
            assert gap.max() > 5
        else:
            assert gap.abs().max() < 0.0601


def test_gated_score_is_about_quality_times_pass_rate():
    both = joined("table_4_tasks", "table_7_response_quality")
    gaps = [
        abs(row[f"{c.lower()}_pct"]
            - row[f"{c.lower()}_quality_pct"] * row[f"{c.lower()}_gate_pass_pct"] / 100)
        for row in both.to_dict("records") for c in ADAPTIVE
    ]  # fmt: skip
    assert len(gaps) == 105
    assert np.median(gaps) == pytest.approx(0.3, abs=0.06)
    assert max(gaps) == pytest.approx(2.3, abs=0.06)


@pytest.mark.parametrize("row", rows("table_7_response_quality"))
def test_quality_average_is_the_mean_of_five_tasks(row):
    values = [row[f"{code.lower()}_quality_pct"] for code in ADAPTIVE]
    assert all(20 <= value <= 100 for value in values)
    assert cells(values).value(macro) == pytest.approx(row["average_quality_pct"], abs=ROUNDING)


@pytest.mark.parametrize("row", rows("table_13_evidence_availability"))
def test_availability_halves_and_their_mean(row):
    halves = [row["evidence_available_accuracy_pct"], row["evidence_unavailable_detection_pct"]]
    right = [round(value * 1.3) for value in halves]
    assert [100 * k / 130 for k in right] == pytest.approx(halves, abs=0.00501)
    made = Cells(("a", "u"), ("all",), np.array([right], float), np.array([[130.0, 130.0]]))
    balanced = made.value(scaled(macro, 100))
    assert balanced == pytest.approx(row["balanced_accuracy_pct"], abs=ROUNDING)
    original = round(row["original_accuracy_pct"] * 2.6)
    assert 100 * original / 260 == pytest.approx(row["original_accuracy_pct"], abs=0.00501)


def test_availability_agrees_between_its_two_tables():
    both = joined("table_13_evidence_availability", "table_4_tasks")
    assert len(both) == 15
    assert (both["evidence_available_accuracy_pct"] == both["ea_pct"]).all()
    assert (both["evidence_unavailable_detection_pct"] == both["eu_pct"]).all()


def test_population_spread_of_three_systems():
    control = published.table("control_12_trajectories")
    spread = published.table("control_12_trajectories_spread").set_index("condition")
    for condition in ("apm_bench", "raw_lifelong"):
        values = control.loc[control["condition"] == condition, "cross_session_pct"]
        wanted = spread.loc[condition, "cross_session_population_std_points"]
        assert stats.population_sd(values) == pytest.approx(wanted, abs=0.006)
        assert np.std(values, ddof=1) != pytest.approx(wanted, abs=0.5)  # the control


@pytest.mark.parametrize(
    "row",
    rows("table_11_format_failures_specialised") + rows("table_12_format_failures_general"),
)
def test_failure_rates_are_of_all_instances(row):
    total = published.fact("scored_instances_count")
    if not math.isnan(row["failure_rate_pct"] or math.nan):
        rate = 100 * row["failure_count"] / total
        assert rate == pytest.approx(row["failure_rate_pct"], abs=0.00501)


def test_totals_add_up():
    number = {name: published.fact(f"{name}_count") for name in (
        "cross_session_candidates", "perception_candidates", "adaptive_candidates", "candidates",
        "adaptive_probes", "scored_instances", "positive_probes", "negative_probes",
        "egolife_trajectories", "hd_epic_trajectories", "trajectories", "egolife_sessions",
        "hd_epic_sessions", "sessions", "inter_session_candidates",
    )}  # fmt: skip
    parts = (number["cross_session_candidates"], number["perception_candidates"])
    assert sum(parts) + number["adaptive_candidates"] == number["candidates"]
    assert sum(parts) + number["adaptive_probes"] == number["scored_instances"]
    assert number["positive_probes"] + number["negative_probes"] == number["adaptive_probes"]
    assert number["egolife_trajectories"] + number["hd_epic_trajectories"] == number["trajectories"]
    assert number["egolife_sessions"] + number["hd_epic_sessions"] == number["sessions"]
    spread = [published.fact(f"evidence_sessions_{i}_count") for i in range(1, 6)]
    assert sum(spread) == number["inter_session_candidates"]


def test_distances_add_up():
    found = published.table("table_15_evidence_distance").set_index("task")
    columns = [column for column in found if column.startswith("distance")]
    assert (found.drop("all")[columns].sum() == found.loc["all", columns]).all()
    total = found[columns].sum(axis=1)
    for code in ("ER", "EST", "TR", "MPA", "PRM", "TPG"):
        assert total[code.lower()] == counts()[code]


@pytest.mark.parametrize("row", published.table("table_14_evidence_composition").to_dict("records"))
def test_composition_shares(row):
    for kind in ("evidence", "session"):
        share = 100 * row[f"multi_{kind}_count"] / row["candidates_count"]
        assert share == pytest.approx(row[f"multi_{kind}_pct"], abs=0.0501)
    assert row["same_day_pct"] + row["cross_day_pct"] == pytest.approx(100)


# Storage


def test_storage_per_hour_by_hand():
    states = [
        PriorState("a", 0.0, 0), PriorState("a", 0.5, 100), PriorState("a", 1.0, 80),
        PriorState("b", 1.0, 50), PriorState("b", 2.0, 50), PriorState("c", 0.0, 0),
    ]  # fmt: skip
    found = storage_per_hour(states)
    assert found.value == pytest.approx((100 / 0.5 + 50 / 2.0) / 2)
    few = "2 clusters, fewer than 8: no interval"
    assert found.note == f"1 trajectories have no earlier video; {few}"
    many = [PriorState(f"t{i}", 1.0, 100 * i) for i in range(9)]
    assert storage_per_hour(many).low > 0
    assert storage_per_hour([*many, PriorState("big", 1, 9999)]).low == 0
    assert storage_per_hour(states, tie="earliest").value == pytest.approx((200 + 50) / 2)
    assert peak_bytes(states) == (75, 100)
    assert peaks(states)["hours"].tolist() == [0.5, 2.0]
    assert storage_per_hour([]).note == "n = 0"


@pytest.mark.parametrize(
    ("printed", "exact"),
    [
        (row["storage_printed"], row["storage_bytes_per_hour"])
        for row in published.table("table_3_main").to_dict("records")
        if isinstance(row["storage_printed"], str)
    ]
    + [
        (row[f"{kind}_peak_printed"], row[f"{kind}_peak_bytes"])
        for row in published.table("table_10_peak_state").to_dict("records")
        for kind in ("mean", "max")
    ],
)
def test_printed_sizes_are_binary_units(printed, exact):
    number, unit = printed.replace(",", "").split()
    factor = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit]
    assert float(number) * factor == pytest.approx(exact, abs=0.51)


def test_a_constant_state_reaches_its_published_storage_at_the_latest_peak():
    """Three systems of nearly constant size imply about 0.49 h; one does not and is doubted."""
    both = joined("table_10_peak_state", "table_3_main").set_index("method")
    hours = both["mean_peak_bytes"] / both["storage_bytes_per_hour"]
    assert hours[["hermes", "fluxmem", "flash_vstream"]].between(0.48, 0.50).all()
    assert hours["video_salmonn_s"] == pytest.approx(0.19, abs=0.005)
    assert any("video_salmonn_s" in doubt["where"] for doubt in published.doubts("storage"))
    size = int(both.loc["hermes", "mean_peak_bytes"])
    harmonic = float(hours["hermes"])  # 1 / mean(1 / hours) over trajectories
    states = [PriorState(f"t{i}", harmonic * part, size) for i in range(104) for part in (0.2, 1.0)]
    wanted = both.loc["hermes", "storage_bytes_per_hour"]
    assert storage_per_hour(states).value == pytest.approx(wanted)
    assert storage_per_hour(states, tie="earliest").value == pytest.approx(5 * wanted)


# StreamArena


def arena(method, variant=None):
    found = published.table("table_3_main", "streamarena")
    found = found[found["method"] == method]
    return found[found["variant"].isna() if variant is None else found["variant"] == variant].iloc[
        0
    ]


def weights():
    return [published.fact(f"{name}_count", "streamarena") for name in ("rtp", "hr", "tool")]


@pytest.mark.parametrize("method", ["streammind", "gemini_3_5_flash"])
def test_pooled_accuracy_weighs_by_questions(method):
    row = arena(method)
    values = [row["rtp_pct"], row["hr_pct"], row["tool_pct"]]
    latency = published.table("table_4_latency", "streamarena").set_index("method")
    found = cells(values, weights()).value(pooled)
    assert found == pytest.approx(latency.loc[method, "pooled_accuracy_pct"], abs=0.06)
    assert cells(values).value(macro) != pytest.approx(found, abs=0.5)  # the control


@pytest.mark.parametrize("method", ["streammind", "qwen3_5_397b_a17b"])
def test_pooled_latency_weighs_by_questions(method):
    row = published.table("table_4_latency", "streamarena").set_index("method").loc[method]
    values = [row[f"{name}_latency_s"] for name in ("rtp", "hr", "tool")]
    assert cells(values, weights()).value(pooled) == pytest.approx(
        row["pooled_latency_s"], abs=0.06
    )


@pytest.mark.parametrize(
    ("key", "best"),
    [("rtp", "aura"), ("hr", "aura"), ("tool", "minicpm_o_4_5"), ("proactive", "minicpm_o_4_5")],
)
def test_gains_over_the_best_streaming_system(key, best):
    gain = 100 * (arena("streammind")[f"{key}_pct"] / arena(best)[f"{key}_pct"] - 1)
    wanted = published.fact(f"gain_over_best_streaming_{key}_pct", "streamarena")
    assert gain == pytest.approx(wanted, abs=0.06)


def test_question_counts_add_up():
    parts = [
        published.fact(f"{n}_count", "streamarena") for n in ("rtp", "hr", "tool", "proactive")
    ]
    assert sum(parts) == published.fact("questions_count", "streamarena")
    assert sum(parts[:3]) == published.fact("reactive_questions_count", "streamarena")
    kept = published.fact("accuracy_retained_pct", "streamarena")
    latency = published.table("table_4_latency", "streamarena").set_index("method")
    pair = latency.loc[["streammind", "qwen3_5_397b_a17b"]]
    ratio = pair["pooled_accuracy_pct"].iloc[0] / pair["pooled_accuracy_pct"].iloc[1]
    assert 100 * ratio == pytest.approx(kept, abs=0.06)


# Access


def test_scores_have_the_shape_of_our_tables():
    found = published.scores()
    assert list(found.columns) == ["method", "protocol", "group", "measure", "value"]
    assert not found.duplicated(["method", "protocol", "group", "measure"]).any()
    assert found["value"].notna().all()
    own = found[(found["method"] == "oasis") & (found["measure"] == "accuracy")]
    assert own["group"].tolist() == CHOICE
    overall = found[(found["group"] == "Overall") & (found["measure"] == "score")]
    assert len(overall) == 21
    arena_rows = published.scores("streamarena")
    pro = arena_rows[(arena_rows["method"] == "aura") & (arena_rows["group"] == "Pro")]
    assert pro.empty  # unknown, not zero


def test_rows_are_chosen_by_name():
    two = published.choose(["qwen3_vl_8b/text_summary", "oasis"])
    assert two["protocol"].unique().tolist() == ["text_summary", "specialised"]
    assert published.choose([]).empty
    with pytest.raises(BenchError, match="did you mean 'fluxmem"):
        published.choose(["flux_mem"])
    with pytest.raises(BenchError, match="no table"):
        published.table("table_99")
    with pytest.raises(BenchError, match="no fact"):
        published.fact("sessions")
    assert published.method_name("vst") == "VST"


def test_the_file_is_strict_json():
    json.loads(published.PATH.read_text(), parse_constant=lambda name: pytest.fail(name))
    assert isinstance(published.table("table_8_rtf"), pd.DataFrame)
