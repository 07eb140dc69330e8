"""What passes between engine, method and model: notes, questions, settings, replies, alerts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from bench_lib.schema import Option
from bench_lib.tasks import ReplyKind

if TYPE_CHECKING:
    pass


InputClass = Literal["incremental", "window", "thinned"]


@dataclass(frozen=True)
class Note:
    """A user interaction whose time has come: a registration, a question to hold, a marker."""

    session: int
    t_s: float
    text: str
    wall_s: float | None = None


@dataclass(frozen=True)
class Query:
    """A question at a cutoff. `text` is the whole request, options and reply contract included.

    `notes` are the interactions that precede it, in time order; `letters` the option letters that
    a reply may name; `contract` the reply kind (`choice`, `adaptive_choice`, `adaptive_text`,
    `free`).
    """

    text: str
    session: int
    cutoff_s: float
    closed: bool = True
    system: str = ""
    contract: ReplyKind = "free"
    options: tuple[Option, ...] = ()
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Generation:
    """Decoding settings. Temperature 0 is greedy."""

    max_new_tokens: int = 64
    temperature: float = 0.0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    seed: int = 42
    keep_logits: bool = False


@dataclass(frozen=True)
class Reply:
    """A method's answer. Instants are `time.perf_counter()` seconds.

    `ready_at`: memory is prepared and the question's own prefill begins. `logits` are those of the
    first new token, where the generation asked to keep them (tests compare them).
    """

    text: str
    ready_at: float
    first_token_at: float
    done_at: float
    stop: str = "end"
    logits: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class Alert:
    """A method spoke up for the watch `key`. Times are seconds of the session.

    `observed_s` is that of the newest frame it had seen, `delivered_s` when its words were out;
    they differ where a model takes time of the stream.
    """

    key: str
    text: str
    observed_s: float
    delivered_s: float


class Refused(Exception):
    """The method declines to answer this query; recorded as `refused`, which passes nowhere."""


Form = Literal["exact", "int8", "fp8"]


FORMS = ("exact", "int8", "fp8")
