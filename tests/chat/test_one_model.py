"""A run is answered by one model: what a server names may not change under it."""

from __future__ import annotations

import pytest
from scripted_server import FREE, GREEDY, Server, connect, raw, user, whole
from test_replicas import replicas

from bench_lib.chat.cache import CachedChat
from bench_lib.messages.chat import TransportError


def names(*sequence):
    """Replies that name one model after the other, the last one from then on."""

    def handler(exchange):
        name = sequence[min(exchange.number, len(sequence) - 1)]
        raw(exchange, whole(f"by {name}", top={"model": name} if name else {}))

    return handler


def test_a_change_of_model_is_tried_again_and_then_an_error_and_is_not_kept(tmp_path):
    with Server(names("a", "a", "b")) as server:
        cached = CachedChat(connect(server, retries=2), tmp_path)
        assert [cached.complete(user(q), FREE, GREEDY).text for q in "12"] == ["by a"] * 2
        with pytest.raises(TransportError, match=r"failed 3 times.*as 'b' now.*as 'a' before"):
            cached.complete(user("3"), FREE, GREEDY)
        assert len(list(tmp_path.glob("??/*.json"))) == 2
        server.handler = names("a")
        assert cached.complete(user("3"), FREE, GREEDY).text == "by a"


def test_a_change_that_passes_costs_one_more_request():
    with Server(names("a", "b", "a")) as server:
        chat = connect(server)
        texts = [chat.complete(user(q), FREE, GREEDY).text for q in "12"]
    assert (texts, len(server.requests)) == (["by a", "by a"], 3)


@pytest.mark.parametrize("name", ["", None, 7, ["a"]])
def test_a_reply_that_names_no_model_tells_nothing(name):
    def handler(exchange):
        told = {"model": "a" if exchange.number == 1 else name}
        raw(exchange, whole("ok", top=told))

    with Server(handler) as server:
        chat = connect(server)
        for question in "123":
            assert chat.complete(user(question), FREE, GREEDY).text == "ok"
    assert chat.answers_as == "a"


def test_a_replica_of_another_model_answers_nothing():
    with Server(names("a")) as a, Server(names("b")) as b:
        served = replicas(a, b)
        texts = {served.complete(user(f"{i}"), FREE, GREEDY).text for i in range(6)}
        assert texts == {"by a"}
        assert b.requests, "the control: it was asked"
    assert served.answers_as == "a"


def test_a_kept_reply_of_another_model_is_asked_for_again(tmp_path):
    with Server(names("a")) as server:
        CachedChat(connect(server), tmp_path).complete(user("1"), FREE, GREEDY)
        same = CachedChat(connect(server), tmp_path)
        assert same.complete(user("1"), FREE, GREEDY).cached, "nothing is known of the server yet"
        server.handler = names("b")
        other = CachedChat(connect(server), tmp_path)
        assert other.complete(user("2"), FREE, GREEDY).text == "by b"
        again = other.complete(user("1"), FREE, GREEDY)
        assert (again.text, again.cached) == ("by b", False)
        assert other.complete(user("1"), FREE, GREEDY).cached
