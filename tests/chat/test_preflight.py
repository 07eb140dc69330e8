"""Met before a run and not an hour into it: limits, silent thinning, blind caches."""

from __future__ import annotations

import base64
import io
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scripted_server import FREE, GREEDY, Server, connect, event, raw, user, whole

from bench_lib.chat.cache import CachedChat
from bench_lib.chat.preflight import canary, preflight, require
from bench_lib.chat.recorded import ScriptedChat
from bench_lib.chat.server import expect, servers
from bench_lib.errors import BenchError
from bench_lib.evaluate.agreement import repeated
from bench_lib.messages.chat import TransportError
from bench_lib.score.repeats import agreement

TOKENS = 16


def honest(exchange, most=10**6, told=False):
    """Uses at most so many frames, as its token count tells; `told` says it outright too."""
    used = min(most, len(exchange.items))
    usage = {"prompt_tokens": 10 + TOKENS * used, "completion_tokens": 1}
    exchange.reply("yes", usage=usage | ({"frames": used} if told else {}))


def found(checks):
    return {check.name: check.ok for check in checks}


def test_a_server_that_can_serve_the_run_passes_every_check():
    with Server(honest) as server:
        checks = preflight(connect(server), 64, (16, 16), prompt_tokens=500)
    require(checks)
    assert found(checks) == {
        "key": True,
        "reachable": True,
        "model": True,
        "finish reason": True,
        "model named": None,
        "items per prompt": True,
        "frames used": True,
        "requests at once": None,
        "context": True,
    }
    assert "64 of 64" in str(checks)
    assert f"about {10 + 64 * TOKENS + 500 + 64} tokens of 4096" in str(checks)
    assert [request.body["max_tokens"] for request in server.requests] == [1, 1, 1, 1]


@pytest.mark.parametrize("told", [True, False])
def test_frames_left_out_in_silence_are_noticed(told):
    with Server(lambda e: honest(e, most=32, told=told)) as server:
        checks = preflight(connect(server), 64, (16, 16))
    assert found(checks)["frames used"] is False
    with pytest.raises(BenchError, match="frames used: 32 of 64"):
        require(checks)


def test_too_many_items_are_refused_in_the_servers_words():
    def limited(exchange):
        if len(exchange.items) > 32:
            exchange.error(400, "At most 32 image(s) may be provided in one prompt.")
        else:
            honest(exchange)

    with Server(limited) as server:
        with pytest.raises(BenchError, match=r"33 frames.*At most 32 image"):
            require(preflight(connect(server), 33, (16, 16)))
        require(preflight(connect(server), 32, (16, 16)))  # the control


def test_a_prompt_beyond_the_context_is_noticed():
    with Server(honest, context=1024) as server:
        checks = preflight(connect(server), 60, (16, 16))
        wider = preflight(connect(server, context_tokens=2048), 60, (16, 16))
    assert (found(checks)["context"], found(wider)["context"]) == (False, True)


def test_a_wrong_model_a_dead_address_and_a_missing_key_are_named(monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with Server(honest) as server:
        endpoint = connect(server)
        endpoint.model = "toi"
        with pytest.raises(BenchError, match="'toi' is not served; did you mean 'toy'"):
            require(preflight(endpoint))
        with pytest.raises(BenchError, match=r"key: .*NO_SUCH_KEY is not set"):
            require(preflight(connect(server, key_env="NO_SUCH_KEY")))
    with pytest.raises(BenchError, match=r"reachable: .*failed 2 times"):
        require(preflight(connect(server, retries=1)))


def unfinished(exchange):
    """Answers like fake servers and some gateways do: whole, but without a finish reason."""
    exchange.stream(event("yes"), "[DONE]") if exchange.body.get("stream") else raw(
        exchange, whole("yes", None)
    )


@pytest.mark.parametrize("stream", [True, False])
def test_a_server_that_never_says_why_a_reply_ended_is_refused_or_accepted_by_a_setting(stream):
    with Server(unfinished) as server:
        checks = preflight(connect(server, stream=stream))
        with pytest.raises(BenchError, match=r"finish reason: .*finish: assumed in backbone_args"):
            require(checks)
        assert len(server.requests) == 3, "once more, and once more, and no minutes of patience"
        chat = connect(server, stream=stream, finish="assumed")
        checks = preflight(chat)
        require(checks)
        assert found(checks)["finish reason"] is None
        assert chat.complete(user("hm?"), FREE, GREEDY).text == "yes"
        server.handler = lambda e: e.stream(event("ye"))
        with pytest.raises(TransportError, match="broke off"):
            connect(server, finish="assumed", retries=1).complete(user("hm?"), FREE, GREEDY)


def test_a_first_reply_that_is_cut_once_costs_one_more_request():
    with Server(lambda e: honest(e) if e.number else unfinished(e)) as server:
        assert found(preflight(connect(server)))["finish reason"] is True


def named(name):
    return lambda e: raw(e, whole("yes", top={"model": name, "usage": {"prompt_tokens": 5}}))


def test_the_model_that_replies_name_is_found_out_and_held():
    with Server(named("m-2026-01")) as server:
        chat = connect(server)
        checks = {check.name: check for check in preflight(chat)}
        assert (checks["model named"].ok, checks["model named"].detail) == (True, "m-2026-01")
        [record] = [one.record() for one in servers(chat)]
        assert record["model"] == chat.answers_as == "m-2026-01"

        resumed = connect(server)
        expect(resumed, [record])
        require(preflight(resumed))
        server.handler = named("m-2026-02")
        later = connect(server)
        expect(later, [record])
        asked = len(server.requests)
        with pytest.raises(BenchError, match=r"model named: .*'m-2026-02' now.*'m-2026-01' before"):
            require(preflight(later))
        assert len(server.requests) == asked + 1


@pytest.mark.parametrize(
    "listed",
    [
        "[]",
        '{"data": null}',
        '{"data": {"toy": 1}}',
        '{"data": [7, {"id": ["toy"]}, {"id": null}]}',
        '{"data": [{"id": "toy", "max_model_len": "long"}]}',
        '{"data": [{"id": "toy", "max_model_len": -1}]}',
        '{"data": [{"id": "toy", "max_model_len": NaN}]}',
    ],
)
def test_a_list_of_models_of_another_form_names_none_and_tells_no_limit(listed):
    with Server(honest, pages={"/v1/models": listed}) as server:
        checks = found(preflight(connect(server), 2))
    assert checks["model"] is ("toy" in listed and "max" in listed)
    assert checks.get("context") is None


def test_a_model_in_this_process_is_checked_as_far_as_it_tells(tmp_path):
    checks = preflight(CachedChat(ScriptedChat(["yes"]), tmp_path), 64, (16, 16))
    assert found(checks) == {"items per prompt": True, "frames used": None, "context": None}
    assert not list(tmp_path.iterdir())
    require(checks)


def colour(exchange) -> str:
    data = exchange.items[0]["image_url"]["url"].partition(",")[2]
    red, _, blue = np.asarray(Image.open(io.BytesIO(base64.b64decode(data)))).mean(axis=(0, 1))
    return "red" if red > blue else "blue"


def scored(exchange, top):
    """A reply of one word with log-probabilities."""
    entries = [{"token": "x", "logprob": value} for value in top]
    choice = {
        "message": {"content": "same"},
        "logprobs": {"content": [{"token": "x", "top_logprobs": entries}]},
        "finish_reason": "stop",
    }
    exchange.send(200, json.dumps({"choices": [choice], "usage": {"prompt_tokens": 1}}))


def test_the_canary_passes_a_server_that_sees_and_catches_one_whose_cache_does_not(tmp_path):
    by_text: dict[str, str] = {}
    with Server(lambda e: e.reply(colour(e))) as server:
        assert canary(CachedChat(connect(server), tmp_path)).ok is True
        server.handler = lambda e: e.reply(by_text.setdefault(e.text, colour(e)))
        for _ in range(2):  # our own cache must not answer for the server's
            assert canary(CachedChat(connect(server), tmp_path)).ok is False


def test_where_texts_are_equal_the_canary_reads_log_probabilities():
    with Server(lambda e: scored(e, [-0.5, -1.0 - (colour(e) == "red")])) as server:
        assert canary(connect(server, logprobs=2, stream=False)).ok is True
        server.handler = lambda e: scored(e, [-0.5, -1.0])
        assert canary(connect(server, logprobs=2, stream=False)).ok is False


def test_a_canary_that_cannot_be_asked_fails_with_the_reason():
    with Server(lambda e: e.error(400, "no images here")) as server:
        check = canary(connect(server))
    assert check.ok is False
    assert "no images here" in check.detail


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ABCD"), st.sampled_from("ABCD"))))
def test_agreement_counts_equal_pairs(pairs):
    found = agreement([a for a, _ in pairs], [b for _, b in pairs])
    assert (found.n, found.equal) == (len(pairs), sum(a == b for a, b in pairs))
    assert found.distinct == len({a for a, _ in pairs})
    assert found.equal == found.n == 0 or found.share == found.equal / found.n


def test_a_reply_that_depends_on_its_company_lowers_the_agreement(tmp_path):
    requests = [(user(f"q{i}"), FREE, GREEDY) for i in range(10)]
    with Server(lambda e: e.reply(e.text)) as server:
        cached = CachedChat(connect(server), tmp_path)
        steady = repeated(cached, requests)
        server.handler = lambda e: e.reply(f"{e.text} {'q3' in e.text and e.number}")
        wavering = repeated(cached, requests)
    assert (steady.n, steady.equal, steady.distinct, steady.share) == (10, 10, 10, 1.0)
    assert (wavering.equal, wavering.share) == (9, 0.9)
    assert len(server.requests) == 40  # no cache answered
