"""A small cut of `bench_intervals.py`: intervals and tests hold what they say, in simulation."""

from __future__ import annotations

import bench_intervals as bench
import numpy as np
import pytest

from bench_lib.score import intervals, stats
from bench_lib.score.cells import Cells, macro


@pytest.mark.parametrize(
    ("rate", "clusters", "even", "icc"),
    [
        (0.01, 104, True, 0.0),
        (0.01, 243, False, 0.2),
        (0.03, 30, False, 0.0),
        (0.03, 104, False, 0.2),
        (0.1, 12, True, 0.0),
        (0.5, 8, False, 0.2),
        (0.9, 30, False, 0.2),
        (0.97, 30, True, 0.2),
        (0.97, 76, False, 0.2),
    ],
)
def test_rates_are_covered(rate, clusters, even, icc):
    found = bench.of_rates(np.random.default_rng(1), 2000, (rate,), clusters, even, icc)
    assert found.shown > 20
    assert 93.5 <= found.covered <= 99.6


@pytest.mark.parametrize("cells", [(0.97, 0.5), (0.97, 0.97), (0.5, 0.6, 0.7, 0.8, 0.9)])
def test_means_of_rates_are_covered(cells):
    found = bench.of_rates(np.random.default_rng(2), 2000, cells, 30, False, 0.2)
    assert found.shown > 80
    assert 93.5 <= found.covered <= 98.5


def test_a_plain_interval_does_not_cover_a_rare_outcome():
    """The control: what is wrong near the ends is seen."""
    rng = np.random.default_rng(3)
    number = bench.counts(rng, 2000, 30, False)
    wins = rng.binomial(number.astype(int), bench.rates(rng, number.shape, 0.03, 0.2))
    value, se = intervals.jackknife(wins[..., None] * 1.0, number[..., None], macro)
    half = intervals.t_quantile(29) * se
    assert np.mean(np.abs(value - 0.03) <= half) < 0.85
    naive = np.sqrt(value * (1 - value) / number.sum(axis=1))
    assert np.mean(np.abs(value - 0.03) <= 1.96 * naive) < 0.6


@pytest.mark.parametrize(("q", "clusters"), [(0.5, 12), (0.95, 12), (0.95, 30)])
def test_quantiles_are_covered(q, clusters):
    found = bench.of_quantiles(np.random.default_rng(4), 150, q, clusters, False, 0.2)
    assert found.shown > 99
    assert found.covered >= 90


@pytest.mark.parametrize("clusters", [12, 30])
def test_differences_are_covered_and_found_as_promised(clusters):
    found = bench.of_differences(np.random.default_rng(5), 400, 0.3, clusters, False, 0.2)
    assert found.shown > 80
    assert found.false_alarms <= 7.5
    assert 92 <= found.covered <= 98
    assert 75 <= found.power <= 87


def test_many_data_sets_at_once_give_what_one_gives():
    rng = np.random.default_rng(6)
    number = rng.integers(1, 9, (5, 11, 2)).astype(float)
    wins = rng.binomial(number.astype(int), 0.7).astype(float)
    limits = intervals.of_share(wins, number, None, macro)
    for at in range(5):
        names = tuple(map(str, range(11)))
        one = stats.estimate(Cells(("a", "b"), names, wins[at], number[at]), bounds=(0, 1))
        assert (one.low, one.high, one.se) == pytest.approx(
            (limits.low[at], limits.high[at], limits.se[at])
        )
