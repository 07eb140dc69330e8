"""Kept replies: what makes two requests the same, who pays, and what survives damage."""

from __future__ import annotations

import io
import json
import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scripted_server import FREE, GREEDY, Server, connect, frame, user

from bench_lib.chat.cache import CachedChat, fingerprint
from bench_lib.chat.recorded import RecordedChat, ScriptedChat
from bench_lib.errors import BenchError
from bench_lib.measure import count, counting
from bench_lib.messages.chat import (
    Chat,
    ChatError,
    ChatReply,
    Contract,
    ContractBroken,
    Message,
    Sound,
    Text,
)
from bench_lib.opening import chat
from bench_lib.video.stream import ArrayFrame, StoredFrame

COLD = replace(GREEDY, temperature=0.7)


class Counted(Chat):
    """Answers with the number of the call, and does work."""

    def __init__(self, id="counted", settings=()):
        self.id = id
        self.settings = settings
        self.calls = 0
        self._lock = threading.Lock()

    @property
    def identity(self):
        return {"id": self.id, "settings": self.settings}

    def complete(self, messages, contract, generation):
        with self._lock:
            self.calls += 1
            number = self.calls
        count("frames_encoded", 3)
        return ChatReply(
            f"reply {number}",
            ready_at=10.0,
            first_token_at=10.5,
            done_at=12.0,
            usage={"prompt_tokens": 4},
        )


def test_a_second_request_costs_nothing_and_shows_what_the_first_took(tmp_path):
    model = Counted()
    with counting() as paid:
        first = CachedChat(model, tmp_path).complete(user("hm?", frame(0, 1)), FREE, GREEDY)
    with counting() as free:
        again = CachedChat(model, tmp_path).complete(user("hm?", frame(0, 1)), FREE, GREEDY)
    assert model.calls == 1
    assert (first.cached, again.cached) == (False, True)
    assert again.text == first.text
    assert again.usage == first.usage
    assert again.first_token_at - again.ready_at == pytest.approx(0.5)
    assert again.done_at - again.ready_at == pytest.approx(2.0)
    assert paid == free == {"frames_encoded": 3}


DIFFERENT = {
    "text": lambda: (user("what?", frame(0, 1)), FREE, GREEDY),
    "role": lambda: ([Message("system", user("hm?", frame(0, 1))[0].parts)], FREE, GREEDY),
    "a pixel": lambda: (user("hm?", frame(0, 2)), FREE, GREEDY),
    "one frame more": lambda: (user("hm?", frame(0, 1), frame(1, 1)), FREE, GREEDY),
    "size": lambda: (user("hm?", frame(0, 1), size=(8, 8)), FREE, GREEDY),
    "form": lambda: (user("hm?", frame(0, 1), video=True), FREE, GREEDY),
    "sound": lambda: (
        [Message("user", (Sound(np.zeros(9, np.float32)), Text("hm?")))],
        FREE,
        GREEDY,
    ),
    "contract": lambda: (user("hm?", frame(0, 1)), Contract("choice"), GREEDY),
    "schema": lambda: (
        user("hm?", frame(0, 1)),
        Contract("free", schema={"type": "object"}),
        GREEDY,
    ),
    "decoding": lambda: (user("hm?", frame(0, 1)), FREE, COLD),
    "length": lambda: (user("hm?", frame(0, 1)), FREE, replace(GREEDY, max_new_tokens=65)),
    "seed": lambda: (user("hm?", frame(0, 1)), FREE, replace(GREEDY, seed=43)),
}


@pytest.mark.parametrize("request_", DIFFERENT.values(), ids=DIFFERENT)
def test_another_request_is_asked_for_itself(tmp_path, request_):
    model = Counted()
    cached = CachedChat(model, tmp_path)
    cached.complete(user("hm?", frame(0, 1)), FREE, GREEDY)
    cached.complete(*request_())
    assert model.calls == 2
    cached.complete(*request_())
    assert model.calls == 2


@pytest.mark.parametrize("other", [Counted("another"), Counted(settings=("thinking",))])
def test_another_model_or_setting_is_asked_for_itself(tmp_path, other):
    CachedChat(Counted(), tmp_path).complete(user("hm?"), FREE, GREEDY)
    assert not CachedChat(other, tmp_path).complete(user("hm?"), FREE, GREEDY).cached


def test_frames_are_known_by_their_pixels_not_by_their_handle(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 255, (8, 8, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    stored = tmp_path / "frames"
    stored.write_bytes(b"others" + buffer.getvalue())
    handles = (
        ArrayFrame(4.0, pixels),
        ArrayFrame(4.0, pixels.copy()),
        StoredFrame(4.0, str(stored), 6, len(buffer.getvalue())),
    )
    model = Counted()
    cached = CachedChat(model, tmp_path / "replies")
    for handle in handles:
        cached.complete(user("hm?", handle), FREE, GREEDY)
    assert model.calls == 1


def test_two_media_under_one_text_share_no_answer(tmp_path):
    """The canary, with the control that equal media do share one."""
    cached = CachedChat(Counted(), tmp_path)
    dark, light, again = (
        cached.complete(user("hm?", frame(0, shade)), FREE, GREEDY).text for shade in (0, 255, 0)
    )
    assert dark != light
    assert dark == again


def test_threads_with_one_request_make_one_call(tmp_path):
    model = Counted()
    cached = CachedChat(model, tmp_path)
    with ThreadPoolExecutor(16) as pool:
        texts = list(pool.map(lambda _: cached.complete(user("hm?"), FREE, GREEDY).text, range(64)))
    assert (set(texts), model.calls) == ({"reply 1"}, 1)


def _in_a_process(folder: str, name: int, together, results) -> None:
    model = Counted()
    cached = CachedChat(model, folder)
    together.wait()
    texts = []
    for i in range(30):
        model.calls = 1000 * name + i
        texts.append(cached.complete(user(f"q{i}"), FREE, GREEDY).text)
    results.put(texts)


def test_processes_with_the_same_requests_go_on_with_the_same_replies(tmp_path):
    context = multiprocessing.get_context("fork")
    together, results = context.Barrier(3), context.Queue()
    processes = [
        context.Process(target=_in_a_process, args=(str(tmp_path), n, together, results))
        for n in range(3)
    ]
    for process in processes:
        process.start()
    texts = [results.get(timeout=30) for _ in processes]
    for process in processes:
        process.join()
    assert texts[0] == texts[1] == texts[2]
    assert len(list(tmp_path.glob("??/*.json"))) == 30


@settings(deadline=None)
@given(st.data())
def test_a_damaged_file_is_asked_for_again_and_mended(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("replies")
    model = Counted()
    cached = CachedChat(model, folder)
    cached.complete(user("hm?"), FREE, GREEDY)
    [path] = folder.glob("??/*.json")
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    damage = data.draw(st.sampled_from(["cut", "flip", "empty"]))
    flipped = bytes([whole[at] ^ 1])
    path.write_bytes(
        {"cut": whole[:at], "flip": whole[:at] + flipped + whole[at + 1 :], "empty": b""}[damage]
    )
    assert cached.complete(user("hm?"), FREE, GREEDY).text == "reply 2"
    assert cached.complete(user("hm?"), FREE, GREEDY).text == "reply 2"
    assert model.calls == 2


def test_an_undamaged_file_is_not_asked_for_again(tmp_path):
    """The control of the test above."""
    model = Counted()
    cached = CachedChat(model, tmp_path)
    cached.complete(user("hm?"), FREE, GREEDY)
    [path] = tmp_path.glob("??/*.json")
    path.write_bytes(path.read_bytes())
    assert cached.complete(user("hm?"), FREE, GREEDY).cached


SERVER = {"id": "toy@1", "limit_field": "max_tokens"}


def kept_before(identity, **changes):
    """A model whose identity is given, and what makes its kept reply one of an earlier version."""
    model = type("Model", (Counted,), {"identity": property(lambda _: identity)})()

    def rewrite(folder):
        [path] = folder.glob("??/*.json")
        entry = json.loads(path.read_text())
        entry.pop("digest")
        entry["reply"] |= changes
        for name in [name for name, value in changes.items() if value is ...]:
            entry["reply"].pop(name)
        path.write_text(json.dumps({**entry, "digest": fingerprint(entry)}))

    return model, rewrite


@pytest.mark.parametrize(
    ("identity", "changes", "served"),
    [
        (SERVER, {"finish": "stop"}, True),
        (SERVER, {"finish": "length", "stop": "length"}, True),
        (SERVER, {"finish": ...}, False),  # an end that may be that of a cut stream
        (SERVER, {"finish": ..., "stop": "length"}, True),
        (SERVER, {"finish": ..., "stop": "error"}, False),
        (SERVER, {"finish": ..., "stop": "refused"}, False),
        (SERVER, {"finish": ""}, False),
        (SERVER, {"finish": "abort"}, False),
        ({**SERVER, "finish": "assumed"}, {"finish": ""}, True),
        ({**SERVER, "finish": "assumed"}, {"finish": ...}, False),
        ({"id": "tiny"}, {"finish": ..., "model": ...}, True),
        ({"id": "tiny"}, {"finish": ..., "stop": "abort"}, False),
    ],
)
def test_kept_replies_meet_the_check_that_fresh_ones_meet(tmp_path, identity, changes, served):
    model, rewrite = kept_before(identity, **changes)
    cached = CachedChat(model, tmp_path)
    cached.complete(user("hm?"), FREE, GREEDY)
    rewrite(tmp_path)
    if served:
        assert RecordedChat(tmp_path).complete(user("hm?"), FREE, GREEDY).text == "reply 1"
    else:
        with pytest.raises(BenchError, match=r"holds 0 replies \(1 more may be cut"):
            RecordedChat(tmp_path)
    reply = cached.complete(user("hm?"), FREE, GREEDY)
    assert (reply.text, reply.cached) == (("reply 1", True) if served else ("reply 2", False))


def test_a_reply_that_a_stricter_parser_rejects_is_asked_for_again(tmp_path):
    model = ScriptedChat(["tea", '{"memory": "tea"}'])
    cached = CachedChat(model, tmp_path)
    cached.complete(user("hm?"), Contract("memory"), GREEDY)
    strict = Contract("memory", parse=lambda text: json.loads(text)["memory"])
    assert cached.complete(user("hm?"), strict, GREEDY).value == "tea"
    assert cached.complete(user("hm?"), strict, GREEDY).cached


def test_failures_are_not_kept_but_raw_broken_replies_are(tmp_path):
    strict = Contract("memory", parse=json.loads)
    model = ScriptedChat([ChatError("down"), "no", "never", "{}"])
    cached = CachedChat(model, tmp_path)
    with pytest.raises(ChatError, match="down"):
        cached.complete(user("hm?"), strict, GREEDY)
    assert not list(tmp_path.rglob("*.json"))
    with pytest.raises(ContractBroken):
        cached.complete(user("hm?"), strict, GREEDY)
    [kept] = tmp_path.rglob("*.json")
    assert json.loads(kept.read_text())["rejected"] == ["no", "never"]
    assert cached.complete(user("hm?"), strict, GREEDY).value == {}


def test_rejected_replies_of_an_accepted_one_are_kept_with_it(tmp_path):
    strict = Contract("memory", parse=json.loads)
    CachedChat(ScriptedChat(["no", "{}"]), tmp_path).complete(user("hm?"), strict, GREEDY)
    again = CachedChat(ScriptedChat([]), tmp_path).complete(user("hm?"), strict, GREEDY)
    assert (again.rejected, again.value) == (("no",), {})


def test_vectors_of_a_server_are_kept_by_text(tmp_path):
    def handler(exchange):
        rows = [{"embedding": [len(text), 1.0]} for text in exchange.body["input"]]
        exchange.send(200, json.dumps({"data": rows, "usage": {"prompt_tokens": 1}}))

    with Server(handler) as server:
        cached = CachedChat(connect(server, embedding_model="e"), tmp_path)
        first = cached.embed(["tea", "milk"])
        again = cached.embed(["milk", "bread!", "tea"])
    assert [request.body["input"] for request in server.requests] == [["tea", "milk"], ["bread!"]]
    assert np.array_equal(again[[2, 0]], first)


def test_recorded_replies_serve_again_and_a_miss_says_what_differs(tmp_path):
    CachedChat(Counted(), tmp_path).complete(user("hm?", frame(0, 1)), FREE, GREEDY)
    recorded = chat.open(f"recorded:{tmp_path}")
    assert recorded.id == "counted"
    with counting() as counts:
        assert recorded.complete(user("hm?", frame(0, 1)), FREE, GREEDY).text == "reply 1"
    assert counts["frames_encoded"] == 3
    with pytest.raises(ChatError, match=r"differs in: media, seed$"):
        recorded.complete(user("hm?", frame(0, 2)), FREE, replace(GREEDY, seed=1))


def test_a_folder_of_several_models_needs_one_named(tmp_path):
    for name in ("first", "second"):
        CachedChat(Counted(name), tmp_path).complete(user("hm?"), FREE, GREEDY)
    with pytest.raises(BenchError, match="known: first, second"):
        RecordedChat(tmp_path)
    with pytest.raises(BenchError, match="0 times of that model"):
        RecordedChat(tmp_path, model="third")
    assert RecordedChat(tmp_path, model="second").id == "second"


def test_an_empty_folder_records_nothing(tmp_path: Path):
    with pytest.raises(BenchError, match="holds 0 replies"):
        RecordedChat(tmp_path)


def test_a_script_that_is_used_up_says_so():
    scripted = ScriptedChat(["once"])
    scripted.complete(user("hm?"), FREE, GREEDY)
    with pytest.raises(ChatError, match="all 1 scripted replies"):
        scripted.complete(user("hm?"), FREE, GREEDY)
