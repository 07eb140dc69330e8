"""AURA: seconds as turns, silence, and what a question and a watch look like."""

from __future__ import annotations

import pytest
from live import SIZE, Spy, ask, begun, clips, line, show, times, turns

from bench_lib.exchange import Note
from bench_lib.messages.chat import Frames
from bench_lib.methods.aura import SILENT, said
from bench_lib.replies.parse import parse
from bench_lib.video.stream import Clip


def aura(answer="fine", **args):
    return begun("aura", Spy(answer), **args)


def test_a_question_comes_with_the_last_of_thirty_seconds():
    method = aura()
    show(method, clips(0, 100, said=(line(2.0, "hello"), line(99.0, "bye"))))
    note = Note(0, 50.0, "asked before", 36_050.0)
    ask(method, 100.0, notes=(note,), system="Answer.")
    messages, contract, _ = method.served.asked[-1]
    system, *dialogue, last = turns(messages)
    assert system[0] == "system"
    assert system[1].endswith("\n\nAnswer.")
    assert dialogue[0::2] == [("user", [t - 0.5, t]) for t in range(71, 100)]
    assert dialogue[1::2] == [("assistant", SILENT)] * 29
    assert last == (
        "user",
        [99.5, 100.0],
        "[10:00:02] Speech: hello\n[10:01:39] Speech: bye\n[DAY1 10:00:50] asked before\n"
        "[now 10:01:40]\nWhat now?",
    )
    assert len(times(messages)) == 60
    assert contract.name == "free"


def test_seconds_are_counted_back_from_the_question():
    method = aura(clips=3, window_s=3.0)
    show(method, clips(0, 9))
    method.observe(Clip(0, clips(9.5, 9.5)[0].frames))
    ask(method, 9.7)
    shown = [turn[1] for turn in turns(method.served.asked[-1][0]) if turn[0] == "user"]
    assert shown == [[7.0, 7.5], [8.0, 8.5], [9.0, 9.5]]


def test_a_watch_is_a_text_turn_before_the_seconds_and_the_last_has_no_question():
    method = aura(SILENT)
    show(method, clips(0, 40, said=(line(1.0, "hello"),)))
    told = method.watch(Note(0, 40.0, "Tell me when it rains."), "w")
    show(method, clips(40.5, 41, said=(line(40.8, "rain"),)))
    [(messages, contract, generation)] = method.served.asked
    _, wish, agreed, *dialogue, last = turns(messages)
    assert wish == ("user", "Tell me when it rains.")
    assert agreed == ("assistant", told)
    assert [turn[1] for turn in dialogue[::2]] == [[t - 0.5, t] for t in range(12, 41)]
    words = "[10:00:01] Speech: hello\n[10:00:40] Speech: rain"
    assert last == ("user", [40.5, 41.0], words)
    assert contract.name == "aura"
    assert (generation.temperature, generation.max_new_tokens) == (0.0, 1024)


def test_a_clip_is_a_video_and_a_lone_frame_a_picture():
    method = aura()
    show(method, clips(0, 2))
    ask(method, 2.0)
    parts = [p for m in method.served.asked[-1][0] for p in m.parts if isinstance(p, Frames)]
    assert [(p.video, len(p.frames), p.size) for p in parts] == [
        (False, 1, SIZE),
        (True, 2, SIZE),
        (True, 2, SIZE),
    ]


@pytest.mark.parametrize("reply", ["", "  \n", SILENT, f" {SILENT}\n", f"Well {SILENT}"])
def test_the_marker_and_an_empty_text_are_silence(reply):
    assert said(reply) == ""
    method = aura(reply)
    method.watch(Note(0, 0.0, "Tell me."), "w")
    show(method, clips(0, 3))
    assert method.alerts(9.0) == ()
    assert parse("free", ask(method, 3.0).text, "", "end").status == "unparsed"


def test_what_is_not_silence_is_said():
    method = aura(" It rains. ")
    method.watch(Note(0, 0.2, "Tell me."), "w")
    show(method, clips(0.5, 2))
    assert [(a.text, a.observed_s) for a in method.alerts(9.0)] == [
        ("It rains.", 1.0),
        ("It rains.", 2.0),
    ]


def test_nothing_seen_is_still_a_question():
    method = aura()
    ask(method, 0.0)
    assert [turn[0] for turn in turns(method.served.asked[-1][0])] == ["system", "user"]
