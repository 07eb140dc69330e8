"""VST: how a prefix is cut, what each thought and each question sees, what a session leaves."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from by_hand import asked, chat, clip, frames_of, info, respond, script, session
from hypothesis import given, settings
from hypothesis import strategies as st
from live import Spy, ask, begun, clips, line, show, turns

from bench_lib import methods
from bench_lib.chat.cache import CachedChat
from bench_lib.chat.recorded import ScriptedChat
from bench_lib.errors import BenchError
from bench_lib.exchange import Generation, Note
from bench_lib.measure import counting
from bench_lib.messages.chat import ChatReply, Frames, Message, TransportError
from bench_lib.methods.vst import FACTOR, Vst, cut, fitted, segments
from bench_lib.video.stream import ArrayFrame, Clip, SessionInfo

RELEASE = json.loads((Path(__file__).parent / "releases" / "vst.json").read_text())
SMALL = {"fps": 1.0, "segments": [1, 2, 3, 3]}


def vst(*replies: str | ChatReply, **args) -> Vst:
    method = methods.load("vst", **{**SMALL, **args}).attach(chat(*replies))
    method.reset("t", 7)
    return method


def sent(method: Vst) -> list[list[str]]:
    """The user turns of all requests so far, line by line."""
    return [script(list(messages)) for messages, _, _ in method.served.asked]


class Numbered:
    """A model that takes any size and is asked for none: only how frames are cut is looked at."""

    def frame_size(self, native, max_pixels):
        return (max_pixels, 1)


@pytest.mark.parametrize("case", RELEASE["cases"], ids=lambda c: f"{c['seconds']}s-{c['segments']}")
@pytest.mark.parametrize("parity", [False, True])
def test_a_prefix_is_cut_as_the_release_cuts_it(case: dict, parity: bool) -> None:
    method = Vst(
        max_frames=case["max_frames"],
        segments=case["segments"],
        segment_tokens=case["tokens"],
        parity=parity,
    ).attach(Numbered())
    method.reset("t", 7)
    method.begin_session(SessionInfo("S001", 0, None, (8, 8)))
    total = round(case["seconds"] * method.fps)
    frames = tuple(ArrayFrame(k / method.fps, None) for k in range(total))  # type: ignore[arg-type]
    method.observe(Clip(0, frames))
    stretches = method._stretches(method.state.current)
    read = [frames[i] for i in _read(total, case["max_frames"])]
    assert [[read.index(f) for f in s.frames] for s in stretches] == case["stretches"]
    assert {s.size for s in stretches} == {(case["max_pixels"], 1)}
    labels = [f"Time={s.start_s:.1f}-{s.end_s:.1f}s" for s in stretches]
    last = total / method.fps
    assert (labels == case["labels"]) == (parity or not case["thinned"])
    if not parity:
        assert stretches[-1].end_s == pytest.approx(last, abs=0.51)


def _read(total: int, limit: int) -> list[int]:
    """The frames that the release's reader takes, by its own rule."""
    if total <= limit:
        return list(range(total))
    return [round(i * (total - 1) / (limit - 1)) for i in range(limit)]


@pytest.mark.parametrize(
    ("duration_s", "number"),
    [(0, 1), (30, 1), (30.01, 2), (239.9, 2), (240, 3), (1799.9, 3), (1800, 4), (9999, 4)],
)
def test_how_many_stretches_changes_at_half_a_minute_four_and_thirty(duration_s, number):
    assert segments(duration_s, [1, 2, 3, 4]) == number


@settings(deadline=None)
@given(st.integers(1, 2000), st.integers(1, 9))
def test_stretches_share_all_frames_in_order(frames, length):
    runs = cut(frames, length)
    assert len(runs) == length
    covered = [i for begin, end in runs for i in range(begin, end)]
    assert covered == list(range(frames))


@settings(deadline=None)
@given(st.integers(1, 2000), st.integers(64, 40_000))
def test_no_more_pixels_than_the_budget_and_no_frame_below_the_minimum(frames, tokens):
    least, most = 256 * FACTOR**2, 768 * FACTOR**2
    chosen, pixels = fitted(frames, tokens, least, most)
    assert chosen == sorted(set(chosen))
    assert chosen[0] == 0
    assert least <= pixels <= most
    area = tokens * FACTOR**2 * 2
    assert pixels * len(chosen) <= max(area, least) * 1.05
    if area / frames >= least:
        assert len(chosen) == frames
    elif len(chosen) > 1:
        assert chosen[-1] == frames - 1


def test_a_question_thinks_about_all_stretches_but_the_last():
    method = vst("The cup is red.")
    session(method, 0, 40, end=False)
    assert method.served.asked == []
    messages = respond_last(method)
    assert sent(method)[0] == [
        "Session S001, from DAY1 10:00:00:",
        "Time=0.0-20.0s",
        "<<0:0-19>>",
    ]
    assert script(messages) == [
        "You are watching a video as it comes. Your own notes on the stretches that have passed, "
        "in order:",
        "",
        "Session S001, from DAY1 10:00:00:",
        "Time=0.0-20.0s The cup is red.",
        "Session S001, from DAY1 10:00:00:",
        "Time=20.0-40.0s",
        "<<0:20-39>>",
        "Time=39.0s What now?",
    ]
    assert messages[0].parts[0].text == "You see."
    _, contract, generation = method.served.asked[0]
    assert (contract.name, generation.max_new_tokens, generation.seed) == ("thought", 5000, 7)
    assert method.state.events == ()


def respond_last(method: Vst, index: int = 0, t_s: float = 39.0, *notes: Note) -> list[Message]:
    method.branch().respond(asked(index, t_s, *notes), Generation())
    return list(method.served.asked[-1][0])


def test_a_session_leaves_a_thought_on_each_stretch_and_no_frame():
    method = vst("One.", "Two.", "Three.")
    session(method, 0, 40)
    session(method, 1, 10)
    assert [e.text for e in method.state.events] == ["One.", "Two.", "Three."]
    assert method.state.current is None
    assert method.state_bytes() == {"text": len("One.Two.Three.")}
    lines = sent(method)[2]
    assert lines[2:5] == ["Session S001, from DAY1 10:00:00:", "Time=0.0-20.0s One.",
                          "Time=20.0-40.0s Two."]  # fmt: skip
    session(method, 2, 3, end=False)
    lines = script(respond_last(method, 2, 2.0, Note(1, 4.0, "Remind me.", 39_604.0)))
    assert lines[2:] == [
        "Session S001, from DAY1 10:00:00:",
        "Time=0.0-20.0s One.",
        "Time=20.0-40.0s Two.",
        "Session S002, from DAY1 11:00:00:",
        "Time=0.0-10.0s Three.",
        "Session S003, from DAY1 12:00:00:",
        "Time=0.0-3.0s",
        "<<2:0-2>>",
        "[DAY1 11:00:04] Remind me.",
        "Time=2.0s What now?",
    ]


def test_thoughts_of_a_question_are_not_kept_and_asking_again_says_the_same():
    method = vst()
    session(method, 0, 40, end=False)
    before = method.state
    first, second = respond_last(method), respond_last(method)
    assert script(first) == script(second)
    assert method.state is before


def test_with_stretches_of_fixed_length_the_memory_grows_with_the_stream():
    method = vst("One.", "Two.", "Three.", segment_seconds=10.0)
    session(method, 0, 25, end=False)
    assert [(e.start_s, e.end_s, e.text) for e in method.state.events] == [
        (0.0, 10.0, "One."),
        (10.0, 20.0, "Two."),
    ]
    assert [f.t_s for f in method.state.current.frames] == [20, 21, 22, 23, 24]
    with counting() as counts:
        lines = script(respond(method, asked(0, 24.0)))
    assert counts["model_calls"] == 1
    assert lines[-3:] == ["Time=20.0-25.0s", "<<0:20-24>>", "Time=24.0s What now?"]
    method.served = chat("Three.")
    method.end_session(0)
    assert [e.text for e in method.state.events] == ["One.", "Two.", "Three."]
    assert (method.input_class, vst().input_class) == ("incremental", "thinned")


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.sampled_from([3.0, 5.0, 7.5]))
def test_the_incremental_memory_does_not_depend_on_clips(sizes, seconds):
    total = sum(sizes)
    cut_up, whole = (vst(segment_seconds=seconds) for _ in range(2))
    for method, steps in ((cut_up, sizes), (whole, [total])):
        method.begin_session(info(0))
        start = 0
        for step in steps:
            method.observe(clip(0, start, start + step))
            start += step
        method.end_session(0)
    assert sent(cut_up) == sent(whole)
    shown = [f for messages, _, _ in whole.served.asked for f in frames_of(list(messages))]
    assert shown == [(0, t) for t in range(total)]


@pytest.mark.parametrize("kept", [1, 2])
def test_the_newest_thoughts_alone_are_kept(kept):
    method = vst("One.", "Two.", "Three.", keep_memory=kept)
    for index in range(3):
        session(method, index, 10)
    assert [e.text for e in method.state.events] == ["One.", "Two.", "Three."][-kept:]
    session(method, 3, 3, end=False)
    lines = "\n".join(script(respond_last(method, 3, 2.0)))
    assert ("Two." in lines) == (kept == 2)
    assert "One." not in lines


def test_with_keep_memory_a_question_counts_its_own_thoughts_too():
    method = vst("One.", "Two.", "Three.", keep_memory=1, segments=[3, 3, 3, 3])
    session(method, 0, 9, end=False)
    lines = "\n".join(script(respond_last(method, 0, 8.0)))
    assert "Two." in lines
    assert "One." not in lines


def test_memory_may_be_a_turn_of_its_own():
    method = vst("One.", memory_role="previous text")
    session(method, 0, 10)
    session(method, 1, 3, end=False)
    messages = respond_last(method, 1, 2.0)
    assert [m.role for m in messages] == ["system", "previous text", "user"]
    assert "One." in messages[1].parts[0].text


@pytest.mark.parametrize("replies", [("", " "), (ChatReply("no", stop="refused"),)])
def test_a_thought_that_fails_is_empty_and_counted(replies):
    method = vst(*replies)
    with counting() as counts:
        session(method, 0, 10)
    assert counts["empty_memories"] == 1
    assert method.state_bytes() == {"text": 0}


def test_a_model_that_cannot_be_reached_fails_and_no_answer_is_made_up():
    method = vst()
    method.served = ScriptedChat([TransportError("down")] * 2)
    session(method, 0, 40, end=False)
    with pytest.raises(TransportError):
        method.branch().respond(asked(0, 39.0), Generation())
    with pytest.raises(TransportError):
        method.end_session(0)
    assert method.state.events == ()


def test_a_broken_thought_is_asked_for_once_more():
    method = vst("", "A cup.")
    with counting() as counts:
        session(method, 0, 4)
    assert counts == {
        "frames_observed": 4, "stretches_thought": 1, "model_calls": 2, "frames_sent": 8,
        "empty_memories": 0,
    }  # fmt: skip
    assert method.state.events[0].text == "A cup."


def test_reasoning_is_part_of_a_thought():
    method = vst("<think>It is tea.</think>Tea.")
    session(method, 0, 4)
    assert method.state.events[0].text == "<think>It is tea.</think>Tea."


def test_replies_may_reason_as_long_as_published_and_longer_where_the_run_says():
    method = vst(answer_tokens=1000)
    session(method, 0, 4, end=False)
    for asked_for, given_ in ((64, 1000), (4000, 4000)):
        method.branch().respond(asked(0, 3.0), Generation(max_new_tokens=asked_for))
        assert method.served.asked[-1][2].max_new_tokens == given_


def test_a_kept_thought_still_costs_a_question_the_time_it_took(tmp_path):
    class Slow(ScriptedChat):
        def complete(self, messages, contract, generation):
            said = super().complete(messages, contract, generation)
            return ChatReply(said.text, said.value, first_token_at=3.0, done_at=4.0)

    def answer(model):
        method = methods.load("vst", **SMALL).attach(CachedChat(model, tmp_path))
        method.reset("t", 7)
        session(method, 0, 40, end=False)
        return method.branch().respond(asked(0, 39.0), Generation())

    answer(Slow(["Tea.", "fine"]))
    begun = time.perf_counter()
    kept = answer(ScriptedChat([]))
    assert kept.text == "fine"
    assert kept.ready_at - begun > 3.9  # four seconds of the thought came first
    assert kept.first_token_at - kept.ready_at == pytest.approx(3.0)


def test_frames_are_sent_within_the_budget_of_their_stretch():
    method = vst(segments=[1, 1, 1, 1], segment_tokens=2, min_pixels=1, max_pixels=40)
    session(method, 0, 20, end=False)
    messages = respond_last(method, 0, 19.0)
    sizes = {p.size for m in messages for p in m.parts if isinstance(p, Frames)}
    assert sizes == {method.served.frame_size((8, 12), 40)}
    assert len(frames_of(messages)) == 20


def test_saved_and_loaded_it_asks_the_same(tmp_path):
    method = vst("One.", "Two.")
    session(method, 0, 40)
    method.save(tmp_path)
    loaded = methods.load("vst", **SMALL).attach(chat())
    loaded.load(tmp_path)
    assert loaded.state == method.state
    for twin in (method, loaded):
        session(twin, 1, 3, end=False)
    assert script(respond_last(loaded, 1, 2.0)) == script(respond_last(method, 1, 2.0))
    other = methods.load("vst", segments=[1, 1, 1, 1]).attach(chat())
    with pytest.raises(BenchError, match="was saved by"):
        other.load(tmp_path)


def test_a_session_without_a_frame_costs_nothing_and_a_question_is_still_asked():
    method = vst()
    method.begin_session(info(0))
    assert script(respond_last(method, 0, 0.0)) == ["Time=0.0s What now?"]
    method.end_session(0)
    assert len(method.served.asked) == 1


@pytest.mark.parametrize(
    "args", [{"segments": [1, 2]}, {"segments": [0, 1, 1, 1]}, {"segment_seconds": -1.0},
             {"keep_memory": -1}],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(args):
    with pytest.raises(BenchError, match="vst"):
        methods.load("vst", **args)


@pytest.mark.parametrize("how", [{}, {"segment_seconds": 4.0}])
@pytest.mark.parametrize("speech", ["captions", "none"])
def test_captions_come_with_the_question_where_they_are_taken(how, speech):
    method = begun("vst", Spy("fine"), speech=speech, **how)
    show(method, clips(0, 8, said=(line(1.5, "hello"), line(6.0, "later"))))
    ask(method, 8.0)
    *said, time_and_question = turns(method.served.asked[-1][0])[-1][-1].split("\n")
    spoken = ["[DAY1 10:00:01] Speech: hello", "[DAY1 10:00:06] Speech: later"]
    assert [text for text in said if "Speech" in text] == (spoken if speech != "none" else [])
    assert time_and_question == "Time=8.0s What now?"
