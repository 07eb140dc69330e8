"""The decision words INTERVENE and SILENT in objects and in prose; synonyms do not count."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Any

from bench_lib.replies import cues
from bench_lib.replies.letters import NONE, SEVERAL, TEMPLATE
from bench_lib.replies.objects import Pairs
from bench_lib.schema import Decision

_WORD = re.compile(r"(?<![A-Za-z])(INTERVENE|SILENT)(?![A-Za-z])")
_ANY_CASE = re.compile(_WORD.pattern, re.IGNORECASE)
_CUE = re.compile(
    r"(?:\bdecision\b|决定|決定|判断|decisi[oó]n|décision|entscheidung)\s*(?:is|es|est|ist|是|为|は|:|=|->|→|-)*\s*"
    r"[\"'“(\[<]*\s*(intervene|silent)(?![A-Za-z])",
    re.IGNORECASE,
)
_ONLY = re.compile(r"(?:\W|INTERVENE|SILENT)*")
_REASON = re.compile(r"\breason\W{0,3}[:=]\W*", re.IGNORECASE)
_TEMPLATE = re.compile(
    r"^\W*(?:INTERVENE\s*[|/]\s*SILENT|SILENT\s*[|/]\s*INTERVENE)\W*$", re.IGNORECASE
)
_LEAD = re.compile(r"^\W*(intervene|silent)\b\W*", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """A decision, or why there is none; `rest` is what the prose says beside it."""

    decision: Decision | None
    why: str = ""
    repairs: tuple[str, ...] = ()
    rest: str = ""


def _of_value(value: Any) -> Reading:
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        inner = _of_value(value[0])
        return Reading(inner.decision, inner.why, ("list", *inner.repairs))
    if not isinstance(value, str):
        return Reading(None, NONE)
    if value == "INTERVENE":
        return Reading("INTERVENE")
    if value == "SILENT":
        return Reading("SILENT")
    value = unicodedata.normalize("NFKC", value)
    if _TEMPLATE.match(value):
        return Reading(None, TEMPLATE)
    words = {word.upper() for word in _ANY_CASE.findall(value)}
    if len(words) > 1:
        return Reading(None, SEVERAL)
    if not words or cues.NEGATION.search(value) or cues.CONDITION.search(value):
        return Reading(None, NONE)
    name = "case" if value.upper() in words else "value"
    return Reading("INTERVENE" if "INTERVENE" in words else "SILENT", repairs=(name,))


def of_objects(found: list[Pairs]) -> Reading:
    """The one decision that the objects hold."""
    readings = [_of_value(value) for pairs in found for value in pairs.values_of("decision")]
    real = [reading for reading in readings if reading.why != TEMPLATE]
    if not real:
        return readings[0] if readings else Reading(None, NONE)
    if len({reading.decision for reading in real}) > 1:
        return Reading(None, SEVERAL)
    extra: tuple[str, ...] = ("repeated",) if len(real) > 1 else ()
    extra += ("template",) if len(real) < len(readings) else ()
    return Reading(real[0].decision, real[0].why, (*real[0].repairs, *extra))


def of_prose(text: str) -> Reading:
    """The decision that prose declares, leads with, or names alone in capitals."""
    if _TEMPLATE.match(text):
        return Reading(None, TEMPLATE)
    cued = {match[1].upper() for match in _CUE.finditer(text)}
    lead = _LEAD.match(text)
    if len(cued) == 1:
        word, how = cued.pop(), "declared"
        rest = _CUE.sub("", text)
    elif cued:
        return Reading(None, SEVERAL)
    elif lead and not _others(text, lead[1]):
        word, how, rest = lead[1].upper(), "lead", text[lead.end() :]
    else:
        words = set()
        for match in _WORD.finditer(text):
            before = re.split(r"[.!?。！？\n,，;]", text[: match.start()])[-1]
            if not (cues.NEGATION.search(before) or cues.CONDITION.search(before)):
                words.add(match[1])
        if len(words) != 1:
            return Reading(None, SEVERAL if words else NONE)
        word, how, rest = words.pop(), "declared", text
    rest = rest.lstrip(" \n\t.:;,-–—").strip("\"'{} \n\t")
    if _ONLY.fullmatch(rest):
        rest = ""
    return Reading("INTERVENE" if word == "INTERVENE" else "SILENT", "", (how,), rest)


def _others(text: str, word: str) -> bool:
    return any(found != word.upper() for found in _WORD.findall(text))


def under_another_key(found: list[Pairs]) -> tuple[Reading, list[Pairs]]:
    """The decision word as the whole value of one other key, and the objects without it."""
    named = [
        (name, value.strip(" .").upper())
        for pairs in found
        for name, value in pairs
        if isinstance(value, str) and _ANY_CASE.fullmatch(value.strip(" ."))
    ]
    if len({word for _, word in named}) != 1:
        return Reading(None, SEVERAL if named else NONE), []
    keys, word = {name for name, _ in named}, named[0][1]
    rest = [Pairs(pair for pair in pairs if pair[0] not in keys) for pairs in found]
    return Reading("INTERVENE" if word == "INTERVENE" else "SILENT", repairs=("key",)), rest


def spoken_and_reason(rest: str, decision: Decision) -> tuple[str, str]:
    """What prose says to the wearer, and its reason: parted by the word, else by the decision."""
    if match := _REASON.search(rest):
        return rest[: match.start()].strip(" \n\t.,;|"), rest[match.end() :].strip()
    return (rest, "") if decision == "INTERVENE" else ("", rest)


def text_of(pairs: Pairs, key: str, answer_too: bool) -> tuple[str, tuple[str, ...]]:
    """The text under a key; with `answer_too` a text under `answer` stands in for it."""
    values = pairs.values_of(key)
    if not values and answer_too:
        values = pairs.values_of("answer")
        return (str(values[0]), ("key",)) if values and isinstance(values[0], str) else ("", ())
    if not values or values[0] is None:
        return "", ()
    value = values[0]
    if isinstance(value, str):
        own = dict(pairs).get(key) is not None
        return value, () if own else ("key",)
    if isinstance(value, Pairs):
        return " ".join(str(item) for _, item in value), ("value",)
    if isinstance(value, list):
        return " ".join(str(item) for item in value), ("value",)
    return str(value), ("value",)
