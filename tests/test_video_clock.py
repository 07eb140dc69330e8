"""The law of true times, on numbers alone: strays go back to their places, and only strays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_lib.video.decode.clock import Contradiction, Track, join, lowest_later, moved, settle

STEP = 0.04


def coded(times: list[float], ahead: int) -> list[float]:
    """Decoding order in which every `ahead + 1`st picture comes before those it follows."""
    out, at = times[:1], 1
    while at < len(times):
        to = min(at + ahead, len(times) - 1)
        out += [times[to], *times[at:to]]
        at = to + 1
    return out


def track(times: list[float], ahead: int = 0) -> Track:
    n = len(times)
    return Track(np.arange(n) * 100, np.array(times), np.full(n, STEP), reorders=ahead > 0)


def mended(times: list[float], ahead: int = 0) -> Track:
    one = track(times, ahead)
    settle(one)
    join([one])
    return one


steady = st.integers(120, 300).map(lambda n: [i * STEP for i in range(n)])
aheads = st.sampled_from([0, 1, 3, 7])


@settings(max_examples=150, deadline=None)
@given(steady, aheads, st.data())
def test_strays_go_back_to_their_places(
    times: list[float], ahead: int, data: st.DataObject
) -> None:
    right = coded(times, ahead)
    places = st.integers(20, len(right) - 21)
    first = data.draw(places)
    count = data.draw(st.integers(1, 6))
    by = data.draw(st.one_of(st.floats(20, 1e5), st.floats(-1e5, -20)))
    wrong = [t + by * (first <= i < first + count) for i, t in enumerate(right)]
    found = mended(wrong, ahead)
    assert found.strays == list(range(first, first + count))
    assert np.abs(found.times - right).max() < 1e-6
    assert not found.cuts


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(0.001, 40), min_size=2, max_size=120),
    st.integers(0, 120),
    st.floats(0, 80_000),
    aheads,
)
def test_what_only_goes_ahead_is_left_alone(
    steps: list[float], at: int, pause: float, ahead: int
) -> None:
    """Any rate, however uneven, with a pause of any length."""
    times = list(np.cumsum([0.0, *steps[:at], pause, *steps[at:], *[STEP] * 40]))
    right = coded(times, ahead)
    found = track(right, ahead)
    settle(found)
    few = found.depth + 1.0 / found.step
    if not all(min(i, len(right) - i) <= few for i in found.strays):
        assert not found.strays
    if not found.strays:  # or a few at one end, far away from a steady rest
        assert not join([found])
        assert np.array_equal(found.times, right)


@settings(max_examples=100, deadline=None)
@given(st.lists(steady, min_size=2, max_size=4), st.data(), aheads)
def test_recordings_that_were_joined_follow_each_other(
    parts: list[list[float]], data: st.DataObject, ahead: int
) -> None:
    end, raw, right = 0.0, [], []
    start = data.draw(st.floats(0, 1000))  # each begins no later than the one before
    for part in parts:
        raw += coded([start + t for t in part], ahead)
        right += coded([end + t for t in part], ahead)
        end += len(part) * STEP
        start = data.draw(st.floats(0, max(0.0, start)))
    found = mended(raw, ahead)
    assert np.abs(found.times - found.times[0] - right).max() < 1e-6


def test_sound_and_pictures_stay_together_over_a_join() -> None:
    """The sound of the second part begins 0.1 s before its pictures, as in the first."""
    pictures, sound = [i * STEP for i in range(250)], [i * 0.02 for i in range(505)]
    tracks = []
    for times, pos in ((pictures, 0), (sound, 1)):
        late = 0.1 if pos == 0 else 0.0
        both = np.array([*times, *times]) + late
        places = np.concatenate([np.array(times), np.array(times) + 20]) * 1000 + pos
        tracks.append(Track(places.astype(np.int64), both, np.full(len(both), np.diff(times)[0])))
    for one in tracks:
        settle(one)
    assert join(tracks) == [pytest.approx(10.0)]
    for one, first in zip(tracks, (250, 505), strict=True):
        assert one.times[first] - one.times[0] == pytest.approx(10.0)


def test_a_track_that_goes_on_has_no_part_in_anothers_join() -> None:
    pictures = track([i * STEP for i in range(200)] * 2)
    sound = track([i * 2 * STEP for i in range(200)])
    sound.pos *= 2
    for one in (pictures, sound):
        settle(one)
    join([pictures, sound])
    assert np.abs(pictures.times - [i * STEP for i in range(400)]).max() < 1e-6
    assert np.array_equal(sound.times, [i * 2 * STEP for i in range(200)])


def test_a_broken_stream_goes_on_where_it_stopped_and_a_pause_stays() -> None:
    raw = [i * STEP + 500 * (i >= 100) for i in range(200)]
    one, two = track(raw), track(raw)
    for each in (one, two):
        settle(each)
    assert join([one]) == []
    assert np.array_equal(one.times, raw)
    assert join([two], breaks=[100 * 100]) == [pytest.approx(100 * STEP)]
    assert np.abs(two.times - [i * STEP for i in range(200)]).max() < 1e-6


def test_few_at_the_end_are_strays_unless_the_sound_goes_on_to_them() -> None:
    raw = [*(i * STEP for i in range(200)), 900.0]
    one, two = track(raw), track(raw)
    settle(one)
    assert one.times[-1] == pytest.approx(200 * STEP)
    settle(two, reaches=905.0)
    assert two.times[-1] == 900.0


def test_clocks_that_alternate_are_refused() -> None:
    with pytest.raises(Contradiction, match="alternate"):
        mended([i * STEP + 1000 * (i % 2) for i in range(200)])


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=60))
def test_all_that_lies_before_a_decoding_time_is_known_by_then(times: list[int]) -> None:
    dts = lowest_later(np.array(times))
    for i, t in enumerate(dts):
        assert all(later >= t for later in times[i:])
        assert t in times[i:]


def test_a_negative_start_moves_everything() -> None:
    pictures, sound = track([-3 + i * STEP for i in range(100)]), track([-3.5, -3.4, 1.0])
    assert moved([pictures, sound]) == pytest.approx(3.5)
    assert (pictures.times[0], sound.times[0]) == pytest.approx((0.5, 0.0))
    # Sound that only begins a little early (what a decoder needs before it is right) moves nothing.
    assert moved([track([0.0, STEP]), track([-0.02, 0.0])]) == 0.0
