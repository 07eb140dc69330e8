"""Clocks of the sessions: what is shown is read back, across midnight, days and sessions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_lib.streammind.timeline import Place, Timeline

DAY_S = 86_400


def timeline(*sessions: tuple[float, float | None], end_s: float) -> Timeline:
    """Of sessions given by their place in the stream and their clock."""
    places = (Place(f"S{i}", i, at, wall) for i, (at, wall) in enumerate(sessions))
    return Timeline(tuple(places), end_s)


def test_a_time_of_day_after_midnight_is_the_next_days() -> None:
    """A session of an hour from 23:50 on."""
    night = timeline((0.0, 85_800.0), end_s=3600.0)
    assert night.read("00:10:00") == 1200.0
    assert night.read("23:50:00") == 0.0
    assert night.read("00:49:59") == 3599.0
    assert Timeline(night.places).read("00:10:00") == 1200.0
    assert night.read("DAY2 00:10:00") == 1200.0


def test_a_time_of_day_is_taken_in_the_latest_session_that_contains_it() -> None:
    days = timeline((0.0, 8 * 3600.0), (3601.0, DAY_S + 10 * 3600.0), end_s=5000.0)
    assert days.read("08:30:00") == 1800.0  # the second one begins at ten
    assert days.read("10:10:00") == 3601.0 + 600.0
    assert days.read("09:30:00") == 3601.0  # between them: where the later one starts
    assert days.read("11:00:00") == 3601.0 + 3600.0  # after now
    assert days.read("07:00:00") == 3601.0
    twice = timeline((0.0, 8 * 3600.0), (3601.0, DAY_S + 8 * 3600.0), end_s=7000.0)
    assert twice.read("08:30:00") == 3601.0 + 1800.0
    nights = timeline((0.0, 300.0), (1801.0, 85_800.0), end_s=5400.0)
    assert nights.read("00:10:00") == 1801.0 + 1200.0


@pytest.mark.parametrize("t_s", [0.0, 59.0, 3600.0, 86_399.0, 86_400.0, 90_000.0, 400_000.0])
def test_without_a_clock_hours_go_on_after_a_day(t_s: float) -> None:
    plain = timeline((0.0, None), end_s=500_000.0)
    assert plain.read(plain.label(t_s)) == t_s
    assert Timeline().read(Timeline().label(t_s)) == t_s
    assert plain.label(90_000.0) == "25:00:00"
    assert plain.read("DAY2 01:00:00") == 90_000.0


LENGTHS = st.integers(1, 3 * DAY_S)
GAPS = st.one_of(st.none(), st.floats(0, 5 * DAY_S))


@given(st.lists(st.tuples(LENGTHS, GAPS), min_size=1, max_size=5), st.floats(0, 1))
def test_every_label_is_read_back(sessions: list, share: float) -> None:
    """Sessions without a clock (None) among those with one; times within a second."""
    given_, at, wall = [], 0.0, 0.0
    for length, gap in sessions:
        wall += gap or 0.0
        given_.append((at, None if gap is None else wall))
        at += length + 1
        wall += length
    time = timeline(*given_, end_s=at - 1)
    t_s = share * (at - 1)
    assert abs(time.read(time.label(t_s)) - t_s) <= 1.0
