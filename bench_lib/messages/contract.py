"""Contracts of benchmark probes, and the one re-ask that a broken reply gets from any backend."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from bench_lib.exchange import Generation, Query
from bench_lib.messages.chat import ChatError, ChatReply, Contract, ContractBroken, Message, Text

Send = Callable[[Sequence[Message], Contract, Generation], ChatReply]


def probe(query: Query) -> Contract:
    """The contract of a benchmark question: no parser, so a malformed reply is the result.

    The schema constrains decoding only where an endpoint's settings say so.
    """
    letter = {"type": "string", "enum": [option.id for option in query.options]}
    text = {"type": "string"}
    if query.contract == "choice":
        return Contract("choice", schema=_object({"answer": letter}))
    if query.contract.startswith("adaptive"):
        decision = {"decision": {"type": "string", "enum": ["INTERVENE", "SILENT"]}}
        speaks = query.contract == "adaptive_text"
        said = {"proactive_response": text} if speaks else {"answer": letter}
        schema = _object({**decision, **said, "reason": text}, optional=tuple(said))
        return Contract(query.contract, schema=schema)
    return Contract(query.contract)


def _object(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def checked(
    send: Send, messages: Sequence[Message], contract: Contract, generation: Generation
) -> ChatReply:
    """Ask; where the reply breaks the contract, say so in the dialogue and ask once more.

    The second request shows the broken reply and what is wrong with it and has the next seed:
    greedy decoding of the same request would only repeat the fault. The reply's time to first token
    counts from the first request.

    Raises:
        ContractBroken: the second reply is broken too; both raw texts are in `rejected`.
        ChatError: whatever `send` raises, with the raw texts rejected so far.
    """
    first = send(messages, contract, generation)
    value, fault = _parsed(contract, first.text)
    if not fault:
        return replace(first, value=value)
    again = (
        *messages,
        Message("assistant", (Text(first.text.strip() or "(empty)"),)),
        Message("user", (Text(_complaint(contract, fault)),)),
    )
    try:
        second = send(again, contract, replace(generation, seed=generation.seed + 1))
    except ChatError as error:
        error.rejected = (first.text, *error.rejected)
        raise
    value, fault = _parsed(contract, second.text)
    if fault:
        raise ContractBroken(
            f"two replies broke the contract {contract.name!r}: {fault}", (first.text, second.text)
        )
    return replace(
        second,
        value=value,
        ready_at=first.ready_at,
        usage=dict(Counter(first.usage) + Counter(second.usage)),
        rejected=(first.text,),
    )


def _parsed(contract: Contract, text: str) -> tuple[Any, str]:
    """The parsed value and an empty string, or None and what is wrong."""
    if contract.parse is None:
        return None, ""
    try:
        return contract.parse(text), ""
    except ValueError as error:
        return None, str(error) or "it does not have the form asked for"


def _complaint(contract: Contract, fault: str) -> str:
    schema = ""
    if contract.schema:
        schema = f" It must satisfy this JSON schema: {json.dumps(contract.schema)}."
    return (
        f"That reply could not be used: {fault}.{schema} Give the whole reply again, in the form "
        "asked for, and nothing else."
    )
