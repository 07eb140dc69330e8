"""OASIS: what a question sees, when it searches, and how turns enter the memory."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from by_hand import asked, chat, frames_of, info, respond, script, session
from oasis_by_hand import call, oasis, remembering, sent, turned

from bench_lib.chat.cache import CachedChat
from bench_lib.chat.recorded import ScriptedChat
from bench_lib.exchange import Generation, Note, Query, Reply
from bench_lib.measure import counting
from bench_lib.messages.chat import Message, Text
from bench_lib.methods.oasis import Oasis, search_of


def test_the_first_turn_shows_both_windows_the_notes_and_the_request():
    method = remembering()
    note = Note(0, 2.0, "Remind me of the milk.", 36_002.0)
    messages = respond(method, asked(2, 2.0, note))
    assert script(messages) == [
        "In view now, DAY1 12:00:01 to 12:00:02:",
        "<<2:1-2>>",
        "The last stretch, DAY1 12:00:00 to 12:00:02:",
        "<<2:0-2>>",
        "Notes on what came before:",
        "[DAY1 10:00:00 to 10:00:03] The red cup stands on the shelf.",
        "[DAY1 11:00:00 to 11:00:03] A man opens the window.",
        "[DAY1 10:00:02] Remind me of the milk.",
        "The request, at DAY1 12:00:02:",
        "What now?",
    ]
    system = messages[0].parts[0].text
    assert system.startswith("You see.\n\n")
    assert "<tool_call>" in system
    _, contract, generation = method.served.asked[0]
    assert (contract.name, contract.schema, contract.parse) == ("lookup_free", None, None)
    assert generation.max_new_tokens == 1024


def test_a_reply_without_a_search_is_the_answer():
    method = remembering("It is tea. <answer>Tea.</answer>")
    reply = method.branch().respond(asked(2, 2.0), Generation(max_new_tokens=2000))
    assert reply.text == "Tea."
    [(_, _, generation)] = method.served.asked
    assert generation.max_new_tokens == 2000


def test_a_search_brings_the_frames_of_what_fits_and_a_second_turn_answers():
    method = remembering(call("red cup on a shelf"), "<answer>The shelf.</answer>",
                         retrieve_events=1)  # fmt: skip
    with counting() as counts:
        reply = method.branch().respond(asked(2, 2.0), Generation())
    assert reply.text == "The shelf."
    first, second = (list(messages) for messages, _, _ in method.served.asked)
    assert second[:2] == first
    assert second[2] == Message("assistant", (Text(call("red cup on a shelf")),))
    assert script(second) == [
        "This is what the memory holds on it.",
        "Video, DAY1 10:00:00 to 10:00:02:",
        "<<0:0-2>>",
        "Now reply to the request, in the form that it asks for, between <answer> and </answer>. "
        "Do not search again.",
    ]
    assert method.served.asked[1][1].name == "free"
    assert counts["events_retrieved"] == 1
    assert counts["model_calls"] == 2


def test_another_search_brings_other_frames():
    shown = {}
    for wanted in ("red cup on a shelf", "the man at the window"):
        method = remembering(call(wanted), "fine", retrieve_events=1)
        method.branch().respond(asked(2, 2.0), Generation())
        shown[wanted] = frames_of(list(method.served.asked[1][0])[-1:])
    assert shown == {
        "red cup on a shelf": [(0, 0), (0, 2)],
        "the man at the window": [(1, 0), (1, 2)],
    }


def test_a_node_over_two_sessions_shows_them_one_after_the_other():
    method = remembering(call("cup"), "fine", roots=1, frames_per_node=4)
    node = method.state.forest.nodes[method.state.forest.roots[0]]
    assert (node.first.session, node.last.session) == (0, 1)
    method = replace_search(method)
    lines = script(list(method.served.asked[1][0]))
    assert lines[1:5] == [
        "Video, DAY1 10:00:00 to 10:00:02:", "<<0:0-2>>",
        "Video, DAY1 11:00:00 to 11:00:02:", "<<1:0-2>>",
    ]  # fmt: skip


def replace_search(method: Oasis) -> Oasis:
    """Only the merged node is left to be found."""
    forest = method.state.forest
    alone = [replace(n, vector=-n.vector if not n.children else n.vector) for n in forest.nodes]
    wanted = method.served.embed(["cup"])[0]
    alone[-1] = replace(alone[-1], vector=wanted)
    method.state = replace(method.state, forest=replace(forest, nodes=tuple(alone)))
    method.branch().respond(asked(2, 2.0), Generation())
    return method


def test_an_empty_memory_says_so():
    method = oasis(call("cup"), "fine")
    session(method, 0, 2, end=False)
    method.branch().respond(asked(0, 1.0), Generation())
    assert script(list(method.served.asked[1][0]))[1] == "(nothing)"


def test_a_question_before_any_frame_is_still_asked():
    method = oasis()
    method.begin_session(info(0))
    assert script(respond(method, asked(0, 0.0)))[-2:] == ["The request, at DAY1 10:00:00:",
                                                           "What now?"]  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        (call("red cup"), "red cup"),
        (call(" red cup ") + call("other"), "red cup"),
        ("<think>" + call("no") + "</think>" + call("yes"), "yes"),
        ("red cup", None),
        ("<think>" + call("no") + "</think>Tea.", None),
        ("<tool_call>", None),
    ],
)
def test_what_a_reply_searches_for(reply, wanted):
    with counting() as counts:
        assert search_of(reply) == wanted
    assert counts["unreadable_searches"] == 0


@pytest.mark.parametrize(
    "body", ["{}", "cup", '{"arguments": {"text_input": ""}}', '{"arguments": {"text_input": 3}}',
             '{"arguments": "cup"}', "[]"],
)  # fmt: skip
def test_a_search_that_cannot_be_read_stands_as_the_answer_and_is_counted(body):
    said = f"<tool_call>{body}</tool_call>"
    method = remembering(said)
    with counting() as counts:
        reply = method.branch().respond(asked(2, 2.0), Generation())
    assert reply.text == said
    assert counts["unreadable_searches"] == 1
    assert len(method.served.asked) == 1


@pytest.mark.parametrize("kept", [False, True])
def test_the_time_to_the_first_token_spans_both_turns(tmp_path, kept):
    class Timed(ScriptedChat):
        def complete(self, messages, contract, generation):
            said = super().complete(messages, contract, generation)
            now = time.perf_counter()
            return replace(said, ready_at=now - 5, first_token_at=now - 3, done_at=now)

    method = remembering()
    method.served = CachedChat(Timed([call("cup"), "fine"]), tmp_path)
    reply = method.branch().respond(asked(2, 2.0), Generation())
    if kept:
        method.served = CachedChat(ScriptedChat([]), tmp_path)
        reply = method.branch().respond(asked(2, 2.0), Generation())
    # Five seconds of the first turn and two until the second turn's first token, but without a
    # cache this model claims to have begun the second turn five seconds before it was asked.
    assert reply.first_token_at - reply.ready_at == pytest.approx(7 if kept else 2, abs=0.5)
    assert reply.done_at - reply.ready_at == pytest.approx(10 if kept else 5, abs=0.5)


def test_turns_enter_the_memory_by_commit_alone():
    method = remembering(call("cup"), "fine")
    before = method.state
    method.branch().respond(asked(2, 2.0), Generation())
    assert method.state is before
    method = turned()
    assert sent(method)[0][:7] == [
        "What was asked and answered so far, in short:", "", "(nothing)", "", "Now this was added:",
        "", "[DAY1 12:00:02] Question: Where is my cup?",
    ]  # fmt: skip
    assert sent(method)[1][2] == "You asked about a cup."
    method.served = chat()
    lines = script(respond(method, asked(2, 2.0)))
    at = lines.index("What was asked earlier, in short:")
    assert lines[at + 1] == "You asked about a cup and a window."


@pytest.mark.parametrize(("parity", "said"), [(False, "Who came?"), (True, "Where is my cup?")])
def test_a_search_brings_the_past_turn_that_fits_it(parity, said):
    method = turned(parity=parity)
    method.served = chat(call("who came, a man"), "fine")
    query = replace(asked(2, 2.0), text="My cup, where is it?")
    method.branch().respond(query, Generation())
    found = [x for x in script(list(method.served.asked[1][0])) if "Question:" in x]
    assert found == [f"[DAY1 12:00:02] Question: {said}"]


def test_an_account_that_fails_leaves_the_old_one():
    method = turned()
    method.served = chat("", "")
    with counting() as counts:
        method.commit(Query("Why?", 2, 2.0), Reply("So.", 0.0, 0.0, 0.0))
    assert counts["empty_memories"] == 1
    assert method.state.history == "You asked about a cup and a window."
    assert len(method.state.turns) == 3
