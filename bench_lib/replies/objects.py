"""JSON objects in a reply: exact, inside prose or fences, or damaged but readable."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

KEYS = {
    "answer": ("answer", "final_answer", "answer_id", "choice", "option", "option_id",
               "correct_option_id", "selected_option", "答案", "选项"),
    "decision": ("decision", "action", "决定"),
    "proactive_response": ("proactive_response", "response", "message"),
    "reason": ("reason", "reasoning", "rationale", "explanation", "justification"),
}  # fmt: skip
"""Key of the contract -> spellings that mean it; the first is the contract's own."""
_CANONICAL = {alias: key for key, aliases in KEYS.items() for alias in aliases}


class Pairs(list[tuple[str, Any]]):
    """A JSON object as its pairs, so that a repeated key is seen and not silently overwritten."""

    def values_of(self, key: str) -> list[Any]:
        """All values under a key of the contract or, where that is absent, under an alias."""
        exact = [value for name, value in self if name == key]
        return exact or [value for name, value in self if canonical(name) == key]

    def clean(self, key: str) -> bool:
        """Whether the contract's own spelling was used, once."""
        return [canonical(name) for name, _ in self].count(key) == 1 and key in dict(self)


def canonical(name: str) -> str:
    """The contract's key that a spelling means, else the spelling itself."""
    folded = re.sub(r"[\s-]+", "_", name.strip().lower())
    return _CANONICAL.get(folded, folded)


_OBJECT = re.compile(r"\{(?=\s*\")")
MOST_FAILURES = 100
"""Broken openings of an object after which a reply is taken for a loop."""
_DECODER = json.JSONDecoder(object_pairs_hook=Pairs)


def exact(text: str) -> Pairs | None:
    """The object when the reply is one JSON object and nothing else."""
    try:
        value = _DECODER.decode(text.strip())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, Pairs) else None


def _nested(value: Any, depth: int = 0) -> Iterator[Pairs]:
    if depth > 8:
        return
    if isinstance(value, Pairs):
        if any(canonical(name) in KEYS for name, _ in value):
            yield value
            return
        for _, inner in value:
            yield from _nested(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _nested(inner, depth + 1)


def wrapped(text: str) -> list[Pairs]:
    """Objects with a known key anywhere in the text, in order; what lies inside one is not read."""
    found: list[Pairs] = []
    end = failed = 0
    while failed < MOST_FAILURES and (match := _OBJECT.search(text, end)):
        try:
            value, end = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            end, failed = match.start() + 1, failed + 1
        else:
            found += _nested(value)
    return found


_NAME = "|".join(sorted(map(re.escape, _CANONICAL), key=len, reverse=True))
_PAIR = re.compile(
    rf"(?:[{{,;]\s*|[\"'“”‘’]|^\s*)(?P<name>{_NAME})[\"'“”‘’]?\s*[:=]\s*",
    re.IGNORECASE | re.MULTILINE,
)
_QUOTES = {'"': '"', "'": "'", "“": "”", "”": "”", "‘": "’"}


def _value(text: str) -> tuple[str, int]:
    closing = _QUOTES.get(text[:1])
    if closing:
        close = re.escape(closing)
        end = re.search(
            rf"(?<!\\){close}\s*(?:[,;}}\]\n]|$|[\"'“]?(?:{_NAME})[\"'”]?\s*[:=])", text[1:]
        )
        body = text[1 : 1 + end.start()] if end else text[1:].rstrip("}` \n")
        length = 1 + len(body)
        return body.replace("\\n", "\n").replace(f"\\{closing}", closing).strip(), length
    bare = re.split(r"[,}\n]", text, maxsplit=1)[0]
    return bare.strip(), len(bare)


def damaged(text: str) -> Pairs | None:
    """Pairs of an object with single quotes, bare words, stray commas or a cut-off end.

    Only text from the first brace on is read, so that prose is left to the prose rules.
    """
    start = text.find("{")
    if start < 0:
        return None
    body, pairs, position = text[start:], Pairs(), 0
    while match := _PAIR.search(body, position):
        value, length = _value(body[match.end() :])
        pairs.append((match["name"], value))
        position = match.end() + length
    return pairs or None
