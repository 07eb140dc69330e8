"""Recalls over hours: bounded calls of bounded length, coarser records, and no wait on the loop."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from by_contract import ByContract, agent, ask, begin
from hypothesis import given
from hypothesis import strategies as st

from bench_lib.streammind import bank as banks
from bench_lib.streammind.bank import Bank
from bench_lib.streammind.log import Entry
from bench_lib.streammind.recall import CHARACTERS, PIECES, SLACK, cut
from bench_lib.streammind.recall_tools import EDGES, FRAMES, Tools

TICK = "The host takes a thing from the shelf and says what it is for. "
CALLS = 9
"""Of a recall that reads one stretch: two rounds, the pieces, and the look at the frames."""


def memory(ticks: int, words: int = 9, summed_up: bool = True) -> list[Entry]:
    """A log of some ticks of four seconds, with `words` sentences each, as the writer leaves it."""
    found = [Entry("session", 0, 0, 0, {"id": "S", "index": 0, "wall_s": None})]

    def add(kind: str, start_s: float, end_s: float, **body: object) -> None:
        found.append(Entry(kind, start_s, end_s, end_s, body))

    def close(level: str, below: str, n: int, of: int, end_s: float, lasts_s: float) -> None:
        add(
            level,
            end_s - lasts_s,
            end_s,
            id=f"{level[0].upper()}{n}",
            children=[f"{below}{k}" for k in range((n - 1) * of + 1, n * of + 1)],
            text=f"in short, part {n}. {TICK * 14}" if summed_up else "",
            status="ok",
            reason="time",
        )

    for n in range(ticks):
        start_s, micro = 4.0 * n, n // 6 + 1
        event, frame = f"m{micro}", f"f{4000 * n:07d}"
        for key in ("e1", f"e{2 + n % 50}"):
            body = {"type": "object", "name": key, "aliases": [], "attributes": {"n": str(n)}}
            add("entity", start_s, start_s + 4, id=key, frames=[frame], event=event, **body)
        seen = {"frames": [frame], "entities": ["e1"], "status": "ok", "seen_s": start_s}
        add("fragment", start_s, start_s + 4, event=event, text=f"{n}: {TICK * words}", **seen)
        edge = {"src": "e1", "label": "takes", "dst": f"e{2 + n % 50}", "event": event}
        add("relation", start_s, start_s + 4, **edge)
        if n % 6 == 5:
            add("micro", start_s - 20, start_s + 4, event=event, reason="ticks")
        if n % 30 == 29:
            close("macro", "m", n // 30 + 1, 5, start_s + 4, 120)
        if n % 120 == 119:
            close("super", "M", n // 120 + 1, 4, start_s + 4, 480)
    return found


def asked_over(entries: list[Entry], *calls: dict, **rules):
    """The chat of an agent with that memory, once it was asked, and its answer."""
    tasks = {"tasks": [{"kind": "recall", "instruction": "what was it?"}]}
    own = {
        "front": {"action": "delegate", "brief": {"goal": "g"}},
        "router": lambda a: {"answer": "a"} if "recall worker" in a.text else tasks,
        "recall": lambda a: {"report": "r"} if "Result 1" in a.text else {"calls": list(calls)},
    }
    chat = ByContract(**own | rules)
    method = begin(agent(chat, without=["memory_writer"]))
    for entry in entries[1:]:
        method.stream.log.append(entry)
        method.stream.bank.take(entry)
    reply = ask(method, "what was it?", entries[-1].end_s)
    return chat, reply


@pytest.mark.parametrize("minutes", [1, 20, 60, 480])
@pytest.mark.parametrize("tool", [{"tool": "time_window"}, {"tool": "events_of", "entity": "e1"}])
def test_a_recall_makes_few_calls_of_bounded_length(minutes: int, tool: dict) -> None:
    """Twenty minutes hold 170,000 characters, a working day four million."""
    chat, _ = asked_over(memory(15 * minutes), tool)
    own = [a for a in chat.asked if a.worker in ("recall", "distil", "verify")]
    assert len(own) <= CALLS
    assert max(len(a.text) for a in own) <= CHARACTERS
    read = "".join(a.text for a in chat.of("distil"))
    newest = "[M240 " if minutes == 480 else f"{15 * minutes - 1}: {TICK}"
    assert newest in read
    oldest = {1: "[m1 ", 20: "[M1 ", 60: "[M1 ", 480: "[S1 "}[minutes]
    assert oldest in read
    assert len(chat.of("distil")) <= PIECES


def test_nothing_of_a_stretch_is_lost_between_pieces() -> None:
    entries = memory(200)
    chat, _ = asked_over(entries, {"tool": "time_window"})
    read = "".join(a.text for a in chat.of("distil"))
    texts = [e.body["text"] for e in entries if e.kind == "fragment"]
    assert len(chat.of("distil")) > 1
    assert all(text[:12] in read for text in texts)


def test_what_no_summary_stands_for_is_left_out_and_said_so() -> None:
    chat, _ = asked_over(memory(900, summed_up=False), {"tool": "time_window"})
    read = "".join(a.text for a in chat.of("distil"))
    assert "earlier events are left out: give a shorter stretch of time" in read
    assert "899: " in read
    assert len(chat.of("distil")) <= PIECES
    shorter, _ = asked_over(
        memory(900, summed_up=False), {"tool": "time_window", "start": 400, "end": "00:08:00"}
    )
    read = "".join(a.text for a in shorter.of("distil"))
    assert "left out" not in read
    assert "110: " in read


def test_one_event_longer_than_all_room_is_cut() -> None:
    entries = memory(6, words=4000)
    chat, _ = asked_over(entries, {"tool": "search_events", "text": "shelf"})
    assert len(chat.of("distil")) == PIECES
    assert "characters more)" in chat.of("distil")[-1].text
    assert max(len(a.text) for a in chat.asked if a.worker == "distil") <= CHARACTERS


def test_many_calls_of_a_round_share_its_pieces() -> None:
    windows = [{"tool": "time_window", "start": 100 * n} for n in range(9)]
    chat, reply = asked_over(memory(900), *windows)
    told = chat.of("recall")[-1].text
    assert len(chat.of("distil")) <= PIECES
    assert told.count(f"It was not made: at most {PIECES} calls can be given together") == 3
    assert max(len(a.text) for a in chat.asked if a.worker == "recall") <= CHARACTERS
    assert reply.text


def test_what_a_model_makes_of_it_is_bounded_too() -> None:
    """A model that copies instead of distilling, round after round."""
    copied = {"text": "x" * 50_000}
    again = {"calls": [{"tool": "time_window"}]}
    chat, _ = asked_over(memory(900), distil=copied, recall=again)
    for worker in ("recall", "router"):
        assert max(len(a.text) for a in chat.asked if a.worker == worker) <= CHARACTERS
    assert len(chat.of("distil")) == 3 * PIECES


@given(st.text(alphabet="ab\n", max_size=400), st.integers(1, 3))
def test_pieces_are_the_text(text: str, times: int) -> None:
    most = SLACK + 50
    text = text * 40 * times
    pieces = cut(text, most)
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= most
    assert len(pieces) <= max(1, -(-len(text) // (most - SLACK)))


def test_the_other_tools_are_bounded() -> None:
    bank = Bank.at(memory(3600), 1e9)
    tools = Tools(bank, 5)
    frames = tools.frames_of(bank.entities["e1"])
    assert len(frames.frames) == FRAMES
    assert frames.lines[-1].startswith("(3536 frames between these are left out")
    assert {frames.frames[0], frames.frames[-1]} == {"f0000000", "f14396000"}
    assert len(tools.frames_of(bank.entities["e1"], 100, 300).frames) == 51
    graph = tools.traverse(bank.entities["e1"], 6)
    assert len(graph.lines) == EDGES + 1
    assert graph.lines[0].startswith("(3400 relations are left out")
    assert "03:59:5" in graph.lines[-1]  # the newest are told
    assert len(tools.traverse(bank.entities["e1"], 1, (), 0, 100).lines) == 26
    near = tools.traverse(bank.entities["e2"], 1)
    assert len(near.lines) == 72


def test_a_bank_is_built_in_steps_that_do_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: twice the hours are twice the steps."""
    steps = Counter()
    real = banks.Relation.__setattr__

    def counting(self, name, value):
        steps["relation"] += 1
        real(self, name, value)

    monkeypatch.setattr(banks.Relation, "__setattr__", counting)
    work = []
    for ticks in (900, 1800):
        steps.clear()
        placed = [
            Entry("relation", 4 * n, 4 * n + 4, 4 * n + 4,
                  {"src": "cup", "label": "in", "dst": f"e{n % 7}", "event": "m1"})
            for n in range(ticks)
        ]  # fmt: skip
        Bank.at([*memory(ticks), *placed], 1e9)
        work.append(steps["relation"])
    assert work[1] < 2.05 * work[0]


def test_the_graph_is_walked_once_for_each_edge() -> None:
    bank = Bank.at(memory(1800), 1e9)
    looked = Counter()

    class Watched(banks.Relation):
        def __getattribute__(self, name):
            looked[name] += 1
            return super().__getattribute__(name)

    bank.relations = [Watched(*vars(r).values()) for r in bank.relations]
    looked.clear()
    Tools(bank, 5).traverse(bank.entities["e1"], 3)
    assert looked["src"] < 6 * len(bank.relations)


def test_neither_memory_nor_recall_holds_up_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question's bank is built, and read, in threads of their own: other streams go on."""
    where = []

    def noting(work):
        def instead(*args, **more):
            where.append(threading.current_thread().name)
            return work(*args, **more)

        return instead

    monkeypatch.setattr(Bank, "at", classmethod(noting(Bank.at.__func__)))
    monkeypatch.setattr(Tools, "time_window", noting(Tools.time_window))
    asked_over(memory(60), {"tool": "time_window"})
    assert len(where) == 2
    assert "streammind" not in where
