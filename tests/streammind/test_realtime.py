"""Real time: calls overlap, the front waits for nobody, cancelling reaches calls under way."""

from __future__ import annotations

import threading
import time

import pytest
from by_contract import ByContract, agent, ask, begin, feed, monitor_for

from bench_lib.exchange import Note
from bench_lib.measure import count, counting
from bench_lib.messages import abort
from bench_lib.messages.chat import ChatError, RequestRefused
from bench_lib.streammind.clock import Realtime
from bench_lib.streammind.threads import off_loop, portal, together

FAST = {"clock": "realtime", "speed": 50.0}


def feed_until(method, start_s, event):
    """Feed on until something has happened: a busy machine lags behind the clock."""
    for at_s in range(start_s, start_s + 4000, 2):
        feed(method, at_s, at_s + 2)
        if event.wait(0.01):
            return at_s + 2
    raise AssertionError("it never happened")


def test_the_front_does_not_wait_for_the_writer():
    answered = threading.Event()
    order = []

    def writer(asked):
        assert answered.wait(20), "the front waited for the writer"
        order.append("writer")
        return {"text": "late"}

    def front(asked):
        order.append("front")
        return {"action": "answer", "answer": "soon"}

    method = begin(agent(ByContract(front=front, memory_writer=writer), **FAST))
    feed(method, 0, 6)
    assert ask(method, "q", 5.5).text == "soon"
    assert order == ["front"]
    answered.set()
    method.end_session(0)
    assert "writer" in order
    assert method.stream.bank.micros["m1"].text == "late\nlate"


def test_a_busy_writer_skips_and_the_feed_goes_on():
    go = threading.Event()
    writer = lambda a: {"text": str(go.wait(20))}  # noqa: E731
    method = begin(agent(ByContract(memory_writer=writer), **FAST))
    feed(method, 0, 21)
    assert method.stream.skipped["memory_writer"] == 4
    go.set()
    method.end_session(0)
    fragments = [e for e in method.stream.entries() if e.kind == "fragment"]
    assert fragments[0].end_s == 4
    assert fragments[0].recorded_s >= 20


def test_cancelling_a_monitor_reaches_its_call():
    begun, ended = threading.Event(), threading.Event()

    def check(asked):
        begun.set()
        while True:
            try:
                abort.check()
            except ChatError:
                ended.set()
                raise
            time.sleep(0.001)

    def front(asked):
        stop = {"action": "cancel", "cancel_ids": ["w1"], "answer": "ok"}
        return stop if asked.user.endswith("stop") else monitor_for("it")

    method = begin(agent(ByContract(front=front, monitor=check), **FAST))
    feed(method, 0, 2)
    method.watch(Note(0, 2.0, "start"))
    at_s = feed_until(method, 2, begun)
    assert not ended.is_set()
    method.watch(Note(0, at_s, "stop"))
    assert ended.wait(20)
    feed(method, at_s, at_s + 4)
    assert method.alerts(100) == ()


def test_what_a_call_in_the_background_failed_of_comes_to_light():
    chat = ByContract(memory_writer=lambda a: RequestRefused("no such key"))
    method = begin(agent(chat, **FAST))
    with pytest.raises(RequestRefused, match="no such key"):
        feed(method, 0, 40)


def test_the_clock_runs_and_stands_still():
    clock = Realtime(100.0)
    portal().call(clock.reach, 5.0)
    assert clock.now_s >= 5.0
    portal().call(clock.reach, 8.0)
    clock.pause()
    clock.pause()
    stood = clock.now_s
    clock.resume()
    time.sleep(0.02)
    assert clock.now_s == stood  # two pauses, one resume
    clock.resume()
    portal().call(clock.reach, stood + 1)
    assert clock.now_s >= stood + 1


def test_a_question_stops_the_clock():
    seen = []

    def front(asked):
        seen.append(method.stream.clock.now_s)
        time.sleep(0.05)  # 2.5 s of video, were it running
        seen.append(method.stream.clock.now_s)
        return {"action": "answer", "answer": "x"}

    method = begin(agent(ByContract(front=front), **FAST))
    feed(method, 0, 4)
    ask(method, "q", 3.5)
    assert seen[0] == seen[1]


def test_works_at_once_keep_their_order_and_their_counts():
    barrier = threading.Barrier(3, timeout=20)

    def work(n):
        def body():
            barrier.wait()  # all three are under way together
            count("done", n)
            return n

        return lambda: off_loop(body)

    async def all_of_them():
        return await together([work(3), work(1), work(2)])

    with counting() as counts:
        assert portal().call(all_of_them) == [3, 1, 2]
    assert counts["done"] == 6


def test_a_failure_ends_the_others_and_is_raised_as_it_is():
    stopped = threading.Event()

    def slow():
        while True:
            try:
                abort.check()
            except ChatError:
                stopped.set()
                raise
            time.sleep(0.001)

    def broken():
        raise KeyError("x")

    async def both():
        return await together([lambda: off_loop(slow), lambda: off_loop(broken)])

    with pytest.raises(KeyError):
        portal().call(both)
    assert stopped.wait(20)


def test_places_at_an_endpoint_are_limited_and_the_front_has_its_own():
    lock, under_way, most = threading.Lock(), [0], [0]
    full = threading.Event()

    def check(asked):
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
            if under_way[0] == 2:
                full.set()
        answered.wait(20)
        with lock:
            under_way[0] -= 1
        return {"satisfied": False, "confidence": 0.0}

    answered = threading.Event()

    def front(asked):
        if asked.user.endswith("q"):
            answered.set()
            return {"action": "answer", "answer": "x"}
        return monitor_for("it")

    method = begin(agent(ByContract(front=front, monitor=check), calls_at_once=2, **FAST))
    feed(method, 0, 2)
    for n in range(5):
        method.watch(Note(0, 2.0, f"w{n}"))
    at_s = feed_until(method, 2, full)
    assert ask(method, "q", at_s - 0.5).text == "x"  # while both places are taken
    method.end_session(0)
    assert most[0] == 2
