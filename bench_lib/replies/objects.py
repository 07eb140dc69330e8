"""JSON objects in a reply: exact, inside prose or fences, or damaged but readable."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

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
    folded = "_".join(name[:80].lower().replace("-", " ").split())
    return _CANONICAL.get(folded, folded)


def known(name: str) -> bool:
    """Whether a name is a key of the contract, or a spelling of one."""
    return canonical(name) in KEYS


_OBJECT = re.compile(r"\{(?=\s*\")")
MOST_FAILURES = 100
"""Broken openings of an object after which a reply is taken for a loop."""
MOST_OBJECTS = 200
"""Objects that are read at either end of a reply."""
_DECODER = json.JSONDecoder(object_pairs_hook=Pairs)


class Placed(NamedTuple):
    """An object and where it stands in the text."""

    pairs: Pairs
    start: int
    end: int


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
        if any(known(name) for name, _ in value):
            yield value
            return
        for _, inner in value:
            yield from _nested(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _nested(inner, depth + 1)


def wrapped(text: str) -> list[Placed]:
    """Objects with a known key anywhere in the text, in order; what lies inside one is not read.

    Broken openings are tried while all tries together have read no more than thrice the text.
    """
    found: list[Placed] = []
    end = failed = spent = 0
    while failed < MOST_FAILURES and spent <= 3 * len(text):
        if not (match := _OBJECT.search(text, end)):
            break
        try:
            value, end = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError) as error:
            end, failed = match.start() + 1, failed + 1
            spent += _read(error, text, match.start())
        else:
            found += [Placed(pairs, match.start(), end) for pairs in _nested(value)]
    return found if len(found) <= 2 * MOST_OBJECTS else _ends(found)


def _ends(found: list[Placed]) -> list[Placed]:
    return [*found[:MOST_OBJECTS], *found[-MOST_OBJECTS:]]


def _read(error: Exception, text: str, start: int) -> int:
    """How much of a text a failed try has read; a string without an end is read to the end."""
    told = isinstance(error, json.JSONDecodeError) and not error.msg.startswith("Unterminated")
    return (error.pos if told else len(text)) - start  # type: ignore[attr-defined]


_NAME = "|".join(sorted(map(re.escape, _CANONICAL), key=len, reverse=True))
_PAIR = re.compile(
    rf"(?:[{{,;]\s{{0,20}}|[\"'“”‘’]|^[^\S\n]{{0,20}})(?P<name>{_NAME})[\"'“”‘’]?\s{{0,20}}[:=]\s{{0,20}}",
    re.IGNORECASE | re.MULTILINE,
)
_QUOTES = {
    '"': '"',
    "'": "'",
    "“": "”",
    "”": "”",
    "‘": "’",
    "’": "’",
    "„": "“",
    "«": "»",
    "「": "」",
}
_CLOSING = {
    closing: re.compile(
        rf"(?<!\\){closing}\s{{0,20}}(?:[,;}}\]\n]|$|[\"'“]?(?:{_NAME})[\"'”]?\s{{0,20}}[:=])"
    )
    for closing in set(_QUOTES.values())
}
_BARE_END = re.compile(r"[,}\n]")


def _value(text: str, start: int) -> tuple[str, int]:
    """The value that begins at a place, and where it ends."""
    closing = _QUOTES.get(text[start : start + 1])
    if closing:
        end = _CLOSING[closing].search(text, start + 1)
        body = text[start + 1 : end.start()] if end else text[start + 1 :].rstrip("}` \n")
        at = end.start() if end else len(text)
        return body.replace("\\n", "\n").replace(f"\\{closing}", closing).strip(), at
    bare = _BARE_END.search(text, start)
    end_at = bare.start() if bare else len(text)
    return text[start:end_at].strip(), end_at


def damaged(text: str) -> Placed | None:
    """Pairs of an object with single quotes, bare words, stray commas or a cut-off end.

    Only text from the first brace on is read, so that prose is left to the prose rules.
    """
    start = text.find("{")
    if start < 0:
        return None
    pairs, position = Pairs(), start
    while len(pairs) < MOST_OBJECTS and (match := _PAIR.search(text, position)):
        value, position = _value(text, match.end())
        pairs.append((match["name"], value))
    return Placed(pairs, start, text.rfind("}") + 1 or len(text)) if pairs else None
