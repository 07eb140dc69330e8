"""A local vision-language model as a chat: message methods without a server.

The reply contract's schema is not enforced while decoding; a broken reply gets the one re-ask that
every chat gives.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench_lib.backbones.base import Backbone
from bench_lib.backbones.generate import decode
from bench_lib.backbones.prompt import Built, Prompt, Visual
from bench_lib.exchange import Generation
from bench_lib.messages.chat import (
    Chat,
    ChatReply,
    Contract,
    Frames,
    Message,
    RequestRefused,
    Sound,
    Text,
)
from bench_lib.messages.contract import checked
from bench_lib.video.stream import Size

NOISE_TOKENS = 48
"""Most tokens of a reply that means nothing: an untrained model never ends one."""


class LocalChat(Chat):
    """Serves messages from one backbone, one call at a time.

    Attributes:
        noise: Why replies mean nothing (untrained or random weights); empty when they do.
        prompts: See `Backbone`.
    """

    hears = False

    def __init__(self, backbone: Backbone) -> None:
        self.backbone = backbone
        self.id = backbone.id
        self.device = str(backbone.device)
        self.noise, self.caveat, self.prompts = backbone.noise, backbone.caveat, backbone.prompts
        self._one_at_a_time = threading.Lock()

    @property
    def identity(self) -> Mapping[str, Any]:
        """See `Chat.identity`; number format and pixel limit change replies."""
        how = self.backbone
        return {"id": how.id, "dtype": str(how.dtype), "max_pixels": how.preparation.max_pixels}

    def frame_size(self, native: Size, max_pixels: int) -> Size:
        """The size frames are encoded at."""
        return self.backbone.frame_size(native, max_pixels)

    def complete(
        self, messages: Sequence[Message], contract: Contract, generation: Generation
    ) -> ChatReply:
        """See `Chat.complete`; refuses sound, which these models do not take."""
        with self._one_at_a_time:
            return checked(self._send, messages, contract, generation)

    def _send(
        self, messages: Sequence[Message], contract: Contract, generation: Generation
    ) -> ChatReply:
        if self.noise:
            limit = min(NOISE_TOKENS, generation.max_new_tokens)
            generation = replace(generation, max_new_tokens=limit)
        said = decode(self.backbone, self.prompt(messages), generation)
        return ChatReply(
            text=said.text,
            stop=said.stop,
            ready_at=said.ready_at,
            first_token_at=said.first_token_at,
            done_at=said.done_at,
            usage={"prompt_tokens": said.prompt_tokens, "completion_tokens": len(said.ids)},
            logits=said.logits,
        )

    def prompt(self, messages: Sequence[Message]) -> Built:
        """Messages as what the decoder reads, open for the assistant's turn."""
        prompt = Prompt(self.backbone)
        if self.backbone.default_system and all(m.role != "system" for m in messages):
            prompt.turn("system").text(self.backbone.default_system).end()
        for message in messages:
            prompt.turn(message.role)
            for part in message.parts:
                if isinstance(part, Text):
                    prompt.text(part.text)
                elif isinstance(part, Frames):
                    self._show(prompt, part)
                elif isinstance(part, Sound):
                    raise RequestRefused(f"{self.id} takes no sound; choose a method without audio")
            prompt.end()
        return prompt.turn("assistant").build()

    def _show(self, prompt: Prompt, part: Frames) -> None:
        if not part.frames:
            return
        size = part.size or part.frames[0].pixels().shape[:2]
        size = self.backbone.frame_size((size[0], size[1]))
        pictures = [frame.pixels(size) for frame in part.frames]
        tokens = self.backbone.encode(pictures, as_images=not part.video)
        times = [frame.t_s for frame in part.frames]
        lattice = self.backbone.lattice(size)
        if part.video:
            prompt.show(Visual.whole(tokens, times, lattice))
            return
        for image, t_s in zip(tokens, times, strict=True):
            prompt.show(Visual.whole(image[None], [t_s], lattice, video=False))
