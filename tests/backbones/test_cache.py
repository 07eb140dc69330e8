from __future__ import annotations

import torch
from backbone_cases import video_prompt

from bench_lib.backbones.base import Backbone
from bench_lib.backbones.cache import Cache
from bench_lib.opening import backbones
from bench_lib.state import walk as states


def filled(backbone: Backbone) -> Cache:
    prompt = video_prompt(backbone)
    with torch.inference_mode():
        _, cache = backbone.decoder.read(prompt.x, prompt.positions, backbone.empty_cache())
    return cache


def test_gather_and_cut_keep_order_and_own_their_memory(backbone: Backbone) -> None:
    cache = filled(backbone)
    index = [torch.tensor([3, 1, 4]) for _ in range(backbone.layers)]
    some = cache.gather(index)
    assert torch.equal(some.keys[2], cache.keys[2][:, [3, 1, 4]])
    assert torch.equal(some.positions[0], cache.positions[0][:, [3, 1, 4]])
    cut = cache.cut(5, 9)
    assert torch.equal(cut.values[1], cache.values[1][:, 5:9])
    states.nbytes((some, cut))  # raises where a tensor is a view of a larger one


def test_bytes_are_the_closed_form(backbone: Backbone) -> None:
    cache = filled(backbone)
    tokens = cache.length()
    assert cache.kv_bytes == tokens * backbone.kv_bytes_per_token
    # Layers that read the same tokens share one positions tensor of three int64 rows.
    assert states.nbytes(cache) == {"kv": cache.kv_bytes, "index": tokens * 3 * 8}
    assert cache.cut(0, 7).kv_bytes == 7 * backbone.kv_bytes_per_token


def test_full_size_states_are_counted_without_memory() -> None:
    """ReKV's published hour: 196 tokens a frame at half a frame a second, 18.84 GiB."""
    seven = backbones.load("rehearse:qwen2.5-vl-7b", device="meta")
    assert seven.kv_bytes_per_token == 57_344
    tokens = 196 * 1_800
    keys = torch.empty(seven.kv_heads, tokens, seven.head_dim, dtype=seven.dtype, device="meta")
    hour = Cache(
        tuple(torch.empty_like(keys) for _ in range(seven.layers)),
        tuple(torch.empty_like(keys) for _ in range(seven.layers)),
        (torch.empty(3, tokens, dtype=torch.long, device="meta"),) * seven.layers,
    )
    assert hour.kv_bytes == tokens * 57_344
    assert states.nbytes(hour)["kv"] == hour.kv_bytes
    assert round(hour.kv_bytes / 2**30, 2) == 18.84
