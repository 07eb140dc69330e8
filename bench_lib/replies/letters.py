"""Option letters in prose: declared, boxed, or standing alone. Nothing here guesses.

A letter counts where a clause says that it is the answer and says nothing else, or where it is the
whole reply, the whole line or the mark of the first or last line. A letter that merely occurs does
not: "A man puts down the cup" names no option. A reply that is one option and how likely it is
("Probably B.", "B?") answers with it; what is only possible ("It could be B.") or asked in words
("Is it B?") is no answer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from bench_lib.replies.clauses import affirmed, sentences
from bench_lib.replies.clean import collapsed, ends, without_markup
from bench_lib.replies.places import folded
from bench_lib.replies.statements import Stated, Statement, read

SEVERAL = "several answers"
OUTSIDE = "names no offered option"
TEMPLATE = "repeats the reply template"
NONE = "no answer found"

NO_TEXTS: Mapping[str, str] = {}
_PLACEHOLDER = re.compile(r"^\W*[A-Za-z](?:\s*[|/]\s*[A-Za-z]){2,}\W*$|^\W*(?:<.*>|\.\.\.|…)\W*$")
_PLACEHOLDER_LETTER = re.compile(r"^<[A-Za-z]>$")
_BOX = re.compile(
    r"\\(?:boxed|fbox|framebox)\s?\{|<\|begin_of_box\|>|\[\[(?!\[)"
    r"|<(?:final_)?(?:answer|ans|choice|option|response|output|result)>",
    re.IGNORECASE,
)
LONGEST_BOX = 200
"""Characters; what is longer is no answer in a box."""
MOST_BOXES = 50
_BOX_END = {"<": re.compile(r"<\|end_of_box\|>|</\w{1,20}>"), "[": re.compile(r"\]\]")}
_LABEL = re.compile(
    r"\W*(?:the\s+)?(?:(?:final|correct)\s+)?(?:answer|option|response|respuesta|réponse|antwort"
    r"|đáp án|trả lời|答案|回答|정답|答え)(?:\s+is)?\s*:?\s*",
    re.IGNORECASE,
)
_GUESS = re.compile(r"\W*(?:(?:final )?answer\W*:)?\W*([A-Za-z])[^\w?]*\?\W*", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """One rung's finding: a letter, or the reason why the reply gives none."""

    letter: str | None
    why: str = ""
    repairs: tuple[str, ...] = ()


def _one(found: Iterable[str], letters: str, *repairs: str) -> Reading | None:
    listed = list(found)
    if len(set(listed)) != 1:
        return Reading(None, SEVERAL) if listed else None
    if listed[0] not in letters:
        return Reading(None, OUTSIDE)
    return Reading(listed[0], repairs=(*repairs, *(("repeated",) * (len(listed) > 1))))


def _boxes(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and content of boxes, the last first."""
    for match in [*_BOX.finditer(text)][: -MOST_BOXES - 1 : -1]:
        token, start = match[0], match.end()
        limit = min(len(text), start + LONGEST_BOX)
        if token.endswith("{"):
            depth, end = 1, start
            while end < limit and depth:
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
            yield match.start(), end, text[start : end - 1] if not depth else text[start:end]
        elif closing := _BOX_END[token[0]].search(text, start, limit):
            yield match.start(), closing.end(), text[start : closing.start()]
        elif limit == len(text):
            yield match.start(), limit, text[start:]


def boxed(text: str, letters: str, options: Mapping[str, str] = NO_TEXTS) -> Reading | None:
    r"""The last `\boxed{...}`, `<answer>...` or `[[...]]` that names an option and stands."""
    last: Reading | None = None
    for start, end, inner in _boxes(text):
        if len(inner) >= LONGEST_BOX or _PLACEHOLDER.match(inner):
            continue
        # A box inside a box is the same answer; reading it anew would double at each level.
        reading = of_value(_BOX.sub(" ", inner), letters, options)
        if affirmed(text, start, end):
            return Reading(reading.letter, reading.why, ("box",)) if reading.letter else reading
        last = last or Reading(None, NONE)
    return last


def stated(text: str, letters: str, options: Mapping[str, str], cut: bool) -> Reading | None:
    """What the clauses of prose state. Different letters count only if one is taken back."""
    found = sentences(text)
    said = read(text, found, options)
    said.statements = [one for one in said.statements if not (cut and one.weak)]
    by = {kind: [one for one in said.statements if one.kind == kind]
          for kind in ("declared", "letter", "sentence", "lead")}  # fmt: skip
    lines = by["letter"]
    if by["declared"] and len({one.letter for one in lines}) > 1:
        lines = []  # the options, one a line
    strong = sorted([*by["declared"], *lines], key=lambda one: one.at)
    if strong:
        return _strongest(strong, by["lead"], said, letters)
    if said.listed:
        return Reading(None, SEVERAL)
    if by["sentence"]:
        known = {one.letter for one in by["sentence"]}
        if said.mentioned - known - {one.letter for one in said.denied}:
            return Reading(None, SEVERAL)
        return _standing(by["sentence"], said, letters, "sentence")
    if by["lead"]:
        first, last = found[0].line, found[-1].line
        placed = [one for one in by["lead"] if found[one.number].line in (first, last)]
        if len({one.letter for one in by["lead"]}) > 1:
            return Reading(None, SEVERAL)
        return _standing(placed, said, letters, "lead") if placed else None
    return None


def _strongest(
    strong: list[Statement], leads: list[Statement], said: Stated, letters: str
) -> Reading | None:
    values = [one.letter for one in strong]
    repairs = "letter" if all(one.kind == "letter" for one in strong) else "declared"
    if len(set(values)) > 1:
        finals = {one.letter for one in strong if one.final}
        before = max(one.number for one in strong if one.letter != values[-1])
        revised = any(before < number <= strong[-1].number for number in said.retracts)
        if len(finals) == 1:
            strong = [one for one in strong if one.final]
        elif revised:
            strong = [one for one in strong if one.letter == values[-1]]
        else:
            return Reading(None, SEVERAL)
        reading = _standing(strong, said, letters, repairs)
        return reading and Reading(reading.letter, reading.why, (*reading.repairs, "revised"))
    others = ("sentence", "loose")
    beside = {one.letter for one in said.statements
              if one.kind in others and one.at > strong[0].at}  # fmt: skip
    if beside - set(values):
        return Reading(None, SEVERAL)
    marks = {one.letter for one in leads}
    if said.listed and repairs == "letter":
        return Reading(None, SEVERAL)
    if len(marks) == 1 and marks != set(values):
        return Reading(None, SEVERAL)
    return _standing(strong, said, letters, repairs)


def _standing(found: list[Statement], said: Stated, letters: str, how: str) -> Reading | None:
    """The one letter of these statements, where nothing after the last takes it back."""
    last = found[-1]
    taken = any(number > last.number for number in said.retracts)
    denied = any(one.letter == last.letter and one.at > last.at for one in said.denied)
    if taken or denied:
        return Reading(None, SEVERAL)
    return _one([one.letter for one in found], letters, how)


def alone(text: str, letters: str, options: Mapping[str, str]) -> Reading | None:
    """A reply that is nothing but a letter, a guessed letter, or the whole text of an option."""
    if match := re.fullmatch(r"\W*([A-Za-z])\W*", text):
        if not re.search("[≠¬!~❌✗✘✕✖×🚫⛔👎]|\\.\\.", text.rstrip("! \n")):
            return _one([match[1].upper()], letters, "letter")
        return None
    if re.fullmatch(rf"\W*[{letters}]{{2,}}\W*", text):
        return Reading(None, SEVERAL)
    if match := _GUESS.fullmatch(text):
        return _one([match[1].upper()], letters, "letter")
    return of_text(text, letters, options)


def of_text(text: str, letters: str, options: Mapping[str, str]) -> Reading | None:
    """The option whose whole text the reply is, with or without a label before it."""
    if not options or len(text) > 2_000:
        return None
    said = {folded(text), folded(_LABEL.sub("", text, count=1))} - {""}
    named = [letter for letter, own in options.items() if own in said]
    return _one(named, letters, "text")


def of_prose(
    text: str, letters: str, cut: bool = False, options: Mapping[str, str] = NO_TEXTS
) -> Reading | None:
    """The rungs for prose, in order; None when none of them says anything."""
    text = collapsed(ends(text))
    if reading := boxed(text, letters, options):
        return reading
    plain = without_markup(text)
    if _PLACEHOLDER.match(plain) and not _PLACEHOLDER_LETTER.match(plain):
        return Reading(None, TEMPLATE)
    return alone(plain, letters, options) or stated(plain, letters, options, cut)


def declares_other(text: str, letter: str) -> bool:
    """Whether prose declares another letter than this, as what is around an object may do."""
    plain = without_markup(ends(text))
    said = read(plain, sentences(plain), NO_TEXTS).statements
    return any(one.kind == "declared" and one.letter != letter for one in said)


def of_value(value: object, letters: str, options: Mapping[str, str] = NO_TEXTS) -> Reading:
    """The letter that a value of a JSON object or a box holds."""
    if isinstance(value, list):
        if len(value) != 1 or isinstance(value[0], list):
            return Reading(None, SEVERAL if len(value) > 1 else NONE)
        inner = of_value(value[0], letters, options)
        return Reading(inner.letter, inner.why, ("list", *inner.repairs))
    if not isinstance(value, str):
        return Reading(None, NONE)
    if value in letters and len(value) == 1:
        return Reading(value)
    plain = without_markup(unicodedata.normalize("NFKC", value[:2_000])).strip()
    if len(plain) == 1 and plain.upper() in letters:
        return Reading(plain.upper(), repairs=("case" if plain == value else "value",))
    if _PLACEHOLDER.match(plain) and not _PLACEHOLDER_LETTER.match(plain):
        return Reading(None, TEMPLATE)
    reading = of_prose(plain, letters, options=options) or _with_text(plain, letters)
    if reading is None:
        return Reading(None, NONE)
    return Reading(reading.letter, reading.why, ("value",) if reading.letter else ())


def _with_text(plain: str, letters: str) -> Reading | None:
    """A letter and plain words after it, as in `C green`; an `A` may be the article."""
    found = sentences(plain)
    if len(found) == 1 and found[0].end != "?" and re.fullmatch("L[xfrgw]+", found[0].roles):
        letter = plain[:1]
        return _one([letter], letters, "value") if letter in set(letters) - set("AIEOUY") else None
    return None
