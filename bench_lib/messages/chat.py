"""The chat contract: messages with frames and sound in, a checked reply out.

A call names its contract: a name, a parser and, where there is one, a JSON schema. A parser that
raises `ValueError` makes the reply broken: it is asked for once more, and both raw replies are
kept. Contracts of benchmark probes have no parser: there a malformed reply is the result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bench_lib.errors import BenchError
from bench_lib.exchange import Generation
from bench_lib.video.stream import Frame, Size


@dataclass(frozen=True)
class Text:
    """A stretch of text."""

    text: str


@dataclass(frozen=True)
class Frames:
    """Frames in time order, as separate images or as one video; `size` is what is sent."""

    frames: tuple[Frame, ...]
    video: bool = False
    size: Size | None = None


@dataclass(frozen=True)
class Sound:
    """16 kHz mono float32 samples."""

    samples: NDArray[np.float32]


Part = Text | Frames | Sound


@dataclass(frozen=True)
class Message:
    """One turn of a dialogue."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Contract:
    """What a reply must be. `parse` raises ValueError on a broken one; `schema` is JSON schema."""

    name: str
    parse: Callable[[str], Any] | None = None
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class ChatReply:
    """A reply. Instants are `time.perf_counter()` seconds; `rejected` holds raw broken replies.

    `value` is what the contract's parser made of `text`; `reasoning` is what the backend keeps
    apart from it. `stop` is `end`, `length` or `refused` (the model or its filter declined).
    `usage` counts `prompt_tokens`, `completion_tokens` and what else the backend reports.
    `ready_at` is when the request was sent. A `cached` reply costs nothing now; its instants are
    shifted so that the durations are those of the call that was paid for. `finish` and `model` are
    a server's own words: why the reply ended, and who gave it.
    """

    text: str
    value: Any = None
    reasoning: str = ""
    stop: str = "end"
    ready_at: float = 0.0
    first_token_at: float = 0.0
    done_at: float = 0.0
    usage: Mapping[str, int] = field(default_factory=dict)
    rejected: tuple[str, ...] = ()
    cached: bool = False
    logits: NDArray[np.float32] | None = None
    finish: str = ""
    model: str = ""


class ChatError(Exception):
    """A call failed for good; `rejected` holds the raw replies that broke its contract.

    After a `final` one other calls are in vain too.
    """

    final = False

    def __init__(self, message: str, rejected: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.rejected = rejected


class TransportError(ChatError):
    """The server could not be reached, or kept failing, until the retries were used up."""


class RequestRefused(ChatError):
    """The server declines what is asked of it: its key, its address, its model's name."""

    final = True


class RequestUnfit(RequestRefused):
    """The server declines this very request, for its length, its media or its form."""

    final = False


class ContractBroken(ChatError):
    """Two replies in a row did not satisfy the contract."""


class BudgetSpent(ChatError):
    """The user's limit on calls or cost is reached; nothing was sent."""

    final = True


class Chat(ABC):
    """A model that takes messages; `id` names model and revision and is in every cache key."""

    id: str
    device: str = "cpu"
    caveat: str = ""
    """What a reader of its scores must know; reports show it."""
    program: bool = False
    """Whether it is a program that knows the answers, and no model."""
    hears: bool = True
    """Whether sound may be sent to it; a server that takes none refuses the request itself."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What a cache key and a manifest hold of this model: its id and settings, no secret."""
        return {"id": self.id}

    @property
    def answers_as(self) -> str:
        """The model that a server's replies name; empty as long as none did, and elsewhere."""
        return ""

    def frame_size(self, native: Size, max_pixels: int) -> Size:
        """The size at which frames are best sent; by default the native one within the limit."""
        scale = min(1.0, (max_pixels / (native[0] * native[1])) ** 0.5)
        return max(1, int(native[0] * scale)), max(1, int(native[1] * scale))

    @abstractmethod
    def complete(
        self, messages: Sequence[Message], contract: Contract, generation: Generation
    ) -> ChatReply:
        """Answer; raises ChatError."""

    def another(self, spec: str) -> Chat:
        """Another model by name; what opened this one by name says how."""
        raise BenchError(f"{self.id} was not opened by a name and cannot open {spec!r}")

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors `[n, d]` of texts; lexical by default (`messages/lexical.py`)."""
        from bench_lib.messages.lexical import embed

        return embed(texts)
