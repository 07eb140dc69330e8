"""A scripted OpenAI-style server for tests: faults on demand, a log of requests."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from bench_lib.chat.endpoint import Endpoint
from bench_lib.exchange import Generation
from bench_lib.messages.chat import Contract, Frames, Message, Text
from bench_lib.messages.settings import EndpointSettings
from bench_lib.video.stream import ArrayFrame

Handler = Callable[["Exchange"], None]
FREE = Contract("free")
GREEDY = Generation()


def user(text: str, *frames: ArrayFrame, **options: Any) -> list[Message]:
    """One user turn: frames, then the text."""
    parts = (Frames(frames, **options),) if frames else ()
    return [Message("user", (*parts, Text(text)))]


def frame(t_s: float, shade: int, size: tuple[int, int] = (16, 24)) -> ArrayFrame:
    """A frame of one grey."""
    return ArrayFrame(t_s, np.full((*size, 3), shade, np.uint8))


def connect(server: Server, **given: Any) -> Endpoint:
    """A client for which faults cost milliseconds."""
    quick = {"backoff_s": 0.001, "timeout_s": 2.0, "max_wait_s": 0.5, "revision": "1"}
    return Endpoint(server.model, server.url, EndpointSettings(**{**quick, **given}))


def whole(content: Any, finish: Any = "stop", message=None, top=None, **choice: Any) -> str:
    """A reply that is not streamed, with more in its message, its choice or beside its choices."""
    said = {"role": "assistant", "content": content} | (message or {})
    choices = [{"message": said, "finish_reason": finish, **choice}]
    return json.dumps({"choices": choices, **(top or {})})


def event(content: str, finish: Any = None, delta=None, top=None, **choice: Any) -> str:
    """An event of a streamed reply, with more in its delta, its choice or beside its choices."""
    said = ({"content": content} if content else {}) | (delta or {})
    choices = [{"delta": said, "finish_reason": finish, **choice}]
    return json.dumps({"choices": choices, **(top or {})})


def raw(exchange: Exchange, body: str | bytes, status: int = 200, **headers: str) -> None:
    """A response as it is given; a header of nothing is left out."""
    data = body if isinstance(body, bytes) else body.encode()
    http = exchange.http
    http.send_response(status)
    own = {"Content_Type": "application/json", "Content_Length": str(len(data))} | headers
    for name, value in {**own, "Connection": "close"}.items():
        if value:
            http.send_header(name.replace("_", "-"), value)
    http.end_headers()
    http.wfile.write(data)
    http.close_connection = True


@dataclass
class Exchange:
    """One request and the ways to answer it."""

    http: BaseHTTPRequestHandler
    path: str
    body: dict[str, Any]
    number: int

    @property
    def text(self) -> str:
        """All text of the request, in order."""
        parts = []
        for message in self.body["messages"]:
            content = message["content"]
            for part in content if isinstance(content, list) else [{"text": content}]:
                parts.append(part.get("text", ""))
        return "\n".join(parts)

    @property
    def items(self) -> list[dict[str, Any]]:
        """All media items of the request, in order."""
        found = []
        for message in self.body["messages"]:
            if isinstance(message["content"], list):
                found += [p for p in message["content"] if p["type"] != "text"]
        return found

    def send(self, status: int, payload: str, kind: str = "application/json", **headers: str):
        """A whole response."""
        data = payload.encode()
        self.http.send_response(status)
        self.http.send_header("Content-Type", kind)
        self.http.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.http.send_header(name.replace("_", "-"), value)
        self.http.end_headers()
        self.http.wfile.write(data)

    def error(self, status: int, message: str, **headers: str):
        """An error in the protocol's form."""
        self.send(status, json.dumps({"error": {"message": message}}), **headers)

    def reply(self, text: str, *, stop: str = "stop", usage: dict | None = None, **message: Any):
        """The text, streamed where that was asked for."""
        usage = usage or {"prompt_tokens": 10, "completion_tokens": 3}
        if not self.body.get("stream"):
            choice = {"message": {"content": text, **message}, "finish_reason": stop}
            self.send(200, json.dumps({"choices": [choice], "usage": usage}))
            return
        half = len(text) // 2
        pieces = [
            {"role": "assistant"},
            message,
            {"content": text[:half]},
            {"content": text[half:]},
        ]
        events = [{"choices": [{"delta": p, "finish_reason": None}]} for p in pieces if p]
        events.append({"choices": [{"delta": {}, "finish_reason": stop}]})
        events.append({"choices": [], "usage": usage})
        self.stream(*map(json.dumps, events), "[DONE]")

    def stream(self, *data: str, cut: bool = False, gap_s: float = 0.0):
        """Raw events; `cut` closes the connection in the middle of the last one."""
        self.http.send_response(200)
        self.http.send_header("Content-Type", "text/event-stream")
        self.http.send_header("Connection", "close")
        self.http.end_headers()
        for index, item in enumerate(data):
            line = f"data: {item}\n\n"
            if cut and index == len(data) - 1:
                line = line[: len(line) // 2]
            self.http.wfile.write(line.encode())
            self.http.wfile.flush()
            time.sleep(gap_s)
        self.http.close_connection = True


@dataclass
class Server:
    """Serves `/v1`; `handler` answers chat requests and may be changed while it runs.

    `pages` are what it says at other addresses. Each request first calls `pause`; `busiest` is the
    most that were in it at once.
    """

    handler: Handler
    model: str = "toy"
    context: int = 4096
    requests: list[Exchange] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    busiest: int = 0
    pause: Callable[[], object] = lambda: None
    port: int = 0
    pages: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        self._lock = threading.Lock()
        self._now = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Server:
        server = self

        class Http(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                exchange = Exchange(self, self.path, {}, 0)
                listed = {"data": [{"id": server.model, "max_model_len": server.context}]}
                pages = {"/v1/models": json.dumps(listed), **server.pages}
                if self.path in pages:
                    exchange.send(200, pages[self.path])
                else:
                    exchange.error(404, "Not Found")

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server._lock:
                    server._now += 1
                    server.busiest = max(server.busiest, server._now)
                    exchange = Exchange(self, self.path, body, len(server.requests))
                    server.requests.append(exchange)
                    server.headers.append(dict(self.headers))
                server.pause()
                # Counted out before the answer, after which a client may send its next request.
                with server._lock:
                    server._now -= 1
                server.handler(exchange)

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 64

            def handle_error(self, *args: Any) -> None:
                pass  # clients that give up are part of the tests

        self._http = Quiet(("127.0.0.1", self.port), Http)
        self.port = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *exc: Any) -> None:
        self._http.shutdown()
        self._http.server_close()
