"""The ideal observer: a message model with perfect perception of exactly what it is shown.

It reads the code strip of each frame, finds facts, questions and registrations in any prompt with
the grammar that wrote them, and has one rule for each reply contract (`replies.RULES`). It opens no
file, knows no world and remembers nothing between calls. Without evidence it abstains. It measures
what memory and policy let through; it says nothing about how well a real model sees.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

from bench_lib.dollhouse.ideal import agent, memory_rules, replies, window_rules  # noqa: F401 - some add rules
from bench_lib.dollhouse.ideal.recall import gather
from bench_lib.dollhouse.world import strip
from bench_lib.dollhouse.world.grammar import SLOTS, read, spans
from bench_lib.dollhouse.world.picture import Picture
from bench_lib.errors import BenchError
from bench_lib.exchange import Generation
from bench_lib.measure import count
from bench_lib.messages import media
from bench_lib.messages.chat import Chat, ChatReply, Contract, Frames, Message, RequestRefused, Text
from bench_lib.messages.contract import checked
from bench_lib.video.stream import Frame, Size

_CLOCK = re.compile(SLOTS["wall_s"].pattern)


class IdealChat(Chat):
    """See the module.

    Args:
        error_rate: Share of calls whose reply is wrong on purpose (another letter, the other
            decision, facts left out), chosen by a digest of the call.
        delay_s: Seconds that each call takes at least.
    """

    program = True

    caveat = (
        "the ideal observer answers: it perceives perfectly what it is shown, so scores measure "
        "what memory and policy let through, and no model"
    )
    hears = False

    def __init__(self, error_rate: float = 0.0, delay_s: float = 0.0) -> None:
        if not 0 <= error_rate <= 1 or delay_s < 0:
            raise BenchError(f"ideal: error_rate={error_rate} or delay_s={delay_s} is out of range")
        self.error_rate, self.delay_s = error_rate, delay_s
        self.id = "ideal-1" + (f"-error{error_rate:g}" if error_rate else "")

    def complete(
        self, messages: Sequence[Message], contract: Contract, generation: Generation
    ) -> ChatReply:
        """See `Chat.complete`; raises RequestRefused for a contract without a rule."""
        return checked(self._send, messages, contract, generation)

    def _send(
        self, messages: Sequence[Message], contract: Contract, generation: Generation
    ) -> ChatReply:
        begun = time.perf_counter()
        parts: list[str | Picture | None] = []
        for message in messages:
            for part in message.parts:
                if isinstance(part, Text):
                    parts.append(part.text)
                elif isinstance(part, Frames):
                    parts += [perceive(frame, part.size) for frame in part.frames]
        text = respond(parts, contract.name, generation.max_new_tokens)
        if self._slips(parts, generation):
            text = spoiled(text)
        if self.delay_s:
            time.sleep(max(0.0, self.delay_s - (time.perf_counter() - begun)))
        done = time.perf_counter()
        usage = {"prompt_tokens": 0, "completion_tokens": len(text.split())}
        return ChatReply(text, ready_at=begun, first_token_at=done, done_at=done, usage=usage)

    def _slips(self, parts: Sequence[str | Picture | None], generation: Generation) -> bool:
        call = repr((parts, generation.seed)).encode()
        share = int.from_bytes(blake2b(call, digest_size=8).digest(), "big") / 2**64
        return share < self.error_rate


def respond(parts: Sequence[str | Picture | None], contract: str, max_words: int) -> str:
    """The reply to what was shown: texts and pictures in order, None for an unreadable frame."""
    if contract not in replies.RULES:
        raise RequestRefused(
            f"the ideal observer has no rule for the contract {contract!r}; "
            f"it has: {', '.join(replies.names())}"
        )
    texts = tuple(part for part in parts if isinstance(part, str))
    sentences = tuple(sentence for text in texts for sentence in read(text))
    pictures = [part for part in parts if isinstance(part, Picture)]
    known = gather(pictures, sentences, _cutoff(texts))
    return replies.RULES[contract](replies.Shown(tuple(parts), known, max_words))


def _cutoff(texts: tuple[str, ...]) -> int | None:
    """The latest clock that stands in a text outside the sentences of the language."""
    found = []
    for text in texts:
        inside = [(start, end) for start, end, _ in spans(text)]
        for match in _CLOCK.finditer(text):
            if not any(start <= match.start() < end for start, end in inside):
                found.append(SLOTS["wall_s"].read(match[0]))
    return max(found, default=None)


def perceive(frame: Frame, size: Size | None) -> Picture | None:
    """What a frame shows at the size at which it is sent; None where no strip can be read.

    Each call counts as a look, also where what was seen is known from another one: counts of work
    must not depend on what else was asked before, or beside it.
    """
    count("frames_encoded")
    key = (media.digest(frame), size)
    if key not in _seen:
        if len(_seen) > 200_000:
            _seen.clear()
        _seen[key] = strip.decode(frame.pixels(size))
    return _seen[key]


_seen: dict[tuple[str, Size | None], Picture | None] = {}


@lru_cache(maxsize=1024)
def spoiled(text: str) -> str:
    """A wrong reply of the same form."""
    try:
        reply = json.loads(text)
    except ValueError:
        lines = text.splitlines()
        return "\n".join(lines[::2]) if len(lines) > 1 else replies.s.CannotTell().say()
    if "answer" in reply:
        reply["answer"] = {"A": "B", "B": "C", "C": "D", "D": "A", "E": "A"}[reply["answer"]]
    elif reply.get("decision") == "INTERVENE":
        return json.dumps({"decision": "SILENT", "reason": replies.s.NoNeed().say()})
    elif reply.get("decision") == "SILENT":
        said = replies.s.CannotTell().say()
        reply = {"decision": "INTERVENE", "proactive_response": said, "reason": said}
    elif "memory" in reply:
        reply["memory"] = "\n".join(reply["memory"].splitlines()[::2])
    return json.dumps(reply)
