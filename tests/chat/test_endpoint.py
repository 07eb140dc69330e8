"""What goes over the wire, and what comes back, against a scripted server."""

from __future__ import annotations

import base64
import io
import json

import numpy as np
import pytest
from PIL import Image
from scripted_server import FREE, GREEDY, Server, connect, event, frame, user

from bench_lib.chat.reply_stream import counts
from bench_lib.errors import BenchError
from bench_lib.exchange import Generation
from bench_lib.measure import counting
from bench_lib.messages.chat import (
    Contract,
    ContractBroken,
    Frames,
    Message,
    Sound,
    Text,
    TransportError,
)
from bench_lib.messages.settings import EndpointSettings
from bench_lib.opening import chat


def echo(exchange):
    exchange.reply("ok")


@pytest.mark.parametrize("stream", [True, False])
def test_a_reply_its_usage_and_the_order_of_its_instants(stream):
    usage = {
        "prompt_tokens": 7,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    with Server(lambda e: e.reply("warm milk", usage=usage)) as server, counting() as counts:
        reply = connect(server, stream=stream).complete(user("hm?"), FREE, GREEDY)
    assert (reply.text, reply.stop) == ("warm milk", "end")
    assert reply.usage == {"prompt_tokens": 7, "completion_tokens": 2, "cached_tokens": 4}
    assert reply.ready_at < reply.first_token_at <= reply.done_at
    assert counts == {"prompt_tokens": 7, "completion_tokens": 2}


def test_the_first_token_is_timed_where_the_stream_brings_it():
    events = [
        json.dumps({"choices": [{"delta": {"content": c}, "finish_reason": None}]}) for c in "abc"
    ]
    end = json.dumps({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    with Server(lambda e: e.stream(*events, end, "[DONE]", gap_s=0.02)) as server:
        reply = connect(server).complete(user("hm?"), FREE, GREEDY)
    assert reply.text == "abc"
    assert reply.done_at - reply.first_token_at > 0.04  # two of the gaps at least lie between


def test_text_of_any_script_arrives_whole_however_the_bytes_come():
    event = {"choices": [{"delta": {"content": "温牛奶 ☕"}, "finish_reason": "stop"}]}
    data = f"data: {json.dumps(event, ensure_ascii=False)}\n\ndata: [DONE]\n\n".encode()

    def bytewise(exchange):
        exchange.stream()
        for i in range(len(data)):
            exchange.http.wfile.write(data[i : i + 1])
            exchange.http.wfile.flush()

    with Server(bytewise) as server:
        assert connect(server).complete(user("hm?"), FREE, GREEDY).text == "温牛奶 ☕"


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_apart(name):
    with Server(lambda e: e.reply("B", **{name: "A is wrong"})) as server:
        reply = connect(server).complete(user("hm?"), FREE, GREEDY)
    assert (reply.text, reply.reasoning) == ("B", "A is wrong")


@pytest.mark.parametrize(
    ("answer", "stop"),
    [
        ({"stop": "length"}, "length"),
        ({"stop": "content_filter"}, "refused"),
        ({"refusal": "I would rather not"}, "refused"),
    ],
)
def test_how_a_reply_ended(answer, stop):
    with Server(lambda e: e.reply("x", **answer)) as server:
        assert connect(server).complete(user("hm?"), FREE, GREEDY).stop == stop


def test_frames_go_out_in_order_at_the_size_asked_for():
    frames = [frame(t, shade) for t, shade in ((0.0, 10), (1.0, 120), (2.0, 240))]
    with Server(echo) as server:
        connect(server).complete(user("hm?", *frames, size=(8, 12)), FREE, GREEDY)
    shades = []
    for item in server.requests[0].items:
        kind, _, data = item["image_url"]["url"].partition(",")
        assert kind == "data:image/jpeg;base64"
        picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
        assert picture.shape == (8, 12, 3)
        shades.append(int(picture.mean().round(-1)))
    assert shades == [10, 120, 240]


def test_file_references_are_written_once_and_named_by_content(tmp_path):
    same = [frame(0.0, 50), frame(9.0, 50), frame(10.0, 60)]
    given = {
        "media": "file",
        "media_folder": str(tmp_path),
        "image_format": "png",
        "media_ids": True,
    }
    with Server(echo) as server:
        endpoint = connect(server, **given)
        for _ in range(2):
            endpoint.complete(user("hm?", *same), FREE, GREEDY)
    first, second = (request.items for request in server.requests)
    assert first == second
    assert first[0]["uuid"] == first[1]["uuid"] != first[2]["uuid"]
    assert len(list(tmp_path.iterdir())) == 2
    path = first[0]["image_url"]["url"].removeprefix("file://")
    assert (np.asarray(Image.open(path)) == 50).all()


def test_a_video_part_as_jpeg_frames_and_as_mp4_with_the_frames_own_times():
    import av

    frames = [frame(5.0 + t, int(40 * t), (32, 32)) for t in (0.0, 1.0, 2.5, 4.0)]
    with Server(echo) as server:
        for video in ("jpeg", "mp4"):
            connect(server, video=video).complete(user("hm?", *frames, video=True), FREE, GREEDY)
        connect(server, video="mp4").complete(user("hm?", *frames), FREE, GREEDY)
    joined, file, images = (request.items for request in server.requests)
    assert joined[0]["video_url"]["url"].startswith("data:video/jpeg;base64,")
    assert len(joined[0]["video_url"]["url"].split(",")) == 1 + len(frames)
    data = base64.b64decode(file[0]["video_url"]["url"].partition(",")[2])
    with av.open(io.BytesIO(data)) as container:
        decoded = [(f.time, f.to_ndarray(format="rgb24").mean()) for f in container.decode(video=0)]
    assert [t for t, _ in decoded] == [0.0, 1.0, 2.5, 4.0]
    assert [round(shade, -1) for _, shade in decoded] == [0, 40, 100, 160]
    assert len(images) == len(frames)  # frames that are no video stay images


def test_sound_goes_out_as_wav():
    samples = np.sin(np.arange(1600) / 10).astype(np.float32)
    with Server(echo) as server:
        message = Message("user", (Sound(samples), Text("hm?")))
        connect(server).complete([message], FREE, GREEDY)
    [item] = server.requests[0].items
    data = base64.b64decode(item["input_audio"]["data"])
    assert data[:4] == b"RIFF"
    assert np.abs(np.frombuffer(data[44:], "<i2") / 32767 - samples).max() < 1e-3


def test_settings_reach_the_request_and_only_what_is_set():
    contract = Contract("memory", schema={"type": "object"})
    with Server(echo) as server:
        connect(server).complete(user("hm?"), contract, Generation(max_new_tokens=5, seed=3))
        connect(
            server,
            reasoning_effort="low",
            thinking="off",
            reasoning_tokens=100,
            media_resolution="high",
            structured="json_schema",
            sampling=False,
            limit_field="max_completion_tokens",
            send_contract=True,
            extra={"top_k": 1},
        ).complete(user("hm?", frame(0.0, 1)), contract, GREEDY)
    plain, full = (request.body for request in server.requests)
    decoding = {"max_tokens", "temperature", "top_p", "seed"}
    assert set(plain) == {"model", "messages", "stream", "stream_options"} | decoding
    assert (plain["max_tokens"], plain["seed"], plain["temperature"]) == (5, 3, 0.0)
    assert full["reasoning_effort"] == "low"
    assert full["chat_template_kwargs"] == {"enable_thinking": False}
    assert full["max_completion_tokens"] == 164
    assert full["response_format"]["json_schema"]["name"] == "memory"
    assert full["metadata"] == {"contract": "memory"}
    assert full["top_k"] == 1
    assert not {"temperature", "seed", "max_tokens"} & set(full)
    assert server.requests[1].items[0]["image_url"]["detail"] == "high"


def test_a_broken_contract_is_asked_for_once_more_and_the_raw_reply_kept():
    contract = Contract("memory", parse=lambda text: json.loads(text)["memory"])
    answers = iter(["no json", '{"memory": "tea"}'])
    with Server(lambda e: e.reply(next(answers))) as server:
        reply = connect(server).complete(user("hm?"), contract, GREEDY)
    assert (reply.value, reply.rejected) == ("tea", ("no json",))
    assert reply.usage["prompt_tokens"] == 20
    first, second = server.requests
    assert "no json" in second.text
    assert second.body["seed"] == first.body["seed"] + 1


def test_a_contract_broken_twice_is_an_error_with_both_replies():
    contract = Contract("memory", parse=lambda text: json.loads(text)["memory"])
    answers = iter(["no", "never"])
    server = Server(lambda e: e.reply(next(answers)))
    with server, pytest.raises(ContractBroken, match="memory") as caught:
        connect(server).complete(user("hm?"), contract, GREEDY)
    assert caught.value.rejected == ("no", "never")
    assert len(server.requests) == 2


def test_without_a_parser_any_reply_is_a_result():
    with Server(lambda e: e.reply("")) as server:
        reply = connect(server).complete(user("hm?"), FREE, GREEDY)
    assert (reply.text, len(server.requests)) == ("", 1)


def test_vectors_come_from_the_server_where_a_model_is_named():
    def handler(exchange):
        rows = [
            {"index": i, "embedding": [3.0 * i, 4.0]} for i in range(len(exchange.body["input"]))
        ]
        exchange.send(200, json.dumps({"data": rows[::-1], "usage": {"prompt_tokens": 2}}))

    with Server(handler) as server:
        vectors = connect(server, embedding_model="e").embed(["a", "b"])
        assert server.requests[0].path == "/v1/embeddings"
        assert connect(server).embed(["a", "b"]).shape == (2, 512)
        chat = connect(server, embedding_model="e", embedding_url=server.url)
        chat.transport.url = "http://127.0.0.1:9/v1"  # nobody is there: replies' own server
        assert np.allclose(chat.embed(["a", "b"]), vectors)
    assert np.allclose(vectors, [[0.0, 1.0], [0.6, 0.8]])


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        "vectors",
        [{"embedding": [1.0, 2.0]}],
        [{"embedding": [1.0, 2.0]}] * 3,
        [{"embedding": [1.0, 2.0]}, {"embedding": [1.0]}],
        [{"embedding": [1.0, 2.0]}, {"vector": [1.0]}],
        [{"embedding": [1.0, 2.0]}, {"embedding": [1.0, float("nan")]}],
        [{"embedding": [1.0, 2.0]}, {"embedding": [1.0, 1e300]}],
        [{"embedding": [1.0, 2.0]}, {"embedding": ["a", "b"]}],
        [{"embedding": [1.0, 2.0]}, {"embedding": 3.0}],
        [{"embedding": 1.0}, {"embedding": 3.0}],
        [{"embedding": [1.0, 2.0]}, None],
        [{"index": 0, "embedding": [1.0, 2.0]}, {"index": 0, "embedding": [3.0, 4.0]}],
        [{"index": 1, "embedding": [1.0, 2.0]}, {"index": 2, "embedding": [3.0, 4.0]}],
        [{"index": "0", "embedding": [1.0, 2.0]}, {"index": "1", "embedding": [3.0, 4.0]}],
    ],
)
def test_vectors_of_another_form_are_a_transport_fault(data):
    server = Server(lambda e: e.send(200, json.dumps({"data": data, "usage": 7})))
    with server, pytest.raises(TransportError, match="failed 2 times"):
        connect(server, embedding_model="e", retries=1).embed(["a", "b"])
    assert len(server.requests) == 2


def test_many_vectors_may_be_larger_than_a_reply():
    row = {"embedding": [0.1234567890123456789] * 4096}
    with Server(lambda e: e.send(200, json.dumps({"data": [row] * 64}))) as server:
        vectors = connect(server, embedding_model="e").embed([f"{i}" for i in range(64)])
    assert vectors.shape == (64, 4096)


def test_text_that_no_file_can_hold_is_sent_as_servers_write_it():
    with Server(echo) as server:
        endpoint = connect(server)
        endpoint.complete(user("cup \ud83c, \ud83e\udd5b"), FREE, GREEDY)
        endpoint.complete(user("cup \ud83c", frame(0.0, 1)), FREE, GREEDY)
    assert [r.text.strip() for r in server.requests] == ["cup \ufffd, 🥛", "cup \ufffd"]


def test_the_id_names_the_address_unless_a_revision_does():
    spec = "endpoint:Qwen/Qwen3-VL-8B-Instruct@http://node7:8000/v1/"
    assert chat.open(spec).id == "Qwen/Qwen3-VL-8B-Instruct@node7:8000/v1"
    assert chat.open(spec, revision="0c351dd").id == "Qwen/Qwen3-VL-8B-Instruct@0c351dd"


@pytest.mark.parametrize(
    ("spec", "given", "says"),
    [
        ("endpoint:toy", {}, "endpoint:MODEL@http"),
        ("endpoint:toy@localhost:8000", {}, "endpoint:MODEL@http"),
        ("endpoint:toy@http:///v1", {}, "looks like http://host:8000/v1"),
        ("endpoint:toy@http://me:pass@host/v1", {}, "key_env"),
        ("endpoint:toy@http://host/v1?key=abcdefgh", {}, "key_env"),
        (
            "endpoint:toy@http://host/v1",
            {"reasoning_efort": "low"},
            "did you mean 'reasoning_effort'",
        ),
        ("endpoint:toy@http://host/v1", {"video": "webm"}, "images, jpeg, mp4|known"),
        ("endpoint:toy@http://host/v1", {"media": "file"}, "media_folder"),
        ("endpoint:toy@http://host/v1", {"max_cost": 1.0}, "price_in"),
        ("endpoint:toy@http://host/v1", {"extra": {"api_key": "x"}}, "extra holds a key"),
        (
            "endpoint:toy@http://host/v1",
            {"extra": {"x": ["sk-abcdefgh12345"]}},
            "extra holds a key",
        ),
        ("ideal", {"eror_rate": 0.1}, "did you mean 'error_rate'"),
        ("vllm:", {}, "forms:"),
        ("", {}, "forms:"),
    ],
)
def test_a_wrong_name_or_setting_is_one_clear_line(spec, given, says):
    with pytest.raises(BenchError, match=says) as caught:
        chat.open(spec, **given)
    assert "pass@" not in str(caught.value)
    assert "abcdefgh" not in str(caught.value)


def test_only_settings_that_shape_replies_are_part_of_the_identity():
    plain = EndpointSettings().shaping()
    assert EndpointSettings(retries=1, concurrency=3, key_env="K").shaping() == plain
    assert EndpointSettings(thinking="on").shaping() != plain
    assert EndpointSettings(finish="assumed").shaping() == {**plain, "finish": "assumed"}
    assert "finish" not in plain, "replies kept before serve on"
    assert EndpointSettings(image_format="png").shaping() != plain


def test_frames_without_a_size_keep_their_own():
    with Server(echo) as server:
        part = Frames((frame(0.0, 3, (10, 14)),))
        connect(server).complete([Message("user", (part,))], FREE, GREEDY)
    data = server.requests[0].items[0]["image_url"]["url"].partition(",")[2]
    assert Image.open(io.BytesIO(base64.b64decode(data))).size == (14, 10)


def test_log_probabilities_are_those_of_the_first_token():
    def top(*values):
        return {"content": [{"top_logprobs": [{"logprob": value} for value in values]}]}

    sent = [
        event("", delta={"role": "assistant"}, logprobs={"content": []}),
        event("a", logprobs=top(-2.0, -0.5, -9999)),
        event("b", "stop", logprobs=top(-1.0)),
    ]
    with Server(lambda e: e.stream(*sent, "[DONE]")) as server:
        reply = connect(server, logprobs=3).complete(user("hm?"), FREE, GREEDY)
    assert reply.logits.tolist() == [-0.5, -2.0, -9999]


def test_counts_are_whole_numbers_of_tokens_and_frames():
    told = {
        "prompt_tokens": 10**12,
        "completion_tokens": 10**12 + 1,
        "total_tokens": 0,
        "cost": 3,
        "frames": 7,
        "details": {"cached_tokens": 5, "total_tokens": 9, "frames_left": 1},
    }
    kept = {"prompt_tokens": 10**12, "total_tokens": 0, "frames": 7, "cached_tokens": 5}
    assert counts(told) == kept
