"""A Qwen2.5-VL decoder written out token by token, over whatever its layers remember."""

from __future__ import annotations

import numpy as np
import torch

from bench_lib.backbones.base import Backbone

Remembered = list[tuple[np.ndarray, np.ndarray, np.ndarray]]
"""Per layer un-rotated keys, values `[kv_heads, m, d]` and positions `[3, m]`."""


def of_cache(cache) -> Remembered:
    layers = zip(cache.keys, cache.values, cache.positions, strict=True)
    return [tuple(part.double().numpy() for part in layer) for layer in layers]


def turned(x: np.ndarray, position: np.ndarray, backbone: Backbone) -> np.ndarray:
    """One key or query `[d]` at a position `[3]`: the three axes share the angles by sections."""
    rope = backbone.config.text_config.rope_parameters
    half = len(x) // 2
    axis = np.repeat([0, 1, 2], rope["mrope_section"])
    angle = position[axis] * rope["rope_theta"] ** (-np.arange(half) / half)
    first, second = x[:half], x[half:]
    return np.concatenate(
        (
            first * np.cos(angle) - second * np.sin(angle),
            second * np.cos(angle) + first * np.sin(angle),
        )
    )


def norm(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x**2).mean() + 1e-6) * weight


def read(
    backbone: Backbone,
    x: np.ndarray,
    where: list[np.ndarray],
    held: Remembered,
    drawn: list[np.ndarray] | None = None,
) -> tuple[np.ndarray, Remembered]:
    """Hidden states `[n, hidden]` and what each layer remembers of the tokens read.

    `where` are positions `[3, n]` of each layer. `drawn` collects, per layer, the mean share of
    attention that each held entry got.
    """
    text = backbone.decoder.text
    heads, kv_heads, d = backbone.decoder.heads, backbone.kv_heads, backbone.head_dim
    states, new = x.astype(np.float64), []
    for layer, (keys, values, places) in zip(text.layers, held, strict=True):
        attn = layer.self_attn

        def linear(module, row):
            bias = 0 if module.bias is None else module.bias.double().numpy()
            return module.weight.double().numpy() @ row + bias

        own_k, own_v, out = [], [], []
        shares = np.zeros(keys.shape[1])
        position = where[len(new)]
        kept = [
            [turned(keys[h, i], places[:, i], backbone) for i in range(keys.shape[1])]
            for h in range(kv_heads)
        ]
        seen_v = [list(values[h]) for h in range(kv_heads)]
        for i, state in enumerate(states):
            row = norm(state, layer.input_layernorm.weight.double().numpy())
            q, k, v = (
                linear(m, row).reshape(-1, d) for m in (attn.q_proj, attn.k_proj, attn.v_proj)
            )
            own_k.append(k)
            own_v.append(v)
            for h in range(kv_heads):
                kept[h].append(turned(k[h], position[:, i], backbone))
                seen_v[h].append(v[h])
            mixed = []
            for h in range(heads):
                group = h * kv_heads // heads
                query = turned(q[h], position[:, i], backbone)
                score = np.array(kept[group]) @ query / np.sqrt(d)
                share = np.exp(score - score.max())
                share /= share.sum()
                shares += share[: len(shares)] / (heads * len(x))
                mixed.append(share @ np.array(seen_v[group]))
            state = state + linear(attn.o_proj, np.concatenate(mixed))
            row = norm(state, layer.post_attention_layernorm.weight.double().numpy())
            gate = linear(layer.mlp.gate_proj, row)
            inner = gate / (1 + np.exp(-gate)) * linear(layer.mlp.up_proj, row)
            out.append(state + linear(layer.mlp.down_proj, inner))
        if drawn is not None:
            drawn.append(shares)
        new.append((np.stack(own_k, 1), np.stack(own_v, 1), position))
        states = np.stack(out)
    return states, new


def logits(backbone: Backbone, states: np.ndarray) -> np.ndarray:
    """Scores of the next token after the last state."""
    row = norm(states[-1], backbone.decoder.text.norm.weight.double().numpy())
    return backbone.decoder.head.weight.double().numpy() @ row


@torch.inference_mode()
def answered(backbone: Backbone, method, query) -> np.ndarray:
    """First logits of a method's answer, its memory read token by token."""
    state = method.state
    cache, starts = method.recall(state, query)
    prompt = method.question(query)
    where = [prompt.positions.numpy() + start for start in starts]
    states, _ = read(backbone, prompt.x.numpy(), where, of_cache(cache))
    return logits(backbone, states)
