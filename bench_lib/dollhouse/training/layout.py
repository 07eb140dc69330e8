"""Training prompts, written by the very code that writes them for a question: the methods'.

`Clerk` stands in for a backbone. Where a model would give embeddings it gives numbers: a text token
is its id, a visual token of shot `c` and cell `k` is `-1 - 16 * c - k`. So a prompt that a method
builds comes out as ids and positions, whatever the method's layout is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bench_lib.backbones.prompt import Prompt, Visual
from bench_lib.backbones.qwen2_5_vl import Qwen25VL
from bench_lib.chat.local import LocalChat
from bench_lib.dollhouse.training.words import CELLS
from bench_lib.exchange import Query
from bench_lib.memories.frame_window import FrameWindow
from bench_lib.memories.token_memory import Group, TokenMemory
from bench_lib.methods.raw_video import RawVideo
from bench_lib.methods.simplestream import SimpleStream
from bench_lib.video.stream import Clip, SessionInfo, Size

SIZE: Size = (112, 112)
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Still:
    """A frame that is only the number of its shot."""

    t_s: float
    code: int

    def pixels(self, size: Size | None = None) -> NDArray[Any]:
        """The number."""
        return np.array([[self.code]])


@dataclass(frozen=True)
class Feed:
    """Frames of one session as they are fed."""

    info: SessionInfo
    frames: tuple[Still, ...]


class Clerk:
    """A backbone whose embeddings are numbers."""

    default_system = Qwen25VL.default_system
    id, noise, caveat, prompts = "clerk", "", "", ""
    hidden, width, frames_per_grid = 1, 1, 2
    dtype, device = torch.int64, torch.device("cpu")

    def __init__(self, tokenizer: Any, tokens_per_second: int = 2) -> None:
        self.tokenizer = tokenizer
        self.config = SimpleNamespace(
            vision_config=SimpleNamespace(tokens_per_second=tokens_per_second)
        )
        self.preparation = SimpleNamespace(factor=28, max_pixels=SIZE[0] * SIZE[1])
        self._cut: dict[str, list[int]] = {}

    def tokenize(self, text: str) -> list[int]:
        """See `Backbone.tokenize`."""
        if text not in self._cut:
            if len(self._cut) > 50_000:
                self._cut.clear()
            self._cut[text] = self.tokenizer.encode(text, add_special_tokens=False)
        return list(self._cut[text])

    def token(self, name: str) -> int:
        """See `Backbone.token`."""
        return self.tokenizer.convert_tokens_to_ids(name)

    def embed(self, ids: Sequence[int]) -> torch.Tensor:
        """The ids themselves, `[n, 1]`."""
        return torch.tensor(list(ids), dtype=torch.int64)[:, None]

    def frame_size(self, native: Size, max_pixels: int | None = None) -> Size:
        """See `Backbone.frame_size`."""
        return SIZE

    def lattice(self, size: Size) -> tuple[int, int]:
        """See `Backbone.lattice`."""
        return 4, 4

    def encode(self, pictures: Sequence[NDArray[Any]], as_images: bool = False) -> torch.Tensor:
        """Numbers `[grids, 16, 1]`; a grid of two shots counts as the second."""
        codes = [int(p[0, 0]) for p in pictures]
        codes = codes if as_images else [*codes[1::2], *(codes[-1:] if len(codes) % 2 else [])]
        first = -1 - CELLS * torch.tensor(codes, dtype=torch.int64)
        return (first[:, None] - torch.arange(CELLS))[..., None]

    def place(self, prompt: Prompt, visual: Visual) -> None:
        """See `Qwen25VL.place`."""
        Qwen25VL.place(self, prompt, visual)  # type: ignore[arg-type]


class Kept(TokenMemory):
    """Keeps what is new: of a shot's later frames only a share of the tokens, at random.

    So the decoder meets grids with holes, as pruning memories leave them.
    """

    name, share, rng = "kept", 0.3, np.random.default_rng(0)

    def blank(self) -> tuple[Group, ...]:
        """See `TokenMemory.blank`."""
        return ()

    def remember(self, memory: Any, grids: Sequence[Group], lattice: Any) -> Any:
        """See `TokenMemory.remember`."""
        held = list(memory)
        for group in grids:
            same = held and held[-1].session == group.session
            if same and int(held[-1].tokens[-1, 0]) // CELLS == int(group.tokens[-1, 0]) // CELLS:
                keep = torch.from_numpy(self.rng.random(CELLS) < self.share)
                keep[-1] = True
                tokens, cells = group.tokens[keep], group.cells[keep]
                group = Group(
                    group.number, group.session, group.start_s, group.end_s, tokens, cells
                )
            held.append(group)
        return tuple(held)

    def recall(self, memory: Any) -> Any:
        """See `TokenMemory.recall`."""
        return memory


METHODS: dict[str, Any] = {"simplestream": SimpleStream, "raw_video": RawVideo, "kept": Kept}


def prompt(clerk: Clerk, method: str, feeds: Sequence[Feed], query: Query) -> tuple[Ints, Ints]:
    """Ids and positions `[n]`, `[3, n]` of what a method would have its model read."""
    return layout(clerk, method, feeds)(query)


def layout(clerk: Clerk, method: str, feeds: Sequence[Feed]) -> Any:
    """The same for several queries after one stream: a function from a query to its prompt."""
    chat: Any = LocalChat(clerk)  # type: ignore[arg-type]
    memory = METHODS[method]()
    windowed = isinstance(memory, FrameWindow)
    memory.attach(chat if windowed else clerk).reset("lesson", 0)
    for feed in feeds:
        memory.begin_session(feed.info)
        memory.observe(Clip(feed.info.index, feed.frames))
        if feed is not feeds[-1]:
            memory.end_session(0)

    def asked(query: Query) -> tuple[Ints, Ints]:
        if windowed:
            built = chat.prompt(memory.messages(query))
        else:
            built = memory.prompt(memory._taken_in(memory.state, memory.state.held), query)
        return built.x[:, 0].numpy().copy(), built.positions.numpy().copy()

    return asked
