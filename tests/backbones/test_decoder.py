from __future__ import annotations

import pytest
import torch
from backbone_cases import video_prompt
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_lib.backbones.attention import eager, sdpa
from bench_lib.backbones.base import Backbone
from bench_lib.backbones.cache import Cache
from bench_lib.backbones.prompt import Built
from bench_lib.measure import counting


@torch.inference_mode()
def library_logits(backbone: Backbone, prompt: Built) -> torch.Tensor:
    """Logits `[n, vocabulary]` of the library's own text model and head."""
    x, hidden = prompt.x[None], backbone.hidden
    more = {}
    if backbone.deep:
        visual = x[..., hidden:].abs().sum(-1) > 0
        deep = x[..., hidden:][visual].split(hidden, dim=-1)
        more = {"visual_pos_masks": visual, "deepstack_visual_embeds": list(deep)}
    out = backbone.model.model.language_model(
        inputs_embeds=x[..., :hidden], position_ids=prompt.positions[:, None], **more
    )
    return backbone.model.lm_head(out.last_hidden_state)[0]


@torch.inference_mode()
def in_chunks(backbone: Backbone, prompt: Built, size: int) -> torch.Tensor:
    cache, done = backbone.empty_cache(), []
    for x, where in zip(prompt.x.split(size), prompt.positions.split(size, dim=1), strict=True):
        hidden, cache = backbone.decoder.read(x, where, cache)
        done.append(hidden)
    return backbone.decoder.logits(torch.cat(done))


def test_one_pass_equals_the_library(backbone: Backbone) -> None:
    prompt = video_prompt(backbone)
    expected = library_logits(backbone, prompt)
    assert expected.std() > 0.3  # a model that says the same everywhere would prove nothing
    got = in_chunks(backbone, prompt, len(prompt.x))
    torch.testing.assert_close(got, expected, atol=2e-5, rtol=0)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_chunks_equal_the_library(backbone: Backbone, size: int) -> None:
    prompt = video_prompt(backbone)
    got = in_chunks(backbone, prompt, size)
    torch.testing.assert_close(got, library_logits(backbone, prompt), atol=2e-5, rtol=0)


def test_a_workspace_equals_a_cache(backbone: Backbone) -> None:
    prompt, decoder = video_prompt(backbone), backbone.decoder
    with torch.inference_mode():
        _, cache = decoder.read(prompt.x[:50], prompt.positions[:, :50], backbone.empty_cache())
        space = decoder.scratch(len(prompt.x) - 50, cache)
        rest = [
            decoder.advance(x, where, space)
            for x, where in zip(
                prompt.x[50:].split(20), prompt.positions[:, 50:].split(20, dim=1), strict=True
            )
        ]
        got = decoder.logits(torch.cat(rest))
    torch.testing.assert_close(got, library_logits(backbone, prompt)[50:], atol=2e-5, rtol=0)


def test_a_moved_position_is_seen(backbone: Backbone) -> None:
    prompt = video_prompt(backbone)
    moved = prompt.positions.clone()
    moved[0, 40:] += 9
    shifted = Built(prompt.x, moved, prompt.text_ids, prompt.visual_tokens)
    change = in_chunks(backbone, shifted, 64)[-1] - in_chunks(backbone, prompt, 64)[-1]
    assert change.abs().max() > 1e-2


def test_deepstack_is_seen(tiny_qwen3: Backbone) -> None:
    prompt = video_prompt(tiny_qwen3)
    flat = Built(
        prompt.x[:, : tiny_qwen3.hidden], prompt.positions, prompt.text_ids, prompt.visual_tokens
    )
    change = in_chunks(tiny_qwen3, flat, 64)[-1] - in_chunks(tiny_qwen3, prompt, 64)[-1]
    assert change.abs().max() > 1e-2


def test_the_plain_hook_is_the_default(backbone: Backbone) -> None:
    prompt, decoder = video_prompt(backbone), backbone.decoder
    with torch.inference_mode():
        plain, _ = decoder.read(prompt.x, prompt.positions, backbone.empty_cache())
        hooked, _ = decoder.read(
            prompt.x, prompt.positions, backbone.empty_cache(), attend=decoder.attend
        )
    assert torch.equal(plain, hooked)


def test_a_hook_may_look_at_other_tokens_in_every_layer(backbone: Backbone) -> None:
    """Retrieval in every layer equals full attention over what each of them retrieved."""
    prompt, decoder = video_prompt(backbone), backbone.decoder
    with torch.inference_mode():
        _, cache = decoder.read(prompt.x[:60], prompt.positions[:, :60], backbone.empty_cache())
        keep = [torch.arange(i, 60 - i) for i in range(backbone.layers)]
        x, where = prompt.x[60:], prompt.positions[:, 60:]

        def attend(layer, q, k, v, q_pos, k_pos):
            index = torch.cat((keep[layer], torch.arange(60, k.shape[1])))
            return decoder.attend(layer, q, k[:, index], v[:, index], q_pos, k_pos[:, index])

        hooked, _ = decoder.read(x, where, cache, attend=attend)
        gathered, ragged = decoder.read(x, where, cache.gather(keep))
        full, _ = decoder.read(x, where, cache)
    torch.testing.assert_close(hooked, gathered, atol=2e-5, rtol=0)
    assert (full - gathered).abs().max() > 1e-3
    assert len({ragged.length(i) for i in range(backbone.layers)}) == backbone.layers


def test_reading_into_a_memory_is_counted(backbone: Backbone) -> None:
    prompt = video_prompt(backbone)
    with counting() as counts:
        hidden, cache = backbone.read(prompt.x, prompt.positions, backbone.empty_cache())
    assert counts == {"tokens_prefilled": len(prompt.x)}
    assert cache.length() == len(prompt.x)
    assert not hidden.requires_grad


def test_positions_may_differ_between_layers(tiny: Backbone) -> None:
    prompt, decoder = video_prompt(tiny), tiny.decoder
    same = [prompt.positions.clone() for _ in range(tiny.layers)]
    with torch.inference_mode():
        one, _ = decoder.read(prompt.x, prompt.positions, tiny.empty_cache())
        each, _ = decoder.read(prompt.x, same, tiny.empty_cache())
        moved, _ = decoder.read(prompt.x, [*same[:-1], same[-1] * 3], tiny.empty_cache())
    assert torch.equal(one, each)
    assert not torch.equal(one, moved)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 9), st.integers(0, 9), st.sampled_from([(6, 2), (4, 4), (3, 1)]))
def test_fused_attention_equals_its_definition(new: int, old: int, heads: tuple[int, int]) -> None:
    random = torch.Generator().manual_seed(new * 10 + old)
    q = torch.randn(heads[0], new, 8, generator=random)
    k, v = torch.randn(2, heads[1], old + new, 8, generator=random)
    torch.testing.assert_close(sdpa(q, k, v), eager(q, k, v), atol=1e-5, rtol=1e-5)


def test_appending_leaves_a_fork_alone(backbone: Backbone) -> None:
    prompt, decoder = video_prompt(backbone), backbone.decoder
    with torch.inference_mode():
        _, trunk = decoder.read(prompt.x[:50], prompt.positions[:, :50], backbone.empty_cache())
        before = Cache(*(tuple(t.clone() for t in part) for part in vars(trunk).values()))
        x, where = prompt.x[50:], prompt.positions[:, 50:]
        first, _ = decoder.read(x, where, trunk)
        decoder.read(x.flip(0), where, trunk)  # another branch of the same moment
        decoder.advance(x, where, decoder.scratch(len(x), trunk))
        again, _ = decoder.read(x, where, trunk)
    assert torch.equal(first, again)
    for name, tensors in vars(before).items():
        assert all(map(torch.equal, tensors, getattr(trunk, name)))
