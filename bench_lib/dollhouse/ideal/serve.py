"""The ideal observer as an OpenAI-compatible server: `python -m bench_lib.dollhouse.ideal.serve`.

It opens no file: media must be in the request (`data:` URLs). The contract is named by
`response_format.json_schema.name` or by `metadata.contract` (endpoint settings
`structured=json_schema` or `send_contract=True`); without either it is `free`.
"""

from __future__ import annotations

import argparse
import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from bench_lib.dollhouse.ideal.observer import IdealChat
from bench_lib.dollhouse.ideal.request import BadRequest, messages_of
from bench_lib.exchange import Generation
from bench_lib.messages.chat import ChatError, ChatReply, Contract, Message

MODEL = "ideal"
_MOST_BYTES = 2**30


def contract_of(body: dict[str, Any]) -> str:
    """The name of the reply contract of a request."""
    schema = (body.get("response_format") or {}).get("json_schema") or {}
    return schema.get("name") or (body.get("metadata") or {}).get("contract") or "free"


def completion(chat: IdealChat, body: dict[str, Any]) -> ChatReply:
    """Answer one request body; raises BadRequest or ChatError."""
    messages: list[Message] = messages_of(body.get("messages"))
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or 2048
    generation = Generation(max_new_tokens=int(limit), seed=int(body.get("seed") or 42))
    return chat.complete(messages, Contract(contract_of(body)), generation)


class Handler(BaseHTTPRequestHandler):
    """`/v1/models`, `/v1/chat/completions` (streamed or not) and `/v1/embeddings`."""

    protocol_version = "HTTP/1.1"
    chat: ClassVar[IdealChat]

    def do_GET(self) -> None:
        """List the one model."""
        if self.path.rstrip("/").endswith("/models"):
            self._json(200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})
        else:
            self._error(404, f"no such path: {self.path}")

    def do_POST(self) -> None:
        """Answer a chat or an embedding request."""
        try:
            size = int(self.headers.get("Content-Length") or 0)
            if not 0 < size <= _MOST_BYTES:
                raise BadRequest("a request needs a body of known length")
            body = json.loads(self.rfile.read(size))
            if self.path.endswith("/chat/completions"):
                self._chat(body)
            elif self.path.endswith("/embeddings"):
                self._embed(body)
            else:
                self._error(404, f"no such path: {self.path}")
        except (BadRequest, ChatError, ValueError) as error:
            self._error(400, str(error))

    def _chat(self, body: dict[str, Any]) -> None:
        reply = completion(self.chat, body)
        head = {"id": "ideal", "created": int(time.time()), "model": body.get("model", MODEL)}
        usage = {**reply.usage, "total_tokens": sum(reply.usage.values())}
        if not body.get("stream"):
            message = {"role": "assistant", "content": reply.text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            record = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
            return self._json(200, record)
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": reply.text}, {}]
        chunks: list[dict[str, Any]] = [
            {
                **head,
                "object": "chat.completion.chunk",
                "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
            }
            for delta, reason in zip(deltas, (None, "stop"), strict=True)
        ]
        chunks.append({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
        return self._send(200, "text/event-stream", "".join([*lines, "data: [DONE]\n\n"]))

    def _embed(self, body: dict[str, Any]) -> None:
        texts = body.get("input") or []
        vectors = self.chat.embed([texts] if isinstance(texts, str) else texts)
        data = [
            {"object": "embedding", "index": i, "embedding": vector.tolist()}
            for i, vector in enumerate(vectors)
        ]
        self._json(200, {"object": "list", "data": data, "model": MODEL})

    def _error(self, status: int, message: str) -> None:
        self._json(status, {"error": {"message": message, "type": "invalid_request_error"}})

    def _json(self, status: int, record: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(record))

    def _send(self, status: int, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet: requests are what tests and runs record."""


def server(chat: IdealChat, host: str = "127.0.0.1", port: int = 0) -> ThreadingHTTPServer:
    """A server that is bound and not yet serving; `server_port` is the port it got."""
    handler = type("BoundHandler", (Handler,), {"chat": chat})
    return ThreadingHTTPServer((host, port), handler)


def main() -> None:
    """Serve until interrupted; the first line printed names the address."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8010)
    parser.add_argument("--error-rate", type=float, default=0.0)
    parser.add_argument("--delay-s", type=float, default=0.0)
    given = parser.parse_args()
    bound = server(IdealChat(given.error_rate, given.delay_s), given.host, given.port)
    print(f"serving {MODEL} at http://{given.host}:{bound.server_port}/v1", flush=True)
    try:
        bound.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        bound.server_close()


if __name__ == "__main__":
    main()
