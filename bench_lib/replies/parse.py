"""Replies to answers: JSON first, then repair that has one reading only, never a guess.

The ladder stops at the first rung that speaks: one JSON object; an object in a fence or in prose;
a damaged object (single quotes, bare words, a cut-off end); a box; a declared letter; a letter that
is the whole reply or line. Reasoning blocks never count. What was repaired is recorded by name, and
a reply without a single reading is `unparsed` with the reason (APM-Bench protocol, section 6).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from bench_lib.errors import BenchError
from bench_lib.replies import decisions, objects
from bench_lib.replies import letters as letter_rungs
from bench_lib.replies.clauses import affirmed
from bench_lib.replies.clean import loops, normalised, without_reasoning
from bench_lib.replies.letters import NONE, OUTSIDE, SEVERAL, TEMPLATE, Reading
from bench_lib.replies.places import folded
from bench_lib.replies.refusals import declines
from bench_lib.schema import Decision
from bench_lib.tasks import ReplyKind

EMPTY = "empty reply"
REASONING = "reasoning never ends in an answer"
LOOP = "repeats itself"
CUT = "cut at the length limit"
DECLINED = "declines to answer"
FAILURES = (EMPTY, REASONING, LOOP, CUT, SEVERAL, OUTSIDE, TEMPLATE, NONE)
"""Every reason for `unparsed`, in the order of tables."""


@dataclass(frozen=True)
class Parsed:
    """What a reply says. `why` is the reason for `unparsed`, or for a missing option of ERA.

    `repairs` names what was repaired; a reply stopped at its length limit that still has one
    reading carries the repair `cut`.
    """

    status: Literal["ok", "repaired", "unparsed", "refused"]
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
    stop: str

    @property
    def cut(self) -> bool:
        """Whether the reply ended at its length limit."""
        return self.stop == "length"

    @property
    def refused(self) -> bool:
        """Whether the server or its filter declined."""
        return self.stop == "refused"

    @cached_property
    def wrapped(self) -> list[objects.Placed]:
        """Objects with a known key in the body."""
        return objects.wrapped(self.body)


def _prepared(text: str, stop: str) -> _Text:
    plain, repairs = normalised(text)
    body, cut_out, unclosed = without_reasoning(plain)
    return _Text(text, body.strip(), (*repairs, *cut_out), unclosed, stop)


def _failure(source: _Text, why: str = NONE) -> Parsed:
    if source.refused or (why == NONE and declines(_said(source))):
        return Parsed("refused", why=DECLINED)
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


def _said(source: _Text) -> str:
    """The words of a reply: its text, or those that its one object holds."""
    whole = objects.exact(source.body)
    if whole is None:
        return source.body
    return "\n".join(
        value for name, value in whole if objects.known(name) and isinstance(value, str)
    )


def _success(source: _Text, repairs: tuple[str, ...], **found: Any) -> Parsed:
    repairs = (*repairs, *(("cut",) * source.cut))
    return Parsed("repaired" if repairs else "ok", repairs=tuple(dict.fromkeys(repairs)), **found)


@dataclass(frozen=True)
class _Held:
    """Objects that hold a key and stand, how they were found, and the prose around them.

    `denied` says that there are such objects and that the prose lets none stand.
    """

    pairs: list[objects.Pairs]
    repairs: tuple[str, ...]
    prose: str
    denied: bool = False


def _objects(source: _Text, key: str) -> _Held:
    """Objects that hold the key and stand, from the first rung that has one."""
    exact = objects.exact(source.raw)
    if exact is not None and exact.values_of(key):
        return _Held([exact], () if exact.clean(key) else ("key",), "")
    whole = exact if source.body == source.raw else objects.exact(source.body)
    damaged = objects.damaged(source.body)
    rungs: tuple[tuple[list[objects.Placed], tuple[str, ...]], ...] = (
        ([objects.Placed(whole, 0, len(source.body))] if whole else [], ()),
        (source.wrapped, ("wrapped",)),
        ([damaged] if damaged else [], ("syntax",)),
    )
    for found, repairs in rungs:
        held = [placed for placed in found if placed.pairs.values_of(key)]
        if held:
            prose, last = [], 0
            for _, start, end in held:
                prose.append(source.body[last:start])
                last = max(last, end)
            around = "\n\n".join((*prose, source.body[last:]))
            pairs = [p.pairs for p in held if affirmed(source.body, p.start, p.end)]
            extra = () if all(one.clean(key) for one in pairs) else ("key",)
            return _Held(pairs, (*source.repairs, *repairs, *extra), around, not pairs)
    return _Held([], source.repairs, source.body)


def _letter(found: list[objects.Pairs], letters: str, options: Mapping[str, str]) -> Reading | None:
    """The one letter under `answer` in the objects; template echoes do not count."""
    readings = [
        letter_rungs.of_value(value, letters, options)
        for one in found
        for value in one.values_of("answer")
    ]
    real = [reading for reading in readings if reading.why != TEMPLATE]
    if not real:
        return readings[0] if readings else None
    if len({reading.letter for reading in real}) > 1:
        return Reading(None, SEVERAL)
    extra: tuple[str, ...] = ("repeated",) if len(real) > 1 else ()
    extra += ("template",) if len(real) < len(readings) else ()
    return replace(real[0], repairs=(*real[0].repairs, *extra))


def parse_choice(
    text: str, letters: str = "ABCD", stop: str = "", options: Mapping[str, str] | None = None
) -> Parsed:
    """The option letter of a multiple-choice reply, one of `letters`.

    `stop` is why generation ended: `length` marks a reply cut at its token limit, `refused` one
    that the server declined. `options` are the texts by letter; a reply that is one of them names
    it.
    """
    letters, texts = _checked(letters), _folded(options)
    source = _prepared(text, stop)
    if source.refused:
        return _failure(source)
    held = _objects(source, "answer")
    repairs, reading = held.repairs, _letter(held.pairs, letters, texts)
    if reading is None or reading.why == TEMPLATE:
        repairs = source.repairs
        said = letter_rungs.of_prose(held.prose, letters, source.cut, texts)
        reading = said if said and (said.letter or not reading) else reading
    elif reading.letter and letter_rungs.declares_other(held.prose, reading.letter):
        reading = Reading(None, SEVERAL)
    if reading is None or reading.letter is None:
        return _failure(source, reading.why if reading else NONE)
    return _success(source, (*repairs, *reading.repairs), option=reading.letter)


def parse_adaptive(
    text: str,
    letters: str | None = None,
    stop: str = "",
    options: Mapping[str, str] | None = None,
) -> Parsed:
    """The decision of an adaptive reply, with its text and reason; with `letters` also the option.

    An INTERVENE whose option is missing or not single keeps its decision, has no option, and says
    why: the decision counts and the gate fails (protocol, open point 10).
    """
    allowed, texts = None if letters is None else _checked(letters), _folded(options)
    source = _prepared(text, stop)
    if source.refused:
        return _failure(source)
    held = _objects(source, "decision")
    reading, repairs, found = decisions.of_objects(held.pairs), held.repairs, held.pairs
    if not found and not held.denied:
        whole = objects.exact(source.body)
        named = [one.pairs for one in source.wrapped] or [whole or objects.Pairs()]
        reading, found = decisions.under_another_key(named)
        repairs = source.repairs
    elif found and reading.decision is None and reading.why != TEMPLATE:
        return _failure(source, reading.why)
    prose = decisions.of_prose(held.prose)
    if reading.decision is None:
        if prose.decision is None:
            return _failure(source, reading.why if reading.why == TEMPLATE else prose.why)
        repairs, reading, found = source.repairs, prose, []
    elif held.pairs and prose.decision not in (None, reading.decision):
        return _failure(source, SEVERAL)
    assert reading.decision is not None
    decision, repairs = reading.decision, (*repairs, *reading.repairs)
    option, why = None, ""
    if allowed is not None and decision == "INTERVENE":
        letter = (
            _letter(found, allowed, texts)
            if found
            else letter_rungs.of_prose(reading.rest, allowed, source.cut, texts)
        )
        option, why = (letter.letter, letter.why) if letter else (None, NONE)
        repairs = (*repairs, *(letter.repairs if letter and option else ("no option",)))
        if option and found and not all(pairs.clean("answer") for pairs in found):
            repairs = (*repairs, "key")
    if found:
        same = [pairs for pairs in found if decisions.of_objects([pairs]).decision == decision]
        chosen = (same or found)[0]
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


def parse(
    reply: ReplyKind,
    text: str,
    letters: str = "ABCD",
    stop: str = "",
    options: Mapping[str, str] | None = None,
) -> Parsed:
    """Parse a reply of a task's kind (`Task.reply`); `options` are the options' texts by letter."""
    if reply == "choice":
        return parse_choice(text, letters, stop, options)
    if reply == "adaptive_choice":
        return parse_adaptive(text, letters, stop, options)
    if reply == "adaptive_text":
        return parse_adaptive(text, None, stop)
    source = _prepared(text, stop)
    if source.refused or not source.body or loops(source.body) or declines(source.body):
        return _failure(source)
    # The words themselves are what is judged: only what surrounds them is taken away.
    said, repairs, _ = without_reasoning(text)
    if "reasoning" in source.repairs and "reasoning" not in repairs:
        said, repairs = source.body, source.repairs
    return _success(source, repairs, text=said.strip())


def _folded(options: Mapping[str, str] | None) -> dict[str, str]:
    """Texts of options as they are compared, less those that two options share."""
    texts = {letter.upper(): folded(normalised(own)[0]) for letter, own in (options or {}).items()}
    shared = Counter(texts.values())
    return {letter: own for letter, own in texts.items() if own and shared[own] == 1}


def _checked(letters: str) -> str:
    upper = letters.upper()
    if not upper or len(set(upper)) != len(upper) or not upper.isalpha() or not upper.isascii():
        raise BenchError(f"option letters must be distinct and A to Z, not {letters!r}")
    return upper
