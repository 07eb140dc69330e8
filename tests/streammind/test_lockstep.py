"""The clock: equal runs, what latency costs, what is skipped, how many watch."""

from __future__ import annotations

from itertools import pairwise

import pytest
from by_contract import ByContract, agent, ask, begin, entries, feed, monitor_for

from bench_lib.errors import BenchError
from bench_lib.exchange import Note
from bench_lib.measure import counting
from bench_lib.score.timing import alert_timing
from bench_lib.tasks import Window

ANSWER = {"action": "answer", "answer": "x"}


def seen_since(due_s):
    """A monitor that is sure as soon as a frame from `due_s` on is shown."""

    def check(asked):
        seen = bool(asked.frames) and asked.frames[-1] >= due_s
        return {"satisfied": seen, "confidence": 1.0, "message": "there"}

    return check


def watched(due_s, latency_s=0.0, until_s=24, every_s=2.0):
    chat = ByContract(front=monitor_for("it"), monitor=seen_since(due_s))
    method = begin(agent(chat, latency_s={"monitor": latency_s}, monitor_every_s=every_s))
    feed(method, 0, 2)
    method.watch(Note(0, 2.0, "tell me"), "q")
    feed(method, 2, until_s)
    return method


# Due times a quarter of a second beside the frames: the phases of a cycle, evenly spread.
@pytest.mark.parametrize(
    ("latency_s", "cycle_s", "observed", "delivered"),
    [(0.0, 2, 1.0, 1.0), (1.0, 2, 1.0, 0.5), (2.0, 2, 1.0, 0.0), (3.0, 4, 0.5, 0.0)],
)
def test_share_on_time_by_both_stamps(latency_s, cycle_s, observed, delivered):
    dues = [10 + phase / 2 + 0.25 for phase in range(2 * cycle_s)]
    window = Window(0.5, 2.0)
    on_time = {"observed_s": 0, "delivered_s": 0}
    for due_s in dues:
        method = watched(due_s, latency_s)
        [alert] = method.alerts(100)
        assert alert.delivered_s == alert.observed_s + latency_s
        for stamp in on_time:
            timing = alert_timing(getattr(alert, stamp), due_s, window)
            on_time[stamp] += timing == "on time"
    assert on_time["observed_s"] / len(dues) == observed
    assert on_time["delivered_s"] / len(dues) == delivered


def test_a_slow_monitor_misses_frames_and_its_skips_are_counted():
    def flash(asked):
        hit = 7.0 in asked.frames
        return {"satisfied": hit, "confidence": 1.0, "message": "flash"}

    def run(latency_s):
        chat = ByContract(front=monitor_for("flash"), monitor=flash)
        method = begin(agent(chat, latency_s={"monitor": latency_s}))
        feed(method, 0, 2)
        method.watch(Note(0, 2.0, "tell me"))
        return feed(method, 2, 30)

    assert len(run(0.0).alerts(30)) == 1
    slow = run(7.0)
    assert slow.alerts(30) == ()
    assert slow.stream.skipped["monitor"] == 10
    assert len(entries(slow, "skip")) == 10


def test_an_alert_is_not_there_before_its_delivery():
    method = watched(6.0, latency_s=1.0)
    assert method.alerts(6.5) == ()
    [alert] = method.alerts(7.0)
    assert (alert.observed_s, alert.delivered_s, alert.key) == (6.0, 7.0, "q")


@pytest.mark.parametrize("latency", [0.0, 3.0, [0.5, 1.0, 5.0]])
def test_two_runs_write_the_same_bytes(latency):
    def run():
        chat = ByContract(
            front=lambda a: (
                monitor_for("it", "repeat")
                if "watch" in a.user
                else {"action": "answer", "answer": "x"}
            ),
            monitor=lambda a: {
                "satisfied": a.frames[-1] % 8 < 2,
                "confidence": 0.7,
                "message": "m",
            },
            memory_writer=lambda a: {
                "boundary": a.now_s % 12 == 0,
                "text": f"up to {a.now_s}",
                "key_frames": [{"id": a.ids[-1]}],
                "entities": [{"name": f"cup {a.now_s % 3}", "type": "object"}],
                "relations": [{"src": "cup 1", "label": "at", "dst": "table"}],
            },
        )
        method = begin(agent(chat, latency_s={"default": latency}))
        feed(method, 0, 10, {3.0: "hello"})
        for at in range(5):
            method.watch(Note(0, 10.0, f"watch {at}"))
        feed(method, 10, 90)
        ask(method, "what?", 89.5)
        method.end_session(0)
        return method.stream.log.lines()

    first, second = run(), run()
    assert first == second
    assert {'"alert"', '"macro"', '"entity"'} <= {
        line.split('"kind": ')[1].split(",")[0] for line in first
    }


def test_draws_of_latency_depend_on_the_seed():
    def run(seed):
        chat = ByContract(front=monitor_for("it", "repeat"), monitor=seen_since(5))
        method = begin(agent(chat, seed=seed, latency_s={"monitor": [0.0, 1.0, 3.0]}))
        feed(method, 0, 2)
        method.watch(Note(0, 2.0, "w"))
        return [a.delivered_s for a in feed(method, 2, 60).alerts(100)]

    assert run(1) == run(1) != run(2)


def test_the_ninth_monitor_is_refused_and_the_user_is_told():
    chat = ByContract(front=monitor_for("it"))
    method = begin(agent(chat))
    feed(method, 0, 4)
    said = [method.watch(Note(0, 4.0, f"w{n}"), f"q{n}") for n in range(9)]
    assert len(method.stream.monitors) == 8
    assert ["cannot" in text for text in said] == [False] * 8 + [True]
    assert [e.body["what"] for e in entries(method, "monitor")] == ["started"] * 8 + ["refused"]
    with counting() as counts:
        feed(method, 4, 12)
    assert (
        counts["monitor_calls"] == 8 * 3
    )  # at 6, 8 and 10; the first ones, at 4, were made before


def test_watches_that_are_over_make_room_for_others():
    def told(over):
        method = begin(agent(ByContract(front=monitor_for("it"))))
        said = []
        for n in range(12):
            feed(method, 2 * n, 2 * n + 2)
            said.append(method.watch(Note(0, 2 * n + 2.0, f"w{n}"), f"q{n}"))
            if over:
                method.unwatch(f"q{n}")
        return method, ["cannot" in text for text in said]

    method, refused = told(over=False)  # the control
    assert refused == [False] * 8 + [True] * 4
    method, refused = told(over=True)
    assert not any(refused)
    assert not method.stream.monitors
    whats = [e.body["what"] for e in entries(method, "monitor")]
    assert whats == ["started", "ended"] * 12
    method.unwatch("q0")  # over already, or never there: nothing happens
    assert len(entries(method, "monitor")) == 24


def test_a_watch_that_is_over_says_nothing_of_the_check_under_way():
    def run(over):
        chat = ByContract(front=monitor_for("it"), monitor=seen_since(0))
        method = begin(agent(chat, latency_s={"monitor": 5.0}))
        feed(method, 0, 4)
        method.watch(Note(0, 4.0, "tell me"), "q")
        feed(method, 4, 6)
        if over:
            method.unwatch("q")
        return feed(method, 6, 20).alerts(20)

    assert len(run(over=False)) == 1  # the control
    assert run(over=True) == ()


def test_contradictory_cancels_end_in_one_state():
    wishes = {
        "start": monitor_for("it"),
        "stop": {"action": "cancel", "cancel_ids": ["w1", "w1", "w7"], "answer": "ok"},
        "swap": {**monitor_for("other"), "cancel_ids": ["w1"]},
    }
    chat = ByContract(front=lambda a: wishes[a.user.split("request:\n")[1]])
    method = begin(agent(chat))
    feed(method, 0, 4)
    method.watch(Note(0, 3.5, "start"))
    method.watch(Note(0, 3.5, "swap"))
    assert list(method.stream.monitors) == ["w2"]
    method.watch(Note(0, 3.5, "stop"))
    assert list(method.stream.monitors) == ["w2"]  # w1 is gone, w7 never was
    assert [(e.body["what"], e.body["id"]) for e in entries(method, "monitor")] == [
        ("started", "w1"),
        ("cancelled", "w1"),
        ("started", "w2"),
        ("not active", "w1"),
        ("not active", "w7"),
    ]


def test_a_cancelled_monitor_whose_check_is_under_way_stays_silent():
    def front(asked):
        stop = {"action": "cancel", "cancel_ids": ["w1"], "answer": "ok"}
        return stop if asked.user.endswith("stop") else monitor_for("it")

    def run(stop):
        chat = ByContract(front=front, monitor=seen_since(0))
        method = begin(agent(chat, latency_s={"monitor": 5.0}))
        feed(method, 0, 4)
        method.watch(Note(0, 4.0, "start"))
        feed(method, 4, 6)
        if stop:
            method.watch(Note(0, 6.0, "stop"))
        return feed(method, 6, 20).alerts(20)

    assert len(run(stop=False)) == 1  # the control
    assert run(stop=True) == ()


def test_one_time_and_repeating_monitors():
    once = watched(6.0)
    assert len(once.alerts(100)) == 1
    assert not once.stream.monitors
    chat = ByContract(front=monitor_for("it", "repeat"), monitor=seen_since(6.0))
    method = begin(agent(chat, monitor_every_s=1.0))
    feed(method, 0, 2)
    method.watch(Note(0, 2.0, "w"))
    times = [a.observed_s for a in feed(method, 2, 20).alerts(100)]
    assert times[0] == 6.0
    assert {b - a for a, b in pairwise(times)} == {3.0}


@pytest.mark.parametrize(("confidence", "alerts"), [(0.59, 0), (0.6, 1)])
def test_the_confidence_limit(confidence, alerts):
    chat = ByContract(
        front=monitor_for("it"),
        monitor={"satisfied": True, "confidence": confidence, "message": "m"},
    )
    method = begin(agent(chat))
    feed(method, 0, 2)
    method.watch(Note(0, 2.0, "w"))
    assert len(feed(method, 2, 6).alerts(10)) == alerts


def test_a_writer_slower_than_its_rhythm_skips_and_the_front_does_not_wait():
    chat = ByContract(memory_writer=lambda a: {"text": f"until {a.now_s}"})
    method = begin(agent(chat, latency_s={"memory_writer": 9.0}))
    feed(method, 0, 8.5)
    ask(method, "now?", 8.0)  # the call of the tick at 4 is under way until 13
    assert not entries(method, "fragment")
    feed(method, 8.5, 40)
    recorded = [(e.start_s, e.end_s, e.recorded_s) for e in entries(method, "fragment")]
    assert recorded == [(0, 4, 13), (4, 16, 25), (16, 28, 37)]
    assert method.stream.skipped["memory_writer"] == 6


@pytest.mark.parametrize(
    "args",
    [
        {"without": ["memory"]},
        {"clock": "lock"},
        {"decoding": {"frnt": {}}},
        {"decoding": {"front": {"tokens": 1}}},
        {"latency_s": {"monitors": 1}},
        {"ring_s": 0},
    ],
)
def test_parameters_that_cannot_be_meant_are_refused(args):
    with pytest.raises(BenchError):
        agent(**args)
