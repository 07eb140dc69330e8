"""All recordings, thinned: what is shown, what is counted, what a branch sees."""

from __future__ import annotations

import io
import math
from itertools import pairwise

import pytest
from by_hand import SIZE, asked, chat, clip, frame, frames_of, info, respond, script, session
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from bench_lib import methods
from bench_lib.errors import BenchError
from bench_lib.exchange import Generation
from bench_lib.video.stream import Clip, StoredFrame


def raw_video(**args):
    method = methods.load("raw_video", **args).attach(chat())
    method.reset("t", 42)
    return method


def test_frames_are_spread_evenly_over_all_sessions_joined():
    method = raw_video(max_frames=12)
    session(method, 0, 30)
    session(method, 1, 60)
    session(method, 2, 30, end=False)
    shown = frames_of(respond(method, asked(2, 29.0)))
    assert [sum(s == i for s, _ in shown) for i in range(3)] == [3, 6, 3]
    assert (shown[0], shown[-1]) == ((0, 0), (2, 29))
    joined = [(0, 30, 90)[s] + t for s, t in shown]
    assert {b - a for a, b in pairwise(joined)} <= {10, 11}


def test_what_fits_is_shown_whole():
    method = raw_video(max_frames=128)
    session(method, 0, 100)
    session(method, 1, 28, end=False)
    shown = frames_of(respond(method, asked(1, 27.0)))
    assert shown == [(0, t) for t in range(100)] + [(1, t) for t in range(28)]


def test_a_branch_sees_what_was_shown_before_it_and_nothing_later():
    method = raw_video()
    session(method, 0, 10)
    method.begin_session(info(1))
    method.observe(clip(1, 0, 8))
    branch = method.branch()
    whole = clip(1, 8, 16)
    branch.observe(whole.until(11.0, closed=False))
    method.observe(whole)  # the stream goes on
    later = method.branch()
    branch.respond(asked(1, 11.0, closed=False), Generation())
    later.respond(asked(1, 15.0), Generation())
    sent, sent_later = (frames_of(list(m)) for m, _, _ in method.served.asked)
    assert sent == [(0, t) for t in range(10)] + [(1, t) for t in range(11)]
    assert sent_later[-1] == (1, 15)  # the control: a later branch does see them
    assert len(method.state.current.frames) == 16


def test_a_changed_past_changes_what_is_sent_and_a_changed_future_does_not():
    def sent(past: int, future: int):
        method = raw_video()
        method.begin_session(info(0))
        frames = (frame(past, 0.0), *(frame(0, float(t)) for t in range(1, 8)))
        method.observe(Clip(0, frames))
        branch = method.branch()
        method.observe(Clip(0, (frame(future, 8.0),)))
        return frames_of(respond(branch, asked(0, 7.0)))

    assert sent(0, 0) == sent(0, 99)
    assert sent(0, 0) != sent(99, 0)


def test_storage_is_that_of_the_recorded_videos_of_completed_sessions():
    method = raw_video()
    session(method, 0, 10, bytes_=5_000_000)
    session(method, 1, 20, bytes_=7_000_000)
    method.begin_session(info(2))
    assert method.state_bytes() == {"frames": 12_000_000, "index": 24 * 30}
    method.observe(clip(2, 0, 8))
    assert method.state_bytes()["frames"] == 12_000_000  # the current session is not counted


@settings(deadline=None)
@given(
    before=st.integers(0, 200), now=st.integers(0, 100), limit=st.integers(1, 64), data=st.data()
)
def test_the_limit_holds_and_the_newest_frame_is_always_shown(before, now, limit, data):
    reserve = data.draw(st.integers(0, limit))
    for args in ({"grid": "uniform", "reserve": reserve}, {"grid": "fixed"}):
        chosen = raw_video(max_frames=limit, **args).choose(before, now)
        assert len(chosen) <= limit
        assert list(chosen) == sorted(set(chosen))
        if before + now:
            assert chosen[-1] == before + now - 1
        if args["grid"] == "uniform":
            assert sum(i >= before for i in chosen) >= min(now, reserve)
            assert len(chosen) == min(limit, before + now)


def test_a_reserve_takes_frames_from_the_past_only_when_the_share_is_smaller():
    plain, reserved = raw_video(max_frames=10), raw_video(max_frames=10, reserve=4)
    assert sum(i >= 95 for i in plain.choose(95, 5)) == 1
    assert [i for i in reserved.choose(95, 5) if i >= 95] == [95, 96, 98, 99]
    assert plain.choose(20, 80) == reserved.choose(20, 80)


@pytest.mark.parametrize("limit", [2, 3, 16, 64])
def test_on_a_fixed_grid_growing_videos_seldom_change_what_was_shown(limit):
    def changes(grid):
        method = raw_video(max_frames=limit, grid=grid)
        shown = [list(method.choose(0, total)[:-1]) for total in range(1, 601)]
        return sum(after[: len(before)] != before for before, after in pairwise(shown))

    assert changes("fixed") <= 1 + math.ceil(math.log2(600 / (limit - 1)))
    assert changes("uniform") >= (250 if limit > 2 else 0)  # the control


def test_on_a_fixed_grid_the_request_begins_as_the_one_before():
    method = raw_video(max_frames=64, grid="fixed", part_frames=8)
    session(method, 0, 32, end=False)
    earlier = script(respond(method, asked(0, 31.0)))
    method.observe(clip(0, 32, 40))
    later = script(respond(method, asked(0, 39.0)))
    assert later[: len(earlier) - 1] == earlier[:-1]


def stored(folder, t_s: float, shade: int) -> StoredFrame:
    buffer = io.BytesIO()
    Image.new("RGB", (SIZE[1], SIZE[0]), (0, shade, 0)).save(buffer, "PNG")
    path = folder / "frames"
    offset = path.stat().st_size if path.exists() else 0
    with path.open("ab") as file:
        file.write(buffer.getvalue())
    return StoredFrame(t_s, str(path), offset, len(buffer.getvalue()))


def test_handles_survive_saving_and_the_answer_stays_the_same(tmp_path):
    method = raw_video(max_frames=5)
    session(method, 0, 4)
    method.begin_session(info(1))
    method.observe(Clip(1, tuple(stored(tmp_path, 0.1 * t, t) for t in range(9))))
    method.end_session(10)
    method.save(tmp_path / "state")
    loaded = methods.load("raw_video", max_frames=5).attach(chat())
    loaded.load(tmp_path / "state")
    # The pictures come along: the frame store may drop its file.
    before, after = method.state.past[1], loaded.state.past[1]
    assert [f.t_s for f in after.frames] == [f.t_s for f in before.frames]
    for ours, theirs in zip(before.frames, after.frames, strict=True):
        assert (ours.pixels() == theirs.pixels()).all()
    (tmp_path / "frames").rename(tmp_path / "moved")
    assert after.frames[0].pixels().shape == (*SIZE, 3)
    (tmp_path / "moved").rename(tmp_path / "frames")
    assert loaded.state_bytes()["frames"] == method.state_bytes()["frames"]
    for twin in (method, loaded):
        session(twin, 2, 3, end=False)
    sent = [respond(twin, asked(2, 2.0)) for twin in (method, loaded)]
    assert script(sent[0]) == script(sent[1])
    assert len(frames_of(sent[1])) == 5


def test_another_setting_does_not_load_the_state(tmp_path):
    method = raw_video(max_frames=5)
    session(method, 0, 4)
    method.save(tmp_path)
    with pytest.raises(BenchError, match="was saved by"):
        raw_video(max_frames=6).load(tmp_path)


@pytest.mark.parametrize(
    "args", [{"grid": "log"}, {"max_frames": 0}, {"max_frames": 8, "reserve": 9}]
)
def test_impossible_settings_are_refused(args):
    with pytest.raises(BenchError, match="raw_video"):
        raw_video(**args)


def test_a_session_whose_video_never_opened_is_passed_over():
    method = raw_video()
    session(method, 0, 4)
    method.end_session(10)
    assert len(method.state.past) == 1
