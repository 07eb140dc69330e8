"""OASIS: its windows and events, their size, and what is saved."""

from __future__ import annotations

import numpy as np
import pytest
from by_hand import asked, chat, clip, frame, frames_of, info, respond, script, session
from hypothesis import given, settings
from hypothesis import strategies as st
from oasis_by_hand import SMALL, Joining, call, oasis, sent, turned

from bench_lib import methods
from bench_lib.chat.recorded import ScriptedChat
from bench_lib.errors import BenchError
from bench_lib.exchange import Generation
from bench_lib.measure import counting
from bench_lib.memories.event_forest import At
from bench_lib.messages.chat import ChatReply, Text, TransportError
from bench_lib.methods.oasis import Oasis, mistimed
from bench_lib.video.stream import ArrayFrame, Clip, SessionInfo


def test_windows_at_two_frames_a_second():
    method = methods.load("oasis").attach(chat())
    method.reset("t", 7)
    method.begin_session(info(0))
    method.observe(Clip(0, tuple(frame(0, k / 2) for k in range(200))))
    state = method.state
    assert [f.t_s for f in state.now] == [92 + k / 2 for k in range(16)]
    assert [f.t_s for f in state.buffer] == list(range(68, 100))
    assert [f.t_s for f in state.pending] == [96, 97, 98, 99]
    assert [(n.first.t_s, n.last.t_s) for n in state.forest.nodes] == [(0, 31), (32, 63), (64, 95)]
    assert [len(n.frames) for n in state.forest.nodes] == [16, 16, 16]


def test_an_event_is_noted_from_all_its_frames_and_keeps_some():
    method = oasis("Tea is made.")
    session(method, 0, 4, end=False)
    assert sent(method) == [[
        "Video, DAY1 10:00:00 to 10:00:03:", "<<0:0-3>>",
        "Write down what happens in this stretch of video.",
    ]]  # fmt: skip
    [(messages, contract, generation)] = method.served.asked
    assert messages[0].role == "system"
    assert "glasses" in messages[0].parts[0].text
    assert (contract.name, generation.max_new_tokens, generation.seed) == ("caption", 1024, 7)
    [node] = method.state.forest.nodes
    assert (node.text, node.first, node.last) == ("Tea is made.", At(0, 0.0), At(0, 3.0))
    assert [method.state.forest.frames[i].frame.t_s for i in node.frames] == [0, 2]


def test_two_notes_become_one():
    method = oasis("Tea.", "Milk.", "Tea, then milk.", roots=1)
    session(method, 0, 8, end=False)
    assert sent(method)[2][2:5] == [
        "[DAY1 10:00:00 to 10:00:03] Tea.",
        "",
        "[DAY1 10:00:04 to 10:00:07] Milk.",
    ]
    nodes = method.state.forest.nodes
    assert [n.text for n in nodes] == ["Tea.", "Milk.", "Tea, then milk."]
    assert method.state.forest.roots == (2,)
    assert np.allclose(nodes[2].vector, method.served.embed(["Tea, then milk."])[0])


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=12))
def test_the_memory_does_not_depend_on_clips(sizes):
    total = sum(sizes)
    cut_up, whole = (oasis(roots=2) for _ in range(2))
    for method, steps in ((cut_up, sizes), (whole, [total])):
        method.begin_session(info(0))
        start = 0
        for step in steps:
            method.observe(clip(0, start, start + step))
            start += step
        method.end_session(0)
    assert sent(cut_up) == sent(whole)
    assert cut_up.state_bytes() == whole.state_bytes()


def test_what_is_pending_at_a_sessions_end_becomes_an_event_unless_told_otherwise():
    for flush, frames in ((True, [[0, 2], [4]]), (False, [[0, 2]])):
        method = oasis(flush_on_end=flush)
        session(method, 0, 5)
        forest = method.state.forest
        kept = [[forest.frames[i].frame.t_s for i in n.frames] for n in forest.nodes]
        assert kept == frames
        assert method.state.now == method.state.buffer == method.state.pending == ()


@pytest.mark.parametrize("replies", [("", " "), ("<think>x</think>", "<think>"),
                                     (ChatReply("no", stop="refused"),)])  # fmt: skip
def test_a_note_that_fails_twice_is_empty_and_counted(replies):
    method = oasis(*replies)
    with counting() as counts:
        session(method, 0, 4, end=False)
    assert counts["empty_memories"] == 1
    assert method.state.forest.nodes[0].text == ""
    assert "[DAY1 10:00:00 to 10:00:03] (nothing)" in script(respond(method, asked(0, 3.0)))


def test_a_model_that_cannot_be_reached_is_an_error():
    method = oasis()
    method.served = ScriptedChat([TransportError("down")])
    with pytest.raises(TransportError):
        session(method, 0, 4)
    assert method.state.forest.nodes == ()


def test_saved_and_loaded_it_asks_the_same_and_weighs_the_same(tmp_path):
    method = turned(roots=1)
    method.end_session(0)
    method.save(tmp_path)
    loaded = methods.load("oasis", **SMALL, roots=1).attach(chat())
    loaded.load(tmp_path)
    assert loaded.state_bytes() == method.state_bytes()
    requests = []
    for twin in (method, loaded):
        twin.served = chat("Note.", call("cup"), "fine")
        session(twin, 3, 6, end=False)
        twin.branch().respond(asked(3, 5.0), Generation())
        requests.append([script(list(m)) for m, _, _ in twin.served.asked])
        requests.append([frames_of(list(m)) for m, _, _ in twin.served.asked])
    assert requests[:2] == requests[2:]


def test_the_published_size_follows_from_every_nodes_frames_counted_apart():
    """2.66 GiB an hour is that of raw pixels, with each parent's frames counted once more."""
    side = 512  # 256 tokens of 32 x 32 pixels
    pixel = np.zeros((1, 1, 3), np.uint8)
    method = Oasis().attach(Joining())
    method.reset("t", 7)
    method.begin_session(SessionInfo("S001", 0, None, (side, side)))
    for k in range(7200):
        picture = np.broadcast_to(pixel, (side, side, 3))
        method.observe(Clip(0, (ArrayFrame(k / 2, picture),)))
    method.end_session(0)
    nodes = method.state.forest.nodes
    leaves = sum(not node.children for node in nodes)
    assert (leaves, len(nodes)) == (113, 2 * 113 - 4)
    counted = sum(len(node.frames) for node in nodes) * side * side * 3
    assert counted / 2**30 == pytest.approx(2.66, rel=0.025)
    # What is really held: each leaf's frames once, notes, vectors, and eight bytes for each number.
    held = method.state_bytes()
    assert held["frames"] == len(method.state.forest.frames) * side * side * 3
    assert held["frames"] == (112 * 16 + 16) * side * side * 3
    assert held["embeddings"] == len(nodes) * 6 * 4
    texts = sum(len(node.text.encode()) for node in nodes)
    assert held["text"] == texts + len("S001")


def test_frames_are_prepared_within_their_tokens():
    method = oasis()
    height, width = method.frame_size((1080, 1920))
    assert 0.99 * 262_144 < height * width <= 262_144


def test_the_release_gives_frames_a_time_of_its_own():
    frames = tuple(frame(0, 10 + k / 2) for k in range(15))
    assert [f.t_s for f in mistimed(frames)][:2] == pytest.approx([0, 15 / 7])
    assert mistimed(frames[:1]) == frames[:1]
    shown = []
    for parity in (False, True):
        method = oasis(parity=parity)
        session(method, 0, 4, end=False)
        [video] = [p for p in method.served.asked[0][0][-1].parts if not isinstance(p, Text)]
        shown.append([f.t_s for f in video.frames])
    assert shown == [[0, 1, 2, 3], pytest.approx([0, 4 / 3, 8 / 3, 4])]


def test_without_a_clock_instants_are_those_of_sessions():
    method = oasis("Tea.")
    method.begin_session(info(0, wall=False))
    method.observe(clip(0, 0, 5))
    lines = script(respond(method, asked(0, 4.0)))
    assert "[S001 00:00:00 to 00:00:03] Tea." in lines
    assert "The request, at S001 00:00:04:" in lines


def test_other_prompts_are_loaded_from_a_folder(tmp_path):
    (tmp_path / "event.txt").write_text("Sum it up.")
    method = oasis(prompts=str(tmp_path))
    session(method, 0, 4)
    assert sent(method)[0][-1] == "Sum it up."


@pytest.mark.parametrize(
    "args", [{"roots": 0}, {"now_frames": 0}, {"buffer_frames": 1, "parity": True},
             {"buffer_fps": 0.0}, {"frames_per_node": 0}],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(args):
    with pytest.raises(BenchError, match=next(iter(args))):
        methods.load("oasis", **args)
