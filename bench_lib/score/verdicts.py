"""What a judge must reply: one JSON object; nothing is clamped, guessed or taken from prose.

A reply may begin with a reasoning block. The object has exactly the keys of the contract and stands
alone or in the reply's only code fence, with prose around it that gives no other verdict. A grade
may be written `4`, `4.0` or `"4"`, a word in any case. Everything else raises ValueError, so that
the chat layer asks once more and a second failure is a missing score.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench_lib.messages.chat import Contract
from bench_lib.replies.clean import without_reasoning

GRADES = ("pass", "partial", "fail")
CHECKS = {
    "task_fidelity": GRADES,
    "historical_or_registration_grounding": (*GRADES, "not_applicable"),
    "current_trigger_or_silence_grounding": GRADES,
    "factual_support": GRADES,
    "usefulness": (*GRADES, "not_applicable"),
}
SCORES = range(1, 6)
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["score", "criterion_checks", "critical_issues", "justification"],
    "properties": {
        "score": {"type": "integer", "enum": list(SCORES)},
        "criterion_checks": {
            "type": "object",
            "additionalProperties": False,
            "required": list(CHECKS),
            "properties": {k: {"type": "string", "enum": list(v)} for k, v in CHECKS.items()},
        },
        "critical_issues": {"type": "array", "items": {"type": "string"}},
        "justification": {"type": "string"},
    },
}
BINARY = {"correct": 1, "incorrect": 0}
BINARY_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["verdict", "justification"],
    "properties": {
        "verdict": {"type": "string", "enum": list(BINARY)},
        "justification": {"type": "string"},
    },
}


@dataclass(frozen=True)
class Judgement:
    """What a valid reply says."""

    score: int
    justification: str
    checks: dict[str, str] = field(default_factory=dict)
    issues: tuple[str, ...] = ()


def parse_apm(text: str) -> Judgement:
    """A judge's reply of APM-Bench; ValueError says what is wrong with it."""
    reply, before, after = _object(text, SCHEMA["required"])
    score, checks, issues = reply["score"], reply["criterion_checks"], reply["critical_issues"]
    score = _grade(score)
    if score not in SCORES:
        raise ValueError(f"score {score} lies outside 1 to 5")
    before, after = (_SCALE.sub(" ", prose) for prose in (before, after))
    if {*_GRADED.findall(before), *_DIGIT.findall(after)} - {str(score)}:
        raise ValueError("the prose around its verdict names another score")
    if not isinstance(checks, dict) or set(checks) != set(CHECKS):
        raise ValueError(f"criterion_checks must have exactly the keys {', '.join(CHECKS)}")
    marks = {name: _word(checks[name], name, allowed) for name, allowed in CHECKS.items()}
    if not isinstance(issues, list) or not all(isinstance(issue, str) for issue in issues):
        raise ValueError("critical_issues must be a list of strings")
    return Judgement(score, _justification(reply), marks, tuple(issues))


def parse_arena(text: str) -> Judgement:
    """A binary verdict of StreamArena; ValueError says what is wrong with it."""
    reply, before, after = _object(text, BINARY_SCHEMA["required"])
    verdict = _word(reply["verdict"], "verdict", tuple(BINARY))
    prose = f"{before}\n{after}".lower()
    if set(re.findall(r"\b(?:in)?correct\b", prose)) - {verdict}:
        raise ValueError("the prose around its verdict says the opposite")
    return Judgement(BINARY[verdict], _justification(reply))


APM = Contract("judge_apm", parse_apm, SCHEMA)
ARENA = Contract("judge_arena", parse_arena, BINARY_SCHEMA)


_FENCE = re.compile(r"```\s*\w*\s*(?=\{)")
_SCALE = re.compile(r"\b[1-5]\s*(?:-|–|to)\s*[1-5]\b|(?:/|\bout of)\s*5\b")
_DIGIT = re.compile(r"(?<![\d.:])[1-5](?![.:]?\d)")
_GRADED = re.compile(r"(?i)\b(?:scor|grad|rat|giv)\w*[^.\n]{0,40}?(?<![\d.:])([1-5])(?![.:]?\d)")
"""The scale itself, and what may be a grade in prose: any digit, or one said to be a grade."""


def _object(text: str, required: list[str]) -> tuple[dict[str, Any], str, str]:
    """The one object of a reply with exactly these keys, and the prose before and after it."""
    body, _, unclosed = without_reasoning(text)
    if unclosed:
        raise ValueError("its reasoning never ends")
    body = body.strip()
    fence = None if body.startswith("{") else _FENCE.search(body)
    decoder: Any = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_constant)
    try:
        reply, end = decoder.raw_decode(body, fence.end() if fence else 0)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not one JSON object alone ({error})") from None
    before, after = body[: fence.start()] if fence else "", body[end:].strip()
    prose = before + after.removeprefix("```") if fence else after
    if (prose and not fence) or re.search(r"[{}]|```", prose):
        raise ValueError("it is not one JSON object alone")
    if not isinstance(reply, dict):
        raise ValueError("it is not a JSON object")
    missing, extra = set(required) - set(reply), set(reply) - set(required)
    if missing or extra:
        names = ", ".join(sorted(missing or extra))
        raise ValueError(f"{'missing' if missing else 'unknown'} key: {names}")
    return reply, before, after


def _grade(given: Any) -> int:
    """A whole number, however it is written."""
    text = given.strip() if isinstance(given, str) else repr(given)
    if isinstance(given, bool) or not re.fullmatch(r"-?[0-9]{1,9}(?:\.0+)?", text):
        raise ValueError(f"score must be a whole number, not {given!r}")
    return int(float(text))


def _word(given: Any, name: str, allowed: tuple[str, ...]) -> str:
    """One of the words allowed, in any case, with a blank or hyphen for `_`."""
    word = re.sub(r"[\s-]+", "_", given.strip().lower()) if isinstance(given, str) else given
    if word not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {given!r}")
    return str(word)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def _constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON value")


def _justification(reply: Mapping[str, Any]) -> str:
    if not isinstance(reply["justification"], str):
        raise ValueError("justification must be a string")
    return reply["justification"]
