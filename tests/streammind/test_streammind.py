"""The whole agent with the ideal observer: what it can, and what each limit and worker is worth."""

from __future__ import annotations

import json
import sqlite3

import pytest
from arena_walk import GENERATION, agent, answers, arena, clips, info, right
from by_contract import ByContract, begin, entries, feed, monitor_for
from by_contract import agent as scripted
from engine_runs import asks_of, walk

from bench_lib import methods
from bench_lib.dollhouse.ideal.observer import IdealChat
from bench_lib.errors import BenchError
from bench_lib.exchange import Note, Query
from bench_lib.measure import counting
from bench_lib.sources.dollhouse import load
from bench_lib.streammind.bank import Bank
from bench_lib.video.stream import Clip

FILM_S = 150
LARGE = 10**6
UNLIMITED = {
    "recall_results": LARGE,
    "monitors": LARGE,
    "ring_s": 1e6,
    "decoding": {
        worker: {"max_tokens": LARGE}
        for worker in ("memory_writer", "recall", "distil", "router", "summary")
    },
}


def share(tasks=("RTP", "HR", "Tool", "Pro"), **args):
    """Right answers and watches that fired on time, by task, over those of the film."""
    world, trajectory = arena(FILM_S)
    method = agent(IdealChat(), search="corpus:dollhouse", **args)
    chosen = [c for c in trajectory.candidates if c.task in tasks]
    found, _ = answers(method, world, chosen)
    hits: dict[str, list[bool]] = {task: [] for task in tasks}
    for candidate in chosen:
        if candidate.task == "Pro":
            due_s = candidate.ideal[0].start_s
            first = [a for a in method.stream.alerts if a.qid == candidate.id][:1]
            hit = bool(first) and -0.5 <= first[0].observed_s - due_s <= 2.0
            hit = hit and right(candidate, first[0].text)
        else:
            hit = right(candidate, found[candidate.id])
        hits[candidate.task].append(hit)
    return {task: sum(h) / len(h) for task, h in hits.items()}


def test_without_limits_everything_is_right():
    assert share(**UNLIMITED) == {"RTP": 1.0, "HR": 1.0, "Tool": 1.0, "Pro": 1.0}


@pytest.mark.parametrize(
    ("task", "args"),
    [
        ("HR", {"without": ["memory_writer"]}),
        ("HR", {"without": ["recall"]}),
        ("Tool", {"without": ["search"]}),
        ("Pro", {"without": ["monitor"]}),
        ("Pro", {"monitors": 1}),
        ("Pro", {"latency_s": {"monitor": 30.0}}),
        ("HR", {"decoding": {"distil": {"max_tokens": 10}}}),
    ],
)
def test_each_worker_and_each_limit_bites(task, args):
    found = share((task,), **{**UNLIMITED, **args})[task]
    assert found < 1.0
    if set(args) == {"without"}:
        assert found <= 0.25  # what the newest frames happen to hold


def test_a_branch_answers_as_the_stream_would_have():
    """A memory observed clip by clip, and one whose last clip lies in the branch, say the same."""
    world, _ = arena(FILM_S)
    film = world.films[0]
    shown = list(clips(film, until_s=61.5))

    def run(at):
        method = agent(IdealChat(), search="corpus:dollhouse")
        method.begin_session(info(film))
        for clip in shown[:at]:
            method.observe(clip)
        branch = method.branch()
        for clip in shown[at:]:
            branch.observe(clip)
        texts = [e.body["text"] for e in branch.stream.entries() if e.kind == "fragment"]
        question = "How many times did I wash something up to now?"
        return branch.respond(Query(question, 0, 61.5), GENERATION).text, texts

    assert run(len(shown)) == run(len(shown) - 2)


def saved(tmp_path, **args):
    """A scripted run of two sessions, its memory saved between them; the method."""

    def front(asked):
        return monitor_for("it", "repeat") if "watch" in asked.user else ANSWER

    def writer(asked):
        said = {"name": f"cup {asked.now_s % 8}", "type": "object", "frames": asked.ids[-1:]}
        return {"text": f"at {asked.now_s}", "entities": [said]}

    chat = ByContract(
        front=front,
        memory_writer=writer,
        monitor=lambda a: {"satisfied": a.frames[-1] % 10 < 2, "confidence": 1.0},
    )
    method = begin(scripted(chat, **args), wall_s=36_000.0)
    feed(method, 0, 10)
    method.watch(Note(0, 9.5, "watch"), "q1")
    feed(method, 10, 30)
    method.end_session(0)
    method.save(tmp_path / "state")
    return method


ANSWER = {"action": "answer", "answer": "noted"}


def test_a_saved_memory_goes_on_as_if_nothing_had_happened(tmp_path):
    kept = saved(tmp_path)
    again = scripted(kept.served)
    again.load(tmp_path / "state")
    assert again.state_bytes() == kept.state_bytes()
    for method in (kept, again):
        feed(begin(method, 1, 50_000.0), 0, 20)
        method.end_session(0)
    assert again.stream.log.lines() == kept.stream.log.lines()
    assert [a.delivered_s for a in again.stream.alerts] == [
        a.delivered_s for a in kept.stream.alerts
    ]
    assert list(again.stream.store.frames) == list(kept.stream.store.frames)
    assert len(entries(again, "alert")) > 3


def test_the_file_can_be_read_with_any_sqlite_tool(tmp_path):
    method = saved(tmp_path)
    with sqlite3.connect(tmp_path / "state" / "memory.sqlite") as db:
        kinds = dict(db.execute("SELECT kind, count(*) FROM log GROUP BY kind"))
        [(body,)] = db.execute("SELECT body FROM log WHERE kind = 'fragment' LIMIT 1").fetchall()
        frames = [t for (t,) in db.execute("SELECT t_s FROM frame")]
    assert kinds["fragment"] == 8
    assert json.loads(body)["text"] == "at 36004"
    assert frames == sorted(f.t_s for f in method.stream.store.frames.values())


def test_another_methods_memory_is_refused_and_a_damaged_one_too(tmp_path):
    method = saved(tmp_path)
    with pytest.raises(BenchError, match="was saved by"):
        scripted(method.served, ring_s=30.0).load(tmp_path / "state")
    with pytest.raises(BenchError, match="missing"):
        scripted(method.served).load(tmp_path / "nothing")
    path = tmp_path / "state" / "memory.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("UPDATE log SET end_s = 999 WHERE version = 3")
    with pytest.raises(BenchError, match="digest differs"):
        scripted(method.served).load(tmp_path / "state")


def test_state_bytes_are_those_of_real_frames_and_texts(tmp_path):
    method = saved(tmp_path)
    frames = sum(len(f.jpeg) for f in method.stream.store.frames.values())
    assert method.state_bytes() == {
        "frames": frames,
        "text": sum(len(line.encode()) + 1 for line in method.stream.log.lines()),
    }


@pytest.mark.parametrize("mode", ["log", "monitor"])
def test_a_registration_waits_in_the_log_or_starts_a_monitor(mode):
    chat = ByContract(
        front=lambda a: ANSWER if a.user.endswith("now?") else monitor_for("the tap runs"),
        monitor=lambda a: {
            "satisfied": a.frames[-1] >= 10,
            "confidence": 1.0,
            "message": "it runs",
        },
    )
    method = begin(scripted(chat, registrations=mode))
    feed(method, 0, 8)
    held = method.branch()
    held.note(Note(0, 7.5, "Tell me when the tap runs."))
    for start in (8, 12):
        feed(method, start, start + 4)
        feed(held, start, start + 4)
    probe = held.branch()
    probe.observe(Clip(0, ()))
    probe.respond(Query("What now?", 0, 15.5), GENERATION)
    text = chat.of("front")[-1].text
    assert "user: Tell me when the tap runs." in text
    assert ("assistant: it runs" in text) is (mode == "monitor")
    assert [a.observed_s for a in probe.alerts(15.5)] == ([11.5] if mode == "monitor" else [])
    assert "m1" in held.stream.bank_at(15.5).micros  # it reads what the trunk has written since
    assert not method.stream.monitors
    assert chat.of("memory_writer")[-1].now_s == 12
    assert len(chat.of("memory_writer")) == 3  # the held branch leaves the writing to the trunk


def test_an_hour_has_bounded_frames_and_flat_work():
    def writer(asked):
        n = int(asked.now_s // 4)
        return {
            "text": f"scene {n}",
            "key_frames": [{"id": asked.ids[-1], "text": True}],
            "entities": [{"name": f"thing {n}", "type": "object"}, {"name": "the host"}],
            "relations": [{"src": "the host", "label": "holds", "dst": f"thing {n}"}],
        }

    chat = ByContract(memory_writer=writer, front=monitor_for("it", "repeat"))
    method = begin(scripted(chat, store_frames=200))
    method.watch(Note(0, 0.0, "watch"))
    work, sent = [], []
    for part in range(4):
        chat.asked.clear()
        with counting() as counts:
            feed(method, 960 * part, 960 * (part + 1))  # two super events each
        work.append({k: v for k, v in counts.items() if k != "frames_evicted"})
        sent.append(max(len(a.text) for a in chat.asked if a.worker == "memory_writer"))
        stream = method.stream
        assert len(stream.ring) == 120
        assert len(stream.store.frames) <= 200
        assert len(stream.trace) <= 1024
        assert stream.skipped.total() == 0
    assert work[1] == work[2] == work[3]
    assert work[3]["memory_writer_calls"] == 240
    assert work[3]["monitor_calls"] == 480
    assert max(sent[1:]) - min(sent[1:]) < 200  # what a tick is shown does not grow
    assert len(stream.bank.entities) == 960
    assert isinstance(stream.bank_at(3000.0), Bank)
    assert stream.bank_at(3000.0).micros.keys() < stream.bank.micros.keys()


def test_a_small_store_forgets_frames_and_recall_goes_on():
    writer = lambda a: {"text": "t", "key_frames": [{"id": a.ids[-1], "text": True}]}  # noqa: E731
    tasks = {"tasks": [{"kind": "recall", "instruction": "i"}]}
    calls = {"calls": [{"tool": "time_window", "start": 0}]}
    chat = ByContract(
        memory_writer=writer,
        front={"action": "delegate", "brief": {"goal": "g"}},
        router=lambda a: {"answer": "a"} if "recall worker" in a.text else tasks,
        recall=lambda a: {"report": "r"} if "Result 1" in a.text else calls,
        verify=lambda a: {"frames": a.ids[:2]},
    )
    method = begin(scripted(chat, store_frames=3, ring_s=16.0))
    feed(method, 0, 100.5)
    with counting() as counts:
        reply = method.branch().respond(Query("q", 0, 100.0), GENERATION)
    assert reply.text == "a"
    [shown] = chat.of("verify")
    assert shown.frames == [92.0, 96.0, 100.0] or len(shown.frames) <= 8
    assert counts["frames_gone"] > 0
    [router] = [a for a in chat.of("router") if "recall worker" in a.text]
    assert set(router.ids[:2]) <= set(shown.ids)
    assert len(router.ids) == 8


@pytest.mark.parametrize("delivery", ["log", "stream"])
def test_it_runs_on_apm_bench_like_any_method(tmp_path, delivery):
    """Six tasks of a small set through the engine; started again, it goes on from its states."""
    trajectory = load(variant="small").trajectories[1]
    wanted = ("ER", "EST", "ACR", "OCR", "RCR", "PRM")
    asks = [a for a in asks_of(trajectory) if a.candidate.task in wanted]
    asks = list({a.candidate.task: a for a in asks}.values())

    def run():
        method = methods.load("streammind").attach(IdealChat())
        with counting() as counts:
            found, sessions = walk(
                trajectory, tmp_path, method, asks, keep="all", delivery=delivery
            )
        assert [key for key, r in found.items() if not r.passed] == []
        return {key: r.raw_text for key, r in found.items()}, sessions, counts

    replies, sessions, counts = run()
    assert len(replies) == len(wanted)
    again, later, fewer = run()
    assert again == replies
    if delivery == "log":
        assert fewer["memory_writer_calls"] <= counts["memory_writer_calls"]
        assert len(later) <= len(sessions)
        assert list(tmp_path.rglob("memory.sqlite"))
