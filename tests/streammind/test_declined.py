"""What a server declines is that call's matter, unless it declines everything."""

from __future__ import annotations

import pytest
from by_contract import ByContract, agent, ask, begin, entries, feed
from scripted_server import Server, connect, user

from bench_lib.exchange import Generation, Note
from bench_lib.measure import counting
from bench_lib.messages.chat import Contract, RequestRefused, RequestUnfit, TransportError
from bench_lib.streammind.models import UNFIT, called_for, turn_place

LONG = "HTTP 400: the prompt is longer than 8192 tokens"
DELEGATE = {"action": "delegate", "brief": {"goal": "g"}}
TASKS = {"tasks": [{"kind": "recall", "instruction": "i"}]}


def declined(times: int | None = None, then: object = None):
    """A rule that declines the first requests of its worker, or all."""
    made = []

    def rule(asked):
        made.append(asked)
        return RequestUnfit(LONG) if times is None or len(made) <= times else then

    return rule


@pytest.mark.parametrize(
    ("status", "unfit"),
    [(400, True), (413, True), (415, True), (422, True), (401, False), (403, False), (404, False)],
)
@pytest.mark.parametrize("inside", [False, True])
def test_access_and_this_request_are_different_things(status: int, unfit: bool, inside: bool):
    def answer(exchange):
        if inside:
            exchange.stream(f'{{"error": {{"message": "no", "code": {status}}}}}')
        else:
            exchange.error(status, "no")

    with Server(answer) as server, pytest.raises(RequestRefused) as error:
        connect(server).complete(user("hm?"), Contract("free"), Generation())
    assert isinstance(error.value, RequestUnfit) is unfit
    assert error.value.final is not unfit


def delegating(**rules):
    own = {
        "memory_writer": lambda a: {"text": "something", "key_frames": [{"id": a.ids[-1]}]},
        "front": DELEGATE,
        "router": lambda a: {"answer": a.user} if "recall worker" in a.text else TASKS,
        "recall": lambda a: (
            {"report": "found"} if "Result 1" in a.text else {"calls": [{"tool": "time_window"}]}
        ),
    }
    return ByContract(**own | rules)


@pytest.mark.parametrize(
    ("worker", "answer"),
    [
        ("front", "fallen back"),
        ("router", "fallen back"),
        ("recall", "Nothing was recalled."),
        ("distil", "found"),
        ("verify", "found"),
    ],
)
def test_no_worker_of_a_question_fails_it(worker: str, answer: str) -> None:
    chat = delegating(**{worker: declined()})
    method = feed(begin(agent(chat)), 0, 12.5)
    assert answer in ask(method, "q", 12.0).text
    assert len(chat.of(worker)) >= 1


def test_what_was_read_is_told_where_it_cannot_be_distilled() -> None:
    chat = delegating(distil=declined())
    method = feed(begin(agent(chat)), 0, 12.5)
    ask(method, "q", 12.0)
    assert "[m1 00:00:00 to 00:00:12] something" in chat.of("recall")[-1].text


def test_a_fallback_that_is_too_long_is_asked_for_in_short() -> None:
    chat = ByContract(front=declined(), fallback=declined(1, "in short"))
    method = feed(begin(agent(chat)), 0, 12.5)
    with counting() as counts:
        assert ask(method, "which cup?", 12.0).text == "in short"
    long, short = chat.of("fallback")
    assert counts["fallbacks_shortened"] == 1
    assert len(short.frames) < len(long.frames)
    assert "which cup?" in short.text


def test_a_declined_tick_is_a_gap_and_the_stream_goes_on() -> None:
    chat = ByContract(memory_writer=declined(2, {"text": "t"}), summary=declined(2))
    method = feed(begin(agent(chat, micro_ticks=1, macro_micros=1)), 0, 20.5)
    statuses = [e.body["status"] for e in entries(method, "fragment")]
    assert statuses == ["error", "error", "ok", "ok", "ok"]
    assert ask(method, "q", 20.0).text == "noted"


def test_a_declined_check_is_noted_and_the_next_one_made() -> None:
    said = {"satisfied": True, "confidence": 1.0, "message": "it is"}
    wish = {"action": "monitor", "monitor": {"condition": "it", "mode": "once"}}
    method = begin(agent(ByContract(front=wish, monitor=declined(2, said))))
    feed(method, 0, 2)
    method.watch(Note(0, 2.0, "tell me"), "w")
    feed(method, 2, 12)
    assert [e.body["error"] for e in entries(method, "check_failed")] == ["RequestUnfit"] * 2
    assert [a.observed_s for a in method.alerts(12.0)] == [6.0]


def test_a_model_that_declines_everything_ends_the_run() -> None:
    """An empty memory would be scored as one."""
    chat = ByContract(memory_writer=declined())
    method = begin(agent(chat))
    with pytest.raises(RequestRefused, match=f"first {UNFIT} requests of the memory_writer"):
        feed(method, 0, 60)
    assert len(chat.of("memory_writer")) == UNFIT
    later = ByContract(memory_writer=lambda a: {"text": "t"} if a.now_s < 8 else RequestUnfit(LONG))
    feed(begin(agent(later)), 0, 60)  # one was served: the others are too long


@pytest.mark.parametrize("worker", ["front", "router", "recall", "distil", "verify"])
def test_a_refused_key_is_never_taken_for_an_answer(worker: str) -> None:
    chat = delegating(**{worker: RequestRefused("HTTP 401: no such key")})
    method = feed(begin(agent(chat)), 0, 12.5)
    with pytest.raises(RequestRefused, match="no such key"):
        ask(method, "q", 12.0)


# ---- what is kept of what failed


def traced(method):
    """The names of the paths of all calls, and whether each failed."""
    kept = []
    method.stream.sink = kept.append
    return kept


def test_the_calls_of_a_question_that_failed_are_kept() -> None:
    chat = delegating(recall=TransportError("away"), router=TransportError("gone"))
    method = feed(begin(agent(chat)), 0, 12.5)
    kept = traced(method)
    with pytest.raises(TransportError, match="gone"):
        ask(method, "which cup?", 12.0)
    assert [(c.worker, bool(c.error)) for c in kept] == [("front", False), ("router", True)]
    assert {called_for(c.place) for c in kept} == {"ask@12:which cup?"}


def test_the_calls_of_an_instruction_that_failed_are_kept() -> None:
    method = begin(agent(ByContract(front=TransportError("gone"))))
    kept = traced(method)
    with pytest.raises(TransportError):
        method.watch(Note(0, 2.0, "tell me"), "case 7")
    assert [called_for(c.place) for c in kept] == [turn_place(2.0, "case 7")]


@pytest.mark.parametrize("clock", [{}, {"clock": "realtime", "speed": 50.0}])
def test_the_calls_of_a_tick_that_failed_are_kept(clock: dict) -> None:
    chat = ByContract(memory_writer=RequestRefused("no such key"))
    method = begin(agent(chat, **clock))
    kept = traced(method)
    with pytest.raises(RequestRefused):
        feed(method, 0, 60)
    assert {c.worker for c in kept} == {"memory_writer"}
    assert not method.stream.writer_busy


def test_an_exception_keeps_the_memory_s_trace() -> None:
    kept = []
    method = agent(ByContract())

    def walk() -> None:
        with method.tracing(lambda kind, record: kept.append((kind, record)), "T"):
            method.reset("T", 42)
            feed(begin(method), 0, 8.5)
            raise KeyError("somewhere")

    with pytest.raises(KeyError):
        walk()
    kind, record = kept[-1]
    assert kind == "memory"
    assert [e["kind"] for e in record["entries"]].count("fragment") == 2
    with pytest.raises(KeyError), agent().tracing(lambda *what: None, "T"):
        raise KeyError
