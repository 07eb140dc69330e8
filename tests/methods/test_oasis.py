"""OASIS: its windows, its forest, its two turns, and what it keeps."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from by_hand import asked, chat, clip, frame, frames_of, info, respond, script, session
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_lib import methods
from bench_lib.chat.base import Chat, ChatReply, Message, Text, TransportError
from bench_lib.chat.cache import CachedChat
from bench_lib.chat.recorded import ScriptedChat
from bench_lib.errors import BenchError
from bench_lib.measure import counting
from bench_lib.methods.base import Generation, Note, Query, Reply
from bench_lib.methods.event_forest import (
    At,
    Forest,
    Keyframe,
    Node,
    closest,
    evenly,
    lineage,
    merged,
    search,
    with_leaf,
)
from bench_lib.methods.oasis import Oasis, mistimed, search_of
from bench_lib.stream import ArrayFrame, Clip, SessionInfo

RELEASE = json.loads((Path(__file__).parent / "releases" / "oasis.json").read_text())
SMALL = {"now_frames": 2, "buffer_frames": 4, "frames_per_node": 2}


def call(text: str) -> str:
    """A reply that searches."""
    body = json.dumps({"name": "search_memory", "arguments": {"text_input": text}})
    return f"Let me look.\n<tool_call>\n{body}\n</tool_call>"


def oasis(*replies: str | ChatReply, **args) -> Oasis:
    method = methods.load("oasis", **{**SMALL, **args}).attach(chat(*replies))
    method.reset("t", 7)
    return method


def sent(method: Oasis) -> list[list[str]]:
    """The last user turns of all requests so far, line by line."""
    return [script(list(messages)) for messages, _, _ in method.served.asked]


def vector(text: str) -> np.ndarray:
    """A unit vector drawn from a digest of the text, as for the stored results of the release."""
    digest = hashlib.blake2b(text.encode(), digest_size=4).digest()
    drawn = np.random.default_rng(int.from_bytes(digest, "big")).normal(size=6)
    return (drawn / np.linalg.norm(drawn)).astype(np.float32)


class Joining(Chat):
    """Numbers the events, joins notes as `(left right)`, embeds by digest, and keeps nothing."""

    id = "joining"

    def __init__(self) -> None:
        self.events = 0

    def complete(self, messages, contract, generation):
        if contract.name == "merge":
            lines = [x for x in messages[-1].parts[0].text.split("\n") if x.startswith("[")]
            return ChatReply(said := f"({' '.join(x.split('] ')[1] for x in lines)})", value=said)
        self.events += 1
        return ChatReply(said := f"e{self.events - 1}", value=said)

    def embed(self, texts):
        return np.stack([vector(text) for text in texts])


# The release ------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", RELEASE["runs"], ids=lambda r: f"{r['seconds']}s")
def test_windows_events_and_merges_are_those_of_the_release(run: dict) -> None:
    names = ("fps", "buffer_frames", "now_frames", "frames_per_node", "buffer_fps")
    method = Oasis(**{name: run[name] for name in names}, parity=True).attach(Joining())
    method.reset("t", 7)
    method.begin_session(SessionInfo("S001", 0, None, (1, 1)))
    windows = {window["frame"]: window for window in run["windows"]}
    for k in range(round(run["seconds"] * run["fps"])):
        method.observe(Clip(0, (ArrayFrame(k / run["fps"], np.zeros((1, 1, 3), np.uint8)),)))
        if k in windows:
            state, window = method.state, windows[k]
            assert [f.t_s for f in state.now] == pytest.approx(window["now"])
            assert [f.t_s for f in state.buffer] == pytest.approx(window["buffer"])
            assert len(state.pending) == window["pending"]
    forest = method.state.forest
    assert len(forest.nodes) == len(run["nodes"])
    for node, theirs in zip(forest.nodes, run["nodes"], strict=True):
        assert (node.text, node.level) == (theirs["text"], theirs["level"])
        times = [forest.frames[i].frame.t_s for i in node.frames]
        assert times == pytest.approx(theirs["frames"])
        assert (node.first.t_s, node.last.t_s) == pytest.approx((theirs["first"], theirs["last"]))
        assert [forest.nodes[c].text for c in node.children] == theirs["children"]
    assert [forest.nodes[n].text for n in forest.roots] == run["roots"]
    for wanted, theirs in run["searches"].items():
        found = search(forest, vector(wanted), 2, ancestors=False)
        assert [forest.nodes[n].text for n in found] == theirs


@pytest.mark.parametrize(("counts", "theirs"), RELEASE["keyframes"].items())
def test_keyframes_are_those_of_the_release_less_its_lost_ends(counts: str, theirs: list[int]):
    count_, limit = map(int, counts.split("/"))
    assert evenly(count_, limit, parity=True) == theirs
    if count_ <= limit or count_ % limit == 0:
        assert evenly(count_, limit) == theirs


@given(st.integers(1, 300), st.integers(1, 60))
def test_keyframes_are_spread_over_the_whole_stretch(count_, limit):
    chosen = evenly(count_, limit)
    assert len(chosen) == min(count_, limit)
    assert chosen == sorted(set(chosen))
    assert chosen[0] == 0
    assert count_ - chosen[-1] <= max(1, -(-count_ // limit))


# The forest -------------------------------------------------------------------------------------


def grown(vectors: list[np.ndarray], roots: int = 4, penalty: float = 0.1) -> Forest:
    """A forest of one leaf per vector, four keyframes each; a parent's vector is the mean."""
    forest = Forest()
    for number, own in enumerate(vectors):
        at = At(0, float(number))
        kept = [Keyframe(0, frame(0, number + i / 4)) for i in range(4)]
        forest = with_leaf(forest, Node(at, at, 0, str(number), own), kept)
        while len(forest.roots) > roots:
            place = closest(forest, penalty)
            left, right = (forest.nodes[n] for n in forest.roots[place : place + 2])
            mean = left.vector + right.vector
            unit = mean / np.linalg.norm(mean)
            forest = merged(forest, place, f"({left.text} {right.text})", unit)
    return forest


def by_loops(vectors: list[np.ndarray], limit: int, penalty: float) -> list[str]:
    """The roots' names by the rule as the paper says it, without any of our records."""
    roots: list[tuple[str, int, np.ndarray]] = []
    for number, own in enumerate(vectors):
        roots.append((str(number), 0, own))
        while len(roots) > limit:
            best, at = -np.inf, 0
            for i in range(len(roots) - 1):
                (_, la, va), (_, lb, vb) = roots[i], roots[i + 1]
                cosine = sum(float(x) * float(y) for x, y in zip(va, vb, strict=True))
                if cosine - penalty * (la + lb) > best:
                    best, at = cosine - penalty * (la + lb), i
            (na, la, va), (nb, lb, vb) = roots[at], roots[at + 1]
            unit = (va + vb) / np.linalg.norm(va + vb)
            roots[at : at + 2] = [(f"({na} {nb})", max(la, lb) + 1, unit)]
    return [name for name, _, _ in roots]


def drawn(seed: int, number: int) -> list[np.ndarray]:
    found = np.random.default_rng(seed).normal(size=(number, 5)).astype(np.float32)
    return list(found / np.linalg.norm(found, axis=1, keepdims=True))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 6), st.sampled_from([0.0, 0.1]))
def test_roots_are_merged_by_the_rule(seed, number, limit, penalty):
    vectors = drawn(seed, number)
    forest = grown(vectors, limit, penalty)
    assert [forest.nodes[n].text for n in forest.roots] == by_loops(vectors, limit, penalty)


def test_the_penalty_matters():
    vectors = drawn(3, 30)
    assert by_loops(vectors, 4, 0.0) != by_loops(vectors, 4, 0.1)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_a_forest_keeps_four_roots_all_nodes_and_each_leafs_frames_once(seed, number):
    forest = grown(drawn(seed, number))
    assert len(forest.roots) == min(number, 4)
    assert len(forest.nodes) == (number if number <= 4 else 2 * number - 4)
    assert len(forest.frames) == 4 * number
    spans = [(forest.nodes[n].first.t_s, forest.nodes[n].last.t_s) for n in forest.roots]
    assert spans == sorted(spans)
    assert (spans[0][0], spans[-1][1]) == (0, number - 1)
    for node in forest.nodes:
        if node.children:
            below = [forest.nodes[n] for n in node.children]
            assert node.level == 1 + max(n.level for n in below)
            frames = {i for n in below for i in n.frames}
            assert set(node.frames) < frames
            assert len(node.frames) == len(frames) // 2
            assert list(node.frames) == sorted(node.frames)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 5))
def test_a_search_finds_the_best_nodes_of_which_none_holds_another(seed, number, limit):
    forest = grown(drawn(seed, number))
    wanted = drawn(seed + 1, 1)[0]
    found = search(forest, wanted, limit)
    scores = [float(forest.nodes[n].vector @ wanted) for n in found]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == max(float(n.vector @ wanted) for n in forest.nodes)
    for n in found:
        assert not (lineage(forest, n) & set(found)) - {n}
    left = set(range(len(forest.nodes))) - set().union(*(lineage(forest, n) for n in found))
    assert len(found) == limit or not left


def test_the_release_may_find_a_node_and_one_above_it():
    """The control: with its mask some search brings a node and its ancestor."""
    both = 0
    for seed in range(60):
        forest = grown(drawn(seed, 20))
        first, second = search(forest, drawn(seed + 1, 1)[0], 2, ancestors=False)
        both += second in lineage(forest, first)
    assert both > 5


# The stream -------------------------------------------------------------------------------------


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


# Questions --------------------------------------------------------------------------------------


def remembering(*replies: str | ChatReply, **args) -> Oasis:
    """Two sessions of one event each in memory, three frames of a third in view."""
    method = oasis("The red cup stands on the shelf.", "A man opens the window.", **args)
    session(method, 0, 4)
    session(method, 1, 4)
    session(method, 2, 3, end=False)
    method.served = chat(*replies)
    return method


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


# Turns ------------------------------------------------------------------------------------------


def turned(**args) -> Oasis:
    """A memory of two past turns, one of them about a cup."""
    method = remembering("You asked about a cup.", "You asked about a cup and a window.", **args)
    for text, said in (("Where is my cup?", "On the shelf."), ("Who came?", "A man.")):
        query = Query(text, 2, 2.0)
        method.commit(query, Reply(said, 0.0, 0.0, 0.0))
    return method


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


# Size, saving, settings -------------------------------------------------------------------------


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
