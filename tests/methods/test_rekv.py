"""ReKV: window and retrieval against loops and the release, its memory on the tiny models."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import decoder_by_loops as loops
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from token_laws import QUERY, SHORT, begun, film, logits, session

from bench_lib.backbones.base import Backbone
from bench_lib.backbones.cache import Cache
from bench_lib.backbones.generate import decode
from bench_lib.backbones.prompt import Built, Prompt, Visual
from bench_lib.errors import BenchError
from bench_lib.exchange import Note
from bench_lib.measure import counting
from bench_lib.methods.rekv import Rekv, nearest_blocks, windowed
from bench_lib.opening import backbones
from bench_lib.video.stream import ArrayFrame, Clip, SessionInfo

RELEASE = json.loads(Path(__file__).with_name("vectors").joinpath("rekv.json").read_text())
SMALL = {"fps": 1.0, "clip_frames": 8, "n_local": 250, "topk": 4}


@pytest.fixture(scope="module")
def tiny() -> Backbone:
    return backbones.load("tiny-untrained", device="cpu")


@pytest.fixture(scope="module", params=["tiny-untrained", "tiny-qwen3"])
def backbone(request: pytest.FixtureRequest) -> Backbone:
    return backbones.load(request.param, device="cpu")


def turned(x: np.ndarray, position: int) -> np.ndarray:
    """A vector at a position of one axis, base 10,000."""
    half = len(x) // 2
    angle = position * 10_000.0 ** (-np.arange(half) / half)
    first, second = x[:half], x[half:]
    return np.concatenate(
        (
            first * np.cos(angle) - second * np.sin(angle),
            second * np.cos(angle) + first * np.sin(angle),
        )
    )


def by_loops(q: np.ndarray, k: np.ndarray, v: np.ndarray, prefix: int, window: int) -> np.ndarray:
    """Attention `[heads, n, d]` of a whole stream: every query sees its window and the prefix."""
    heads, n, d = q.shape
    out = np.zeros_like(q)
    for h in range(heads):
        group = h * len(k) // heads
        for i in range(n):
            near = range(max(0, i - window + 1), i + 1)
            far = [j for j in range(min(prefix, i)) if i - j >= window]
            scores = [turned(q[h, i], i) @ turned(k[group, j], j) for j in near]
            scores += [turned(q[h, i], window - 1) @ k[group, j] for j in far]
            share = np.exp(np.array(scores) / np.sqrt(d))
            out[h, i] = share / share.sum() @ v[group, [*near, *far]]
    return out


def ours(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, prefix: int, window: int, sizes
) -> np.ndarray:
    """The same through `windowed`, read in parts of these sizes, holding `window` entries."""
    angled = [
        np.stack([np.stack([turned(row, i) for i, row in enumerate(head)]) for head in x])
        for x in (q, k)
    ]
    far = np.stack([np.stack([turned(row, window - 1) for row in head]) for head in q])
    tensors = [torch.from_numpy(x).double() for x in (angled[0], far, angled[1], v, k)]
    near, away, keys, values, plain = tensors
    done, at = [], 0
    for size in sizes:
        first, end = max(0, at - window), at + size
        out = windowed(
            (near[:, at:end], away[:, at:end]),
            (keys[:, first:end], values[:, first:end]),
            (plain[:, :prefix], values[:, :prefix]),
            first,
            window,
        )
        done.append(out)
        at = end
    return torch.cat(done, dim=1).numpy()


@settings(max_examples=20, deadline=None)
@given(
    st.integers(1, 4),
    st.integers(2, 9),
    st.lists(st.integers(1, 7), min_size=1, max_size=5),
    st.sampled_from([(4, 2), (3, 1)]),
)
def test_the_window_is_that_of_loops(prefix: int, window: int, sizes: list, heads: tuple) -> None:
    random = np.random.default_rng(window)
    n, sizes = prefix + sum(sizes), [prefix, *sizes]
    q, k, v = (random.normal(size=(h, n, 8)) for h in (heads[0], heads[1], heads[1]))
    got = ours(q, k, v, prefix, window, sizes)
    np.testing.assert_allclose(got, by_loops(q, k, v, prefix, window), atol=1e-10)


def test_the_release_attends_alike() -> None:
    """But for the few entries that see the system prompt twice while the window fills."""
    prefix, window, block = 3, 17, 4
    random = np.random.default_rng(11)
    total = prefix + 9 * block
    q, k, v = (random.normal(size=(1, h, total, 8)).astype(np.float32)[0] for h in (4, 2, 2))
    sizes = [prefix, 4, 4, 4, 8, 4, 4, 4, 4]
    got = ours(q, k, v, prefix, window, sizes)
    apart = np.abs(got - np.array(RELEASE["attention"])).max((0, 2))
    # Prompt entries that a block pushes out of the window are far for all of it, while its first
    # entries still have them near.
    twice = []
    for start in range(prefix, total, block):
        pushed = min(prefix, start + block - window)
        twice += [i for i in range(start, start + block) if pushed > 0 and i - pushed + 1 < window]
    assert np.flatnonzero(apart > 1e-5).tolist() == twice == [15, 16, 17]


def test_the_release_retrieves_the_same_blocks() -> None:
    random = np.random.default_rng(11)
    shapes = [(1, 4, 39, 8), (1, 2, 39, 8), (1, 2, 39, 8), (1, 4, 5, 8)]
    _, k, _, question = (random.normal(size=shape).astype(np.float32)[0] for shape in shapes)
    blocks = torch.from_numpy(k[:, 3:]).unflatten(1, (9, 4)).mean(2)  # [kv_heads, blocks, d]
    means = blocks.repeat_interleave(2, dim=0).transpose(0, 1).flatten(1)
    alike = means @ torch.from_numpy(question).mean(1).flatten()
    np.testing.assert_allclose(alike, RELEASE["similarity"], atol=2e-5)
    for entries, expected in RELEASE["retrieved"].items():
        known = (int(entries) - 3) // 4
        assert nearest_blocks(alike[:known], 3, 1) == expected


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=20, unique=True), st.integers(1, 3))
def test_the_best_blocks_come_in_time_order(values: list[int], chunk: int) -> None:
    topk = 2 * chunk
    chosen = nearest_blocks(torch.tensor(values).float(), topk, chunk)
    assert chosen == sorted(set(chosen))
    if len(values) <= topk:
        assert chosen == [*range(len(values))]
        return
    groups = [values[i : i + chunk] for i in range(0, len(values), chunk)]
    means = [sum(group) / len(group) for group in groups]
    best = sorted(range(len(groups)), key=lambda i: -means[i])
    cut = means[best[1]]
    taken = {i // chunk for i in chosen}
    assert all(means[i] >= cut for i in taken)
    assert len(taken) == min(2, len(groups))
    assert len(chosen) == sum(len(groups[i]) for i in taken)


# Memory -------------------------------------------------------------------------------------------


def one_by_one(backbone: Backbone, frames: list[ArrayFrame], question: Built) -> Built:
    """The whole prompt at once: each grid a unit of its own, one after another."""
    prompt = Prompt(backbone)
    if backbone.default_system:
        prompt.turn("system").text(backbone.default_system).end()
    prompt.turn("user")
    lattice = backbone.lattice((112, 112)) if backbone.deep == 0 else backbone.lattice((128, 128))
    size = tuple(side * backbone.preparation.factor for side in lattice)
    for pair in zip(frames[::2], frames[1::2], strict=True):
        tokens = backbone.encode([frame.pixels(size) for frame in pair])
        backbone.place(prompt, Visual.whole(tokens, [f.t_s for f in pair], lattice), bare=True)
    seen = prompt.build()
    width = seen.x.shape[1] - question.x.shape[1]
    words = torch.nn.functional.pad(question.x, (0, width))
    return Built(
        torch.cat((seen.x, words)),
        torch.cat((seen.positions, question.positions + prompt.next), dim=1),
        question.text_ids,
        seen.visual_tokens,
    )


def test_all_blocks_are_the_whole_video(backbone: Backbone) -> None:
    """With a window and a retrieval for everything, nothing tells it from one long prompt."""
    args = {**SMALL, "clip_frames": 2, "n_local": 10_000, "topk": 64, "session_marker": False}
    method = begun(backbone, "rekv", **args)
    frames = film(16)
    session(method, 0, frames)
    whole = decode(backbone, one_by_one(backbone, frames, method.question(QUERY)), SHORT)
    np.testing.assert_allclose(logits(method), whole.logits, atol=5e-5)
    fewer = begun(backbone, "rekv", **{**args, "topk": 7})
    session(fewer, 0, frames)
    assert np.abs(logits(fewer) - whole.logits).max() > 1e-3


def test_all_blocks_are_full_attention_over_contiguous_positions(backbone: Backbone) -> None:
    method = begun(backbone, "rekv", **{**SMALL, "topk": 12})
    session(method, 0, film(24))
    store, prefix = method.state.memory, method.state.prefix
    sequence = [*store.markers, *store.blocks]
    places, start = [torch.arange(prefix).expand(3, -1)], prefix
    for block in sequence:
        places.append(store.layouts[block.layout] + start)
        start = int(places[-1].max()) + 1
    where = torch.cat(places, dim=1)
    assert sorted(set(where.flatten().tolist())) == [*range(start)], "a gap between blocks"
    kv = torch.cat([block.kv for block in sequence], dim=3)
    layers = range(backbone.layers)
    keys = tuple(torch.cat((store.prefix.keys[i], kv[i, 0]), dim=1) for i in layers)
    values = tuple(torch.cat((store.prefix.values[i], kv[i, 1]), dim=1) for i in layers)
    cache = Cache(keys, values, (where,) * backbone.layers)
    full = decode(backbone, method.question(QUERY), SHORT, cache, (start,) * backbone.layers)
    np.testing.assert_allclose(logits(method), full.logits, atol=1e-5)


def test_an_answer_reads_what_was_retrieved(tiny: Backbone) -> None:
    method = begun(tiny, "rekv", **SMALL)
    for index in range(2):
        session(method, index, film(24, seed=index))
    np.testing.assert_allclose(loops.answered(tiny, method, QUERY), logits(method), atol=2e-5)


def chosen_by_layer(method: Rekv, query=QUERY) -> list[list[int]]:
    """Which blocks each layer retrieves, found again among its keys."""
    cache, _ = method.recall(method.state, query)
    store, found = method.state.memory, []
    for layer in range(method.served.layers):
        rows = cache.keys[layer][0]
        first = [block.kv[layer, 0, 0, 0] for block in store.blocks]
        at = [torch.nonzero((rows == row).all(1))[:, 0].tolist() for row in first]
        inside = [(places[0], i) for i, places in enumerate(at) if places]
        assert inside == sorted(inside), "blocks out of time order"
        found.append([i for _, i in inside])
    return found


def test_each_layer_retrieves_with_its_own_queries(tiny: Backbone) -> None:
    method = begun(tiny, "rekv", **SMALL)
    session(method, 0, film(48))
    with counting() as counts:
        chosen = chosen_by_layer(method)
    assert counts["blocks_retrieved"] == 4 * tiny.layers
    assert {len(blocks) for blocks in chosen} == {4}
    assert len(set(map(tuple, chosen))) > 1, "all layers retrieve the same"
    other = chosen_by_layer(method, replace(QUERY, text="What happened first of all?"))
    assert other != chosen
    noted = replace(QUERY, notes=(Note(0, 3.0, "Look for the cup."),))
    assert chosen_by_layer(method, noted) != chosen, "what was said does not steer retrieval"
    # The first layer's states are the words: its scores can be worked out without any memory.
    q, _, _ = tiny.decoder.project(0, tiny.embed(tiny.tokenize(QUERY.text)))
    mean = q.mean(1).flatten()
    scores = [float(block.mean[0] @ mean) for block in method.state.memory.blocks]
    best = sorted(sorted(range(len(scores)), key=lambda i: -scores[i])[:4])
    assert chosen[0] == best


def test_a_block_is_its_grid(backbone: Backbone) -> None:
    method = begun(backbone, "rekv", **SMALL)
    session(method, 0, film(16))
    store = method.state.memory
    assert (len(store.blocks), len(store.markers)) == (8, 1)
    for block in store.blocks:
        own = block.kv[:, 0].mean(2).repeat_interleave(3, dim=1).flatten(1)
        torch.testing.assert_close(block.mean, own)
        layout = store.layouts[block.layout]
        assert layout.shape == (3, block.kv.shape[3])
        assert layout.amin(1).tolist() == [0, 0, 0]
    assert len(store.layouts) <= 4, "equal layouts are kept more than once"
    held = method.state.cache  # nothing has left the window yet: the blocks are its entries
    kv = torch.cat([block.kv for block in (*store.markers, *store.blocks)], dim=3)
    assert torch.equal(held.keys[3][:, method.state.prefix :], kv[3, 0])


def test_the_window_slides_and_the_store_grows(tiny: Backbone) -> None:
    method = begun(tiny, "rekv", **SMALL)
    sizes = []
    for index in range(3):
        session(method, index, film(32, seed=index))
        assert {method.state.cache.length(i) for i in range(tiny.layers)} == {250}
        sizes.append(method.state_bytes()["kv"])
    (first, second) = (b - a for a, b in pairwise(sizes))
    assert first == second == (16 * 16 + 12) * tiny.kv_bytes_per_token
    assert method.tokens() == (3 * 256, 3 * 256)
    assert not method.bounded


def test_what_left_the_window_is_no_longer_seen(tiny: Backbone) -> None:
    """But the system prompt is, from afar."""
    usual, other, blind = (begun(tiny, "rekv", **SMALL) for _ in range(3))
    frames = film(80)
    changed = [replace(frames[0], array=255 - frames[0].array), *frames[1:]]
    session(usual, 0, frames)
    session(other, 0, changed)
    newest = [m.state.memory.blocks[-1].kv for m in (usual, other)]
    # Six layers pass on what they saw: a window's reach grows with depth, so only the first differ.
    assert torch.equal(newest[0][:2], newest[1][:2])
    assert not torch.equal(usual.state.memory.blocks[0].kv[1:], other.state.memory.blocks[0].kv[1:])
    empty = blind.state.memory.prefix.cut(0, 0)
    blind.state = replace(blind.state, memory=replace(blind.state.memory, prefix=empty))
    session(blind, 0, frames)
    assert not torch.equal(blind.state.memory.blocks[-1].kv[1:], newest[0][1:])


def test_a_marker_precedes_the_blocks_of_its_session(tiny: Backbone) -> None:
    method = begun(tiny, "rekv", **{**SMALL, "topk": 2})
    for index in range(4):
        session(method, index, film(8, seed=index))
    store = method.state.memory
    assert [block.session for block in store.markers] == [0, 1, 2, 3]
    for chosen, sessions in (([5, 7], [1]), ([2, 12], [0, 3])):
        keys, _, places, end = method._gathered(store, 2, chosen)
        markers = [store.markers[s].kv[2, 0] for s in sessions]
        size = method.state.prefix + 2 * 16 + sum(m.shape[1] for m in markers)
        assert keys.shape[1] == places.shape[1] == size
        assert torch.equal(keys[:, method.state.prefix :][:, : markers[0].shape[1]], markers[0])
        assert end == int(places.max()) + 1


def test_blocks_can_lie_elsewhere_and_are_found_again(tiny: Backbone, tmp_path: Path) -> None:
    method = begun(tiny, "rekv", **SMALL)
    session(method, 0, film(40))
    method.save(tmp_path)
    other = Rekv(**SMALL).attach(tiny)
    other.name = method.name
    other.load(tmp_path)
    assert other.state_bytes() == method.state_bytes()
    assert np.array_equal(logits(other), logits(method))


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"blocks_on": "cpus"}, "did you mean 'cpu'"),
        ({"topk": 5, "chunk_size": 2}, "multiple of chunk_size"),
    ],
)
def test_wrong_settings_are_refused(args: dict, says: str) -> None:
    with pytest.raises(BenchError, match=says):
        Rekv(**args)


def test_more_than_the_window_holds_is_refused(tiny: Backbone) -> None:
    method = begun(tiny, "rekv", n_local=250, topk=16)
    with pytest.raises(BenchError, match="16 blocks of 16 tokens do not fit n_local 250"):
        session(method, 0, film(8))


def test_state_has_the_published_size() -> None:
    """Observed at full size on the meta device: 11,440,128 bytes a frame of 196 tokens."""
    seven = backbones.load("rehearse:qwen2.5-vl-7b?vision=1", device="meta")
    method = begun(seven, "rekv", session_marker=False)
    native = (392, 392)
    assert method.served.lattice(method.frame_size(native)) == (14, 14)
    method.begin_session(SessionInfo("S001", 0, None, method.frame_size(native)))
    picture = np.zeros((*native, 3), np.uint8)
    prefix = method.state.prefix
    for clip in range(3):
        times = [2.0 * (64 * clip + i) for i in range(64)]
        method.observe(Clip(0, tuple(ArrayFrame(t, picture) for t in times)))
        size, blocks = method.state_bytes(), 32 * (clip + 1)
        window = min(15_000, prefix + blocks * 196)
        means = blocks * 28 * 28 * 128 * 2
        assert size["kv"] == (prefix + window + blocks * 196) * 57_344
        assert size["kv"] + means - (prefix + window) * 57_344 == blocks * 11_440_128
        assert means < size["index"] < means + 0.01 * size["kv"]
    assert window == 15_000
