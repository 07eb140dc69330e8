"""Summaries: what the writer sees, what a question sees, what a failing writer costs."""

from __future__ import annotations

import json

import pytest
from by_hand import WALL_S, asked, chat, clip, frames_of, info, respond, script, session

from bench_lib import methods
from bench_lib.chat.recorded import ScriptedChat
from bench_lib.errors import BenchError
from bench_lib.exchange import Note
from bench_lib.measure import counting
from bench_lib.memories.event_memory import memory_of
from bench_lib.messages.chat import ChatReply, RequestRefused, TransportError


def summary(text: str) -> str:
    return json.dumps({"memory": text}, ensure_ascii=False)


def text_summary(*replies, **args):
    method = methods.load("text_summary", **args).attach(chat(*replies))
    method.reset("t", 7)
    return method


def writer_request(method):
    """What the writer was sent, and with which settings."""
    [(messages, contract, generation)] = method.served.asked
    return list(messages), contract, generation


def test_the_writer_sees_the_whole_session_and_no_question():
    method = text_summary(summary("Tea was made."))
    method.begin_session(info(0))
    method.observe(clip(0, 0, 8))
    method.note(Note(0, 5.0, "Remind me of the milk."))
    method.observe(clip(0, 8, 12))
    method.end_session(1000)
    messages, contract, generation = writer_request(method)
    assert frames_of(messages) == [(0, t) for t in range(12)]
    lines = script(messages)
    assert lines[:7] == [
        "Session S001, from DAY1 10:00:00:",
        "Video from 10:00:00 to 10:00:04, 5 frames:",
        "<<0:0-4>>",
        "[10:00:05] Remind me of the milk.",
        "Video from 10:00:05 to 10:00:11, 7 frames:",
        "<<0:5-11>>",
        "The recording of session S001 is over. It covers DAY1, 10:00:00 to 10:00:12, the end not "
        "included. Write its memory:",
    ]
    assert '{"memory": "..."}' in lines[-1]
    assert (contract.name, generation.max_new_tokens, generation.seed) == ("memory", 2048, 7)


def test_a_question_sees_all_summaries_and_the_current_prefix_alone():
    method = text_summary(summary("Tea was made."), summary("Milk is out."))
    session(method, 0, 10)
    session(method, 1, 10)
    session(method, 2, 3, end=False)
    notes = Note(0, 4.0, "Remind me.", WALL_S + 4), Note(2, 0.0, "Hold.", WALL_S + 7200)
    messages = respond(method, asked(2, 2.0, *notes))
    assert frames_of(messages) == [(2, 0), (2, 1), (2, 2)]
    assert script(messages) == [
        "What you wrote down after the earlier recordings, which you can no longer see:",
        "",
        "Session S001, DAY1, 10:00:00 to 10:00:10:",
        "Tea was made.",
        "",
        "Session S002, DAY1, 11:00:00 to 11:00:10:",
        "Milk is out.",
        "[DAY1 10:00:04] Remind me.",  # a log of what came with the query, its session gone
        "Session S003, from DAY1 12:00:00:",
        "[12:00:00] Hold.",
        "Video from 12:00:00 to 12:00:02, 3 frames:",
        "<<2:0-2>>",
        "What now?",
    ]


def test_what_the_wearer_said_earlier_survives_only_in_the_summary():
    method = text_summary(summary("She wants tea."))
    method.begin_session(info(0))
    method.observe(clip(0, 0, 8))
    method.note(Note(0, 5.0, "Remind me of the milk."))
    now = script(respond(method, asked(0, 7.0)))
    assert "[10:00:05] Remind me of the milk." in now  # the control: this session still has it
    method.served = chat(summary("She wants tea."))
    method.end_session(1000)
    session(method, 1, 3, end=False)
    later = "\n".join(script(respond(method, asked(1, 2.0))))
    assert "milk" not in later
    assert "She wants tea." in later


def test_a_branch_may_write_with_words_the_trunk_never_heard():
    method = text_summary(summary("Milk!"), summary("Nothing."))
    method.begin_session(info(0))
    method.observe(clip(0, 0, 4))
    heard = method.branch()
    heard.note(Note(0, 3.0, "Remind me of the milk."))
    for member in (heard, method):
        member.end_session(1000)
    assert [e.text for e in heard.state.events] == ["Milk!"]
    assert [e.text for e in method.state.events] == ["Nothing."]
    told, untold = ("\n".join(script(list(m))) for m, _, _ in method.served.asked)
    assert "milk" in told
    assert "milk" not in untold


def test_its_size_is_that_of_its_texts_in_utf8():
    method = text_summary(summary("牛奶 is out."))
    session(method, 0, 10)
    assert method.state_bytes() == {"text": len("牛奶 is out.".encode())}
    method.begin_session(info(1))
    method.observe(clip(1, 0, 8))
    assert method.state_bytes() == {"text": 14}
    assert len("牛奶 is out.".encode()) == 14


def test_one_broken_reply_is_asked_for_again():
    method = text_summary("I cannot say.", summary("Tea."))
    with counting() as counts:
        session(method, 0, 4)
    assert method.state.events[0].text == "Tea."
    assert counts["model_calls"] == 2
    assert counts["empty_memories"] == 0


@pytest.mark.parametrize(
    "replies",
    [
        ("nothing", "still nothing"),
        (summary(" "), '{"memory": 3}'),
        (ChatReply("no", stop="refused"), ChatReply("no", stop="refused")),
    ],
)
def test_a_writer_that_fails_twice_leaves_an_empty_memory_that_is_counted(replies):
    method = text_summary(*replies)
    with counting() as counts:
        session(method, 0, 4)
    assert counts["empty_memories"] == 1
    assert method.state_bytes() == {"text": 0}
    session(method, 1, 2, end=False)
    assert "(nothing was kept)" in script(respond(method, asked(1, 1.0)))


@pytest.mark.parametrize("error", [TransportError("down"), RequestRefused("at most 8 images")])
def test_a_model_that_cannot_be_asked_is_an_error_and_no_empty_memory(error):
    method = text_summary()
    method.served = ScriptedChat([error])
    with pytest.raises(type(error)):
        session(method, 0, 4)
    assert method.state.events == ()


def test_a_session_without_a_frame_is_not_written_about():
    method = text_summary()
    method.end_session(0)
    method.begin_session(info(0))
    method.end_session(0)
    assert method.served.asked == []


def test_limits_reach_the_writer_and_the_question():
    method = text_summary(summary("Tea."), max_frames=5, memory_tokens=64)
    session(method, 0, 100)
    messages, _, generation = writer_request(method)
    assert frames_of(messages) == [(0, t) for t in (0, 25, 50, 74, 99)]
    assert generation.max_new_tokens == 64
    session(method, 1, 41, end=False)
    assert frames_of(respond(method, asked(1, 40.0))) == [(1, t) for t in (0, 10, 20, 30, 40)]


def test_saved_and_loaded_it_asks_the_same(tmp_path):
    method = text_summary(summary("Tea."))
    session(method, 0, 10)
    method.save(tmp_path)
    loaded = methods.load("text_summary").attach(chat())
    loaded.load(tmp_path)
    assert loaded.state == method.state
    for twin in (method, loaded):
        session(twin, 1, 3, end=False)
    assert script(respond(loaded, asked(1, 2.0))) == script(respond(method, asked(1, 2.0)))


def test_other_prompts_are_loaded_from_a_folder_and_strays_refused(tmp_path):
    (tmp_path / "request.txt").write_text("Sum up $session, $interval.")
    method = text_summary(summary("Tea."), prompts=str(tmp_path))
    session(method, 0, 2)
    messages, _, _ = writer_request(method)
    assert script(messages)[-1] == "Sum up S001, DAY1, 10:00:00 to 10:00:02."
    (tmp_path / "other.txt").write_text("")
    with pytest.raises(BenchError, match=r"other\.txt"):
        session(text_summary(prompts=str(tmp_path)), 0, 2)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ('{"memory": "Tea."}', "Tea."),
        ('Sure:\n```json\n{"memory": "Tea.\\nMilk."}\n```', "Tea.\nMilk."),
        ('<think>{"memory": "no"}</think>{"memory": "Tea."}', "Tea."),
        ('{"memory": "a raw\nline"}', "a raw\nline"),
    ],
)
def test_readable_replies(reply, text):
    assert memory_of(reply) == text


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "Tea.",
        '{"memory": ""}',
        '{"summary": "Tea."}',
        '{"memory": "Te',
        '["memory"]',
        '<think>{"memory": "x"}',
    ],
)
def test_replies_without_a_memory(reply):
    with pytest.raises(ValueError):
        memory_of(reply)
