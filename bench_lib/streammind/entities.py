"""Whether two names mean one entity: near spellings, and nothing that tells them apart.

Hyper-parameter (C.5, Memory Writer): `same_entity` 0.85. The ratio alone would fuse a black jacket
with a blue one, room 302 with 303, platform A with B and the female host with the male one, so
names stay apart that differ in a number, a letter, a side, a colour or a gender, or have another
word in the place of one; a word spelled a little differently is the same. Two that stay apart and
are spelled alike are related as possibly the same, so little is lost.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher

from bench_lib.search.text_index import containment, unspaced, words

COLOURS = frozenset(
    (
        *("red", "orange", "yellow", "green", "blue", "purple", "violet", "pink", "brown"),
        *("black", "white", "grey", "gray", "silver", "gold", "beige", "cyan", "magenta"),
        *("navy", "teal", "maroon"),
    )
)
_SIGNS = frozenset("红橙黄绿青蓝紫粉棕黑白灰银金左右上下前后東东南西北一二三四五六七八九十大小")
_GENDERS = {
    **dict.fromkeys(("male", "man", "men", "boy", "boys", "gentleman", "husband", "father"), "m"),
    **dict.fromkeys(("female", "woman", "women", "girl", "girls", "lady", "wife", "mother"), "f"),
    "男": "m",
    "女": "f",
}
_NUMBERS = {
    word: number
    for listed in (
        "one two three four five six seven eight nine ten eleven twelve",
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth",
        "I ii iii iv V vi vii viii ix X xi xii",  # one letter is a letter
    )
    for number, word in enumerate(listed.split(), 1)
}
_SIDES = frozenset(
    (
        *("left", "right", "upper", "lower", "top", "bottom", "front", "back", "rear"),
        *("north", "south", "east", "west", "inner", "outer"),
    )
)
SPELLED = 0.8
"""String similarity from which two words are spellings of one."""
SHORT = 4
"""Characters below which a word has one spelling."""
_ARTICLE = re.compile(r"^(?:(?:the|a|an)\s+|一[个個只位名条條张張把辆輛台件本块塊双])")


def normal(name: str) -> str:
    """A name without case, width, outer blanks and article."""
    plain = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
    return _ARTICLE.sub("", plain)


def marks(name: str) -> frozenset[str]:
    """Numbers, letters, sides, colours and genders in a name: what must agree."""
    plain = normal(name)
    listed = re.findall(r"(?<!['’])\b[^\W\d_]+", plain)
    known = set(listed)
    found = {f"#{number}" for number in re.findall(r"\d+", plain)}
    found |= {f"#{_NUMBERS[word]}" for word in known & set(_NUMBERS)}
    # "a" inside a name is an article.
    found |= {w for w in known if len(w) == 1 and w.isascii() and (w != "a" or listed[-1] == "a")}
    found |= {w.replace("grey", "gray") for w in known & COLOURS} | (known & _SIDES)
    found |= {sign for sign in plain if sign in _SIGNS}
    found |= {_GENDERS[key] for key in (*known, *plain) if key in _GENDERS}
    return frozenset(found)


def likeness(one: str, other: str) -> float:
    """String similarity of two names in [0, 1]."""
    a, b = normal(one), normal(other)
    return 1.0 if a == b else SequenceMatcher(None, a, b, autojunk=False).ratio()


def distinct(one: str, other: str, kind: str) -> bool:
    """Whether something tells two names apart, however near their spelling is."""
    if marks(one) != marks(other):
        return True
    a, b = normal(one).split(), normal(other).split()
    if len(a) == len(b) and not all(map(_spellings, a, b)):
        return True
    if kind not in ("person", "text"):
        return False
    known, theirs = set(words(normal(one))), set(words(normal(other)))
    return bool(known - theirs) and bool(theirs - known)


def _spellings(one: str, other: str) -> bool:
    """Whether two words are one; no sign of an unspaced script stands for another."""
    if one == other:
        return True
    if unspaced(one + other):
        alike = SequenceMatcher(None, one, other, autojunk=False)
        return all(tag != "replace" for tag, *_ in alike.get_opcodes())
    return min(len(one), len(other)) >= SHORT and likeness(one, other) >= SPELLED


def match(
    names: Iterable[str], known: Iterable[tuple[str, Iterable[str]]], kind: str, least: float
) -> tuple[str | None, list[str]]:
    """The entity that has one of the names, and others that may be the same.

    `known` are ids with all their names, of the same type. The best one from `least` on whose names
    nothing tells apart is the match; those near in spelling but told apart are only possibly same.
    """
    names = list(names)
    best: tuple[float, str] | None = None
    doubtful = []
    for key, theirs in known:
        scored = [(likeness(a, b), distinct(a, b, kind)) for a in names for b in theirs]
        sure = max((score for score, apart in scored if not apart), default=0.0)
        if sure >= least and (best is None or sure > best[0]):
            best = sure, key
        elif any(score >= least for score, _ in scored):
            doubtful.append(key)
    return (best[1] if best else None), doubtful


def relevance(query: str, texts: Iterable[str]) -> float:
    """How well a free text fits an entity's names and attributes, in [0, 1]."""
    texts = list(texts)
    near = max((likeness(query, text) for text in texts), default=0.0)
    return max(near, containment(query, " ".join(texts)))
