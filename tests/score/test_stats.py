"""Intervals, tests and power: values worked by hand, laws, and coverage by simulation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_lib.score import paired, stats
from bench_lib.score.cells import Cells, grouped, macro, pooled, scaled

PERCENT = scaled(macro, 100)


def frame(rows):
    return pd.DataFrame(rows, columns=["trajectory", "task", "value"])


def simulated(rng, clusters, size, rate=0.4, icc=0.2):
    """0/1 items whose rate differs between clusters (beta-binomial), with unequal cluster sizes."""
    scale = (1 - icc) / icc
    shares = rng.beta(rate * scale, (1 - rate) * scale, clusters)
    counts = rng.integers(max(1, size // 3), 2 * size - size // 3 + 1, clusters)
    sums = rng.binomial(counts, shares)
    names = tuple(map(str, range(clusters)))
    return Cells(("all",), names, sums[:, None] * 1.0, counts[:, None] * 1.0, (True,))


def covered(clusters, size, runs, seed):
    rng = np.random.default_rng(seed)
    hits = naive = 0
    for _ in range(runs):
        cells = simulated(rng, clusters, size)
        low, high, _, _ = stats.jackknife(cells, macro)
        hits += low <= 0.4 <= high
        share, n = cells.value(macro), cells.n
        naive += abs(share - 0.4) <= 1.96 * np.sqrt(share * (1 - share) / n)
    return hits / runs, naive / runs


@pytest.mark.parametrize(("clusters", "size"), [(12, 30), (28, 30), (76, 30), (104, 31), (243, 15)])
def test_the_jackknife_covers_what_it_says(clusters, size):
    hits, naive = covered(clusters, size, 2500, seed=clusters)
    assert 0.93 <= hits <= 0.97
    assert naive < 0.75, "the control: an interval that ignores clusters must fail here"


@pytest.mark.slow
@pytest.mark.parametrize(("clusters", "size"), [(12, 30), (28, 30), (76, 30), (104, 31), (243, 15)])
def test_the_jackknife_covers_what_it_says_long(clusters, size):
    hits, _ = covered(clusters, size, 40_000, seed=1)
    assert 0.935 <= hits <= 0.965


def test_the_bootstrap_covers_a_macro_mean():
    rng, hits, runs = np.random.default_rng(5), 0, 120
    for _ in range(runs):
        one, two = simulated(rng, 104, 12), simulated(rng, 104, 12, rate=0.7)
        cells = Cells(
            ("a", "b"),
            one.clusters,
            np.hstack([one.sums, two.sums]),
            np.hstack([one.counts, two.counts]),
        )
        found = stats.estimate(cells, PERCENT)
        assert found.interval == "cluster bootstrap, 2000"
        hits += found.low <= 55 <= found.high
    assert 0.92 <= hits / runs <= 0.98


def test_the_jackknife_of_equal_clusters_is_the_textbook_error():
    values = [[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, 1]]
    rows = [(f"t{i}", "x", v) for i, cluster in enumerate(values) for v in cluster]
    found = stats.estimate(Cells.of(frame(rows), "value", "task"), PERCENT, linear=True)
    means = np.array([75.0, 25.0, 100.0])
    assert found.value == pytest.approx(means.mean())
    assert found.se == pytest.approx(means.std(ddof=1) / np.sqrt(3))
    assert (found.n, found.clusters, found.interval) == (12, 3, "jackknife, t(2)")
    assert found.high == 100  # clipped to the scale


def test_macro_and_pooled_differ_and_have_their_own_errors():
    rng = np.random.default_rng(0)
    rows = [(f"t{i % 5}", "easy", 1.0) for i in range(10)]
    rows += [(f"t{i % 5}", "hard", float(rng.random() < 0.01)) for i in range(1000)]
    cells = Cells.of(frame(rows), "value", "task")
    wide, narrow = stats.estimate(cells, PERCENT), stats.estimate(cells, scaled(pooled, 100))
    assert wide.value == pytest.approx(50.5, abs=1)
    assert narrow.value == pytest.approx(1.9, abs=1)
    assert wide.se != pytest.approx(narrow.se)


def test_groups_weigh_capabilities_equally():
    rows = [("t", "a", 1.0), ("t", "b", 0.0), ("t", "c", 0.0), ("t", "d", 1.0)]
    cells = Cells.of(frame(rows), "value", "task", names="abcd")
    assert cells.value(grouped([[0, 1, 2], [3]])) == pytest.approx((1 / 3 + 1) / 2)


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        ([], "n = 0"),
        ([("t", "a", float("nan"))], "n = 0"),
        ([("t", "a", 1.0), ("t", "a", 0.0)], "one cluster: no interval"),
    ],
)
def test_thin_data_gives_a_reason_and_no_interval(rows, note):
    found = stats.estimate(Cells.of(frame(rows), "value", "task"), PERCENT)
    assert np.isnan(found.low)
    assert found.note == note


def test_a_cell_without_items_is_named():
    cells = Cells.of(frame([("t", "a", 1.0), ("u", "a", 0.0)]), "value", "task", names=["a", "b"])
    found = stats.estimate(cells, PERCENT)
    assert np.isnan(found.value)
    assert found.note == "nothing scored for b"


def test_a_cell_of_one_cluster_gives_no_interval():
    rows = [("t", "a", 1.0), ("u", "a", 0.0), ("t", "b", 1.0)]
    found = stats.estimate(Cells.of(frame(rows), "value", "task"), PERCENT)
    assert found.value == 75
    assert np.isnan(found.se)
    assert "one cluster only" in found.note


def test_all_right_has_an_exact_interval_over_clusters():
    rows = [(f"t{i}", "a", 1.0) for i in range(10) for _ in range(7)]
    found = stats.estimate(Cells.of(frame(rows), "value", "task"), PERCENT, linear=True)
    assert (found.low, found.high) == pytest.approx((100 * 0.025**0.1, 100))


def test_exact_limits_of_a_published_share():
    low, high = stats.exact(5, 130)
    assert (low, high) == pytest.approx((0.0126, 0.0875), abs=5e-4)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1)), min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
def test_order_and_names_of_clusters_mean_nothing(items):
    rows = [(f"t{cluster}", "a", float(value)) for cluster, value in items]
    other = [(f"z{9 - cluster}", "a", float(value)) for cluster, value in reversed(items)]
    one = stats.estimate(Cells.of(frame(rows), "value", "task"), PERCENT, linear=True)
    two = stats.estimate(Cells.of(frame(other), "value", "task"), PERCENT, linear=True)
    assert (one.value, one.low, one.high) == pytest.approx(
        (two.value, two.low, two.high), nan_ok=True
    )


def test_holm_by_hand_and_with_missing_values():
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    found = stats.holm([0.01, np.nan, 0.02])
    assert found[[0, 2]] == pytest.approx([0.02, 0.02])
    assert np.isnan(found[1])


@pytest.mark.parametrize(
    ("n", "few", "many"), [(130, 9.5, 13.5), (260, 6.7, 9.5), (877, 3.7, 5.2), (3646, 1.8, 2.5)]
)
def test_detectable_differences_at_80_percent_power(n, few, many):
    assert 100 * stats.detectable(n, 0.15) == pytest.approx(few, abs=0.06)
    assert 100 * stats.detectable(n, 0.30) == pytest.approx(many, abs=0.06)
    assert stats.detectable(n, 0.15, effect=2) == pytest.approx(2**0.5 * stats.detectable(n, 0.15))
    assert stats.power_of(stats.detectable(n, 0.3), n, 0.3) == pytest.approx(0.8, abs=1e-6)


def test_design_effect_of_identical_items_is_their_number():
    rng = np.random.default_rng(3)
    sums = 10.0 * rng.integers(0, 2, 400)
    cells = Cells(
        ("a",), tuple(map(str, range(400))), sums[:, None], np.full((400, 1), 10.0), (True,)
    )
    assert stats.design_effect(cells, macro) == pytest.approx(10, rel=0.01)


def test_repeats_take_item_and_sampling_variance_apart():
    rng = np.random.default_rng(1)
    shares = rng.choice([0.1, 0.9], 4000)
    found = stats.repeats((rng.random((4000, 5)) < shares[:, None]).astype(float))
    assert found.sampling_sd == pytest.approx(0.3, abs=0.01)
    assert found.item_sd == pytest.approx(0.4, abs=0.01)
    assert found.consensus == pytest.approx(found.mean, abs=0.03)
    same = stats.repeats(np.repeat([[1.0], [0.0]], 3, axis=1))
    assert (same.sampling_sd, same.consistent) == (0, 1)
    with pytest.raises(ValueError, match="k >= 2"):
        stats.repeats(np.ones((3, 1)))


def test_quantiles_resample_clusters():
    values, groups = np.arange(1000.0), np.repeat(np.arange(20), 50)
    found = stats.quantile(values, groups, 0.5)
    assert found.value == pytest.approx(499.5)
    assert found.high - found.low > 200  # items alone would give about 60
    assert stats.quantile([], [], 0.5).note == "n = 0"


# Paired


def two(clusters, gain, noise=0.3, seed=0, per=20):
    rng = np.random.default_rng(seed)
    base = rng.random((clusters, per))
    rows = [(f"t{g}", f"p{g}-{i}") for g in range(clusters) for i in range(per)]
    table = pd.DataFrame(rows, columns=["trajectory", "probe"]).assign(task="x")
    jitter = noise * rng.standard_normal((clusters, per))
    return (
        table.assign(value=(base < 0.5).astype(float).ravel()),
        table.assign(value=(base + jitter < 0.5 + gain).astype(float).ravel()),
    )


def test_a_real_difference_is_seen_and_none_is_not():
    one, other = two(40, 0.2)
    found = paired.compare(one, other, "value", "task", ["probe"])
    assert found.low > 0
    assert found.p < 1e-4
    assert found.test == "jackknife t(39)"
    same = paired.compare(one, one, "value", "task", ["probe"])
    assert (same.value, same.p) == (0, 1)


def test_only_shared_probes_count():
    one, other = two(40, 0.2)
    found = paired.compare(one, other.iloc[:100], "value", "task", ["probe"])
    assert found.n == 100
    nothing = paired.compare(one, other.assign(probe="?").iloc[:1], "value", "task", ["probe"])
    assert nothing.n == 0
    assert "no shared probe" in nothing.note


def test_a_repeated_probe_is_refused():
    one, other = two(3, 0.0)
    with pytest.raises(pd.errors.MergeError):
        paired.compare(pd.concat([one, one]), other, "value", "task", ["probe"])


def test_few_clusters_flip_signs_and_say_their_limit():
    one, other = two(4, 0.4)
    found = paired.compare(one, other, "value", "task", ["probe"])
    assert found.test == "sign flips over clusters"
    assert found.p == pytest.approx(2 / 2**4)
    assert "cannot give p below 0.125" in found.note


def test_sign_flips_hold_their_level():
    hits = 0
    for seed in range(120):
        one, other = two(10, 0.0, seed=seed, per=5)
        hits += paired.compare(one, other, "value", "task", ["probe"]).p <= 0.05
    assert hits / 120 < 0.09


def test_mcnemar_by_hand_and_without_clusters():
    assert paired.mcnemar(8, 1) == pytest.approx(2 * (1 + 9) / 2**9)
    assert paired.mcnemar(0, 0) == 1
    one, other = two(9, 0.0, per=1)
    found = paired.compare(
        one.assign(value=[0.0] * 9), other.assign(value=[1.0] * 9), "value", "task", ["probe"]
    )
    assert (found.test, found.p) == ("exact McNemar", pytest.approx(2 / 2**9))
