"""How requests are put to vLLM's engine, shown on a stand-in with its interface.

The engine itself is exercised where vLLM is installed.
"""

from __future__ import annotations

import sys
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from scripted_server import FREE, GREEDY, frame, user

from bench_lib.errors import BenchError
from bench_lib.exchange import Generation
from bench_lib.measure import counting
from bench_lib.messages.chat import ChatError, Contract, Frames, Message, Text
from bench_lib.opening import chat


class Tokenizer:
    def apply_chat_template(self, turns, tokenize, add_generation_prompt, **given):
        assert not tokenize
        assert add_generation_prompt
        parts = [
            (t["role"], [c.get("text", f"<{c['type']}>") for c in t["content"]]) for t in turns
        ]
        return repr((parts, given))


class Engine:
    """Echoes prompts; the first batch waits until the rest have queued up."""

    finish: str | None = "length"

    def __init__(self, model, revision, **given):
        self.made = (model, revision, given)
        self.batches = []
        self.gate = threading.Event()

    def get_tokenizer(self):
        return Tokenizer()

    def generate(self, prompts, sampling, use_tqdm):
        self.batches.append((prompts, sampling))
        self.gate.wait(5)
        if any("too long" in prompt["prompt"] for prompt in prompts):
            raise ValueError("the prompt is longer than the model's context")
        return [
            SimpleNamespace(
                outputs=[
                    SimpleNamespace(
                        text=prompt["prompt"],
                        finish_reason=self.finish,
                        token_ids=[1, 2],
                        logprobs=[
                            {7: SimpleNamespace(logprob=-2.0), 8: SimpleNamespace(logprob=-1.0)}
                        ],
                    )
                ],
                metrics=SimpleNamespace(first_token_latency=0.0),
                prompt_token_ids=[0] * 5,
                num_cached_tokens=3,
            )
            for prompt in prompts
        ]


@pytest.fixture
def vllm(monkeypatch):
    module = types.ModuleType("vllm")
    module.__version__ = "0.0"
    module.LLM = Engine
    module.SamplingParams = lambda **given: given
    parameters = types.ModuleType("vllm.sampling_params")
    parameters.StructuredOutputsParams = lambda json: json
    monkeypatch.setitem(sys.modules, "vllm", module)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", parameters)


def test_without_vllm_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(BenchError, match=r"bench-lib\[vllm\]"):
        chat.open("vllm:Qwen/Qwen3-VL-8B-Instruct")


def test_a_request_keeps_the_order_of_its_parts_and_its_pixels(vllm):
    model = chat.open("vllm:toy", revision="abc", template={"enable_thinking": False})
    model._llm.gate.set()
    frames = [frame(float(t), 40 * t) for t in (2, 3, 5)]
    parts = (
        Frames((frames[0],), size=(8, 12)),
        Text("then"),
        Frames((*frames[1:],), video=True),
        Text("What now?"),
    )
    messages = [Message("system", (Text("You see."),)), Message("user", parts)]
    with counting() as counts:
        reply = model.complete(
            messages, FREE, Generation(max_new_tokens=9, seed=3, keep_logits=True)
        )
    assert model.id == "toy@abc"
    assert reply.text == repr(
        (
            [("system", ["You see."]), ("user", ["<image>", "then", "<video>", "What now?"])],
            {"enable_thinking": False},
        )
    )
    [([prompt], [sampling])] = model._llm.batches
    [image] = prompt["multi_modal_data"]["image"]
    [(video, told)] = prompt["multi_modal_data"]["video"]
    assert np.asarray(image).shape == (8, 12, 3)
    assert [int(picture.mean()) for picture in video] == [120, 200]
    assert (told["frames_indices"], told["fps"], told["do_sample_frames"]) == ([2, 2], 0.5, False)
    assert {k: len(v) for k, v in prompt["multi_modal_uuids"].items()} == {"image": 1, "video": 1}
    assert (sampling["max_tokens"], sampling["seed"], sampling["logprobs"]) == (9, 3, 20)
    assert (reply.stop, reply.logits.tolist()) == ("length", [-1.0, -2.0])
    assert reply.usage == {"prompt_tokens": 5, "completion_tokens": 2, "cached_tokens": 3}
    assert counts == {"prompt_tokens": 5, "completion_tokens": 2}
    assert reply.ready_at <= reply.first_token_at <= reply.done_at


def test_a_schema_holds_decoding_only_where_that_is_set(vllm):
    contract = Contract("memory", schema={"type": "object"})
    for structured in (False, True):
        model = chat.open("vllm:toy", structured=structured)
        model._llm.gate.set()
        model.complete(user("hm?"), contract, GREEDY)
        [(_, [sampling])] = model._llm.batches
        assert sampling.get("structured_outputs") == ({"type": "object"} if structured else None)


def test_requests_that_wait_go_together_and_one_that_does_not_fit_fails_alone(vllm):
    model = chat.open("vllm:toy")
    with ThreadPoolExecutor(6) as pool:
        first = pool.submit(model.complete, user("first"), FREE, GREEDY)
        while not model._llm.batches:
            time.sleep(0.001)
        texts = ["a", "too long", "b", "c"]
        others = [pool.submit(model.complete, user(text), FREE, GREEDY) for text in texts]
        while len(model._waiting) < 4:
            time.sleep(0.001)
        model._llm.gate.set()
        assert "first" in first.result().text
        for text, other in zip(texts, others, strict=True):
            if text == "too long":
                with pytest.raises(ChatError, match="longer than the model's context"):
                    other.result()
            else:
                assert repr(text) in other.result().text
    assert [len(prompts) for prompts, _ in model._llm.batches] == [1, 4, 1, 1, 1, 1]


def test_equal_media_have_equal_ids_and_others_have_not(vllm):
    model = chat.open("vllm:toy")
    ids = [
        model.prompt(user("hm?", frame(t, shade), size=size))["multi_modal_uuids"]["image"][0]
        for t, shade, size in ((0, 1, None), (9, 1, None), (0, 2, None), (0, 1, (8, 8)))
    ]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3


@pytest.mark.parametrize("reason", [None, "abort", "error", "repetition"])
def test_a_reply_that_did_not_come_to_its_end_is_an_error(vllm, monkeypatch, reason):
    monkeypatch.setattr(Engine, "finish", reason)
    served = chat.open("vllm:m")
    served._llm.gate.set()
    with pytest.raises(ChatError, match="finish_reason"):
        served.complete(user("hm?"), FREE, GREEDY)
    monkeypatch.setattr(Engine, "finish", "stop")
    assert served.complete(user("hm?"), FREE, GREEDY).stop == "end"
