"""What the sentences of a reply say of option letters: stated, denied, listed, or mentioned."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from bench_lib.replies import cues
from bench_lib.replies.clauses import Sentence, takes_back
from bench_lib.replies.places import SAFE, WORDS, Kind, Place

MOST_LETTERS = 40
"""Letters in one sentence; with more it is a list or a loop."""
_ARTICLE = re.compile("w(?=[noxWNrfq])|(?<=c)w(?=L)")
_LIST = re.compile(rf"[{SAFE}:,()\-Dgq]*[Lw](?:[{SAFE}:,()\-DO]*[Lw])+[{SAFE}:,()\-gq]*")
_ADDED = re.compile("[OD][Dfok]*L")
_MARK = re.compile("[of:]*L")
"""A sentence that lists letters; that adds one to the last; that is the mark of an option."""


@dataclass(frozen=True)
class Statement:
    """A letter that a clause states. `at` is its place in the text, `number` that of its sentence.

    A `weak` one ends the text where a cut word may go on.
    """

    letter: str
    kind: Kind
    at: int
    number: int
    final: bool = False
    weak: bool = False

    @classmethod
    def of(cls, place: Place, kind: Kind) -> Statement:
        """The statement that a place makes."""
        start, end = place.span
        opening = place.sentence.spans[max(0, place.at - 8)][0]
        ends = place.at == len(place.roles) - 1 and not place.sentence.end
        return cls(
            place.letter,
            kind,
            start,
            place.number,
            final=bool(cues.FINAL.search(place.text[max(opening, start - 40) : start])),
            weak=ends and not place.text[end:].strip() and place.letter in "AEIOUY",
        )


@dataclass
class Stated:
    """What all sentences say, in order; `retracts` are those that take back what came before."""

    statements: list[Statement] = field(default_factory=list)
    denied: list[Statement] = field(default_factory=list)
    mentioned: set[str] = field(default_factory=set)
    retracts: set[int] = field(default_factory=set)
    listed: bool = False


def read(text: str, found: Sequence[Sentence], options: Mapping[str, str]) -> Stated:
    """Everything that the sentences of a text state of letters; `options` are folded texts."""
    stated = Stated()
    for number, sentence in enumerate(found):
        roles = _simplified(text, sentence)
        if not _is_text(found, number) and takes_back(roles):
            stated.retracts.add(number)
        places = [
            Place(text, found, number, roles, at, options)
            for at, role in enumerate(roles)
            if role in "Lw"
        ]
        letters = {place.letter for place in places if place.role == "L"}
        stated.mentioned |= letters
        several = len({place.letter for place in places}) > 1
        if len(places) > MOST_LETTERS or (several and _LIST.fullmatch(roles)):
            stated.listed = True
            continue
        supposes, doubts = _first("I", roles), _first("[RDQ]", roles)
        for place in places:
            _add(stated, _once(place) if len(letters) == 1 else place, supposes, doubts)
    return stated


def _add(stated: Stated, place: Place, supposes: int, doubts: int) -> None:
    if place.denied():
        stated.denied.append(Statement.of(place, "letter"))
    elif place.sentence.end != "?":
        added = _ADDED.match(place.roles)
        adds = added is not None and added.end() - 1 == place.at
        kind = "loose" if adds else place.kind(supposes, doubts)
        if kind == "listed":
            stated.listed = True
        elif kind:
            stated.statements.append(Statement.of(place, kind))


def _first(role: str, roles: str) -> int:
    found = re.search(role, roles)
    return found.start() if found else len(roles)


def _once(place: Place) -> Place:
    """A place in a sentence of one letter, without the letter's repetitions, which add nothing."""
    before, after = place.roles[: place.at], place.roles[place.at + 1 :]
    return replace(place, roles=before.replace("L", "f") + place.role + after.replace("L", "f"))


def _is_text(found: Sequence[Sentence], number: int) -> bool:
    """Whether a sentence is what stands behind the mark of an option."""
    before = found[number - 1] if number else None
    return bool(before and before.first and not before.last and _MARK.fullmatch(before.roles))


def _simplified(text: str, sentence: Sentence) -> str:
    """Roles as far as letters go: an article before a noun, or a verb and a letter, is one."""
    roles = _ARTICLE.sub("f", sentence.roles.translate(WORDS))
    if roles[:2] in {"Ln", "Lo"}:
        (start, end), (after, _) = sentence.spans[:2]
        if text[start:end] in {"A", "O"} and end < after:  # the article of Portuguese
            return "f" + roles[1:]
    return roles
