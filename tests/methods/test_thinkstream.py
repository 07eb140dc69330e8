"""ThinkStream: chunks, the window of frames, thoughts, putting off, and the end of its context."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live import Spy, ask, begun, clips, line, show, texts, times, turns

from bench_lib.exchange import Note
from bench_lib.measure import counting
from bench_lib.methods.thinkstream import replayed, response
from bench_lib.video.stream import ArrayFrame

QUIET = "<think>nothing new</think><silent>"


def thinker(answer=QUIET, **args):
    return begun("thinkstream", Spy(answer), **args)


def answers(at_put_off=0, text="Blue."):
    """Says nothing until it was asked so often, then the text."""
    count = iter(range(10_000))

    def reply(messages, contract):
        if "_ask_" not in contract.name and "_now_" not in contract.name:
            return QUIET
        return QUIET if next(count) < at_put_off else f"<think>t</think><response>{text}"

    return reply


@given(st.integers(0, 9000), st.integers(1, 130))
def test_a_prefix_is_so_many_chunks_of_equal_length_and_two_frames(halves, most):
    frames = [ArrayFrame(k / 2, None) for k in range(halves + 1)]
    found = replayed(frames, most)
    length_s = max(1, math.ceil((frames[-1].t_s + 1e-6) / most))
    assert 1 <= len(found) <= most
    assert found[-1].frames[-1] is frames[-1]
    ends = [chunk.frames[-1].t_s for chunk in found]
    assert all(b - a == length_s for a, b in pairwise(ends[1:]))
    assert all(1 <= len(chunk.frames) <= 2 for chunk in found)
    assert all(len(chunk.frames) == 2 for chunk in found[1:])


def test_a_question_replays_the_prefix_chunk_by_chunk():
    method = thinker(answers(), chunks=30, speech="captions")
    show(method, clips(0, 100, said=(line(50.0, "hello"),)))
    with counting() as counts:
        reply = ask(method, 100.0)
    assert reply.text == "Blue."
    calls = method.served.asked
    assert counts["chunks_thought"] == len(calls) == 26  # of 4 s: ceil(100 / 30)
    assert [times(messages)[-1] for messages, _, _ in calls] == [4.0 * k for k in range(26)]
    assert max(len(times(messages)) for messages, _, _ in calls) == 40  # 20 chunks of two
    last = turns(calls[-1][0])
    assert last[-1][-1] == "[10:00:50] Speech: hello\n[now 10:01:40]\nWhat now?"
    assert texts(calls[-1][0]).count("<think>nothing new</think><silent>") == 25
    asked = [contract.name for _, contract, _ in calls]
    assert asked == ["thinkstream"] * 25 + ["thinkstream_ask_free"]


def test_it_samples_with_a_seed_for_each_chunk():
    method = thinker(answers())
    show(method, clips(0, 5))
    ask(method, 5.0)
    found = [g for _, _, g in method.served.asked]
    assert [g.seed for g in found] == [42 + k for k in range(6)]
    assert {(g.temperature, g.top_p, g.max_new_tokens) for g in found} == {(1.0, 0.95, 276)}
    other = thinker(answers(), temperature=0.0)
    show(other, clips(0, 2))
    ask(other, 2.0)
    assert {g.temperature for _, _, g in other.served.asked} == {0.0}


@pytest.mark.parametrize("times_put_off", [0, 1, 3, 9])
def test_an_answer_may_be_put_off_three_times_then_it_is_due(times_put_off):
    method = thinker(answers(times_put_off))
    show(method, clips(0, 2))
    with counting() as counts:
        reply = ask(method, 2.0)
    last, contract, _ = method.served.asked[-1]
    assert counts["answers_put_off"] == min(3, times_put_off)
    assert (contract.name == "thinkstream_now_free") == (times_put_off >= 3)
    assert reply.text == ("Blue." if times_put_off <= 3 else "")
    assert times(last) == [0.0, 0.5, 1.0, 1.5, 2.0]  # nothing after the question is seen


def test_without_the_grammar_the_last_reply_is_the_answer_as_it_is():
    method = thinker("The door is blue.")
    show(method, clips(0, 1))
    with counting() as counts:
        assert ask(method, 1.0).text == "The door is blue."
    assert counts["untagged_chunks"] == 4


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("<think>a</think><silent>", ""),
        ("<think>a</think><response>Yes.", "Yes."),
        ("<think>a</think><response> </response><response>No.</response>", "No."),
        ("<response>Yes.<think>b</think>", "Yes."),
        ("Yes.", ""),
        ("", ""),
    ],
)
def test_the_first_text_after_the_tag_is_what_is_said(reply, said):
    assert response(reply) == said


@pytest.mark.parametrize(
    ("thought", "kept"),
    [("one two three four", "one two three"), ("a cup", "a cup"), ("杯子在桌上", "杯子在")],
)
def test_thoughts_are_cut(thought, kept):
    method = thinker(f"<think>{thought}</think><silent>", think_tokens=3)
    show(method, clips(0, 2))
    ask(method, 2.0)
    assert f"<think>{kept}</think><silent>" in texts(method.served.asked[1][0])


def test_a_watch_begins_with_twenty_seconds_and_keeps_all_its_text():
    method = thinker(lambda m, c: f"<think>at {times(m)[-1]:.0f}</think><silent>")
    show(method, clips(0, 50))
    method.watch(Note(0, 50.0, "Tell me when it rains."), "w")
    show(method, clips(50.5, 90))
    calls = method.served.asked
    assert [times(m)[-1] for m, _, _ in calls] == [float(t) for t in range(51, 91)]
    assert times(calls[0][0])[0] == 31.5  # the newest 20 chunks, with this one
    assert {len(times(m)) for m, _, _ in calls} == {40}
    said = texts(calls[-1][0])
    assert all(f"<think>at {t}</think>" in said for t in range(51, 90))
    assert said.count("Tell me when it rains.") == 1
    held = [chunk for chunk in method.state.watches[0].memory if chunk.frames]
    assert len(held) == 20


def test_a_full_context_ends_a_question_and_a_watch_and_guesses_nothing():
    method = thinker(QUIET, context_tokens=6_000)
    show(method, clips(0, 10))
    assert ask(method, 10.0).text == ""
    method.watch(Note(0, 10.0, "Tell me."), "w")
    with counting() as counts:
        show(method, clips(10.5, 200))
    assert counts["step_limits"] == 1
    assert 0 < counts["chunks_thought"] < 190
    assert method.state.watches[0].over
    small = thinker(QUIET, context_tokens=500)
    show(small, clips(0, 10))
    with counting() as counts:
        reply = ask(small, 10.0)
    assert (reply.text, reply.stop) == ("", "step_limit")
    assert counts["step_limits"] == 1
