"""Scores with intervals, paired differences, repeats: values worked by hand, and laws."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as sps

from bench_lib.score import paired, stats
from bench_lib.score.cells import Cells, grouped, macro, pooled, scaled

PERCENT = scaled(macro, 100)


def frame(rows):
    return pd.DataFrame(rows, columns=["trajectory", "task", "value"])


def estimated(clusters, **bounds):
    """Of clusters given as lists of items, one task."""
    rows = [(f"t{i}", "x", v) for i, cluster in enumerate(clusters) for v in cluster]
    statistic = macro if bounds else PERCENT
    return stats.estimate(Cells.of(frame(rows), "value", "task"), statistic, **bounds)


def leave_one_out(clusters):
    """Mean and jackknife error by plain loops."""
    every = [v for cluster in clusters for v in cluster]
    mean = sum(every) / len(every)
    size = len(clusters)
    spread = 0.0
    for i in range(size):
        rest = [v for j, cluster in enumerate(clusters) if j != i for v in cluster]
        spread += (sum(rest) / len(rest) - mean) ** 2
    return mean, (spread * (size - 1) / size) ** 0.5


SOME_WRONG = [[1, 1, 0], [1, 0, 0, 1], [0], [1, 1], [1, 0], [0, 1], [1, 0, 1], [1, 0], [1, 1, 0, 0]]


def test_a_rate_by_hand():
    """Korn and Graubard's limits from scipy's beta and t, by their formula."""
    mean, se = leave_one_out(SOME_WRONG)
    n = sum(map(len, SOME_WRONG))
    se = max(se, (mean * (1 - mean) / n) ** 0.5)
    told = sum(0 in cluster for cluster in SOME_WRONG)
    free = mean * (1 - mean) / se**2
    free *= (sps.t.ppf(0.975, n - 1) / sps.t.ppf(0.975, told - 1)) ** 2
    low = sps.beta.ppf(0.025, mean * free, free - mean * free + 1)
    high = sps.beta.ppf(0.975, mean * free + 1, free - mean * free)
    found = estimated(SOME_WRONG)
    assert (found.value, found.se) == pytest.approx((100 * mean, 100 * se))
    assert (found.low, found.high) == pytest.approx((100 * low, 100 * high))
    assert (found.n, found.clusters, found.interval) == (n, 9, "Korn-Graubard, t(7)")


def test_a_number_without_ends_by_hand():
    values = [[3.0, 9.0], [4.0], [7.5], [1.0, 2.0, 3.0], [8.0], [2.0], [6.0], [5.0, 5.5]]
    mean, se = leave_one_out(values)
    half = sps.t.ppf(0.975, 7) * se
    found = estimated(values, bounds=(-np.inf, np.inf))
    assert (found.value, found.se) == pytest.approx((mean, se))
    assert (found.low, found.high) == pytest.approx((mean - half, mean + half))
    assert (found.n, found.clusters, found.interval) == (12, 8, "jackknife, t(7)")
    assert estimated(values, bounds=(mean - 0.1, mean + 0.2)).low == pytest.approx(mean - 0.1)
    assert estimated(values, bounds=(mean - 0.1, mean + 0.2)).high == pytest.approx(mean + 0.2)


def test_the_error_is_never_below_that_of_independent_items():
    """Clusters that agree better than chance would let them; whole items and parts of one."""
    found = estimated([[0, 1, 1, 1]] * 10)
    assert found.se == pytest.approx(100 * (0.75 * 0.25 / 40) ** 0.5)
    parts = [0.2, 0.4, 0.6, 1.0]
    found = estimated([parts] * 10)
    assert found.se == pytest.approx(100 * (np.var(parts) / 40) ** 0.5)
    two = [(f"t{i}", task, v) for i in range(10) for task, v in (("a", 0), ("a", 1), ("b", 1))]
    found = stats.estimate(Cells.of(frame(two), "value", "task"), PERCENT)
    assert found.se == pytest.approx(100 * (0.25 * 0.25 / 20) ** 0.5)


@pytest.mark.parametrize("holders", [0, 3, 7, 8, 12])
@pytest.mark.parametrize("rare", [0.0, 1.0])
def test_a_rate_has_an_interval_from_eight_clusters_with_the_rarer_outcome(holders, rare):
    clusters = [[rare, *[1 - rare] * 9]] * holders + [[1 - rare] * 10] * (20 - holders)
    found = estimated(clusters)
    assert found.value == pytest.approx(
        100 * (rare * holders / 200 + (1 - rare) * (1 - holders / 200))
    )
    assert np.isnan(found.low) == np.isnan(found.high) == (holders < 8)
    why = f"{holders} of 20 clusters hold the rarer outcome, fewer than 8: no interval"
    assert found.note == (why if holders < 8 else "")


def test_few_clusters_and_equal_ones_give_a_reason():
    assert estimated([[0, 1]] * 7).note == "7 clusters, fewer than 8: no interval"
    found = estimated([[2.5]] * 9, bounds=(0, np.inf))
    assert (found.value, found.note) == (2.5, "no variation between items: no interval")
    found = estimated([[0.4, 0.4]] * 9)
    assert (found.value, found.note) == (40, "no variation between items: no interval")
    assert np.isnan(found.low)


rates = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=6), min_size=8, max_size=20)


@given(rates)
@settings(max_examples=60, deadline=None)
def test_a_rate_lies_in_its_interval_and_its_mirror_in_the_mirrored_one(clusters):
    found = estimated(clusters)
    other = estimated([[1 - v for v in cluster] for cluster in clusters])
    if np.isnan(found.low):
        return
    assert 0 <= found.low <= found.value <= found.high <= 100
    if abs(found.value - 50) > 1e-6:  # where both outcomes are as frequent either may be the rarer
        assert (other.low, other.high) == pytest.approx((100 - found.high, 100 - found.low))


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
        ([("t", "a", 1.0), ("t", "a", 0.0)], "one cluster, fewer than 8: no interval"),
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
    rows = [(f"t{i}", "a", float(i % 2)) for i in range(10)] + [("t0", "b", 1.0)]
    found = stats.estimate(Cells.of(frame(rows), "value", "task"), PERCENT)
    assert found.value == 75
    assert np.isnan(found.se)
    assert "one cluster only" in found.note


def test_exact_limits_of_a_published_share():
    low, high = stats.exact(5, 130)
    assert (low, high) == pytest.approx((0.0126, 0.0875), abs=5e-4)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1)), min_size=1, max_size=60))
@settings(max_examples=60, deadline=None)
def test_order_and_names_of_clusters_mean_nothing(items):
    rows = [(f"t{cluster}", "a", float(value)) for cluster, value in items]
    other = [(f"z{20 - cluster}", "a", float(value)) for cluster, value in reversed(items)]
    one = stats.estimate(Cells.of(frame(rows), "value", "task"), PERCENT)
    two = stats.estimate(Cells.of(frame(other), "value", "task"), PERCENT)
    assert (one.value, one.low, one.high) == pytest.approx(
        (two.value, two.low, two.high), nan_ok=True
    )


def test_holm_by_hand_and_with_missing_values():
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    found = stats.holm([0.01, np.nan, 0.02])
    assert found[[0, 2]] == pytest.approx([0.02, 0.02])
    assert np.isnan(found[1])


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


# Quantiles


def test_a_quantile_by_hand():
    """Woodruff: the limits of the share below, taken back through the same quantile."""
    values, groups = np.arange(200.0), np.repeat(np.arange(10), 20)
    below = [[1.0] * 20] * 5 + [[0.0] * 20] * 5
    _, se = leave_one_out(below)
    free = 0.25 / se**2 * (sps.t.ppf(0.975, 199) / sps.t.ppf(0.975, 4)) ** 2
    low, high = (
        sps.beta.ppf(p, 0.5 * free + more, 0.5 * free + 1 - more)
        for p, more in ((0.025, 0), (0.975, 1))
    )
    found = stats.quantile(values, groups, 0.5)
    assert found.value == 99.5
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(values, [low, high])))
    assert (found.n, found.clusters, found.interval) == (200, 10, "Woodruff, t(4)")


@given(
    st.lists(st.tuples(st.integers(0, 14), st.integers(0, 9)), min_size=1, max_size=120),
    st.sampled_from([0.05, 0.25, 0.5, 0.95]),
)
@settings(max_examples=150, deadline=None)
def test_a_quantile_always_lies_in_its_interval(items, q):
    clusters, values = zip(*items, strict=True)
    found = stats.quantile(values, clusters, q)
    assert found.value == pytest.approx(np.quantile(values, q))
    assert (found.n, found.clusters) == (len(items), len(set(clusters)))
    assert bool(found.note) == np.isnan(found.low) == np.isnan(found.high)
    assert len(set(clusters)) >= 8 or "fewer than 8" in found.note
    assert np.isnan(found.low) or found.low <= found.value <= found.high


def test_the_lower_tail_is_the_mirror_of_the_upper_one():
    rng = np.random.default_rng(2)
    values, groups = rng.standard_normal(300), np.repeat(np.arange(15), 20)
    up, down = stats.quantile(values, groups, 0.9), stats.quantile(-values, groups, 0.1)
    assert (down.low, down.value, down.high) == pytest.approx((-up.high, -up.value, -up.low))


def test_quantiles_without_an_interval_say_why():
    assert stats.quantile([], [], 0.5).note == "n = 0"
    few = stats.quantile(range(70), np.repeat(np.arange(7), 10), 0.5)
    assert (few.value, few.note) == (34.5, "7 clusters, fewer than 8: no interval")
    alone = np.where(np.arange(100) < 90, 1.0, 2.0)
    found = stats.quantile(alone, np.arange(100) // 10, 0.8)
    assert (found.value, found.note) == (1.0, "fewer than two clusters lie beyond it: no interval")
    assert np.isnan(found.low)
    lacking = stats.quantile([1.0, np.nan, 3.0], ["a", "b", "a"], 0.5)
    assert (lacking.value, lacking.n, lacking.clusters) == (2.0, 2, 1)


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


def compared(one, other):
    return paired.compare(one, other, "value", "task", ["probe"])


def test_interval_p_and_power_are_of_one_test_by_hand():
    one, other = two(12, 0.1, per=6)
    gaps = (other["value"] - one["value"]).to_numpy().reshape(12, 6)
    mean, se = leave_one_out(gaps.tolist())
    free = int((gaps.sum(axis=1) != 0).sum()) - 1
    assert 7 <= free < 11
    half = sps.t.ppf(0.975, free) * se
    found = compared(one, other)
    assert (found.value, found.low, found.high) == pytest.approx((mean, mean - half, mean + half))
    assert found.p == pytest.approx(2 * sps.t.sf(abs(mean) / se, free))
    assert found.test == f"jackknife t({free})"
    assert (found.n, found.clusters) == (72, 12)
    power = sps.nct.sf(half / se, free, found.detectable / se)
    power += sps.nct.cdf(-half / se, free, found.detectable / se)
    assert power == pytest.approx(0.8)


def test_the_power_of_a_t_test_as_published():
    """Cohen's tables: pairs needed for half a standard deviation with 80 % power: 34, not 33."""
    assert paired.errors_needed(33) < 0.5 * 34**0.5
    assert paired.errors_needed(32) > 0.5 * 33**0.5


@given(st.integers(0, 10**6), st.integers(8, 30))
@settings(max_examples=40, deadline=None)
def test_an_interval_leaves_zero_out_where_p_is_below_5_percent(seed, clusters):
    found = compared(*two(clusters, 0.08, seed=seed, per=4))
    if not found.test:
        assert np.isnan([found.low, found.high, found.p, found.detectable]).all()
        assert found.note
        return
    assert (found.p < 0.05) == (found.low > 0 or found.high < 0)
    assert found.detectable > (found.high - found.low) / 2


def test_a_real_difference_is_seen():
    found = compared(*two(40, 0.2))
    assert found.low > 0
    assert found.p < 1e-4


def test_where_few_clusters_differ_there_is_no_test():
    one, _ = two(40, 0.2)
    same = compared(one, one)
    assert (same.value, same.test) == (0, "")
    assert same.note == "the two differ in 0 of 40 clusters, fewer than 8: no test"
    some = one.assign(value=one["value"].where(one.index >= 7 * 20, 1.0))
    found = compared(one, some)
    assert not np.isnan(found.value)
    assert np.isnan([found.p, found.low, found.high, found.detectable]).all()
    assert "in 7 of 40" in found.note
    few = compared(*two(5, 0.4))
    assert few.note == "5 clusters, fewer than 8: no interval"
    whole = compared(one.assign(value=0.0), one.assign(value=1.0))
    assert (whole.value, whole.test) == (1, "")
    assert whole.note == "they differ by the same in every cluster: no test"


def test_only_shared_probes_count():
    one, other = two(40, 0.2)
    found = compared(one, other.iloc[:200])
    assert (found.n, found.clusters) == (200, 10)
    nothing = compared(one, other.assign(probe="?").iloc[:1])
    assert nothing.n == 0
    assert "no shared probe" in nothing.note


def test_a_repeated_probe_is_refused():
    one, other = two(3, 0.0)
    with pytest.raises(pd.errors.MergeError):
        compared(pd.concat([one, one]), other)
