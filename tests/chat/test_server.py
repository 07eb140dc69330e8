"""What servers tell of themselves, and how many requests go out for it."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from scripted_server import FREE, GREEDY, Server, connect, frame, raw, user, whole

from bench_lib.chat.preflight import preflight
from bench_lib.chat.server import served, servers
from bench_lib.errors import BenchError
from bench_lib.evaluate.job import Evaluation
from bench_lib.messages.chat import RequestRefused, TransportError
from bench_lib.params.evaluate import EvalParams

LINE = (
    'vllm:cache_config_info{{block_size="16",cache_dtype="auto",enable_prefix_caching="True",'
    'engine="{}",gpu_memory_utilization="0.9",num_gpu_blocks="{}"}} 1.0\n'
)
METRICS = "# HELP vllm:cache_config_info Information\n# TYPE vllm:cache_config_info gauge\n"


def pages(*blocks: object) -> dict[str, str]:
    lines = "".join(LINE.format(i, n) for i, n in enumerate(blocks))
    return {"/version": '{"version": "0.32.0"}', "/metrics": METRICS + lines}


def counted(exchange):
    exchange.reply("yes", usage={"prompt_tokens": 100, "frames": len(exchange.items)})


@pytest.mark.parametrize(
    ("blocks", "given", "places", "ok"),
    [
        ((100,), {}, 9, True),  # 1,600 tokens for questions of 100 + 64
        ((100, 100), {}, 19, True),  # two engines behind one address
        ((4,), {}, 1, True),
        ((10**6,), {}, 64, True),
        ((100,), {"concurrency": 5}, 5, True),
        ((), {}, 8, None),
        (("None",), {}, 8, None),
    ],
)
def test_as_many_requests_as_the_cache_holds(blocks, given, places, ok):
    with Server(counted, pages=pages(*blocks)) as server:
        endpoint = connect(server, **given)
        check = preflight(endpoint, frames=4, max_new_tokens=64)[-2]
        assert (check.name, check.ok) == ("requests at once", ok)
        assert check.detail.startswith(f"{places}")
        assert endpoint.transport.places == places


def test_a_server_that_tells_nothing_is_no_fault():
    with Server(counted) as server:
        found = served(connect(server))
    assert (found.version, dict(found.engine), found.cache_tokens) == ("", {}, 0)
    assert served(connect(server)).version == "", "nor is one that is away"


def test_what_a_server_tells_reaches_the_manifest_and_binds_later_processes(outputs: Path):
    name = "toy-1"

    def seen(exchange):
        told = exchange.items and zlib.crc32(exchange.items[0]["image_url"]["url"].encode())
        usage = {"prompt_tokens": 100, "frames": len(exchange.items)}
        raw(exchange, whole(f"{told}", top={"model": name, "usage": usage}))

    with Server(seen, pages=pages(100)) as server:
        params = EvalParams(
            method="simplestream", source="dollhouse-small", tasks=["CT"], limit=1,
            backbone=f"endpoint:toy@{server.url}", backbone_args={"revision": "m"},
        )  # fmt: skip
        job = Evaluation.open(params)
        job.plan()
        assert servers(job.method.served.chat)[0].cache_tokens == 1600
        job.execute(progress=False)
        name = "toy-2"
        with pytest.raises(BenchError, match=r"model named: .*'toy-2' now.*'toy-1' before"):
            Evaluation.open(replace(params, limit=2)).plan()
    (about,) = job.run.manifest()["facts"]["servers"]
    assert (about["version"], about["model"]) == ("0.32.0", "toy-1")
    assert about["engine"]["enable_prefix_caching"] == "True"
    assert about["engine"]["gpu_memory_utilization"] == "0.9"


# Media that go once


class Cache:
    """A server that keeps media by their ids, as vLLM does, and may forget them."""

    def __init__(self, refusal=400):
        self.kept, self.sizes, self.refusal = set(), [], refusal

    def __call__(self, exchange):
        self.sizes.append(len(json.dumps(exchange.body)))
        for item in exchange.items:
            content = item[item["type"]]
            if content is None and item["uuid"] not in self.kept:
                return exchange.error(self.refusal, "Cache miss for image at index 0")
            self.kept.add(item["uuid"])
        return exchange.reply(f"{len(exchange.items)} seen")


def shots(n: int):
    return [frame(float(i), 10 * i, (64, 64)) for i in range(n)]


@pytest.mark.parametrize("video", ["images", "jpeg"])
@pytest.mark.parametrize("refusal", [400, 500])
def test_each_item_goes_once_and_again_where_it_was_forgotten(video, refusal):
    cache = Cache(refusal)
    with Server(cache) as server:
        endpoint = connect(server, media="once", video=video)
        for _ in range(3):
            endpoint.complete(user("what?", *shots(8), video=video != "images"), FREE, GREEDY)
        assert len(cache.sizes) == 3
        assert cache.sizes[1] == cache.sizes[2] < cache.sizes[0] / 3
        if video == "images":
            endpoint.complete(user("and?", *shots(9)), FREE, GREEDY)
            (new,) = [i for i in server.requests[-1].items if i["image_url"]]
            assert new["uuid"] not in {i["uuid"] for i in server.requests[0].items}
        cache.kept.clear()
        asked = len(cache.sizes)
        reply = endpoint.complete(user("what?", *shots(8), video=video != "images"), FREE, GREEDY)
        assert reply.text == ("8 seen" if video == "images" else "1 seen")
        assert len(cache.sizes) == asked + 2, "once by id, once whole"
        endpoint.complete(user("what?", *shots(8), video=video != "images"), FREE, GREEDY)
        assert len(cache.sizes) == asked + 3, "and by id from then on"


def test_what_fails_with_its_bytes_fails_as_ever():
    with Server(lambda e: e.error(400, "no images here")) as server:
        with pytest.raises(RequestRefused, match="no images"):
            connect(server, media="once").complete(user("what?", *shots(2)), FREE, GREEDY)
        assert len(server.requests) == 1
        server.handler = lambda e: e.error(503, "away")
        with pytest.raises(TransportError):
            connect(server, media="once", retries=1).complete(user("w", *shots(2)), FREE, GREEDY)
        assert len(server.requests) == 3
