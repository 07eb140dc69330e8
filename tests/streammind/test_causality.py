"""The eight invariants: nothing of the future, by when it happened or by when it was recorded."""

from __future__ import annotations

import dataclasses
import json

import pytest
from by_contract import ByContract, agent, ask, begin, entries, feed, frame, monitor_for

from bench_lib import methods
from bench_lib.exchange import Generation, Note, Query
from bench_lib.schema import Caption
from bench_lib.streammind.bank import Bank
from bench_lib.streammind.frame_buffer import FrameGone
from bench_lib.streammind.log import Entry
from bench_lib.streammind.models import Path
from bench_lib.streammind.timeline import Timeline
from bench_lib.video.stream import Clip

DELEGATE = {"action": "delegate", "brief": {"goal": "g"}}


def recalls(*calls):
    """A router that recalls, then a recall worker that makes these calls."""

    def router(asked):
        first = "recall worker" not in asked.text
        return {"tasks": [{"kind": "recall", "instruction": "look"}]} if first else {"answer": "a"}

    def recall(asked):
        first = "Result 1" not in asked.text
        return {"calls": list(calls)} if first else {"report": "r"}

    return {"front": DELEGATE, "router": router, "recall": recall}


def everything(chat):
    """All text of all requests of a question."""
    return "\n".join(a.text for a in chat.asked)


# 1 and 5: frames, speech and memory of every prompt end at its own instant.
def test_no_prompt_holds_anything_later_than_its_instant():
    chat = ByContract(
        **recalls({"tool": "time_window", "start": 0}),
        memory_writer=lambda a: {
            "text": f"written at {a.now_s}",
            "key_frames": [{"id": a.ids[-1]}],
        },
        distil=lambda a: {"text": "kept: " + a.user},
    )
    method = begin(agent(chat, latency_s={"memory_writer": 3.0}))
    feed(method, 0, 30, {t: f"spoken by {t}" for t in (5.0, 13.5, 20.0)})
    at = method.branch()
    feed(method, 30, 60, {33.0: "spoken by 33.0"})
    feed(at, 30, 31)
    at.respond(Query("what?", 0, 30.5), Generation())
    asked = [a for a in chat.asked if a.worker in ("front", "router", "recall", "distil", "verify")]
    assert {a.worker for a in asked} == {"front", "router", "recall", "distil", "verify"}
    text = "\n".join(a.text for a in asked)
    assert "written at 24" in text  # recorded at 27
    assert "written at 28" not in text  # would be recorded at 31
    assert "spoken by 20.0" in text
    assert "33.0" not in text
    assert max(t for a in asked for t in a.frames) == 30.5
    for a in chat.asked:
        assert all(t <= a.now_s + 0.5 for t in a.frames if a.now_s is not None)


# 1, the other way round: a changed future changes no prompt, a changed past does.
@pytest.mark.parametrize(("changed_s", "same"), [(40.0, True), (20.0, False)])
def test_a_changed_future_changes_no_prompt(changed_s, same):
    def prompts(level):
        chat = ByContract(
            **recalls({"tool": "time_window", "start": 0}),
            memory_writer=lambda a: {"text": f"at {a.now_s}", "key_frames": [{"id": a.ids[-1]}]},
        )
        method = begin(agent(chat))
        feed(
            method,
            0,
            60,
            {changed_s + 1: f"said {level}"},
            draw=lambda t: frame(t, level if t >= changed_s else 0),
        )
        asked = len(chat.asked)
        bank = method.stream.bank_at(36.0)
        view = method.stream.branch()
        view.version = sum(e.known_at(36.0) for e in method.stream.entries())
        from bench_lib.streammind import conversation
        from bench_lib.streammind.front import Request
        from bench_lib.streammind.threads import portal

        view.clock.now_s = 36.0
        portal().call(conversation.ask, view, Request("q"), 36.0, Path("x"))
        jpegs = [
            f.jpeg
            for a in chat.asked[asked:]
            for m in a.messages
            for p in m.parts
            for f in getattr(p, "frames", ())
        ]
        return [a.text for a in chat.asked[asked:]], jpegs, list(bank.micros)

    assert (prompts(0) == prompts(90)) is same


# 2: a caption that straddles the instant is not there.
def test_a_caption_is_there_once_it_has_ended():
    chat = ByContract()
    method = begin(agent(chat))
    feed(method, 0, 8)
    tail = Clip(0, (frame(8.0),), (Caption(start_s=7.0, end_s=8.5, text="half said"),))
    branch = method.branch()
    branch.observe(tail)
    branch.respond(Query("q", 0, 8.0), Generation())
    assert "half said" not in chat.of("front")[-1].text
    later = method.branch()
    later.observe(tail)
    later.respond(Query("q", 0, 8.5), Generation())
    assert "half said" in chat.of("front")[-1].text


# 3: a summary written later is not there, even where its events had ended.
def test_a_summary_that_was_written_later_is_invisible():
    chat = ByContract(summary={"summary": "the whole story"})
    method = begin(agent(chat, micro_ticks=1, macro_micros=2, latency_s={"summary": 6.0}))
    feed(method, 0, 12.5)  # two events by 8, the summary is recorded at 14
    ask(method, "q", 12.0)
    assert "the whole story" not in chat.of("front")[-1].text
    feed(method, 12.5, 16)
    ask(method, "q", 15.5)
    assert "the whole story" in chat.of("front")[-1].text
    [macro] = entries(method, "macro")[:1]
    assert (macro.end_s, macro.recorded_s) == (8, 14)


# 4: names and attributes are as they were known.
def test_what_was_learned_later_is_not_known_before():
    def writer(asked):
        late = asked.now_s >= 12
        person = {"name": "the host", "type": "person", "attributes": {"coat": "red"}}
        if late:
            person |= {"aliases": ["Li Wei"], "attributes": {"coat": "blue"}}
        return {"text": "t", "entities": [person]}

    method = feed(begin(agent(ByContract(memory_writer=writer))), 0, 20)
    [before] = method.stream.bank_at(10.0).entities.values()
    [after] = method.stream.bank_at(19.5).entities.values()
    assert (before.names, before.now) == (["the host"], {"coat": "red"})
    assert (after.names, after.now) == (["the host", "Li Wei"], {"coat": "blue"})
    assert after.attributes == [("coat", "red", 0.0), ("coat", "blue", 8.0)]


def test_an_entry_counts_from_its_recording_and_its_end():
    entry = Entry("fact", 1, 5, 7, {"text": "x"})
    assert [entry.known_at(t) for t in (4, 6, 7)] == [False, False, True]
    assert Bank.at([Entry("fact", 1, 9, 7, {"text": "x"})], 8).facts == []


# 5: what a check saw is stamped before delivery, and stands even if delivery fails.
def test_a_check_sees_no_frame_after_its_tick_and_its_stamp_stands():
    chat = ByContract(
        front=monitor_for("it"), monitor={"satisfied": True, "confidence": 1.0, "message": "m"}
    )
    method = begin(agent(chat, latency_s={"monitor": 3.0}))
    feed(method, 0, 6)
    method.watch(Note(0, 5.5, "w"))
    feed(method, 6, 12)
    [check] = chat.of("monitor")[:1]
    assert max(check.frames) == 5.5
    [alert] = entries(method, "alert")
    assert (alert.end_s, alert.recorded_s) == (5.5, 8.5)


# 6: nothing that an evaluator knows can be handed in.
def test_a_watch_takes_words_and_a_time_only():
    method = methods.load("streammind")
    names = method.watch.__code__.co_varnames[: method.watch.__code__.co_argcount]
    assert names == ("self", "note", "key")
    assert {f.name for f in dataclasses.fields(Note)} == {"session", "t_s", "text", "wall_s"}


# 7: what has left the ring is gone.
def test_a_frame_that_left_the_ring_cannot_be_had():
    method = feed(begin(agent(ring_s=10.0, without=["memory_writer"])), 0, 30)
    stream = method.stream
    scene = stream.scene(29.5, Path("x"), stream.bank)
    assert scene.frame("f0020000").t_s == 20.0
    with pytest.raises(FrameGone, match="f0010000"):
        scene.frame("f0010000")
    assert len(stream.ring) == 20


def test_a_key_frame_outlives_the_ring():
    writer = ByContract(
        memory_writer=lambda a: {"text": "t", "key_frames": [{"id": a.ids[-1], "text": True}]}
    )
    stream = feed(begin(agent(writer, ring_s=10.0)), 0, 30).stream
    scene = stream.scene(29.5, Path("x"), stream.bank)
    assert scene.frame("f0004000").t_s == 4.0


# 8 is in test_lockstep: two runs write the same bytes.


def test_a_branch_leaves_the_trunk_as_it_was():
    chat = ByContract(front=lambda a: monitor_for("it") if "watch" in a.user else DELEGATE)
    method = feed(begin(agent(chat)), 0, 20)
    before = method.stream.log.lines(), json.dumps(method.state_bytes())
    branch = method.branch()
    feed(branch, 20, 22)
    branch.respond(Query("q", 0, 21.5), Generation())
    branch.watch(Note(0, 21.5, "watch"))
    assert branch.stream.monitors
    assert (method.stream.log.lines(), json.dumps(method.state_bytes())) == before
    assert not method.stream.monitors


def test_answers_do_not_depend_on_what_else_is_asked():
    def run(others):
        chat = ByContract(front=lambda a: {"action": "answer", "answer": str(hash(a.text))})
        method = feed(begin(agent(chat)), 0, 12)
        for n in range(others):
            ask(method, f"other {n}", 11.0)
        feed(method, 12, 20)
        return ask(method, "this one", 19.5).text

    assert run(0) == run(5)


def test_commit_makes_a_turn_part_of_the_dialogue():
    chat = ByContract(front={"action": "answer", "answer": "the red cup"})
    method = feed(begin(agent(chat)), 0, 8)
    query = Query("which cup?", 0, 7.5)
    reply = method.branch().respond(query, Generation())
    ask(method, "and then?", 7.5)
    assert "which cup?" not in chat.of("front")[-1].text  # the control
    method.commit(query, reply)
    ask(method, "and then?", 7.5)
    assert "user: which cup?" in chat.of("front")[-1].text
    assert "assistant: the red cup" in chat.of("front")[-1].text


def test_clocks_are_read_as_they_are_shown():
    method = begin(agent(), wall_s=36_000.0)
    feed(method, 0, 5)
    method.end_session(0)
    begin(method, 1, 36_000.0 + 90_000)
    time = Timeline(method.stream.bank.places)
    assert method.stream.offset_s == 5.0
    assert [time.label(t) for t in (0, 4, 5, 7.5)] == [
        "DAY1 10:00:00",
        "DAY1 10:00:04",
        "DAY2 11:00:00",
        "DAY2 11:00:02",
    ]
    for t_s in (0.0, 4.0, 5.0, 9.0):
        assert time.read(time.label(t_s)) == t_s
    assert time.read("DAY1 12:00:00") == 5.0  # between the sessions: where the next one starts
    with pytest.raises(ValueError, match="no time"):
        time.read("yesterday")
