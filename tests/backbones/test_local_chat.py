from __future__ import annotations

import numpy as np
import pytest
import torch
from backbone_cases import noise_frames, uneven

from bench_lib.backbones.base import Backbone
from bench_lib.chat.local import LocalChat
from bench_lib.exchange import Generation
from bench_lib.measure import counting
from bench_lib.messages.chat import (
    Contract,
    ContractBroken,
    Frames,
    Message,
    RequestRefused,
    Sound,
    Text,
)
from bench_lib.video.stream import ArrayFrame

FREE = Contract("free")
SHORT = Generation(max_new_tokens=6, keep_logits=True)


def pictures(backbone: Backbone, count: int, seed: int = 0) -> tuple[ArrayFrame, ...]:
    frames = noise_frames(count, uneven(backbone), seed)
    return tuple(ArrayFrame(float(i), frame) for i, frame in enumerate(frames))


def asked(*parts: Text | Frames | Sound) -> list[Message]:
    return [Message("system", (Text("You see."),)), Message("user", parts)]


def test_it_answers_from_pictures_and_text(backbone: Backbone) -> None:
    chat = LocalChat(backbone)
    shown = Frames(pictures(backbone, 5), video=True)
    with counting() as counts:
        reply = chat.complete(asked(shown, Text("Where is the cup?")), FREE, SHORT)
    assert counts["frames_encoded"] == 5
    assert reply.usage["prompt_tokens"] == counts["tokens_prefilled"]
    assert reply.usage["completion_tokens"] == counts["decode_steps"] + 1
    assert reply.logits.shape == (backbone.config.text_config.vocab_size,)
    again = chat.complete(asked(shown, Text("Where is the cup?")), FREE, SHORT)
    assert np.array_equal(again.logits, reply.logits)
    for other in (
        asked(Frames(pictures(backbone, 5, seed=1), video=True), Text("Where is the cup?")),
        asked(shown, Text("Where is the bag?")),
        asked(Frames(shown.frames, video=False), Text("Where is the cup?")),
    ):
        assert not np.array_equal(chat.complete(other, FREE, SHORT).logits, reply.logits)


def test_images_are_one_grid_each_and_a_video_pairs_them(backbone: Backbone) -> None:
    chat = LocalChat(backbone)
    for video, grids in ((False, 5), (True, 3)):
        built = chat.prompt(asked(Frames(pictures(backbone, 5), video=video)))
        assert built.visual_tokens == grids * 15


def test_frames_are_sent_at_a_size_the_model_takes(tiny: Backbone) -> None:
    odd = tuple(ArrayFrame(float(i), f) for i, f in enumerate(noise_frames(2, (90, 161))))
    built = LocalChat(tiny).prompt(asked(Frames(odd, video=True)))
    rows, cols = tiny.lattice(tiny.frame_size((90, 161)))
    assert built.visual_tokens == rows * cols
    built = LocalChat(tiny).prompt(asked(Frames(odd, video=True, size=(56, 56))))
    assert built.visual_tokens == 4


def test_a_system_turn_is_added_where_the_family_has_one(backbone: Backbone) -> None:
    built = LocalChat(backbone).prompt([Message("user", (Text("now"),))])
    text = backbone.tokenizer.decode(built.text_ids.tolist())
    assert text.startswith("<|im_start|>system") == bool(backbone.default_system)
    assert text.endswith("<|im_start|>assistant\n")


def test_nothing_shown_is_no_frames(tiny: Backbone) -> None:
    assert LocalChat(tiny).prompt(asked(Frames(()), Text("now"))).visual_tokens == 0


def test_a_broken_reply_is_asked_for_once_more(tiny: Backbone) -> None:
    chat = LocalChat(tiny)
    heard: list[str] = []

    def second_time(text: str) -> str:
        heard.append(text)
        if len(heard) < 2:
            raise ValueError("no JSON object")
        return "good"

    reply = chat.complete(asked(Text("now")), Contract("json", second_time), SHORT)
    assert reply.value == "good"
    assert reply.rejected == (heard[0],)

    def never(text: str) -> str:
        raise ValueError("no JSON object")

    with pytest.raises(ContractBroken) as caught:
        chat.complete(asked(Text("now")), Contract("json", never), SHORT)
    assert len(caught.value.rejected) == 2


def test_sound_is_refused(tiny: Backbone) -> None:
    with pytest.raises(RequestRefused, match="takes no sound"):
        LocalChat(tiny).complete(asked(Sound(np.zeros(16_000, np.float32))), FREE, SHORT)


def test_identity_names_what_changes_replies(tiny: Backbone) -> None:
    chat = LocalChat(tiny)
    assert chat.identity == {"id": tiny.id, "dtype": "torch.float32", "max_pixels": 12_544}
    assert chat.noise == tiny.noise
    assert chat.frame_size((720, 720), max_pixels=10**6) == (112, 112)
    assert torch.device(chat.device) == tiny.device


def test_replies_that_mean_nothing_end_early(tiny: Backbone) -> None:
    """A memory's writer may be given thousands of tokens; an untrained model would use them all."""
    chat = LocalChat(tiny)
    long = Generation(max_new_tokens=60)
    chat.noise = "untrained"
    assert chat.complete(asked(Text("Go on.")), FREE, long).usage["completion_tokens"] <= 48
    assert chat.complete(asked(Text("Go on.")), FREE, SHORT).usage["completion_tokens"] <= 6
    chat.noise = ""
    told = chat.complete(asked(Text("Go on.")), FREE, long)
    assert told.stop == "end" or told.usage["completion_tokens"] == 60
