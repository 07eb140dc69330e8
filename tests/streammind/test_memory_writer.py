"""Events: how they close, what a failing writer costs, that no time is without one."""

from __future__ import annotations

import pytest
from by_contract import ByContract, agent, ask, begin, entries, feed

from bench_lib.measure import counting
from bench_lib.messages.chat import RequestRefused, TransportError


def closings(method, kind="micro"):
    return [(e.start_s, e.end_s, e.body["reason"]) for e in entries(method, kind)]


def run(until_s, writer=None, **args):
    rules = {"memory_writer": writer} if writer else {}
    return feed(begin(agent(ByContract(**rules), **args)), 0, until_s)


def test_with_the_papers_rhythm_a_micro_event_closes_after_six_ticks():
    assert closings(run(60)) == [(0, 24, "ticks"), (24, 48, "ticks")]


def test_with_slow_ticks_it_closes_after_thirty_seconds():
    assert closings(run(70, writer_every_s=10.0)) == [(0, 30, "time"), (30, 60, "time")]


def test_a_predicted_boundary_closes_what_was_before_it():
    writer = lambda a: {"boundary": a.now_s in (4, 12), "text": f"{a.now_s}"}  # noqa: E731
    method = run(20, writer)
    assert closings(method) == [(0, 8, "boundary")]  # at 4 there was nothing before
    assert [e.body["event"] for e in entries(method, "fragment")] == ["m1", "m1", "m2", "m2"]


def test_macro_and_super_events_close_by_number():
    method = run(485, ring_s=16.0)
    assert closings(method, "macro") == [(120.0 * n, 120.0 * n + 120, "micros") for n in range(4)]
    [event] = method.stream.bank.supers.values()
    assert (event.start_s, event.end_s, event.closed) == (0, 480, "macros")
    assert event.children == ("M1", "M2", "M3", "M4")
    assert method.stream.bank.macros["M2"].children == ("m6", "m7", "m8", "m9", "m10")


def test_macro_and_super_events_close_by_time():
    slow = {"writer_every_s": 20.0, "micro_ticks": 99, "micro_s": 60.0}
    method = run(385, **slow, macro_s=120.0, super_s=240.0, ring_s=16.0)
    assert closings(method, "macro") == [(0, 120, "time"), (120, 240, "time"), (240, 360, "time")]
    assert closings(method, "super") == [(0, 240, "time")]


def test_a_session_closes_everything_and_the_next_one_begins_afresh():
    method = run(10)
    method.end_session(0)
    assert closings(method) == [(0, 9.5, "session end")]
    assert closings(method, "macro") == closings(method, "super") == closings(method)
    assert len(method.stream.ring) == 0
    feed(begin(method, 1), 0, 6)
    assert [e.start_s for e in entries(method, "fragment")] == [0, 4, 8, 10]


def covered(method):
    """Stretches of stream time that no fragment covers."""
    end, holes = 0.0, []
    for e in entries(method, "fragment"):
        if e.start_s > end:
            holes.append((end, e.start_s))
        end = max(end, e.end_s)
    return holes, end


def failing_every_fifth(kind):
    """A fifth of the ticks fails: by two broken replies, or by a server that is away."""

    def writer(asked):
        if asked.now_s % 20 == 12:
            return "no object at all" if kind == "contract_error" else TransportError("away")
        return {"text": f"until {asked.now_s}", "key_frames": [{"id": asked.ids[-1], "text": True}]}

    return writer


@pytest.mark.parametrize("kind", ["contract_error", "error"])
def test_a_writer_that_fails_a_fifth_of_its_calls_loses_no_time(kind):
    with counting() as counts:
        method = run(200.5, failing_every_fifth(kind))
    fragments = entries(method, "fragment")
    failed = [e for e in fragments if e.body["status"] == kind]
    assert (len(fragments), len(failed), counts["writer_gaps"]) == (50, 10, 10)
    assert covered(method) == ([], 200)
    for gap in failed:
        assert gap.body["text"] == ""
        assert len(gap.body["frames"]) == 3
    # The tick after a gap looks back over it.
    after = fragments[fragments.index(failed[0]) + 1]
    assert (failed[0].start_s, after.start_s, after.end_s) == (8, 8, 16)
    rejected = entries(method, "rejected")
    assert len(rejected) == (10 if kind == "contract_error" else 0)
    if rejected:
        assert rejected[0].body["raw"] == ["no object at all"] * 2


def test_what_its_window_cannot_reach_is_covered_but_marked_unseen():
    def writer(asked):
        return "broken" if 4 < asked.now_s <= 28 else {"text": f"{asked.now_s}"}

    method = run(33, writer)
    last = entries(method, "fragment")[-1]
    assert covered(method) == ([], 32)
    assert (last.start_s, last.end_s, last.body["seen_s"]) == (17, 32, 17.5)


def test_a_failed_summary_costs_the_summary_alone():
    method = feed(begin(agent(ByContract(summary="broken"), macro_micros=1)), 0, 30)
    [macro] = method.stream.bank.macros.values()
    assert (macro.text, macro.statuses, macro.children) == ("", ["error"], ("m1",))


def test_what_can_never_work_stops_the_run():
    with pytest.raises(RequestRefused, match="no such key"):
        run(8, lambda a: RequestRefused("no such key"))


def test_a_tick_is_shown_the_window_the_open_event_and_what_was_named():
    def writer(asked):
        return {"text": f"text {asked.now_s}", "entities": [{"name": f"thing {asked.now_s}"}]}

    chat = ByContract(memory_writer=writer)
    feed(begin(agent(chat)), 0, 29, {3.0: "early words", 20.0: "late words"})
    tick = chat.of("memory_writer")[-1]
    assert tick.frames == [13.5 + n / 2 for n in range(30)]
    assert "late words" in tick.text
    assert "early words" not in tick.text
    assert all(f"thing {n}" in tick.text for n in (4, 24))
    assert "text 24" not in tick.text  # that event is closed
    assert "[described until 00:00:24]" in tick.text
    assert tick.generation.max_new_tokens == 2560
    assert tick.generation.temperature == 0.2


def test_invented_frame_ids_are_taken_out_and_counted():
    writer = {
        "text": "t",
        "key_frames": [{"id": "f9999999"}, {"id": "f0004000"}],
        "entities": [{"name": "cup", "frames": ["f8888888"]}],
    }
    with counting() as counts:
        method = run(6, writer)
    assert entries(method, "fragment")[0].body["frames"] == ["f0004000"]
    assert counts["frame_ids_rejected"] == 2
    assert list(method.stream.store.frames) == ["f0004000"]


def test_facts_reach_the_front():
    chat = ByContract(memory_writer=lambda a: {"text": "t", "facts": [f"score {a.now_s}"]})
    method = feed(begin(agent(chat, front_facts=2)), 0, 16)
    ask(method, "q", 15.5)
    text = chat.of("front")[-1].text
    assert [f"score {n}" in text for n in (4, 8, 12)] == [False, True, True]


def test_without_a_writer_nothing_is_written():
    method = run(60, without=["memory_writer"])
    assert {e.kind for e in method.stream.entries()} == {"session"}
