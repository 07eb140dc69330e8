"""A planted key is sent to the server it is for, and is found nowhere else."""

from __future__ import annotations

import io
import json
import logging
import traceback

import pytest
from scripted_server import FREE, GREEDY, Server, connect, user

from bench_lib.chat.cache import CachedChat
from bench_lib.errors import BenchError
from bench_lib.messages.chat import ChatError
from bench_lib.messages.redact import redacted

KEY = "sk-planted0123456789abcdefSECRET"


@pytest.fixture
def key(monkeypatch):
    monkeypatch.setenv("TEST_CHAT_KEY", KEY)


def test_the_key_is_sent_only_where_it_is_named(key):
    with Server(lambda e: e.reply("ok")) as server:
        connect(server, key_env="TEST_CHAT_KEY").complete(user("hm?"), FREE, GREEDY)
        connect(server).complete(user("hm?"), FREE, GREEDY)
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert "Authorization" not in server.headers[1]


def _echoes(exchange):
    """A server that gives back what it should not, in every place it has."""
    told = exchange.http.headers["Authorization"]
    match exchange.number % 5:
        case 0:
            exchange.reply(f"your key is {told}", reasoning_content=told)
        case 1:
            exchange.error(401, f"Incorrect API key provided: {told}")
        case 2:
            exchange.send(502, f"<html>{told}</html>", "text/html")
        case 3:
            exchange.stream(json.dumps({"error": {"message": told, "code": 400}}))
        case 4:
            exchange.send(200, f"not json {told}")


def test_no_reply_error_log_or_file_holds_the_key(key, tmp_path):
    logged = io.StringIO()
    handler = logging.StreamHandler(logged)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    shown = []
    try:
        with Server(_echoes) as server:
            endpoint = connect(server, key_env="TEST_CHAT_KEY", retries=0)
            cached = CachedChat(endpoint, tmp_path)
            for i in range(10):
                try:
                    shown.append(repr(cached.complete(user(f"q{i}"), FREE, GREEDY)))
                except ChatError:
                    shown.append(traceback.format_exc())
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    shown += [repr(vars(endpoint)), repr(vars(endpoint.transport)), json.dumps(endpoint.identity)]
    shown += [path.read_text() for path in tmp_path.rglob("*.json")]
    assert sum("ChatReply" in text for text in shown) == 2
    assert sum("Traceback" in text for text in shown) == 8
    assert "127.0.0.1" in logged.getvalue()  # the control: the log did record the requests
    for text in (*shown, logged.getvalue()):
        assert KEY not in text
        assert KEY[3:] not in text


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "TEST_CHAT_KEY is not set"),
        ("", "not set"),
        ("sk-se cret", "space"),
        ("sk-é", "non-ASCII"),
    ],
)
def test_a_missing_or_malformed_key_is_named_and_not_shown(monkeypatch, value, says):
    monkeypatch.delenv("TEST_CHAT_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("TEST_CHAT_KEY", value)
    server = Server(lambda e: e.reply("ok"))
    with server, pytest.raises(BenchError, match=says) as caught:
        connect(server, key_env="TEST_CHAT_KEY").complete(user("hm?"), FREE, GREEDY)
    assert not value or value not in str(caught.value)
    assert not server.requests


def test_keys_of_others_are_recognised_by_their_form_and_plain_words_are_left():
    assert redacted("Incorrect key: sk-proj-abcDEF0123456789") == "Incorrect key: ***"
    assert redacted("Authorization: Bearer abcdef123456") == "Authorization: Bearer ***"
    plain = "the model Qwen/Qwen3-VL-8B-Instruct takes at most 32 images"
    assert redacted(plain) == plain
