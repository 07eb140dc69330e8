"""HERMES: its parts against loops and the release, its memory on the tiny model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import decoder_by_loops as loops
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from token_laws import QUERY, SHORT, begun, film, logits, session

from bench_lib.backbones.base import Backbone
from bench_lib.backbones.cache import Cache
from bench_lib.errors import BenchError
from bench_lib.exchange import Query, Reply
from bench_lib.measure import counting
from bench_lib.memories.cache_memory import CacheState, received
from bench_lib.methods import hermes
from bench_lib.methods.hermes import Hermes, bands, compacted, folded, said, scored, smoothed
from bench_lib.opening import backbones
from bench_lib.schema import Option

RELEASE = json.loads(Path(__file__).with_name("vectors").joinpath("hermes.json").read_text())
SMALL = {"kv_size": 100, "fps": 1.0, "clip_frames": 8}


@pytest.fixture(scope="module")
def tiny() -> Backbone:
    return backbones.load("tiny-untrained", device="cpu")


# Parts --------------------------------------------------------------------------------------------


def names(layers: int, **how: float) -> list[str]:
    return [band.question for band in bands(layers, Hermes(**how))]


def test_bands_of_published_depths() -> None:
    assert names(28) == ["local"] * 2 + ["mixed"] * 17 + ["global"] * 9
    assert names(4) == ["mixed"] * 2 + ["global"] * 2
    assert names(28, shallow=0.3) == ["local"] * 8 + ["mixed"] * 11 + ["global"] * 9
    middle = bands(28, Hermes())[2:19]
    assert (middle[0].recency, middle[0].decay, middle[0].smooth) == (0.75, 20.0, 0.3)
    assert middle[8].recency == pytest.approx(0.75 - 0.6 * 8 / 17)
    assert middle[8].decay == pytest.approx(20 - 12 * 8 / 17)
    ends = bands(28, Hermes())
    assert ends[0] == ("local", 1.0, 20.0, 0.1)
    assert ends[-1] == ("global", 0.0, 0.0, 0.4)


def test_scores_are_those_of_loops() -> None:
    random = np.random.default_rng(0)
    attention = [random.random(n).astype(np.float32) for n in (9, 9, 9)]
    recency, decay, share = (1.0, 0.4, 0.0), (20.0, 9.0, 0.0), (0.1, 0.3, 0.4)
    expected = []
    for values, a, b in zip(attention, recency, decay, strict=True):
        newness = [np.exp(-b * (9 - 1 - i) / (9 - 1)) for i in range(9)]
        flat = [
            [(x - min(line)) / (max(line) - min(line) + 1e-6) for x in line]
            for line in (values.tolist(), newness)
        ]
        expected.append([(1 - a) * flat[0][i] + a * flat[1][i] for i in range(9)])
    for layer in (1, 0):
        g = share[layer]
        for i in range(9):
            expected[layer][i] = (1 - g) * expected[layer][i] + g * expected[layer + 1][i]
    raw = [
        scored(torch.from_numpy(x), a, b) for x, a, b in zip(attention, recency, decay, strict=True)
    ]
    np.testing.assert_allclose(torch.stack(smoothed(raw, share)), expected, atol=1e-6)


@pytest.mark.parametrize("causal", [True, False])
def test_attention_received_is_that_of_loops(causal: bool) -> None:
    random = np.random.default_rng(1)
    q, k = random.normal(size=(4, 3, 8)), random.normal(size=(2, 7, 8))
    total = np.zeros(7)
    for head in range(4):
        for i in range(3):
            seen = 7 - 3 + i + 1 if causal else 7
            scores = np.array([q[head, i] @ k[head // 2, j] for j in range(seen)]) / np.sqrt(8)
            share = np.exp(scores) / np.exp(scores).sum()
            total[:seen] += share / 12
    got = received(torch.tensor(q), torch.tensor(k), causal)
    np.testing.assert_allclose(got, total, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(*[st.integers(3, 60)] * 3), min_size=1, max_size=25), st.integers(0, 3))
def test_compaction_keeps_order_closes_gaps_and_is_idempotent(where: list, prefix: int) -> None:
    head = torch.arange(prefix).expand(3, -1)
    positions = torch.cat((head, torch.tensor(where).T), dim=1).int()
    once = compacted(positions, prefix)
    assert torch.equal(compacted(once, prefix), once)
    assert torch.equal(once[:, :prefix], positions[:, :prefix])
    for old, new in zip(positions[:, prefix:], once[:, prefix:], strict=True):
        assert set(new.tolist()) == set(range(prefix, prefix + len(set(old.tolist()))))
        assert torch.equal(old[:, None] < old[None], new[:, None] < new[None])


def turned(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Rotation on one axis with base 10,000, as in the release's first model."""
    inverse = 10_000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angle = (positions[..., None] * inverse).repeat(1, 2)
    first, second = x.chunk(2, dim=-1)
    return x * angle.cos() + torch.cat((-second, first), dim=-1) * angle.sin()


def released() -> tuple[list[np.ndarray], CacheState]:
    """The seeded tensors that the release was run on: attention per band, a cache of ten layers."""
    layers, heads, kv_heads, d, prefix, entries, asked = 10, 4, 2, 8, 5, 29, 3
    random = np.random.default_rng(7)
    ones = np.ones(prefix + entries + asked)
    drawn = {
        name: random.dirichlet(ones, size=(layers, heads, asked)).astype(np.float32)
        for name in ("local", "mixed", "global")
    }
    shape = (layers, kv_heads, prefix + entries, d)
    keys, values = (random.normal(size=shape).astype(np.float32) for _ in range(2))
    later = np.sort(random.choice(np.arange(prefix, 90), size=entries, replace=False))
    places = torch.from_numpy(np.concatenate([np.arange(prefix), later])).expand(3, -1).int()
    cache = Cache(*(tuple(map(torch.from_numpy, part)) for part in (keys, values)), (places,) * 10)
    how = bands(layers, LLAVA)
    attention = [drawn[band.question][i].mean((0, 1))[:-asked] for i, band in enumerate(how)]
    return attention, CacheState(cache, prefix, 0)


LLAVA = Hermes(
    shallow=0.2, recency_from=1.0, recency_to=0.1, decay_from=20.0, decay_to=0.5, kv_size=16
).attach(SimpleNamespace(frames_per_grid=2, device=torch.device("cpu")))


def kept_of_release() -> tuple[CacheState, CacheState, list[torch.Tensor]]:
    """The state before, after eviction, and the visual entries that stay."""
    attention, state = released()
    how = bands(10, LLAVA)
    raw = [
        scored(torch.from_numpy(a[5:]), band.recency, band.decay)
        for a, band in zip(attention, how, strict=True)
    ]
    scores = smoothed(raw, [band.smooth for band in how])
    rooms = [16 - (band.question == "global") for band in how]
    index = [hermes.best(s, room) for s, room in zip(scores, rooms, strict=True)]
    return state, LLAVA.keep(state, index), index


def test_the_release_keeps_the_same_entries() -> None:
    _, _, index = kept_of_release()
    assert [[*range(5), *(i + 5).tolist()] for i in index] == RELEASE["keep"]


@pytest.mark.parametrize("form", ["lazy", "compacted"])
def test_the_release_places_and_folds_alike(form: str) -> None:
    before, kept, index = kept_of_release()
    if form == "compacted":
        places = tuple(compacted(p, 5) for p in kept.cache.positions)
        kept = replace(kept, cache=replace(kept.cache, positions=places))
    for layer in (7, 8, 9):
        gone = torch.ones(29, dtype=torch.bool)
        gone[index[layer]] = False
        kept = folded(kept, before, layer, gone.nonzero()[:, 0])
    expected = RELEASE[form]
    assert [p[0].tolist() for p in kept.cache.positions] == expected["positions"]
    for layer, keys in expected["first_head_keys"].items():
        held = kept.cache.keys[int(layer)][0], kept.cache.positions[int(layer)][0]
        np.testing.assert_allclose(turned(*held), keys, atol=3e-5)
    last = [kept.cache.values[layer][:, -1] for layer in (7, 8, 9)]
    np.testing.assert_allclose(torch.stack(last), expected["summary_values"], atol=2e-5)


def test_a_letter_is_remembered_as_what_it_stands_for() -> None:
    query = replace(QUERY, options=(Option(id="A", text="on the shelf"),))
    for text in ("A", " (A) ", "A."):
        assert said(query, text) == "on the shelf"
    assert said(query, "B") == "B"
    assert said(query, "A red cup") == "A red cup"


# Memory -------------------------------------------------------------------------------------------


def test_layers_end_equally_long_and_the_prefix_stays(tiny: Backbone) -> None:
    method = begun(tiny, "hermes", **SMALL)
    prefix = method.state.cache
    for index in range(3):
        session(method, index, film(32, seed=index))
        state = method.state
        fixed = state.prefix + sum(state.markers)
        assert {state.cache.length(layer) for layer in range(tiny.layers)} == {fixed + 100}
        for layer in range(tiny.layers):
            for now, then in ((state.cache.keys, prefix.keys), (state.cache.values, prefix.values)):
                assert torch.equal(now[layer][:, : state.prefix], then[layer])
    assert len(state.markers) == 3
    assert method.tokens() == (100, 3 * 16 * 16)


def test_what_each_band_keeps(tiny: Backbone) -> None:
    """Shallow layers the newest; deep layers one more summary, the mean of what they evicted."""
    args = {"shallow": 0.4, "smooth_shallow": 0.0, "session_marker": False, **SMALL}
    method = begun(tiny, "hermes", **args)
    session(method, 0, film(8), end=False)
    seen: dict[str, CacheState] = {}
    original = method.evict

    def evict(state: CacheState, chunk: object) -> CacheState:
        seen["before"] = state
        seen["after"] = original(state, chunk)
        return seen["after"]

    method.evict = evict
    with counting() as counts:
        session(method, 0, film(16), end=False)
    before, after = seen["before"], seen["after"]
    gone = before.visual() - 100
    assert gone > 0
    for layer in (0, 1):
        assert torch.equal(after.cache.keys[layer][:, -100:], before.cache.keys[layer][:, -100:])
    folds = 0
    for layer in (4, 5):
        old, new = before.cache, after.cache
        kept = set(map(bytes, new.keys[layer].transpose(0, 1).contiguous().numpy()))
        rows = old.keys[layer].transpose(0, 1).contiguous().numpy()
        lost = [i for i, row in enumerate(rows) if bytes(row) not in kept]
        assert len(lost) == gone + 1
        for now, then in ((new.keys, old.keys), (new.values, old.values)):
            mean = then[layer][:, lost].mean(1)
            torch.testing.assert_close(now[layer][:, -1], mean, atol=1e-6, rtol=0)
        assert new.positions[layer][:, -1].tolist() == [new.positions[layer][:, :-1].max() + 1] * 3
        folds += len(lost)
    assert counts["entries_folded"] >= folds


def test_positions_are_planned_chunk_by_chunk(tiny: Backbone) -> None:
    """t advances two a second from behind all that was read; h and w start there too."""
    method = begun(tiny, "hermes", session_marker=False, clip_frames=4)
    session(method, 0, [replace(f, t_s=2.0 * f.t_s) for f in film(8)])
    prefix = method.state.prefix
    places = method.state.cache.positions[0][:, prefix:].unflatten(1, (4, 4, 4))
    assert places[0, :, 0, 0].tolist() == [prefix, prefix + 8, prefix + 9, prefix + 17]
    assert places[1, :, :, 0].tolist() == [
        [prefix + g // 2 * 9 + r for r in range(4)] for g in range(4)
    ]
    assert places[2, 3, 2].tolist() == [prefix + 9 + c for c in range(4)]


@pytest.mark.parametrize("compaction", ["lazy", "eager"])
def test_an_answer_reads_what_is_kept(tiny: Backbone, compaction: str) -> None:
    method = begun(tiny, "hermes", compaction=compaction, **SMALL)
    for index in range(2):
        session(method, index, film(24, seed=index))
    starts = method.starts(method.state)
    assert len(set(starts)) > 1, "layers agree on their next position: the test sees less"
    np.testing.assert_allclose(loops.answered(tiny, method, QUERY), logits(method), atol=2e-5)


def test_eager_compaction_leaves_no_gaps(tiny: Backbone) -> None:
    eager = begun(tiny, "hermes", compaction="eager", **SMALL)
    lazy = begun(tiny, "hermes", **SMALL)
    for method in (eager, lazy):
        session(method, 0, film(40))
    prefix = eager.state.prefix
    for layer in range(4):  # deep layers have a summary behind their ranks
        for axis in eager.state.cache.positions[layer][:, prefix:]:
            assert set(axis.tolist()) == set(range(prefix, int(axis.max()) + 1))
    assert max(eager.starts(eager.state)) < max(lazy.starts(lazy.state))
    assert not np.array_equal(logits(eager), logits(lazy))


def test_lazy_compaction_waits_for_the_limit(
    tiny: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hermes, "RESERVE", tiny.context - 300)
    method = begun(tiny, "hermes", **SMALL)
    with counting() as counts:
        session(method, 0, film(240))
    assert 0 < counts["compactions"] < 240 / 8 - 1
    assert max(method.starts(method.state)) < 400
    assert np.isfinite(logits(method)).all()


def naive_scores(tiny: Backbone, state: CacheState, method: Hermes) -> list[np.ndarray]:
    """Attention that the visual entries of each layer get from its question, by loops."""
    asked = method._questions(state)
    starts, found = method.starts(state), []
    held = loops.of_cache(state.cache)
    for layer, band in enumerate(bands(tiny.layers, method)):
        x = tiny.embed(tiny.tokenize(asked[band.question])).numpy()
        where = [np.tile(np.arange(len(x)) + start, (3, 1)) for start in starts]
        drawn: list[np.ndarray] = []
        loops.read(tiny, x, where, held, drawn)
        found.append(drawn[layer][state.fixed :])
    return found


def test_the_propagated_probe_is_that_of_loops(tiny: Backbone) -> None:
    words = {"local_question": "the cup", "global_question": "the red thing"}
    method = begun(tiny, "hermes", probe="propagated", **SMALL, **words)
    session(method, 0, film(8), end=False)
    state = method.state
    how = bands(tiny.layers, method)
    got = method._scores(state, how, method.starts(state))
    for mine, naive, band in zip(got, naive_scores(tiny, state, method), how, strict=True):
        expected = scored(torch.from_numpy(naive).float(), band.recency, band.decay)
        torch.testing.assert_close(mine, expected, atol=1e-4, rtol=0)


def test_the_embedded_probe_asks_each_layer_anew(tiny: Backbone) -> None:
    """In the first layer both probes start from the words; they part in the mask and deeper."""
    method = begun(tiny, "hermes", **SMALL)
    session(method, 0, film(8), end=False)
    state, decoder = method.state, tiny.decoder
    words = tiny.embed(tiny.tokenize("the red cup"))
    start = method.starts(state)[3]
    got = method._embedded(state, 3, words, start)
    q, own, _ = decoder.project(3, words)
    where = [np.full(3, start + i) for i in range(len(words))]
    keys, _, places = loops.of_cache(state.cache)[3]
    held = [
        [loops.turned(keys[h, i], places[:, i], tiny) for i in range(keys.shape[1])]
        + [loops.turned(own[h, i].numpy(), where[i], tiny) for i in range(len(words))]
        for h in range(2)
    ]
    total = np.zeros(len(held[0]))
    for head in range(6):
        for i in range(len(words)):
            query = loops.turned(q[head, i].numpy(), where[i], tiny)
            score = np.exp(np.array(held[head // 3]) @ query / np.sqrt(32))
            total += score / score.sum() / (6 * len(words))
    np.testing.assert_allclose(got, total[: -len(words)], atol=1e-6)
    propagated = begun(tiny, "hermes", probe="propagated", **SMALL)
    embedded = begun(tiny, "hermes", **SMALL)
    for method in (propagated, embedded):
        session(method, 0, film(40))
    assert not np.array_equal(logits(propagated), logits(embedded))


def test_history_changes_only_by_commit(tiny: Backbone) -> None:
    def kept(*turns: str) -> tuple[np.ndarray, ...]:
        method = begun(tiny, "hermes", **SMALL)
        session(method, 0, film(16), end=False)
        reply = method.branch().respond(QUERY, SHORT)
        for text in turns:
            method.commit(QUERY, replace(reply, text=text))
        session(method, 0, film(40)[16:], end=False)
        return tuple(p.numpy() for p in method.state.cache.positions)

    usual = kept()
    same = kept()
    asked = kept("the red cup is on the shelf")
    assert all(map(np.array_equal, usual, same))
    assert not all(map(np.array_equal, usual, asked))
    latest = kept("nothing", "the red cup is on the shelf")
    assert all(map(np.array_equal, asked, latest)), "only the last turn counts"


def test_the_last_turn_is_saved(tiny: Backbone, tmp_path: Path) -> None:
    method = begun(tiny, "hermes", **SMALL)
    session(method, 0, film(16))
    method.commit(Query("Where?", 0, 1.0), Reply("here", 0.0, 0.0, 0.0))
    method.save(tmp_path)
    other = begun(tiny, "hermes", **SMALL)
    other.load(tmp_path)
    assert other.state.memory == hermes.Turn("Where?", "here")


def test_whole_grids_stay_or_go_with_their_times() -> None:
    third = backbones.load("tiny-qwen3", device="cpu")
    method = begun(third, "hermes", **SMALL)
    session(method, 0, film(60))
    state = method.state
    for layer in range(third.layers):
        assert 0 < state.visual(layer) <= 100
        names, sizes = state.units[layer].unique(return_counts=True)
        assert len(state.units[layer]) == state.visual(layer)
        for name, size in zip(names.tolist(), sizes.tolist(), strict=True):
            assert size == 1 if name < 0 else size > 16, "a grid lost its time, or its picture"
    assert any(name < 0 for name in state.units[5].tolist()), "no summary"


def test_the_penalty_falls_on_the_reply_alone(tiny: Backbone) -> None:
    method = begun(tiny, "hermes", **SMALL)
    session(method, 0, film(16))
    assert len(method.question(QUERY).text_ids) == 0
    free = begun(tiny, "hermes", repetition_penalty=1.0, **SMALL)
    session(free, 0, film(16))
    long = replace(SHORT, max_new_tokens=30)
    texts = [m.respond(QUERY, long).text for m in (method, free)]
    assert texts[0] != texts[1]
    own = replace(long, repetition_penalty=1.000001)  # a run's own penalty wins
    assert method.respond(QUERY, own).text == texts[1]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"probe": "embeddings"}, "did you mean 'embedding'"),
        ({"compaction": "lazyy"}, "did you mean 'lazy'"),
        ({"shallow": 0.8, "deep": 0.3}, "shares of one whole"),
        ({"kv_size": 1}, "kv_size 1"),
    ],
)
def test_wrong_settings_are_refused(args: dict, says: str) -> None:
    with pytest.raises(BenchError, match=says):
        Hermes(**args)


def test_state_has_the_published_size() -> None:
    """6,000 entries of 57,344 bytes and three 4-byte positions a layer: 330.05 MiB."""
    seven = backbones.load("rehearse:qwen2.5-vl-7b?vision=1", device="meta")
    method = begun(seven, "hermes", session_marker=False)
    prefix = method.state.prefix

    def size(entries: int) -> dict[str, int]:
        shape = (seven.kv_heads, entries, seven.head_dim)
        keys = [torch.empty(shape, dtype=seven.dtype, device="meta") for _ in range(56)]
        # Each layer keeps other entries, and so has positions of its own.
        places = [torch.empty(3, entries, dtype=torch.int32, device="meta") for _ in range(28)]
        cache = Cache(tuple(keys[:28]), tuple(keys[28:]), tuple(places))
        method.state = replace(method.state, cache=cache)
        return dict(method.state_bytes())

    published = size(6_000)
    record = sum(published.values()) - 6_000 * (57_344 + 28 * 3 * 4)
    assert published["kv"] == 6_000 * 57_344
    assert round((sum(published.values()) - record) / 2**20, 3) == 330.048
    assert 0 < record < 100, "more than the numbers of the record"
    whole = size(prefix + 6_000)
    assert whole["kv"] - published["kv"] == prefix * 57_344
