"""Replies to answers: JSON first, then repair that has one reading only, never a guess.

The ladder stops at the first rung that speaks: one JSON object; an object in a fence or in prose;
a damaged object (single quotes, bare words, a cut-off end); a box; a declared letter; a letter that
is the whole reply or line. Reasoning blocks never count. What was repaired is recorded by name, and
a reply without a single reading is `unparsed` with the reason (APM-Bench protocol, section 6).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from bench_lib.errors import BenchError
from bench_lib.replies import decisions, objects
from bench_lib.replies import letters as letter_rungs
from bench_lib.replies.clean import loops, normalised, without_markup, without_reasoning
from bench_lib.replies.letters import NONE, OUTSIDE, SEVERAL, TEMPLATE, Reading
from bench_lib.schema import Decision
from bench_lib.tasks import ReplyKind

EMPTY = "empty reply"
REASONING = "reasoning never ends in an answer"
LOOP = "repeats itself"
CUT = "cut at the length limit"
FAILURES = (EMPTY, REASONING, LOOP, CUT, SEVERAL, OUTSIDE, TEMPLATE, NONE)
"""Every reason for `unparsed`, in the order of tables."""


@dataclass(frozen=True)
class Parsed:
    """What a reply says. `why` is the reason for `unparsed`, or for a missing option of ERA.

    `repairs` names what was repaired; a reply stopped at its length limit that still has one
    reading carries the repair `cut`.
    """

    status: Literal["ok", "repaired", "unparsed"]
    option: str | None = None
    decision: Decision | None = None
    text: str = ""
    reason: str = ""
    repairs: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class _Text:
    raw: str
    body: str
    repairs: tuple[str, ...]
    open_reasoning: bool
    cut: bool


def _prepared(text: str, stop: str) -> _Text:
    plain, repairs = normalised(text)
    body, cut_out, unclosed = without_reasoning(plain)
    return _Text(text, body.strip(), (*repairs, *cut_out), unclosed, stop == "length")


def _failure(source: _Text, why: str = NONE) -> Parsed:
    if not source.raw.strip():
        why = EMPTY
    elif why == NONE:
        if loops(source.raw):
            why = LOOP
        elif source.open_reasoning or not source.body:
            why = REASONING
        elif source.cut:
            why = CUT
    return Parsed("unparsed", why=why)


def _success(source: _Text, repairs: tuple[str, ...], **found: Any) -> Parsed:
    repairs = (*repairs, *(("cut",) * source.cut))
    return Parsed("repaired" if repairs else "ok", repairs=tuple(dict.fromkeys(repairs)), **found)


def _objects(source: _Text, key: str) -> tuple[list[objects.Pairs], tuple[str, ...]]:
    """Objects that hold the key, from the first rung that has one, and the repairs so far."""
    exact = objects.exact(source.raw)
    if exact is not None and exact.values_of(key):
        return [exact], () if exact.clean(key) else ("key",)
    whole = objects.exact(source.body)
    rungs = (
        ([whole] if whole else [], ()),
        (objects.wrapped(source.body), ("wrapped",)),
        ([damaged] if (damaged := objects.damaged(source.body)) else [], ("syntax",)),
    )
    for found, repairs in rungs:
        held = [pairs for pairs in found if pairs is not None and pairs.values_of(key)]
        if held:
            extra = () if all(pairs.clean(key) for pairs in held) else ("key",)
            return held, (*source.repairs, *repairs, *extra)
    return [], source.repairs


def _letter(found: list[objects.Pairs], letters: str) -> Reading | None:
    """The one letter under `answer` in the objects; template echoes do not count."""
    readings = [
        letter_rungs.of_value(value, letters) for o in found for value in o.values_of("answer")
    ]
    real = [reading for reading in readings if reading.why != TEMPLATE]
    if not real:
        return readings[0] if readings else None
    if len({reading.letter for reading in real}) > 1:
        return Reading(None, SEVERAL)
    extra: tuple[str, ...] = ("repeated",) if len(real) > 1 else ()
    extra += ("template",) if len(real) < len(readings) else ()
    return replace(real[0], repairs=(*real[0].repairs, *extra))


def parse_choice(text: str, letters: str = "ABCD", stop: str = "") -> Parsed:
    """The option letter of a multiple-choice reply, one of `letters`.

    `stop` is why generation ended; `length` marks a reply cut at its token limit.
    """
    letters = _checked(letters)
    source = _prepared(text, stop)
    found, repairs = _objects(source, "answer")
    reading = _letter(found, letters)
    if reading is None or reading.why == TEMPLATE:
        repairs = source.repairs
        echo, reading = reading, letter_rungs.of_prose(source.body, letters, source.cut)
        reading = reading or echo
    if reading is None or reading.letter is None:
        return _failure(source, reading.why if reading else NONE)
    return _success(source, (*repairs, *reading.repairs), option=reading.letter)


def parse_adaptive(text: str, letters: str | None = None, stop: str = "") -> Parsed:
    """The decision of an adaptive reply, with its text and reason; with `letters` also the option.

    An INTERVENE whose option is missing or not single keeps its decision, has no option, and says
    why: the decision counts and the gate fails (protocol, open point 10).
    """
    allowed = None if letters is None else _checked(letters)
    source = _prepared(text, stop)
    found, repairs = _objects(source, "decision")
    reading = decisions.of_objects(found)
    if not found:
        reading, found = decisions.under_another_key(objects.wrapped(source.body))
        repairs = source.repairs
    elif reading.decision is None and reading.why != TEMPLATE:
        return _failure(source, reading.why)
    if reading.decision is None:
        prose = decisions.of_prose(without_markup(source.body))
        if prose.decision is None:
            return _failure(source, reading.why if reading.why == TEMPLATE else prose.why)
        repairs, reading, found = source.repairs, prose, []
    assert reading.decision is not None
    decision, repairs = reading.decision, (*repairs, *reading.repairs)
    option, why = None, ""
    if allowed is not None and decision == "INTERVENE":
        letter = _letter(found, allowed) if found else letter_rungs.of_prose(reading.rest, allowed)
        option, why = (letter.letter, letter.why) if letter else (None, NONE)
        repairs = (*repairs, *(letter.repairs if letter and option else ("no option",)))
        if option and found and not all(pairs.clean("answer") for pairs in found):
            repairs = (*repairs, "key")
    if found:
        held = [pairs for pairs in found if decisions.of_objects([pairs]).decision == decision]
        chosen = (held or found)[0]
        spoken, extra = decisions.text_of(chosen, "proactive_response", allowed is None)
        reason, more = decisions.text_of(chosen, "reason", False)
        repairs = (*repairs, *extra, *more)
    else:
        spoken, reason = decisions.spoken_and_reason(reading.rest, decision)
        if allowed is not None:
            spoken, reason = "", reason or spoken
    return _success(
        source, repairs, option=option, decision=decision, text=spoken, reason=reason, why=why
    )


def parse(reply: ReplyKind, text: str, letters: str = "ABCD", stop: str = "") -> Parsed:
    """Parse a reply of a task's kind (`Task.reply`)."""
    if reply == "choice":
        return parse_choice(text, letters, stop)
    if reply == "adaptive_choice":
        return parse_adaptive(text, letters, stop)
    if reply == "adaptive_text":
        return parse_adaptive(text, None, stop)
    source = _prepared(text, stop)
    if not source.body or loops(source.body):
        return _failure(source)
    return _success(source, ("reasoning",) if source.body != text.strip() else (), text=source.body)


def _checked(letters: str) -> str:
    upper = letters.upper()
    if not upper or len(set(upper)) != len(upper) or not upper.isalpha() or not upper.isascii():
        raise BenchError(f"option letters must be distinct and A to Z, not {letters!r}")
    return upper
