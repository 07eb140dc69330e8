"""What a judge must reply, strictly: nothing is clamped, guessed or taken from prose.

A reply may be preceded by a reasoning block and stand in a code fence; otherwise it is one JSON
object with exactly the keys of the contract. Everything else raises ValueError, so that the chat
layer asks once more and a second failure is a missing score.
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
    reply = _object(text, SCHEMA["required"])
    score, checks, issues = reply["score"], reply["criterion_checks"], reply["critical_issues"]
    if type(score) is not int:
        raise ValueError(f"score must be a whole number, not {score!r}")
    if score not in SCORES:
        raise ValueError(f"score {score} lies outside 1 to 5")
    if not isinstance(checks, dict) or set(checks) != set(CHECKS):
        raise ValueError(f"criterion_checks must have exactly the keys {', '.join(CHECKS)}")
    for name, allowed in CHECKS.items():
        if checks[name] not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {checks[name]!r}")
    if not isinstance(issues, list) or not all(isinstance(issue, str) for issue in issues):
        raise ValueError("critical_issues must be a list of strings")
    return Judgement(score, _justification(reply), dict(checks), tuple(issues))


def parse_arena(text: str) -> Judgement:
    """A binary verdict of StreamArena; ValueError says what is wrong with it."""
    reply = _object(text, BINARY_SCHEMA["required"])
    verdict = reply["verdict"]
    if not isinstance(verdict, str) or verdict not in BINARY:
        raise ValueError(f"verdict must be 'correct' or 'incorrect', not {verdict!r}")
    return Judgement(BINARY[verdict], _justification(reply))


APM = Contract("judge_apm", parse_apm, SCHEMA)
ARENA = Contract("judge_arena", parse_arena, BINARY_SCHEMA)


def _object(text: str, required: list[str]) -> dict[str, Any]:
    body, _, unclosed = without_reasoning(text)
    if unclosed:
        raise ValueError("its reasoning never ends")
    fenced = re.fullmatch(r"\s*```(?:json)?\s*(.*?)\s*```\s*", body, re.DOTALL)
    body = fenced[1] if fenced else body.strip()
    try:
        reply = json.loads(body, object_pairs_hook=_unique, parse_constant=_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not one JSON object alone ({error})") from None
    if not isinstance(reply, dict):
        raise ValueError("it is not a JSON object")
    missing, extra = set(required) - set(reply), set(reply) - set(required)
    if missing or extra:
        names = ", ".join(sorted(missing or extra))
        raise ValueError(f"{'missing' if missing else 'unknown'} key: {names}")
    return reply


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
