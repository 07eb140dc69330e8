"""video-SALMONN S's pure functions against plain loops, autograd, and the released code."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from bench_lib.errors import BenchError
from bench_lib.memories.parts import ttt, unlike
from bench_lib.memories.parts.ttt import Batch, Fast, Layer, Pace

OFFICIAL = json.loads((Path(__file__).parent / "vectors" / "video_salmonn_s.json").read_text())
SHAPE = OFFICIAL["shape"]
HIDDEN, HEADS = SHAPE["hidden"], SHAPE["heads"]
PACE = Pace(SHAPE["mini_batch"], SHAPE["lag"])
LATTICE = tuple(SHAPE["lattice"])


def layer(seed: int = 5) -> Layer:
    """The seeded weights that the released layer was run with."""
    random = np.random.default_rng(seed)
    made = {}
    for name, shape in sorted(OFFICIAL["parameters"].items()):
        made[name] = _weight(random, name, shape)
    return Layer.of({name.partition(".")[2]: tensor for name, tensor in made.items()})


def _weight(random: np.random.Generator, name: str, shape: list[int]) -> Tensor:
    scale = 1.0 if len(shape) == 1 or "norm" in name else 0.4
    drawn = random.normal(size=shape) * scale
    if name.endswith(("W1", "W2")):
        drawn = random.normal(size=shape) * 0.5
    return torch.from_numpy(np.round(drawn, 3))


def tokens(n: int, seed: int) -> Tensor:
    return torch.from_numpy(np.round(np.random.default_rng(seed).normal(size=(n, HIDDEN)), 3))


def empty() -> Tensor:
    return torch.empty(0, HIDDEN, dtype=torch.float64)


def test_three_chunks_are_the_releases() -> None:
    """Gated output and fast weights, padding and carried history included."""
    trained = layer()
    fast, history, first = trained.untaught(), empty(), 0
    for i, chunk in enumerate(OFFICIAL["chunks"]):
        x = tokens(chunk["tokens"], 50 + i)
        y, fast, history = ttt.taught(trained, fast, history, x, first, LATTICE, PACE, parity=True)
        y = torch.tanh(trained.gating_alpha) * y + x
        np.testing.assert_allclose(y.sum(-1), chunk["sums"], atol=2e-4)
        if chunk["out"]:
            np.testing.assert_allclose(y, chunk["out"], atol=1e-4)
        for ours, theirs in (("w1", "W1"), ("b1", "b1"), ("w2", "W2"), ("b2", "b2")):
            flat = getattr(fast, ours).flatten()
            stride = max(1, len(flat) // 12)
            np.testing.assert_allclose(flat[::stride], chunk["fast"][f"{theirs}_states"], atol=1e-6)
        first += chunk["tokens"]


def test_without_parity_padding_teaches_nothing() -> None:
    """A chunk in two whole pieces is the chunk, and what fills a mini-batch leaves no trace."""
    trained, x = layer(), tokens(24, 1)
    start = trained.untaught()
    whole = ttt.taught(trained, start, empty(), x, 0, LATTICE, PACE)
    y1, fast, history = ttt.taught(trained, start, empty(), x[:8], 0, LATTICE, PACE)
    y2, fast, history = ttt.taught(trained, fast, history, x[8:], 8, LATTICE, PACE)
    torch.testing.assert_close(torch.cat((y1, y2)), whole[0])
    torch.testing.assert_close(fast.w1, whole[1].w1)
    torch.testing.assert_close(history, whole[2])
    # An odd end: its own tokens are learnt from, at their own rates, and nothing else.
    _, short, history = ttt.taught(trained, start, empty(), x[:5], 0, LATTICE, PACE)
    _, official, padded = ttt.taught(trained, start, empty(), x[:5], 0, LATTICE, PACE, parity=True)
    assert torch.equal(history, x[:5])
    assert torch.equal(padded, torch.cat((x[:5], torch.zeros(3, HIDDEN, dtype=x.dtype))))
    assert not torch.allclose(short.b1, official.b1)


def batch_of(trained: Layer, n: int, seed: int) -> Batch:
    random = np.random.default_rng(seed)
    d = trained.head_dim
    keys, target, lag_target = (
        torch.from_numpy(random.normal(size=(HEADS, n, d))) for _ in range(3)
    )
    lagged = torch.from_numpy((random.random(n) > 0.4).astype(float))
    return Batch(keys, target, lag_target, lagged, torch.from_numpy(random.random((HEADS, n))))


def loss_of(trained: Layer, fast: Fast, batch: Batch, lag_weight: float) -> Tensor:
    """The loss in the words of its definition, for autograd."""
    hidden = torch.nn.functional.gelu(batch.keys @ fast.w1 + fast.b1, approximate="tanh")
    z = hidden @ fast.w2 + fast.b2
    y = (z - z.mean(-1, keepdim=True)) / (z.var(-1, keepdim=True, unbiased=False) + 1e-8).sqrt()
    y = trained.ttt_norm_weight[:, None] * y + trained.ttt_norm_bias[:, None]
    square = 0.5 * (y - batch.target).pow(2).sum(-1)
    late = 0.5 * (y - batch.lag_target).pow(2).sum(-1)
    return (batch.rates * (square + lag_weight * batch.lagged * late)).sum()


@pytest.mark.parametrize("lag_weight", [0.0, 0.1, 1.0])
def test_one_step_is_the_gradient_of_its_loss(lag_weight: float) -> None:
    trained, batch = layer(), batch_of(layer(), 7, 0)
    start = trained.untaught()
    free = Fast(*(t.clone().requires_grad_() for t in vars(start).values()))
    loss_of(trained, free, batch, lag_weight).backward()
    after = ttt.stepped(trained, start, batch, lag_weight)
    for name in ("w1", "b1", "w2", "b2"):
        expected = getattr(start, name) - getattr(free, name).grad
        torch.testing.assert_close(getattr(after, name), expected)


def test_one_step_lowers_its_loss() -> None:
    trained, batch = layer(), batch_of(layer(), 7, 1)
    batch = replace(batch, rates=batch.rates * 0.01)
    start = trained.untaught()
    after = ttt.stepped(trained, start, batch, 0.1)
    before_loss, after_loss = (loss_of(trained, f, batch, 0.1) for f in (start, after))
    assert after_loss < before_loss
    # The control: a step against the gradient.
    back = Fast(
        *(2 * a - b for a, b in zip(vars(start).values(), vars(after).values(), strict=True))
    )
    assert loss_of(trained, back, batch, 0.1) > before_loss


def test_turns_by_hand() -> None:
    turns = ttt.angles(7, 2, (2, 3), 16)
    # Token 7 of grids of 2 x 3: frame 1, row 0, column 1; token 8: frame 1, row 0, column 2.
    frame, row, col = turns[0, :2], turns[0, 2:5], turns[0, 5:]
    np.testing.assert_allclose(frame, [1.0, 10_000 ** (-2 / 4)])
    np.testing.assert_allclose(row, [0, 0, 0])
    np.testing.assert_allclose(col, [1.0, 10_000 ** (-2 / 6), 10_000 ** (-4 / 6)], rtol=1e-5)
    np.testing.assert_allclose(turns[1, 5:], 2 * col)


def test_a_turn_keeps_lengths_and_is_read_in_pairs() -> None:
    x = tokens(3, 2).view(3, 2, 16).transpose(0, 1)
    turned = ttt.rotated(x, ttt.angles(4, 3, (2, 3), 16))
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1), atol=1e-5, rtol=1e-5)
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    spun = pairs * torch.polar(torch.ones(3, 8), ttt.angles(4, 3, (2, 3), 16))
    torch.testing.assert_close(turned, torch.view_as_real(spun).flatten(-2), atol=1e-5, rtol=1e-5)


def test_fast_weights_have_the_published_size() -> None:
    """APM-Bench, appendix: 8,404,992 bytes, eight heads of 512 in 16 bits."""
    made = Layer.made(4_096, 8, torch.empty(0, dtype=torch.bfloat16, device="meta"))
    total = sum(t.numel() * t.element_size() for t in vars(made.untaught()).values())
    assert total == (2 * 8 * 512 * 512 + 2 * 8 * 512) * 2 == 8_404_992


def test_a_layer_that_lacks_a_tensor_is_refused() -> None:
    held = {f.name: getattr(layer(), f.name) for f in fields(Layer)}
    assert Layer.of(held).heads == HEADS
    del held["wq_bias"]
    with pytest.raises(BenchError, match="lacks wq_bias"):
        Layer.of(held)


def row_of(case: dict) -> Tensor:
    random = np.random.default_rng(case["seed"])
    n, width = case["tokens"], case["width"]
    steps = random.normal(size=(n, width)) * random.choice([0.1, 1.0], size=(n, 1))
    return torch.from_numpy(np.round(np.cumsum(steps, 0), 3))


def kept_by_loops(x: np.ndarray, limit: int, step: int) -> list[int]:
    held = list(range(min(limit, len(x))))
    for start in range(limit, len(x), step):
        row = held + list(range(start, min(start + step, len(x))))
        alike = {}
        for before, now in pairwise(row):
            a, b = x[before], x[now]
            alike[now] = a @ b / (np.linalg.norm(a) * np.linalg.norm(b))
        held = sorted(sorted(alike, key=lambda i: alike[i])[:limit])
    return held


@pytest.mark.parametrize("case", OFFICIAL["select"], ids=lambda c: f"{c['tokens']}tokens")
def test_selection_is_the_releases(case: dict) -> None:
    x = row_of(case)
    got = unlike.kept(x, case["memory"], case["step"]).tolist()
    assert got == case["kept"] == kept_by_loops(x.numpy(), case["memory"], case["step"])


@pytest.mark.parametrize(("n", "limit", "step"), [(1, 4, 2), (4, 4, 2), (5, 4, 8), (60, 7, 3)])
def test_selection_keeps_so_many_in_order_and_never_the_first(
    n: int, limit: int, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unlike, "BLOCK", 5)
    x = torch.from_numpy(np.random.default_rng(n).normal(size=(n, 6)))
    got = unlike.kept(x, limit, step).tolist()
    assert len(got) == min(n, limit)
    assert got == sorted(got)
    assert (0 in got) == (n <= limit)
    assert got == kept_by_loops(x.numpy(), limit, step)


def test_repeats_go_first() -> None:
    x = torch.eye(8)[[0, 1, 1, 1, 2, 2, 3, 4, 4, 5]]
    assert unlike.kept(x, 5, 10).tolist() == [1, 4, 6, 7, 9]
