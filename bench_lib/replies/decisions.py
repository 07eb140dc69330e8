"""The decision words INTERVENE and SILENT in objects and in prose; synonyms do not count.

Prose decides by clauses: a clause with one of the words and else only words with which one decides
states that decision. A denied word ("no need to INTERVENE"), a supposed one ("if it boils,
INTERVENE") and one among other words state nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bench_lib.replies.clauses import Sentence, sentences, takes_back
from bench_lib.replies.clean import ends, without_markup
from bench_lib.replies.letters import NONE, SEVERAL, TEMPLATE
from bench_lib.replies.objects import Pairs
from bench_lib.schema import Decision

_WORD = r"(?:INTERVENE|SILENT)"
_ANY_CASE = re.compile(rf"(?<![A-Za-z]){_WORD}(?![A-Za-z])", re.IGNORECASE)
_CUE = re.compile(
    r"(?:\bdecision\b|决定|決定|判断|decisi[oó]n|décision|entscheidung)\s{0,4}(?:is|es|est|ist|是|为|は|:|=|->|→|-){0,3}\s{0,4}"
    rf"[\"'“(\[<]{{0,3}}\s{{0,4}}{_WORD}(?![A-Za-z])",
    re.IGNORECASE,
)
_TAGGED = re.compile(rf"<\s?({_WORD})\s?>")
_ONLY = re.compile(r"(?:\W|INTERVENE|SILENT)*")
_REASON = re.compile(r"\breason\W{0,3}[:=]\W{0,8}", re.IGNORECASE)
_TEMPLATE = re.compile(
    r"^\W*(?:INTERVENE\s*[|/]\s*SILENT|SILENT\s*[|/]\s*INTERVENE)\W*$", re.IGNORECASE
)
_LEAD = re.compile(rf"^\W*{_WORD}\b\W*", re.IGNORECASE)
_KEYS = re.compile(
    r"decision|action|status|mode|state|choice|answer|output|result|respon[sd]|reply|verdict|label"
    r"|judge?ment|call|final|type|intervention|behaviou?r|决|决策|判断|动作",
    re.IGNORECASE,
)
_OTHER_KEYS = re.compile(
    r"not|no_|previous|prior|last|reject|wrong|alternative|other|example|option|against|avoid|instead"
    r"|if|else|default|expected|allowed|opposite|false|unless|possible|considered|first|initial",
    re.IGNORECASE,
)
"""Keys whose whole value may be the decision, and what in a key says that it is not."""
SAFE = "nocivrfkjs:"
_OPEN = str.maketrans("LwtU", "xxIx")
RIGHT = "ncivrfjs"
"""Roles that may stand before the word, and after it."""
WINDOW = 80
MOST_WORDS = 40
"""Decision words in one sentence; with more it is a loop."""
_ASKS = frozenset(("is", "should", "shall", "must", "will", "do", "ist", "soll", "sollte", "muss",
                   "were", "had", "am"))  # fmt: skip
_NOT_YET = frozenset(("not yet", "not now"))
_GOES_ON = frozenset(("to", "and", "with", "by", "for"))
_FREE = re.compile(r"[NWIDQRSVZyzu]")
_DENIED_BEFORE = re.compile(r"[NW][fonvcrasi:x]*$")
_DENIED_AFTER = re.compile(r"[cfasiu]*(?:W|N(?![fscaO]*[VZyz]))|:?[cfas]*[NW][cfnrsk]*$")
_THAN_OTHER = re.compile(r"[,(]?[TO]?r?N[fscaO]*[VZyz]")


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
    value = unicodedata.normalize("NFKC", value[:2_000])
    if _TEMPLATE.match(value):
        return Reading(None, TEMPLATE)
    words = {word.upper() for word in _ANY_CASE.findall(value)}
    if len(words) > 1:
        return Reading(None, SEVERAL)
    if not words:
        return Reading(None, NONE)
    name = "case" if value.upper() in words else "value"
    found = of_prose(_ANY_CASE.sub(lambda word: word[0].upper(), value))
    return Reading(found.decision, found.why, (name,) if found.decision else ())


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


Stance = Literal["cued", "bare", "denied", "asked", "open"]


@dataclass(frozen=True)
class _Mention:
    """A decision word and its stance: a clause states it (`cued`, `bare`), or what else it is."""

    word: str
    stance: Stance
    at: int
    number: int


def of_prose(text: str) -> Reading:
    """The decision that the clauses of prose state, and none where two words are left standing."""
    text = _TAGGED.sub(r" \1 ", without_markup(ends(text)))
    if _TEMPLATE.match(text):
        return Reading(None, TEMPLATE)
    found = sentences(text)
    said = list(_mentions(text, found))
    stated = [one for one in said if one.stance in ("cued", "bare")]
    words = {one.word for one in stated}
    if len(words) != 1:
        several = words or {one.word for one in said if one.stance != "denied"} == {"V", "Z"}
        return Reading(None, SEVERAL if several else NONE)
    first, last = stated[0], stated[-1]
    bare = not any(one.stance == "cued" for one in stated)
    against = [
        one
        for one in said
        if (one.stance == "open" and one.word != first.word and (bare or one.at > first.at))
        or (one.stance == "denied" and one.word == first.word and one.at > first.at)
    ]
    later = found[last.number + 1 :]
    taken = any(takes_back(one.roles.translate(_OPEN)) for one in later)
    if against or taken:
        return Reading(None, SEVERAL)
    how, rest = _beside(text, first)
    return Reading("INTERVENE" if first.word == "V" else "SILENT", "", (how,), rest)


def _beside(text: str, first: _Mention) -> tuple[str, str]:
    """How the decision was said, and the text without it."""
    lead = _LEAD.match(text)
    how, rest = "declared", text
    if _CUE.search(text):
        rest = _CUE.sub("", text)
    elif lead and first.at < lead.end():
        how, rest = "lead", text[lead.end() :]
    rest = rest.lstrip(" \n\t.:;,-–—").strip("\"'{} \n\t")
    return how, "" if _ONLY.fullmatch(rest) else rest


def _mentions(text: str, found: Sequence[Sentence]) -> Iterator[_Mention]:
    """Decision words in order, without adjectives like `silent`."""
    for number, sentence in enumerate(found):
        roles = sentence.roles.translate(_OPEN)
        places = [at for at, role in enumerate(roles) if role in "VZyz"]
        supposes = roles.find("I")
        for at in places if len(places) <= MOST_WORDS else ():
            clause = _Clause(text, found, number, roles, at)
            stance: Stance = clause.stance(len(roles) if supposes < 0 else supposes)
            if stance == "open" and (roles[at] in "yz" or "B" in roles[:at]):
                continue
            if sentence.end == "?":
                stance = "asked"
            yield _Mention(
                roles[at].upper().replace("Y", "V"), stance, sentence.spans[at][0], number
            )


@dataclass(frozen=True)
class _Clause:
    """The clause around a decision word."""

    text: str
    found: Sequence[Sentence]
    number: int
    roles: str
    at: int

    def word(self, at: int) -> str:
        return self.text[slice(*self.found[self.number].spans[at])]

    def stance(self, supposes: int) -> Stance:
        """What the clause does with the word; `supposes` is where the sentence has a condition."""
        roles, at = self.roles, self.at
        before, after = roles[max(0, at - WINDOW) : at], roles[at + 1 : at + WINDOW]
        if _DENIED_BEFORE.search(before) or _DENIED_AFTER.match(after):
            return "denied"
        asks = self.word(0).lower() in _ASKS and roles[0] in "csx"
        begin, sign = self.begin()
        if supposes < at or asks or not sign:
            return "open"
        earlier, left = before[: len(before) - (at - begin)], roles[begin:at]
        if sign not in "kT^" and re.search("[RDQ]", earlier):
            return "open"
        if sign in ":-(," and re.search("[NW]", earlier):
            return "open"
        stop = at + 1
        while stop < len(roles) and roles[stop] in RIGHT + roles[at] and not self.goes_on(stop):
            stop += 1
        if not self.stands(stop):
            return "open"
        cued = bool(re.search("[nvisk]", left) or re.search("[rn]", roles[at + 1 : stop]))
        if roles[at] in "yz":
            alone = self.number == at == 0 and stop == 1 and roles[1:2] in {"", ":", ",", "-"}
            return "cued" if "n" in left or alone else "open"
        if cued or sign in "kT" or (self.number == 0 and begin == 0):
            return "cued"
        return "bare" if sign == "^" else "open"

    def begin(self) -> tuple[int, str]:
        """Where the clause begins and after what; an empty sign where it holds other words."""
        roles, begin = self.roles, self.at
        while begin and roles[begin - 1] in SAFE + roles[self.at]:
            begin -= 1
        if not roles[:begin].strip(SAFE + ",(-"):
            return begin, "k" if "k" in roles[: self.at] else "^"
        turn = max(roles.rfind("k", begin, self.at), roles.rfind(":", begin, self.at))
        if turn >= 0 and roles[turn] == "k":
            return turn, "k"
        before = roles[begin - 1]
        if before in ",-()TO":
            return begin, "k" if roles[max(0, begin - 2) : begin] == "k," else before
        return (turn + 1, ":") if turn >= 0 else (begin, "")

    def goes_on(self, at: int) -> bool:
        """Whether a word leads over to what is done, as in `INTERVENE to warn of the step`."""
        return self.word(at).lower() in _GOES_ON

    def stands(self, stop: int) -> bool:
        """Whether what follows leaves the word standing: nothing, a reason, or what is done."""
        tail = self.roles[stop : stop + WINDOW]
        if not tail or tail[0] in "Bk" or _THAN_OTHER.match(tail):
            return True
        if tail[0] in ":-,()":
            rest = tail.strip(",:-() ")
            if self.roles[self.at] == "Z" and rest == "N" and self.word(stop + 1) in _NOT_YET:
                return True
            if rest[:1] in {"I", "D", "S", "V", "Z"} or re.search("[,(-]I", tail):
                return False
            if rest == "x" and self.word(len(self.roles) - 1) == "0":
                return False
            if re.fullmatch("[^BVZ]{0,5}R|R[^B]{0,3}", rest):
                return False
            if rest[:1] == "T":
                return not _FREE.search(rest)
            return not re.match("[acifsr]*[NW][cfnrsk]*$|O[fs]*[NVZ]", rest)
        if tail[0] == "T":
            return not _FREE.search(tail)
        if self.goes_on(stop):
            return not _FREE.search(re.split("[,B]", tail)[0])
        begins = self.word(stop)[0].isupper() and tail[0] not in "NWIDQRSTOcVZ"
        return begins and not self.roles[:stop].strip("VZyz")


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
    if not all(_KEYS.search(name) and not _OTHER_KEYS.search(name) for name, _ in named):
        return Reading(None, NONE), []
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
