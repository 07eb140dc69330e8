"""What a window of frames becomes on its way to a model."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from by_hand import asked, chat, clip, frame, info, respond, script, session
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_lib import methods
from bench_lib.chat.recorded import ScriptedChat
from bench_lib.exchange import Generation, Note, Refused
from bench_lib.measure import counting
from bench_lib.memories.frame_window import joined, ordered, thin
from bench_lib.messages.chat import ChatError, ChatReply, Text
from bench_lib.schema import Option


def method(name="raw_video", model=None, **args):
    built = methods.load(name, **args).attach(model or chat())
    built.reset("t", 42)
    return built


def test_sessions_frames_and_words_stand_in_the_order_of_the_stream():
    window = method(as_video=False)
    session(window, 0, 3)
    session(window, 1, 2, end=False)
    notes = (
        Note(0, 1.0, "Remind me of the tea."),
        Note(1, 0.0, "Hold this question."),
        Note(1, 9.0, "An interval opens."),
    )
    messages = respond(window, asked(1, 9.0, *notes))
    assert [m.role for m in messages] == ["system", "user"]
    assert messages[0].parts == (Text("You see."),)
    assert script(messages) == [
        "Session S001, from DAY1 10:00:00:",
        "10:00:00:",
        "<0:0>",
        "[10:00:01] Remind me of the tea.",
        "10:00:01:",
        "<0:1>",
        "10:00:02:",
        "<0:2>",
        "Session S002, from DAY1 11:00:00:",
        "[11:00:00] Hold this question.",
        "11:00:00:",
        "<1:0>",
        "11:00:01:",
        "<1:1>",
        "[11:00:09] An interval opens.",
        "What now?",
    ]


def test_as_video_runs_break_at_words_at_gaps_and_at_the_longest_part():
    window = method(part_frames=3)
    window.begin_session(info(0))
    for start, end in ((0, 5), (30, 32)):  # the stream itself skips from 4 to 30
        window.observe(clip(0, start, end))
    lines = script(respond(window, asked(0, 31.0, Note(0, 31.0, "Now."))))
    assert lines == [
        "Session S001, from DAY1 10:00:00:",
        "Video from 10:00:00 to 10:00:02, 3 frames:",
        "<<0:0-2>>",
        "Video from 10:00:03 to 10:00:04, 2 frames:",
        "<<0:3-4>>",
        "Video from 10:00:30 to 10:00:30, 1 frames:",
        "<<0:30>>",
        "[10:00:31] Now.",
        "Video from 10:00:31 to 10:00:31, 1 frames:",
        "<<0:31>>",
        "What now?",
    ]


def test_frames_left_out_by_choice_do_not_break_a_video():
    window = method(max_frames=3)
    session(window, 0, 60, end=False)
    lines = script(respond(window, asked(0, 59.0)))
    assert lines[1:3] == ["Video from 10:00:00 to 10:00:59, 3 frames:", "<<0:0-59>>"]


def test_without_a_wall_clock_times_count_from_the_session():
    window = method("simplestream", recent_frames=1)
    window.begin_session(info(2, wall=False))
    window.observe(clip(2, 0, 100))
    lines = script(respond(window, asked(2, 99.0)))
    assert lines == ["Session S003:", "00:01:39:", "<2:99>", "What now?"]


def test_a_question_before_any_frame_is_still_asked():
    for name in ("raw_video", "simplestream", "blind"):
        window = method(name)
        window.begin_session(info(0))
        assert script(respond(window, asked(0, 0.0, closed=False)))[-1] == "What now?"


def test_the_blind_method_is_told_everything_and_shown_nothing():
    window = method("blind")
    session(window, 0, 40, end=False)
    messages = respond(window, asked(0, 39.0, Note(0, 3.0, "Hold this question.", 36_003.0)))
    assert script(messages) == ["[DAY1 10:00:03] Hold this question.", "What now?"]
    assert window.state_bytes()["index"] < 100


@settings(deadline=None)
@given(st.integers(1, 4000), st.integers(1, 4000), st.integers(1_000, 10**6))
def test_frames_are_sent_within_the_pixel_limit_and_never_enlarged(height, width, most):
    size = method("simplestream", max_pixels=most).frame_size((height, width))
    assert size[0] * size[1] <= max(most, height, width)
    assert size[0] <= height
    assert size[1] <= width


def test_the_reply_carries_the_models_own_instants_and_counts_are_kept():
    said = ChatReply("B", ready_at=1.0, first_token_at=2.0, done_at=3.0, stop="length")
    window = method(model=ScriptedChat([said]))
    session(window, 0, 5, end=False)
    with counting() as counts:
        reply = window.branch().respond(asked(0, 4.0), Generation(seed=7))
    assert (reply.text, reply.stop) == ("B", "length")
    assert (reply.ready_at, reply.first_token_at, reply.done_at) == (1.0, 2.0, 3.0)
    assert counts == {"model_calls": 1, "frames_sent": 5}
    assert window.served.asked[0][2].seed == 7


def test_a_model_that_declines_refuses_and_one_that_fails_fails():
    model = ScriptedChat([ChatReply("No.", stop="refused"), ChatError("down")])
    window = method("blind", model=model)
    with pytest.raises(Refused, match="No"):
        window.respond(asked(0, 0.0), Generation())
    with counting() as counts, pytest.raises(ChatError, match="down"):
        window.respond(asked(0, 0.0), Generation())
    assert counts["model_calls"] == 1


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("choice", {"answer"}),
        ("adaptive_choice", {"decision", "answer", "reason"}),
        ("adaptive_text", {"decision", "proactive_response", "reason"}),
    ],
)
def test_the_contract_of_a_question_names_its_kind_and_its_letters(kind, keys):
    window = method("blind")
    options = (Option(id="A", text="tea"), Option(id="E", text="not sure"))
    window.respond(replace(asked(0, 0.0), contract=kind, options=options), Generation())
    [(_, contract, _)] = window.served.asked
    assert (contract.name, contract.parse) == (kind, None)
    properties = contract.schema["properties"]
    assert set(properties) == keys
    assert properties.get("answer", {"enum": ["A", "E"]})["enum"] == ["A", "E"]


@settings(deadline=None)
@given(st.integers(0, 300), st.integers(1, 300))
def test_thinning_is_even_ordered_and_keeps_both_ends(total, limit):
    chosen = thin(total, limit)
    assert len(chosen) == min(total, limit)
    assert sorted(set(chosen)) == chosen
    if chosen:
        assert chosen[-1] == total - 1
        assert chosen[0] == 0 or limit == 1
        gaps = {b - a for a, b in pairwise(chosen)}
        assert not gaps or max(gaps) - min(gaps) <= 1


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 40), unique=True).map(sorted),
    st.lists(st.integers(0, 40)).map(sorted),
    st.integers(0, 5),
    st.data(),
)
def test_ordering_loses_nothing_and_never_shows_words_after_their_instant(times, said, most, data):
    frames = [frame(0, float(t)) for t in times]
    chosen = [i for i in range(len(frames)) if data.draw(st.booleans())]
    notes = [Note(0, float(t), str(n)) for n, t in enumerate(said)]
    items = list(ordered(frames, chosen, notes, 1.5, most))
    runs = [item for item in items if isinstance(item, tuple)]
    assert [f.t_s for run in runs for f in run] == [frames[i].t_s for i in chosen]
    assert [item for item in items if isinstance(item, Note)] == notes
    assert all(not most or len(run) <= most for run in runs)
    moments = [(item.t_s, 0) if isinstance(item, Note) else (item[0].t_s, 1) for item in items]
    assert moments == sorted(moments)


def test_neighbouring_texts_become_one():
    assert list(joined([Text("a"), Text("b")])) == [Text("a\nb")]
    assert list(joined([])) == []
