"""Offline models: the thinned prefix, what is said, and Eq. 15 of StreamArena."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live import Spy, ask, begun, clips, line, show, times, turns

from bench_lib.memories.parts import speech
from bench_lib.messages.chat import Frames, Sound
from bench_lib.video.stream import Clip


def offline(**args):
    return begun("offline_mllm", Spy("fine"), **args)


@settings(max_examples=25, deadline=None)
@given(st.floats(0.5, 400))
def test_frames_are_as_many_as_seconds_and_at_most_128(t_s):
    method = offline()
    show(method, clips(0, math.floor(t_s), fps=1.0, step=8))
    ask(method, t_s)
    shown = times(method.served.asked[-1][0])
    most = min(128, math.floor(t_s) + 1)
    assert len(shown) == most
    assert abs(most - min(128, math.ceil(t_s))) <= (t_s == math.floor(t_s))
    assert (shown[0], shown[-1]) == (0.0, math.floor(t_s))
    gaps = np.diff(shown)
    assert len(gaps) == 0 or gaps.max() - gaps.min() <= 1


def test_captions_stand_at_their_times_between_the_images():
    method = offline(max_frames=2)
    show(method, clips(0, 4, fps=1.0, said=(line(1.5, "hello"), line(4.0, "bye"))))
    ask(method, 4.0)
    [turn] = turns(method.served.asked[-1][0])
    assert turn[1:] == (
        "Session S001, from DAY1 10:00:00:\n10:00:00:",
        [0.0],
        "[10:00:01] Speech: hello\n[10:00:04] Speech: bye\n10:00:04:",
        [4.0],
        "What now?",
    )


def test_captions_stand_after_a_video():
    method = offline(as_video=True)
    show(method, clips(0, 4, fps=1.0, said=(line(1.5, "hello"),)))
    ask(method, 4.0)
    [(messages, _, _)] = method.served.asked
    assert [p.video for p in messages[0].parts if isinstance(p, Frames)] == [True]
    assert turns(messages)[0][-1] == "[10:00:01] Speech: hello\nWhat now?"


def test_the_sound_of_the_prefix_is_one_part():
    method = offline(speech="sound", max_frames=2)
    show(method, clips(0, 6, fps=1.0, sound=True))
    branch = method.branch()
    show(branch, [clips(7, 7, fps=1.0, sound=True)[0]])
    ask(branch, 7.0)
    sounds = [p for p in method.served.asked[-1][0][0].parts if isinstance(p, Sound)]
    assert [len(s.samples) for s in sounds] == [8 * 16_000]
    assert [round(float(s) * 1000) for s in sounds[0].samples[::16_000]] == list(range(8))


def test_nothing_that_is_said_is_shown_where_it_is_left_out():
    method = offline(speech="none")
    assert not method.wants_audio
    show(method, clips(0, 4, fps=1.0, said=(line(1.5, "hello"),), sound=True))
    ask(method, 4.0)
    assert "hello" not in str(turns(method.served.asked[-1][0]))


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 20)), max_size=4), st.integers(0, 30))
def test_sound_is_put_together_on_one_line_of_time(pieces, start):
    """Against a line of samples that is written piece by piece."""
    sixteenth = 1 / 16_000
    held = tuple(
        speech.Sounding(at * sixteenth, np.full(n, k + 1, np.int16))
        for k, (at, n) in enumerate(pieces)
    )
    line_of_time = np.zeros(100, np.int16)
    for k, (at, n) in enumerate(pieces):
        line_of_time[at : at + n] = k + 1
    found = speech.samples(held, start * sixteenth, (start + 25) * sixteenth)
    expected = line_of_time[start : start + 25]
    assert np.array_equal((found * speech.FULL).round().astype(np.int16), expected)


@pytest.mark.parametrize("samples", [np.array([0.5, -1.0, 3.0], np.float32)])
def test_sound_is_held_in_sixteen_bits(samples):
    [held] = speech.sound(Clip(0, (), (), samples, 1.0))
    assert held.samples.dtype == np.int16
    assert np.allclose(
        speech.samples((held,), 1.0, 1.0 + 3 / 16_000), [0.5, -1, 1], atol=1 / speech.FULL
    )
