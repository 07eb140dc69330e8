from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from backbone_cases import video_prompt

from bench_lib.backbones import generate
from bench_lib.backbones.base import Backbone
from bench_lib.backbones.generate import decode
from bench_lib.backbones.prompt import Prompt
from bench_lib.errors import BenchError
from bench_lib.exchange import Generation
from bench_lib.measure import counting

GREEDY = Generation(max_new_tokens=12, keep_logits=True)
LIVELY = Generation(max_new_tokens=12, temperature=1.5, top_p=0.95)


@torch.inference_mode()
def written_out(backbone: Backbone, penalty: float) -> tuple[list[int], torch.Tensor]:
    """A greedy reply by reading everything anew for each token, with the library's penalty."""
    from transformers.generation.logits_process import RepetitionPenaltyLogitsProcessor

    prompt = video_prompt(backbone)
    x, where, ids, first = prompt.x, prompt.positions, [], None
    punish = RepetitionPenaltyLogitsProcessor(penalty)
    while len(ids) < 12:
        hidden, _ = backbone.decoder.read(x, where, backbone.empty_cache())
        logits = backbone.decoder.logits(hidden[-1:])
        first = logits[0] if first is None else first
        seen = torch.cat((prompt.text_ids, torch.tensor(ids, dtype=torch.long)))
        token = int(punish(seen[None], logits).argmax())
        ids.append(token)
        if token in backbone.stop_ids:
            break
        word = torch.nn.functional.pad(backbone.embed([token]), (0, x.shape[1] - backbone.hidden))
        x = torch.cat((x, word))
        where = torch.cat((where, where.max().expand(3, 1) + 1), dim=1)
    return ids, first


@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_greedy_equals_reading_everything_anew(backbone: Backbone, penalty: float) -> None:
    ids, first = written_out(backbone, penalty)
    said = decode(backbone, video_prompt(backbone), replace(GREEDY, repetition_penalty=penalty))
    assert list(said.ids) == ids
    np.testing.assert_allclose(said.logits, first.numpy(), atol=2e-5)
    assert said.text == backbone.tokenizer.decode(ids, skip_special_tokens=True)


def test_a_penalty_changes_what_repeats(tiny: Backbone) -> None:
    plain = decode(tiny, video_prompt(tiny), GREEDY)
    punished = decode(tiny, video_prompt(tiny), replace(GREEDY, repetition_penalty=5.0))
    assert len(set(punished.ids)) > len(set(plain.ids))


def test_a_seed_gives_one_reply(backbone: Backbone) -> None:
    prompt = video_prompt(backbone)
    replies = {decode(backbone, prompt, replace(LIVELY, seed=seed)).ids for seed in (1, 1, 2, 3)}
    assert len(replies) == 3
    torch.manual_seed(99)  # the global generator is neither used nor moved
    state = torch.random.get_rng_state()
    decode(backbone, prompt, LIVELY)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_small_nucleus_is_greedy(backbone: Backbone) -> None:
    prompt = video_prompt(backbone)
    narrow = replace(LIVELY, top_p=1e-6)
    assert decode(backbone, prompt, narrow).ids == decode(backbone, prompt, GREEDY).ids


def test_only_the_nucleus_is_drawn(tiny: Backbone) -> None:
    prompt = video_prompt(tiny)
    logits = torch.from_numpy(decode(tiny, prompt, GREEDY).logits)
    chances, order = (logits / 1.5).softmax(-1).sort(descending=True)
    needed = int((chances.cumsum(-1) < 0.3).sum()) + 1
    assert 1 < needed < len(logits) // 4
    drawn = {
        decode(tiny, prompt, replace(LIVELY, max_new_tokens=1, top_p=0.3, seed=seed)).ids[0]
        for seed in range(60)
    }
    assert drawn <= set(order[:needed].tolist())
    assert len(drawn) > 1


def test_a_reply_ends_for_a_reason(tiny: Backbone, monkeypatch: pytest.MonkeyPatch) -> None:
    prompt = video_prompt(tiny)
    cut = decode(tiny, prompt, replace(GREEDY, repetition_penalty=1.3))
    assert (cut.stop, len(cut.ids)) == ("length", 12)
    monkeypatch.setattr(tiny, "stop_ids", frozenset({cut.ids[4]}))
    ended = decode(tiny, prompt, replace(GREEDY, repetition_penalty=1.3))
    assert ended.stop == "end"
    assert ended.ids == cut.ids[: cut.ids.index(cut.ids[4]) + 1]


def test_stop_tokens_are_those_of_the_chat(backbone: Backbone) -> None:
    assert backbone.token("<|im_end|>") in backbone.stop_ids
    assert backbone.token("<|endoftext|>") in backbone.stop_ids


def test_work_is_counted(backbone: Backbone) -> None:
    prompt = video_prompt(backbone)
    with counting() as counts:
        said = decode(backbone, prompt, GREEDY)
    # The first token comes from the prefill; each further one takes a step.
    assert counts == {"tokens_prefilled": len(prompt.x), "decode_steps": len(said.ids) - 1}
    assert said.prompt_tokens == len(prompt.x)
    assert said.ready_at <= said.first_token_at <= said.done_at


def test_a_long_prompt_is_read_in_parts(
    backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = video_prompt(backbone)
    at_once = decode(backbone, prompt, GREEDY)
    monkeypatch.setattr(generate, "PREFILL_TOKENS", 17)
    in_parts = decode(backbone, prompt, GREEDY)
    assert in_parts.ids == at_once.ids
    np.testing.assert_allclose(in_parts.logits, at_once.logits, atol=2e-5)


def test_a_cache_is_answered_from_and_stays(backbone: Backbone) -> None:
    prompt = video_prompt(backbone)
    with torch.inference_mode():
        _, memory = backbone.decoder.read(
            prompt.x[:70], prompt.positions[:, :70], backbone.empty_cache()
        )
    rest = replace(prompt, x=prompt.x[70:], positions=prompt.positions[:, 70:])
    for _ in range(2):
        said = decode(backbone, rest, GREEDY, cache=memory)
        assert said.ids == decode(backbone, prompt, GREEDY).ids
    other = replace(rest, x=rest.x[:1].expand_as(rest.x))  # a control: another question
    assert not np.allclose(decode(backbone, other, GREEDY, cache=memory).logits, said.logits)


def test_positions_past_the_model_are_refused(tiny: Backbone) -> None:
    prompt = Prompt(tiny)
    prompt.next = tiny.context - 5
    built = prompt.text("now").build()
    with pytest.raises(BenchError, match="fewer frames or tokens"):
        decode(tiny, built, GREEDY)
