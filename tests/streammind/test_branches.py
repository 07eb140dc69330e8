"""What a branch takes over from its trunk, and what stays the trunk's."""

from __future__ import annotations

from by_contract import ByContract, agent, begin, entries, feed, frame

from bench_lib.video.stream import ArrayFrame


def keeps_the_newest(asked):
    return {"text": "t", "key_frames": [{"id": key} for key in asked.ids[-1:]]}


def still(t_s: float) -> ArrayFrame:
    """The same picture at all times."""
    return ArrayFrame(t_s, frame(0.0).array)


def test_a_branch_that_was_taken_while_the_writer_was_busy_writes() -> None:
    """The call of the tick at 4 is under way until 13; it belongs to the trunk."""
    chat = ByContract(memory_writer=lambda a: {"text": f"until {a.now_s}"})
    method = begin(agent(chat, latency_s={"memory_writer": 9.0}))
    feed(method, 0, 8.5)
    branch = method.branch()
    assert method.stream.writer_busy
    feed(branch, 8.5, 40)
    written = [(e.start_s, e.end_s) for e in branch.stream.entries() if e.kind == "fragment"]
    assert written == [(0, 12), (12, 24)]
    feed(method, 8.5, 40)
    assert [e.recorded_s for e in entries(method, "fragment")] == [13, 25, 37]


def test_trunk_and_branch_name_a_frame_alike() -> None:
    """The same picture again within the look-back is the one that is kept, wherever it is seen."""
    method = begin(agent(ByContract(memory_writer=keeps_the_newest)))
    feed(method, 0, 8.5, draw=still)
    branch = method.branch()
    for each in (branch, method):
        feed(each, 8.5, 12.5, draw=still)
    names = [
        [e.body["frames"] for e in each.stream.entries() if e.kind == "fragment"]
        for each in (branch, method)
    ]
    assert names[0] == names[1]
    assert list(branch.stream.store.frames) == list(method.stream.store.frames) == ["f0004000"]


def test_a_frame_of_the_session_before_is_no_near_duplicate() -> None:
    method = begin(agent(ByContract(memory_writer=keeps_the_newest)))
    feed(method, 0, 4.5, draw=still)
    method.end_session(0)
    begin(method, 1, 86_400.0)
    feed(method, 0, 4.5, draw=still)
    kept = list(method.stream.store.frames)
    assert len(kept) == 2
    assert kept[1] == f"f{round((method.stream.offset_s + 4) * 1000):07d}"
