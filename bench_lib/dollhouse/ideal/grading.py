"""The rule judge: compares what a reply says with what the reference says, sentence by sentence.

It reads the judge's request like any judge, the case in it as data. A reply without one readable
sentence is not graded: the contract is broken on purpose, so that the verdict is missing, not low.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from bench_lib.dollhouse.world import sentences as s
from bench_lib.dollhouse.world.grammar import SLOTS, Sentence, read
from bench_lib.messages.case import read_case
from bench_lib.messages.chat import Message, Text

CHECKS = (
    "task_fidelity",
    "historical_or_registration_grounding",
    "current_trigger_or_silence_grounding",
    "factual_support",
    "usefulness",
)
_VALUES = ("act", "spot", "item", "person", "sign", "coins", "relation", "town", "room", "action")


def grade(texts: tuple[str, ...]) -> str:
    """The reply of APM-Bench's judge.

    5: response and reason agree with the reference. 4: the response does, its reason is about
    something else. 3: the response holds the reference and more. 2: it says something else, or the
    reason of a silence does. 1: it says nothing of substance.
    """
    case = read_case([Message("user", tuple(Text(text) for text in texts))])
    reply = case["reply"]
    said, why = _content(reply.get("proactive_response", "")), _content(reply.get("reason", ""))
    wanted = _content(case.get("reference_response", ""))
    reasons = _content(case.get("reference_reason", ""))
    if not said and not why:
        return s.CannotTell().say()
    grounded = bool(why & (reasons | wanted))
    if wanted:
        score = _response(said, wanted, grounded)
    else:
        score = 5 if grounded else 2 if why - {s.CannotTell()} else 1
    return json.dumps(_verdict(score, grounded))


def _response(said: set[Sentence], wanted: set[Sentence], grounded: bool) -> int:
    if said == wanted:
        return 5 if grounded else 4
    if said > wanted:
        return 3
    return 2 if said - {s.CannotTell()} else 1


def _verdict(score: int, grounded: bool) -> dict[str, Any]:
    good = "pass" if score >= 4 else "partial" if score == 3 else "fail"
    checks = dict.fromkeys(CHECKS, good)
    checks["current_trigger_or_silence_grounding"] = "pass" if grounded else "fail"
    issues = [] if score == 5 else [f"differs from the reference (score {score})"]
    return {
        "score": score,
        "criterion_checks": checks,
        "critical_issues": issues,
        "justification": "sentences of the reply compared with those of the reference",
    }


def _content(text: str) -> set[Sentence]:
    """Sentences of a text; of facts, when they were seen does not matter."""
    return {
        replace(x, wall_s=0) if isinstance(x, s.AnyFact) else x  # type: ignore[misc]
        for x in read(text)
    }


def verdict(texts: tuple[str, ...]) -> str:
    """The reply of StreamArena's judge: the same values in the same order, or sentences."""
    case = read_case([Message("user", tuple(Text(text) for text in texts))])
    right = agrees(case["reply"], case["reference_answer"])
    return json.dumps(
        {
            "verdict": "correct" if right else "incorrect",
            "justification": "values of the reply compared with those of the reference",
        }
    )


def agrees(reply: str, reference: str) -> bool:
    """Whether a reply states the core of a reference and names nothing else of its kind."""
    wanted = set(read(reference))
    if wanted:
        return wanted <= set(read(reply))
    for slot in _VALUES:
        pattern = rf"(?<!\w){SLOTS[slot].pattern}(?!\w)"
        found = re.findall(pattern, reference)
        if found and not re.sub(pattern, "", reference).strip(" ,."):
            return re.findall(pattern, reply) == found
    numbers = re.findall(r"\d+", reference)
    return bool(numbers) and re.findall(r"\d+", reply) == numbers
