"""Whether two names mean one entity: near spellings, and nothing that tells them apart.

Hyper-parameter (C.5, Memory Writer): `same_entity` 0.85. The ratio alone would fuse a black jacket
with a blue one, room 302 with 303 and the female host with the male one, so names that differ in a
number, a colour or a gender stay apart, as do people whose names differ in a word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher

from bench_lib.search.text_index import containment, tokens

COLOURS = frozenset(
    (
        *("red", "orange", "yellow", "green", "blue", "purple", "violet", "pink", "brown"),
        *("black", "white", "grey", "gray", "silver", "gold", "beige", "cyan", "magenta"),
        *("navy", "teal", "maroon"),
    )
)
_COLOUR_SIGNS = frozenset("红橙黄绿青蓝紫粉棕黑白灰银金")
_GENDERS = {
    **dict.fromkeys(("male", "man", "men", "boy", "boys", "gentleman", "husband", "father"), "m"),
    **dict.fromkeys(("female", "woman", "women", "girl", "girls", "lady", "wife", "mother"), "f"),
    "男": "m",
    "女": "f",
}
_ARTICLE = re.compile(r"^(?:the|a|an)\s+")


def normal(name: str) -> str:
    """A name without case, width, outer blanks and article."""
    plain = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
    return _ARTICLE.sub("", plain)


def marks(name: str) -> frozenset[str]:
    """Numbers, colours and genders in a name: what must agree."""
    plain = normal(name)
    words = set(re.findall(r"[^\W\d_]+", plain))
    found = {f"#{number}" for number in re.findall(r"\d+", plain)}
    found |= {w.replace("grey", "gray") for w in words & COLOURS}
    found |= {sign for sign in plain if sign in _COLOUR_SIGNS}
    found |= {_GENDERS[key] for key in (*words, *plain) if key in _GENDERS}
    return frozenset(found)


def likeness(one: str, other: str) -> float:
    """String similarity of two names in [0, 1]."""
    a, b = normal(one), normal(other)
    return 1.0 if a == b else SequenceMatcher(None, a, b, autojunk=False).ratio()


def distinct(one: str, other: str, kind: str) -> bool:
    """Whether something tells two names apart, however near their spelling is."""
    if marks(one) != marks(other):
        return True
    if kind not in ("person", "text"):
        return False
    a, b = set(tokens(normal(one))), set(tokens(normal(other)))
    return bool(a - b) and bool(b - a)


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
