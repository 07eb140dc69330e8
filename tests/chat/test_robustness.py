"""A server that fails in every way a server can: calls end with a reply or a typed error."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_server import FREE, GREEDY, Server, connect, event, frame, user, whole

from bench_lib.chat import body, transport
from bench_lib.chat.cache import CachedChat
from bench_lib.chat.reply_stream import Fault, collect, events
from bench_lib.chat.transport import retry_after_s
from bench_lib.messages.chat import BudgetSpent, ChatError, RequestRefused, TransportError
from bench_lib.messages.settings import EndpointSettings

HTML = "<html><body>502 Bad Gateway</body></html>"
DELTA = json.dumps({"choices": [{"delta": {"content": "part"}, "finish_reason": None}]})


def first_fails(fault):
    """A handler whose first request meets a fault and whose next is answered."""
    return lambda e: fault(e) if e.number == 0 else e.reply("ok")


PASSING = {
    "busy": lambda e: e.error(429, "slow down", Retry_After="0.05"),
    "overloaded": lambda e: e.error(503, "loading the model"),
    "html with status 200": lambda e: e.send(200, HTML, "text/html"),
    "html with status 502": lambda e: e.send(502, HTML, "text/html"),
    "cut in an event": lambda e: e.stream(DELTA, DELTA, cut=True),
    "cut between events": lambda e: e.stream(DELTA),
    "malformed event": lambda e: e.stream('{"choices": [', "[DONE]"),
    "malformed body": lambda e: e.send(200, '{"choices": [{"mess'),
    "no choice": lambda e: e.send(200, '{"choices": []}'),
    "a choice of another form": lambda e: e.send(200, '{"choices": ["ok"]}'),
    "no object": lambda e: e.send(200, '["ok"]'),
    "error in the stream": lambda e: e.stream(DELTA, '{"error": {"message": "died", "code": 500}}'),
    "hangs up": lambda e: e.http.connection.shutdown(socket.SHUT_RDWR),
    "aborted": lambda e: e.reply("par", stop="abort"),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_what_may_pass_is_tried_again(fault):
    with Server(first_fails(fault)) as server:
        reply = connect(server).complete(user("hm?"), FREE, GREEDY)
    assert (reply.text, len(server.requests)) == ("ok", 2)


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_what_does_not_pass_ends_after_the_retries_with_its_reason(fault):
    with Server(fault) as server, pytest.raises(TransportError, match="failed 3 times"):
        connect(server, retries=2, max_wait_s=0.06).complete(user("hm?"), FREE, GREEDY)
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("status", "message", "says"),
    [
        (400, "At most 0 video(s) may be provided in one prompt", "At most 0 video"),
        (413, "too large", "too large"),
        (404, "no such model", "model's name"),
        (401, "who are you", "key from no environment variable"),
    ],
)
def test_a_refused_request_is_not_repeated(status, message, says):
    server = Server(lambda e: e.error(status, message))
    with server, pytest.raises(RequestRefused, match=says):
        connect(server).complete(user("hm?", frame(0.0, 1), video=True), FREE, GREEDY)
    assert len(server.requests) == 1


def test_a_refusal_inside_a_stream_is_not_repeated():
    error = json.dumps({"error": {"message": "prompt too long", "code": 400}})
    with Server(lambda e: e.stream(error)) as server, pytest.raises(RequestRefused, match="long"):
        connect(server).complete(user("hm?"), FREE, GREEDY)
    assert len(server.requests) == 1


def test_retry_after_holds_back_every_request_until_it_is_over():
    busy_until = time.monotonic() + 0.3

    def handler(exchange):
        if exchange.number == 0:
            exchange.error(429, "slow down", Retry_After="0.3")
        elif time.monotonic() < busy_until:
            exchange.error(429, "still", Retry_After="0.3")
        else:
            exchange.reply("ok")

    with Server(handler) as server:
        endpoint = connect(server, concurrency=1)
        with ThreadPoolExecutor(4) as pool:
            calls = [pool.submit(endpoint.complete, user(str(i)), FREE, GREEDY) for i in range(4)]
            assert [call.result().text for call in calls] == ["ok"] * 4
    assert len(server.requests) == 5  # one turned away, then four answered


class Clock:
    """A clock that only sleepers move; `meanwhile` is done in the first sleep that lasts."""

    def __init__(self):
        self.now_s, self.meanwhile = 0.0, None

    def monotonic(self):
        return self.now_s

    def sleep(self, seconds):
        work, self.meanwhile = (self.meanwhile, None) if seconds else (None, self.meanwhile)
        if work:
            work()
        self.now_s = max(self.now_s, seconds)


def test_a_request_that_begins_while_another_waits_for_a_busy_server_waits_too(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(transport, "time", clock)
    line = transport.Transport("http://127.0.0.1:9/v1", EndpointSettings(concurrency=4))
    busy, asked_at = iter([Fault("busy", wait_s=5.0)]), {}

    def once(name):
        asked_at.setdefault(name, clock.now_s)
        if name == "first" and (fault := next(busy, None)):
            raise fault

    clock.meanwhile = lambda: line.persist(lambda: once("second"))
    line.persist(lambda: once("first"))
    assert asked_at["first"] == 0.0
    assert asked_at["second"] >= 5.0


def test_waits_grow_to_their_limit_and_a_server_that_names_one_is_obeyed(monkeypatch):
    clock, waits = Clock(), []
    clock.sleep = lambda seconds: waits.append(seconds) if seconds else None
    monkeypatch.setattr(transport, "time", clock)
    settings = EndpointSettings(retries=8, backoff_s=0.5, max_wait_s=20.0)
    line = transport.Transport("http://127.0.0.1:9/v1", settings)

    def away():
        raise Fault("away", wait_s=7.0 if len(waits) == 7 else None)

    with pytest.raises(TransportError, match="failed 9 times"):
        line.persist(away)
    longest = [0.5, 1, 2, 4, 8, 16, 20]
    assert all(most / 2 <= wait <= most for wait, most in zip(waits, longest, strict=False))
    assert 7.0 <= waits[7] <= 7.7


def test_a_wait_beyond_the_limit_is_an_error_at_once():
    server = Server(lambda e: e.error(429, "tomorrow", Retry_After="86400"))
    with server, pytest.raises(TransportError, match="86400 s"):
        connect(server).complete(user("hm?"), FREE, GREEDY)
    assert len(server.requests) == 1


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_retry_after_in_seconds_and_nonsense(n):
    assert retry_after_s(str(n)) == n
    assert retry_after_s("soon") is retry_after_s("") is None
    assert retry_after_s("Thu, 01 Jan 1970 00:00:00 GMT") == 0.0


def test_a_silent_server_and_one_that_drips_run_into_their_limits():
    stop = threading.Event()
    with Server(lambda e: stop.wait(5)) as server:
        with pytest.raises(TransportError, match="silent"):
            connect(server, timeout_s=0.1, retries=1).complete(user("hm?"), FREE, GREEDY)
        server.handler = lambda e: e.stream(*[DELTA] * 100, gap_s=0.02)
        with pytest.raises(TransportError, match="deadline_s"):
            connect(server, deadline_s=0.1, retries=0).complete(user("hm?"), FREE, GREEDY)
        stop.set()


def test_a_killed_and_restarted_server_is_waited_for(tmp_path):
    def echo(exchange):
        time.sleep(0.002)
        exchange.reply(exchange.text[::-1])

    server = Server(echo).__enter__()
    cached = CachedChat(connect(server, retries=12, concurrency=4), tmp_path)
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(cached.complete, user(f"q{i}"), FREE, GREEDY) for i in range(40)]
        while len(server.requests) < 12:
            time.sleep(0.001)
        server.__exit__()
        time.sleep(0.05)
        with server:  # again, at the same port
            assert [c.result().text for c in calls] == [f"q{i}"[::-1] for i in range(40)]
    assert len(list(tmp_path.glob("??/*.json"))) == 40


def test_a_dead_server_is_waited_for_once_and_then_asked_once_a_call():
    server = Server(lambda e: e.error(503, "gone"))
    with server:
        endpoint = connect(server, retries=3)
        for tries in (4, 1, 1):
            before = len(server.requests)
            with pytest.raises(TransportError, match="gone"):
                endpoint.complete(user("hm?"), FREE, GREEDY)
            assert len(server.requests) - before == tries
        server.handler = lambda e: e.reply("ok")
        endpoint.complete(user("hm?"), FREE, GREEDY)
        server.handler = lambda e: e.error(503, "gone again")
        before = len(server.requests)
        with pytest.raises(TransportError, match="failed 4 times"):
            endpoint.complete(user("hm?"), FREE, GREEDY)
        assert len(server.requests) - before == 4  # it had come back, so it is waited for again


def test_a_tenth_of_the_requests_failing_200_calls_end_whole_or_typed(tmp_path):
    rng = random.Random(7)
    faults = [*PASSING.values(), lambda e: e.error(400, "no")]
    lock = threading.Lock()

    def handler(exchange):
        with lock:
            fails = rng.random() < 0.1
            fault = rng.choice(faults)
        fault(exchange) if fails else exchange.reply(exchange.text[::-1])

    def call(i):
        try:
            return cached.complete(user(f"question {i}"), FREE, GREEDY).text
        except ChatError as error:
            return error

    with Server(handler, pause=lambda: time.sleep(0.001)) as server:
        cached = CachedChat(connect(server, concurrency=3, retries=3), tmp_path)
        with ThreadPoolExecutor(12) as pool:
            ended = list(pool.map(call, range(200)))
        right = [f"question {i}"[::-1] for i in range(200)]
        failed = [i for i in range(200) if ended[i] != right[i]]
        assert all(isinstance(ended[i], RequestRefused) for i in failed)
        assert 0 < len(failed) < 10
        assert server.busiest <= 3
        kept = list(tmp_path.glob("??/*"))
        assert len(kept) == 200 - len(failed)
        assert not [p for p in tmp_path.rglob("*") if p.name.startswith(".")]

        server.handler = lambda e: e.reply(e.text[::-1])
        asked = len(server.requests)
        with ThreadPoolExecutor(12) as pool:
            assert list(pool.map(call, range(200))) == right
        assert len(server.requests) - asked == len(failed)


@pytest.mark.parametrize("places", [1, 3, 12])
def test_no_more_requests_are_under_way_than_there_are_places(places):
    together = threading.Barrier(places, timeout=10)  # broken if fewer are let through
    server = Server(lambda e: e.reply("ok"), pause=together.wait)
    with server, ThreadPoolExecutor(12) as pool:
        endpoint = connect(server, concurrency=places)
        list(pool.map(lambda i: endpoint.complete(user(str(i)), FREE, GREEDY), range(24)))
    assert server.busiest == places


def test_the_calls_a_user_allows_are_not_exceeded():
    with Server(lambda e: e.reply("ok")) as server:
        endpoint = connect(server, max_calls=5)
        with ThreadPoolExecutor(8) as pool:
            calls = [pool.submit(endpoint.complete, user("hm?"), FREE, GREEDY) for _ in range(12)]
        failed = [c.exception() for c in calls if c.exception()]
    assert len(server.requests) == 5
    assert [type(error) for error in failed] == [BudgetSpent] * 7


def test_the_cost_a_user_allows_ends_the_calls_before_it_is_passed():
    usage = {"prompt_tokens": 1000, "completion_tokens": 500}
    with Server(lambda e: e.reply("ok", usage=usage)) as server:
        # Each call costs 0.002 + 0.003 of a unit; 0.018 allow three of them.
        endpoint = connect(server, max_cost=0.018, price_in=2.0, price_out=6.0)
        for _ in range(3):
            endpoint.complete(user("hm?"), FREE, GREEDY)
        with pytest.raises(BudgetSpent, match=r"0\.0150 of max_cost 0\.018"):
            endpoint.complete(user("hm?"), FREE, GREEDY)
    assert len(server.requests) == 3
    assert endpoint.budget.cost == pytest.approx(0.015)


@pytest.mark.parametrize(
    "usage",
    [
        None,
        [7],
        {"total_tokens": 9},
        {"prompt_tokens": 9},
        {"prompt_tokens": -9, "completion_tokens": 9},
        {"prompt_tokens": "9", "completion_tokens": 9},
        {"prompt_tokens": float("nan"), "completion_tokens": 9},
        {"prompt_tokens": True, "completion_tokens": 9},
    ],
)
def test_a_cost_limit_without_token_counts_stops_instead_of_reading_zero(usage):
    said = whole("ok", top={"usage": usage})
    with Server(lambda e: e.send(200, said)) as server:
        endpoint = connect(server, max_cost=1.0, price_in=1.0)
        endpoint.complete(user("hm?"), FREE, GREEDY)
        with pytest.raises(BudgetSpent, match="no token counts"):
            endpoint.complete(user("hm?"), FREE, GREEDY)


WHOLE = [
    'data: {"choices": [{"delta": {"content": "warm "}}]}',
    "",
    ": a comment",
    'data: {"choices": [{"delta": {"content": "milk"}}]}',
    'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}',
    "data: [DONE]",
]


@settings(deadline=None)
@given(st.integers(0, len("\n".join(WHOLE))))
def test_a_stream_cut_anywhere_is_whole_or_a_fault_and_never_a_shorter_reply(cut):
    text = "\n".join(WHOLE)[:cut]
    try:
        reply = collect(events(text.split("\n")), 0.0)
    except Fault:
        assert cut < len("\n".join(WHOLE))
    else:
        assert (reply.text, reply.stop) == ("warm milk", "end")


SAID = ["温牛奶 ", "☕\u2028\x85", "", "\ud83e", "\udd5b", " end"]


@settings(deadline=None)
@given(st.data())
def test_a_stream_split_anywhere_gives_the_same_reply(data):
    """Network pieces end inside characters, between CR and LF, inside and between events."""
    sent = [*map(event, SAID), event("", "stop"), "[DONE]"]
    end = data.draw(st.sampled_from(["\n\n", "\r\n\r\n"]))
    dressing = data.draw(st.sampled_from(["", ": ping" + end, "id: 7" + end[: len(end) // 2]]))
    mark = data.draw(st.sampled_from(["", "\ufeff"]))
    stream = (mark + "".join(f"{dressing}data: {one}{end}" for one in sent)).encode()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=40)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    reply = collect(events(body.lines(body.text(pieces, "", 10**6))), 0.0)
    assert (reply.text, reply.stop) == ("温牛奶 ☕\u2028\x85🥛 end", "end")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["choices", "message", "delta", "content", "finish_reason", "index", "usage", "error",
             "logprobs", "top_logprobs", "role", "model", "code", "tool_calls", "object"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(st.lists(JSON, max_size=3), st.booleans())
def test_whatever_json_comes_it_is_a_reply_or_a_fault(values, streamed):
    """With a finish reason put in, so that what else is odd is met too."""
    sent = [json.dumps(value) for value in values] + [event("", "stop")] * streamed
    try:
        reply = collect(events([f"data: {one}" for one in [*sent, "[DONE]"]]), 0.0)
    except Fault:
        return
    reply.text.encode()
    assert reply.stop in ("end", "length", "refused")
    assert all(type(n) is int and n >= 0 for n in reply.usage.values())


def test_replies_that_come_after_a_reply_are_nobodys():
    """A server or proxy that answers twice would shift every later reply by one."""

    def twice(exchange):
        for name in (exchange.text, "stray"):
            text = whole(name).encode()
            head = (
                f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(text)}"
            )
            exchange.http.wfile.write(head.encode() + b"\r\n\r\n" + text)

    with Server(twice) as server:
        chat = connect(server, stream=False)
        said = [chat.complete(user(f"q{i}"), FREE, GREEDY).text for i in range(4)]
    assert said == [f"q{i}" for i in range(4)]
