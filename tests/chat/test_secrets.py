"""A planted key is sent to the server it is for, and is found nowhere else."""

from __future__ import annotations

import html
import io
import json
import logging
import time
import traceback
from urllib.parse import quote

import pytest
from scripted_server import FREE, GREEDY, Server, connect, raw, user, whole

from bench_lib.chat.cache import CachedChat
from bench_lib.chat.preflight import preflight
from bench_lib.chat.server import served
from bench_lib.errors import BenchError
from bench_lib.messages.chat import ChatError
from bench_lib.redact import names_a_secret, redacted, scrubbed, secret_at

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
    match exchange.number % 6:
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
        case 5:
            raw(exchange, whole("ok", top={"model": told, "usage": {told: 5, "prompt_tokens": 5}}))


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
            for i in range(12):
                try:
                    shown.append(repr(cached.complete(user(f"q{i}"), FREE, GREEDY)))
                except ChatError:
                    shown.append(traceback.format_exc())
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    assert endpoint.answers_as == "Bearer ***"
    shown += [repr(vars(endpoint)), repr(vars(endpoint.transport)), json.dumps(endpoint.identity)]
    shown += [path.read_text() for path in tmp_path.rglob("*.json")]
    assert sum("ChatReply" in text for text in shown) == 4
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
    assert redacted("Authorization: Bearer abcdef123456") == "Authorization: ***"
    plain = "the model Qwen/Qwen3-VL-8B-Instruct takes at most 32 images"
    assert redacted(plain) == plain


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("GET http://me:pa/ss@host/v1: refused", "GET http://***@host/v1: refused"),
        ("at https://host/v1?api_key=hunter2&x=1 (401)", "at https://host/v1?*** (401)"),
        ("parameter x must be dict, not str '{\"api_key\": \"hunter2\"}'",
         "parameter x must be dict, not str '{\"api_key\": \"***\"}'"),
        ("headers {'X-Token': 'hunter2', 'Accept': 'x'}",
         "headers {'X-Token': '***', 'Accept': 'x'}"),
        ("Authorization: Basic aHVudGVyMg==", "Authorization: ***"),
        ("cookie=hunter2; path", "cookie=***; path"),
        ("password: 12345", "password: ***"),
        ("{\\\"access_token\\\": \\\"hunter2\\\"}", "{\\\"access_token\\\": \\\"***\\\"}"),
        ("ghp_0123456789abcdef of them", "*** of them"),
    ],
)  # fmt: skip
def test_what_stands_where_a_secret_stands_goes_from_errors(text, left):
    assert redacted(text) == left


@pytest.mark.parametrize(
    "plain",
    [
        "max_tokens: 4096 is above the limit of 2048",
        "no key: the environment variable X is not set",
        "candidates.jsonl: candidate q1: answer_key = 'E': is none of ABCD",
        "token: 5 of 9",
        "see http://host:8000/v1",
        "parameter seed must lie in [0, 2147483648), not -1",
        "write to me@example.org about https://example.org/a",
    ],
)
def test_what_is_no_secret_stays_in_errors(plain):
    assert redacted(plain) == plain


def test_names_of_secrets():
    secret = "key api_key apiKey X-Token x-request hf_token token accessToken Cookie password auth"
    assert all(map(names_a_secret, secret.split()))
    plain = "key_env max_tokens max_new_tokens tokens_kept key_frames monkey backbone keyboard seed"
    assert not any(map(names_a_secret, plain.split()))


def test_secrets_of_the_environment_go_in_every_form_they_are_written_in(monkeypatch):
    value = 'a"b&c/d+e0123'
    monkeypatch.setenv("SOME_API_KEY", value)
    monkeypatch.setenv("SOME_TOKEN", "short")
    for form in (value, json.dumps(value), html.escape(value), quote(value, safe="")):
        assert "0123" not in scrubbed(f"<{form}>")
    assert scrubbed("a short text") == "a short text"


def test_redaction_of_long_texts_is_linear():
    for text in ("A" * 1_000_000, "key" * 300_000, "a.b-" * 250_000, "://" * 100_000):
        started = time.perf_counter()
        redacted(text)
        assert time.perf_counter() - started < 5, text[:8]


def test_places_of_secrets_are_named():
    nested = {"a": {"extra": [{"deep": {"client_secret": "x"}}]}}
    assert secret_at(nested) == "a.extra.deep.client_secret"
    assert secret_at({"command": ["run", "--api-key", "x"]}) == "command"
    assert secret_at({"command": ["run", "--token=hunter2"]}) == "command"
    assert secret_at({"command": ["run", "--tokens", "12"], "key_env": "KEY", "key": ""}) == ""


def test_what_a_server_tells_of_itself_holds_no_key(key):
    told = json.dumps({"version": f"1 {KEY}"})
    listed = json.dumps({"data": [{"id": f"toy-{KEY}"}]})
    with Server(lambda e: e.reply("ok"), pages={"/version": told, "/v1/models": listed}) as server:
        chat = connect(server, key_env="TEST_CHAT_KEY")
        assert served(chat).version == "1 ***"
        assert KEY not in str(preflight(chat))
