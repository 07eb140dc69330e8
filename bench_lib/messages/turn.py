"""One counted turn: how a method speaks to a model and what it hands back to the engine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from bench_lib.exchange import Generation, Refused, Reply
from bench_lib.measure import count, passed
from bench_lib.messages.chat import (
    BudgetSpent,
    Chat,
    ChatError,
    ChatReply,
    Contract,
    Frames,
    Message,
)


def ask(
    chat: Chat, messages: Sequence[Message], contract: Contract, generation: Generation
) -> ChatReply:
    """Ask and count: `model_calls` (re-asks included) and `frames_sent`; raises ChatError.

    The counts do not depend on whether the reply came from a cache, so a resumed run equals an
    uninterrupted one.
    """
    sent = sum(len(p.frames) for m in messages for p in m.parts if isinstance(p, Frames))
    calls = 1
    try:
        reply = chat.complete(messages, contract, generation)
        calls += len(reply.rejected)
        passed(ahead_s(reply))
    except ChatError as error:
        calls = 0 if isinstance(error, BudgetSpent) else max(1, len(error.rejected))
        raise
    finally:
        count("model_calls", calls)
        count("frames_sent", sent * calls)
    return reply


def as_reply(said: ChatReply) -> Reply:
    """A chat reply as a method's answer; raises Refused where the model declined to answer."""
    if said.stop == "refused":
        raise Refused(said.text or "the model declined without a word")
    return Reply(
        text=said.text,
        ready_at=said.ready_at,
        first_token_at=said.first_token_at,
        done_at=said.done_at,
        stop=said.stop,
        logits=said.logits,
    )


def ahead_s(said: ChatReply) -> float:
    """How far the end of a reply lies ahead of this moment: above 0 for a kept one.

    A kept reply's durations are those of the call that was paid for, so a call that follows it must
    be placed so much later than it was made.
    """
    return max(0.0, said.done_at - time.perf_counter())


def later(reply: Reply, seconds: float) -> Reply:
    """The same reply with all its instants so much later."""
    return replace(
        reply,
        ready_at=reply.ready_at + seconds,
        first_token_at=reply.first_token_at + seconds,
        done_at=reply.done_at + seconds,
    )
