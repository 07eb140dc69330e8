"""Several servers of one model: streams stay where they were, and a dead server loses nothing."""

from __future__ import annotations

import threading
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from scripted_server import FREE, GREEDY, Server, frame, user

from bench_lib.chat.preflight import canary, preflight
from bench_lib.chat.replicas import Replicas, beginning
from bench_lib.errors import BenchError
from bench_lib.messages.chat import BudgetSpent, TransportError
from bench_lib.messages.settings import EndpointSettings
from bench_lib.opening import chat

QUICK = {"backoff_s": 0.001, "timeout_s": 2.0, "max_wait_s": 0.5, "retries": 1}


def echo(exchange):
    exchange.reply(exchange.text.strip()[::-1])


def replicas(*servers: Server, **given) -> Replicas:
    return Replicas("toy", [s.url for s in servers], EndpointSettings(**{**QUICK, **given}))


def stream(shade: int, length: int):
    """A question on a growing video: its first frame stays, the last ones are new."""
    shown = [frame(float(i), (shade + 7 * i) % 256) for i in range(length)]
    return user(f"stream {shade}, {length}", *shown)


def test_a_stream_stays_and_streams_are_shared_out():
    with Server(echo) as a, Server(echo) as b, Server(echo) as c:
        served = replicas(a, b, c)
        for length in range(1, 5):
            for shade in range(9):
                served.complete(stream(shade, length), FREE, GREEDY)
        homes = [Counter(e.text.strip().split(",")[0] for e in s.requests) for s in (a, b, c)]
    assert [len(own) for own in homes] == [3, 3, 3], "nine streams over three servers"
    assert all(set(own.values()) == {4} for own in homes), "each stream with one server"


def test_frames_told_apart_by_their_pixels_and_words_where_there_are_none():
    assert beginning(stream(1, 2)) == beginning(stream(1, 9)) != beginning(stream(2, 2))
    assert beginning(user("a")) != beginning(user("b"))


def test_a_server_that_dies_in_mid_run_loses_and_doubles_nothing():
    answered = Counter()
    lock, dead = threading.Lock(), threading.Event()

    def counted(exchange):
        if exchange.http.server.server_address[1] == a.port and dead.is_set():
            return exchange.http.connection.close()
        with lock:
            answered[exchange.text.strip()] += 1
        return exchange.reply(exchange.text.strip()[::-1])

    a, b = Server(counted), Server(counted)
    with a, b:
        served = replicas(a, b, concurrency=4)
        asked = [stream(shade, n) for n in range(1, 6) for shade in range(8)]

        def call(messages):
            text = served.complete(messages, FREE, GREEDY).text
            if sum(answered.values()) > 12:
                dead.set()
            return text

        with ThreadPoolExecutor(6) as pool:
            texts = list(pool.map(call, asked))
        assert texts == [m[0].parts[1].text[::-1] for m in asked]
        assert set(answered.values()) == {1}, "an answered request was asked of another server"
        before = len(a.requests)
        served.complete(stream(3, 9), FREE, GREEDY)
        assert len(a.requests) == before, "it is passed over while it is away"


def test_all_servers_gone_is_a_transport_error():
    with Server(echo) as a, Server(echo) as b:
        served = replicas(a, b)
    with pytest.raises(TransportError):
        served.complete(user("hm?"), FREE, GREEDY)


def test_the_limit_on_calls_is_one_for_all():
    with Server(echo) as a, Server(echo) as b:
        served = replicas(a, b, max_calls=3)
        for i in range(3):
            served.complete(stream(i, 1), FREE, GREEDY)
        with pytest.raises(BudgetSpent):
            served.complete(stream(4, 1), FREE, GREEDY)
        assert len(a.requests) + len(b.requests) == 3


def test_opened_by_a_list_of_addresses_and_one_model_by_its_revision():
    urls = "http://n1:8000/v1,http://n2:8000/v1"
    opened = chat.open(f"endpoint:Qwen/Q@{urls}")
    assert isinstance(opened, Replicas)
    assert opened.id == "Qwen/Q@n1:8000/v1,n2:8000/v1"
    alone = chat.open("endpoint:Qwen/Q@http://n3:8000/v1", revision="a1")
    both = chat.open(f"endpoint:Qwen/Q@{urls}", revision="a1")
    assert both.identity == alone.identity, "kept replies serve whatever the number of servers"
    with pytest.raises(BenchError, match="each once"):
        chat.open("endpoint:Qwen/Q@http://n1/v1,http://n1/v1")


def test_every_server_is_looked_at_before_a_run():
    def sees(exchange):
        seen = zlib.crc32(str(exchange.items).encode())
        exchange.reply(f"{seen}", usage={"prompt_tokens": 9, "frames": 0})

    with Server(sees) as a, Server(sees, model="other") as b:
        served = replicas(a, b)
        checks = {check.name: check.ok for check in preflight(served)}
        assert checks[f"model, 127.0.0.1:{a.port}"] is True
        assert checks[f"model, 127.0.0.1:{b.port}"] is False
    with Server(sees) as a, Server(sees) as b, Server(lambda e: e.reply("grey")) as blind:
        assert canary(replicas(a, b)).ok
        assert canary(replicas(a, blind)).ok is False
