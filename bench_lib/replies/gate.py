"""The deterministic gate that comes before any judge (APM-Bench protocol, section 7)."""

from __future__ import annotations

from typing import Protocol

from bench_lib.schema import SCORABLE, Decision, Polarity, Status
from bench_lib.tasks import Task


class Answer(Protocol):
    """What the gate reads; both `Parsed` and `Response` have it."""

    @property
    def status(self) -> Status: ...
    @property
    def option(self) -> str | None: ...
    @property
    def decision(self) -> Decision | None: ...


def gate(task: Task, polarity: Polarity | None, parsed: Answer, answer: str | None) -> bool | None:
    """Whether a reply passes; None where there is nothing to check or no reply of the method.

    A multiple-choice reply passes when its option is the key. A positive probe passes with
    INTERVENE (ERA: and the right option), a negative one with SILENT. An unparsed reply fails on
    either polarity, and so does a refusal; an error or a missing run is neither right nor wrong.
    """
    if parsed.status not in SCORABLE or task.reply == "free":
        return None
    if task.reply == "choice":
        return None if answer is None else parsed.option == answer
    if polarity is None:
        return None
    if polarity == "negative":
        return parsed.decision == "SILENT"
    if task.reply == "adaptive_text":
        return parsed.decision == "INTERVENE"
    if answer is None:
        return None
    return parsed.decision == "INTERVENE" and parsed.option == answer
