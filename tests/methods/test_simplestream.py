"""The newest frames, and nothing of before."""

from __future__ import annotations

import pytest
from by_hand import asked, chat, clip, frames_of, info, respond, script, session

from bench_lib import methods
from bench_lib.errors import BenchError
from bench_lib.exchange import Note


def simplestream(**args):
    method = methods.load("simplestream", **args).attach(chat())
    method.reset("t", 42)
    return method


@pytest.mark.parametrize("newest", [1, 2, 4, 8])
def test_the_newest_frames_go_as_separate_images(newest):
    method = simplestream(recent_frames=newest)
    session(method, 0, 21, end=False)
    messages = respond(method, asked(0, 20.0))
    assert frames_of(messages) == [(0, t) for t in range(21 - newest, 21)]
    assert not [line for line in script(messages) if line.startswith("<<")]


def test_a_session_that_is_over_leaves_nothing():
    method = simplestream()
    session(method, 0, 21)
    assert method.state_bytes() == {}
    method.begin_session(info(1))
    assert frames_of(respond(method, asked(1, 0.0, closed=False))) == []
    method.observe(clip(1, 0, 2))
    assert frames_of(respond(method, asked(1, 1.0))) == [(1, 0), (1, 1)]


def test_its_state_has_a_ceiling():
    method = simplestream()
    sizes = set()
    method.begin_session(info(0))
    for start in range(0, 200, 8):
        method.observe(clip(0, start, start + 8))
        sizes.add(method.state_bytes()["frames"])
    assert sizes == {4 * 8 * 12 * 3}


def test_words_from_before_the_window_stand_before_it():
    method = simplestream()
    session(method, 0, 21, end=False)
    lines = script(respond(method, asked(0, 20.0, Note(0, 3.0, "Remind me."))))
    assert lines[:4] == [
        "Session S001, from DAY1 10:00:00:",
        "[10:00:03] Remind me.",
        "10:00:17:",
        "<0:17>",
    ]


def test_no_frame_at_all_is_no_window():
    with pytest.raises(BenchError, match="recent_frames"):
        simplestream(recent_frames=0)
