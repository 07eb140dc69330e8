"""What servers do wrong, one case each: an ask is answered whole, or ends in an error and is free.

Each case answers a question whose right option is A. A reply that is not whole would say B, so a
wrong score shows which rule let it through. Afterwards the server is well again, and the same ask
is answered from it: nothing of the misbehaviour was kept.
"""

from __future__ import annotations

import gzip
import json
import time
import tracemalloc
import zlib
from dataclasses import dataclass

import pytest
from scripted_server import Server, connect, event, raw, whole

from bench_lib import methods, prompts
from bench_lib.asks.ask import Ask
from bench_lib.chat.cache import CachedChat
from bench_lib.engine.answer import Moment, Setting, answer
from bench_lib.engine.conditions import Feed
from bench_lib.schema import Candidate, Option, Probe, Session
from bench_lib.tasks import APM_BENCH
from bench_lib.video.stream import Clip, SessionInfo

LIMIT_S = 20.0
"""No case may take longer, though some servers would go on for ever."""
MOST_BYTES = 48 * 2**20
"""No case may need more memory at once, though some servers would send gigabytes."""
QUICK = {"retries": 2, "max_wait_s": 0.01, "logprobs": 1}
SETTING = Setting(APM_BENCH, prompts.load("apm"))
SESSION = Session(id="S1", index=0, spans=(), duration_s=60.0)
CANDIDATE = Candidate(
    id="c1",
    task="ER",
    question="Where was the cup?",
    options=tuple(Option(id=letter, text=f"place {letter}") for letter in "ABCD"),
    answer="A",
    probes=(Probe(id="q", session="S1", t_s=10.0),),
)
A, B = '{"answer": "A"}', '{"answer": "B"}'
DONE = "[DONE]"
DEEP = "[" * 100_000 + "]" * 100_000
BOMB = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
BOMB = b"".join([*(BOMB.compress(bytes(2**20)) for _ in range(256)), BOMB.flush()])


def asked(chat):
    """The record of the one ask, as a run would write it."""
    method = methods.load("blind").attach(chat)
    method.reset("t", 42)
    method.begin_session(SessionInfo("S1", 0, None, (16, 16)))
    at = Moment((SESSION,), Feed(0, SESSION, ((0.0, 60.0),)), Clip(0, ()))
    return answer(method, Ask("t", CANDIDATE, CANDIDATE.probes[0]), at, "t", SETTING)


@dataclass(frozen=True)
class Case:
    """A misbehaviour; the ask's status; the requests it takes with two further tries.

    An `endless` one ends by the client's limit in seconds, which is short there.
    """

    handler: object
    status: str = "error"
    requests: int = 3
    endless: bool = False


def fault(handler):
    return Case(handler)


def drips(*pieces):
    """Raw bytes of a connection, one piece at a time, the last one for ever."""
    return Case(dripping(*pieces), endless=True)


def fine(handler):
    return Case(handler, "ok", 1)


def says(payload, status=200, **headers):
    """A body and its headers, as they are."""
    return lambda e: raw(e, payload, status=status, **headers)


def stream(*data, **headers):
    """Events as they are given, as one body."""
    lines = "".join(f"data: {item}\n\n" for item in data)
    return says(lines, **{"Content_Type": "text/event-stream", **headers})


def endless(head, piece, **headers):
    """A body that never ends, as long as somebody reads it."""

    def handler(exchange):
        raw(exchange, head, Content_Length="", **headers)
        while True:
            exchange.http.wfile.write(piece)

    return handler


def dripping(*pieces, every_s=0.02):
    """A handler that sends the pieces one by one, the last one for ever."""

    def handler(exchange):
        for piece in pieces[:-1]:
            exchange.http.wfile.write(piece)
        while True:
            exchange.http.wfile.write(pieces[-1])
            exchange.http.wfile.flush()
            time.sleep(every_s)

    return handler


def closing(data):
    """Raw bytes of a connection that is closed after them."""

    def handler(exchange):
        exchange.http.wfile.write(data)
        exchange.http.close_connection = True

    return handler


SSE = {"Content_Type": "text/event-stream"}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
TWO = [{"index": 0, "message": {"content": c}, "finish_reason": "stop"} for c in (B, A)]
FAILED = {"message": "upstream failed", "code": 502}

NOT_WHOLE = {
    # No finish reason, or none that is known
    "half a reply and [DONE]": fault(stream(event('{"answ'), DONE)),
    "a reply and [DONE] without a reason": fault(stream(event(B), event(""), DONE)),
    "a reason of null": fault(says(whole(B, None))),
    "a reason left out": fault(says(json.dumps({"choices": [{"message": {"content": B}}]}))),
    "an empty reason": fault(says(whole(B, ""))),
    "reason error": fault(says(whole(B, "error"))),
    "reason abort": fault(stream(event(B), event("", "abort"), DONE)),
    "an unknown reason": fault(says(whole(B, "insufficient_system_resource"))),
    "a reason in capitals": fault(says(whole(B, "STOP"))),
    "a reason that is no text": fault(says(whole(B, {"type": "stop"}))),
    "a reason that is true": fault(says(whole(B, True))),
    "two reasons": fault(stream(event(B, "stop"), event("", "length"), DONE)),
    "[DONE] before the reason": fault(stream(event(B), DONE, event("", "stop"))),
    "the reason of another choice": fault(stream(event(B), event("", "stop", index=1), DONE)),
    "text after the reason": fault(stream(event(A, "stop"), event(B), DONE)),
    "a second reply after the first": fault(stream(event(B, "stop"), event(A, "stop"), DONE)),
    # Errors in the body of a success
    "an error in the choice": fault(says(whole(B, "stop", error=FAILED))),
    "reason and error in the choice": fault(says(whole(B, "error", error=FAILED))),
    "an error in the message": fault(says(whole(B, message={"error": FAILED}))),
    "an error beside the choices": fault(says(whole(B, top={"error": FAILED}))),
    "an error of plain text": fault(says(whole(B, top={"error": "out of memory"}))),
    "an error in a piece": fault(stream(event(B, "stop", delta={"error": FAILED}), DONE)),
    "an error after the text": fault(stream(event(B, "stop"), json.dumps({"error": FAILED}), DONE)),
    "an object that is an error": fault(says('{"object": "error", "message": "no", "code": 500}')),
    "an event of the type error": fault(
        says(f'data: {event(B, "stop")}\n\nevent: error\ndata: {{"message": "no"}}\n\n', **SSE)
    ),
    "a detail and no choices": fault(says('{"detail": "Internal Server Error"}')),
    "an error that is 100,000 deep": fault(says(f'{{"error": {{"message": {DEEP}}}}}')),
    "an error of another form": fault(says('{"error": {"message": ["no", "\\ud800"]}}')),
    # Choices, messages, roles
    "no choice": fault(says('{"choices": []}')),
    "choices of null": fault(says('{"choices": null}')),
    "choices that are an object": fault(says('{"choices": {"0": {}}}')),
    "a choice that is text": fault(says('{"choices": ["B"]}')),
    "a choice without a message": fault(says('{"choices": [{"finish_reason": "stop"}]}')),
    "a completion of the older form": fault(
        says(json.dumps({"choices": [{"text": B, "finish_reason": "stop"}]}))
    ),
    "a message that is text": fault(
        says(json.dumps({"choices": [{"message": B, "finish_reason": "stop"}]}))
    ),
    "content that is a number": fault(says(whole(7))),
    "content that is a list": fault(says(whole([{"type": "text", "text": B}]))),
    "two choices of one index": fault(says(json.dumps({"choices": TWO}))),
    "only the second choice": fault(says(whole(B, index=1))),
    "an index that is text": fault(says(whole(B, index="0"))),
    "words of a tool": fault(says(whole(B, message={"role": "tool"}))),
    "a role that changes": fault(
        stream(event(A), event(B, delta={"role": "user"}), event("", "stop"), DONE)
    ),
    "a tool call": fault(says(whole(None, "tool_calls", message={"tool_calls": [{"id": "1"}]}))),
    "a tool call that says stop": fault(says(whole(B, message={"tool_calls": [{"id": "1"}]}))),
    "a function call": fault(says(whole(B, message={"function_call": {"name": "f"}}))),
    "pieces and then the whole": fault(stream(event(A), whole(A, None), event("", "stop"), DONE)),
    "the whole again and again": fault(stream(whole('{"ans', None), whole(B), DONE)),
    "two models in one reply": fault(
        stream(event(A, top={"model": "m1"}), event("", "stop", top={"model": "m2"}), DONE)
    ),
    # Bodies
    "an empty body": fault(says("")),
    "null": fault(says("null")),
    "a number": fault(says("7")),
    "a list": fault(says(f"[{whole(B)}]")),
    "100,000 deep": fault(says(DEEP)),
    "100,000 deep beside the choice": fault(says(whole(B)[:-1] + f', "x": {DEEP}}}')),
    "100,000 deep in an event": fault(stream(event(A), DEEP, event("", "stop"), DONE)),
    "half a body": fault(says(whole(B)[:-9])),
    "more than a body": fault(says(whole(B) + whole(A))),
    "a number of 5,000 digits": fault(says(whole(B)[:-1] + f', "x": {"9" * 5000}}}')),
    "HTML": fault(says("<html>502</html>", Content_Type="text/html")),
    "a stream that is called JSON": fault(says(f"data: {event(B, 'stop')}\n\ndata: [DONE]\n\n")),
    "JSON that is called a stream": fault(says(whole(B), **SSE)),
    "a line of another form": fault(
        says(f"data: {event(A)}\n\n{event('')}\n\ndata: {event('', 'stop')}\n\n", **SSE)
    ),
    "an event that is no JSON": fault(stream(event(A), "{'a': 1}", event("", "stop"), DONE)),
    "an event that is cut": fault(stream(event(A), event(B)[:-4], event("", "stop"), DONE)),
    "a NUL among the bytes": fault(says(whole(B).replace("B", "B\0"))),
    "bytes that are no UTF-8": fault(says(whole(B).replace("B", "é").encode("latin-1"))),
    "UTF-16": fault(says(whole(B).encode("utf-16"))),
    "a last character that is cut": fault(
        says(f"data: {event(A, 'stop')}\n\ndata: é".encode()[:-1], **SSE)
    ),
    # Compression and size
    "a bomb": fault(says(BOMB, Content_Encoding="gzip")),
    "a bomb in a stream": fault(says(BOMB, Content_Encoding="gzip", **SSE)),
    "a bomb in a bomb": fault(says(gzip.compress(BOMB), Content_Encoding="gzip, gzip")),
    "half of a compressed body": fault(
        says(gzip.compress(whole(B).encode())[:-9], Content_Encoding="gzip")
    ),
    "a damaged compressed body": fault(says(b"\x1f\x8b" + bytes(40), Content_Encoding="gzip")),
    "a plain body called gzip": fault(says(whole(B), Content_Encoding="gzip")),
    "an unknown encoding": fault(says(whole(B), Content_Encoding="br")),
    "a reply without an end": fault(endless('{"choices": "', bytes([65]) * 2**16)),
    "a line without an end": fault(endless("data: ", bytes([65]) * 2**16, **SSE)),
    "events without an end": fault(
        endless("", f"data: {event('', filler='x' * 2**15)}\n\n".encode(), **SSE)
    ),
    "comments without an end": fault(endless("", b": " + b"ping" * 2**13 + b"\n\n", **SSE)),
    "a thousand megabytes of blanks": fault(endless("", b" " * 2**16)),
    # Connections
    "no HTTP": fault(closing(b"SSH-2.0-OpenSSH_9.2\r\n")),
    "nothing": fault(closing(b"")),
    "a body shorter than told": fault(
        closing(HEAD + b"Content-Length: 999\r\n\r\n" + whole(B).encode())
    ),
    "chunks of another form": fault(closing(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")),
    "a last chunk that is missing": fault(
        closing(
            HEAD.replace(b"application/json", b"text/event-stream")
            + b"Transfer-Encoding: chunked\r\n\r\n10\r\ndata: "
        )
    ),
    "a head that drips": drips(b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "a body that drips": drips(HEAD + b"Content-Length: 99999\r\n\r\n", b" "),
    "continue, continue": drips(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a stream that only keeps alive": drips(
        HEAD.replace(b"application/json", b"text/event-stream") + b"\r\n", b": ping\n\n"
    ),
    # Statuses
    **{
        f"status {status}": fault(says(whole(B), status))
        for status in (202, 204, 206, 408, 425, 429, 500, 502, 503, 504, 507, 520, 521, 522, 523)
    },
    "status 524": fault(says("<html>a timeout occurred</html>", 524, Content_Type="text/html")),
    "status 530 and 100,000 deep": fault(says(DEEP, 530)),
    "status 500 and no end": fault(endless("", b"x" * 2**16, status=500)),
    "status 401": Case(says('{"error": "who?"}', 401), requests=1),
    "status 307": Case(says("", 307, Location="http://127.0.0.1:9/"), requests=1),
    "status 400 and 100,000 deep": Case(says(DEEP, 400), requests=1),
    "status 422 and a bomb": Case(says(BOMB, 422, Content_Encoding="gzip"), requests=1),
    "status 501": Case(says("", 501), requests=1),
    "an error of the request in the choice": Case(
        says(whole(B, error={"message": "moderated", "code": "403"})), requests=1
    ),
}
PIECES = (event('{"answer"'), event(': "A"}'), event("", "stop"))
LINES = [f"data: {one}\n\n" for one in (*PIECES, DONE)]
ODD_USAGE = {
    "a list": [1, 2],
    "text": "many",
    "negative": {"prompt_tokens": -5, "completion_tokens": 2},
    "texts": {"prompt_tokens": "5", "completion_tokens": None},
    "halves": {"prompt_tokens": 5.5, "completion_tokens": True},
    "too large": {"prompt_tokens": 10**40, "completion_tokens": 1},
    "nested": {"prompt_tokens": {"prompt_tokens": [1]}, "details": [{}]},
}
ODD_LOGPROBS = {
    "a list": [1],
    "text": {"content": "x"},
    "no values": {"content": [{}]},
    "values of text": {"content": [{"top_logprobs": [{"logprob": "-1"}]}]},
    "values that are none": {"content": [{"top_logprobs": [None, 3]}]},
    "too large": {"content": [{"top_logprobs": [{"logprob": -(10**400)}]}]},
}
WHOLE = {
    "CRLF": fine(says("".join(LINES).replace("\n", "\r\n"), **SSE)),
    "no blanks after the colon": fine(says("".join(LINES).replace("data: ", "data:"), **SSE)),
    "no blank lines": fine(says("".join(LINES).replace("\n\n", "\n"), **SSE)),
    "comments, ids and waits": fine(
        says(": hi\n\n" + "id: 1\nretry: 5\n: more\n".join(LINES), **SSE)
    ),
    "a byte-order mark": fine(says("\ufeff" + "".join(LINES), **SSE)),
    "a byte-order mark before JSON": fine(says("\ufeff" + whole(A))),
    "an event over several lines": fine(
        says(
            "".join(LINES[:2]) + 'data: {"choices": [\ndata: {"delta": {},\n'
            'data: "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n',
            **SSE,
        )
    ),
    "no [DONE] after the reason": fine(stream(*PIECES)),
    "[DONE] again and again": fine(stream(*PIECES, DONE, DONE, event(B), DONE)),
    "the reason again": fine(stream(*PIECES, event("", "stop"), DONE)),
    "no choices at first": fine(stream('{"choices": [], "model": ""}', *PIECES, DONE)),
    "choices of null at the end": fine(stream(*PIECES, '{"choices": null, "usage": null}', DONE)),
    "a second choice in between": fine(
        stream(PIECES[0], event(B, index=1), *PIECES[1:], event("", "error", index=1), DONE)
    ),
    "a second choice that is first": fine(
        says(json.dumps({"choices": [{**c, "index": i} for i, c in ((1, TWO[0]), (0, TWO[1]))]}))
    ),
    "choices without an index": fine(
        says(
            json.dumps(
                {"choices": [{k: c[k] for k in ("message", "finish_reason")} for c in TWO[::-1]]}
            )
        )
    ),
    "roles again and again": fine(
        stream(
            event("", delta={"role": "assistant"}),
            *PIECES[:2],
            event("", "stop", delta={"role": ""}),
            DONE,
        )
    ),
    "calls of nothing": fine(says(whole(A, message={"tool_calls": [], "function_call": None}))),
    "an error of null": fine(says(whole(A, error=None, top={"error": None}))),
    "a whole reply where a stream was asked for": fine(says(whole(A))),
    "JSON of another type": fine(says(whole(A), Content_Type="text/plain; charset=latin-1")),
    "JSON of no type": fine(says(whole(A), Content_Type="")),
    "a type in capitals": fine(says("".join(LINES), Content_Type="Text/Event-Stream; a=b")),
    "compressed": fine(says(gzip.compress(whole(A).encode()), Content_Encoding="GZIP")),
    "a compressed stream": fine(
        says(zlib.compress("".join(LINES).encode()), Content_Encoding="deflate", **SSE)
    ),
    "a pair of surrogates in two events": fine(
        stream(event('{"answer": "A", "reason": "\ud83c'), event('\udf75"}'), PIECES[2], DONE)
    ),
    "half of a pair": fine(says(whole('{"answer": "A", "reason": "\ud83c"}'))),
    "a NUL in the text": fine(says(whole('{"answer": "A", "reason": "\\u0000"}'))),
    **{f"usage: {n}": fine(says(whole(A, top={"usage": u}))) for n, u in ODD_USAGE.items()},
    "usage: no number": fine(says(whole(A, top={"usage": {"prompt_tokens": float("nan")}}))),
    **{f"logprobs: {n}": fine(says(whole(A, logprobs=v))) for n, v in ODD_LOGPROBS.items()},
    **{
        f"{name} and no reply": Case(says(whole(None, message={name: f"It is {B}"})), "unparsed", 1)
        for name in ("reasoning_content", "reasoning")
    },
    "no words at all": Case(stream(event("", "stop"), DONE), "unparsed", 1),
    "cut at the token limit": Case(says(whole('{"answ', "length")), "unparsed", 1),
    "stopped by a filter": Case(says(whole("B", "content_filter")), "refused", 1),
    "a refusal": Case(says(whole(None, message={"refusal": "I will not say B"})), "refused", 1),
}


@pytest.fixture(scope="module")
def server():
    with Server(lambda e: e.reply(A)) as server:
        yield server


@pytest.fixture(scope="module")
def patient(server):
    """A client that waits as long as it takes."""
    return connect(server, timeout_s=30.0, **QUICK)


@pytest.mark.parametrize("case", [*NOT_WHOLE.values(), *WHOLE.values()], ids=[*NOT_WHOLE, *WHOLE])
def test_an_ask_is_whole_or_an_error_and_leaves_nothing_behind(case, server, patient, tmp_path):
    endpoint = connect(server, deadline_s=0.3, **QUICK) if case.endless else patient
    cached = CachedChat(endpoint, tmp_path)
    server.requests.clear()
    server.handler = case.handler
    begun = time.monotonic()
    tracemalloc.start()
    first = asked(cached)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert time.monotonic() - begun < LIMIT_S
    assert most < MOST_BYTES
    assert (first.status, len(server.requests)) == (case.status, case.requests), first.error
    assert first.option == ("A" if case.status == "ok" else None)
    assert first.passed is {"ok": True, "unparsed": False}.get(case.status)
    assert case.status != "error" or first.error.startswith(("TransportError", "Request"))
    assert all(n >= 0 for n in first.counters.values())
    first.model_dump_json().encode()

    kept = case.status != "error"
    assert len(list(tmp_path.rglob("*.json"))) == kept
    server.handler = lambda e: e.reply(A)
    again = asked(CachedChat(patient, tmp_path))
    assert len(server.requests) == case.requests + (not kept)
    assert len(list(tmp_path.rglob("*.json"))) == 1
    if kept:
        assert (again.status, again.raw_text) == (first.status, first.raw_text)
    else:
        assert (again.status, again.option) == ("ok", "A")
