"""Sentences of a reply as strings of roles, one character per word or phrase (see `cues`).

Beside the roles of `cues` a sentence holds `L` (a letter that stands alone), `w` (a small letter
that is also a word), `V` and `Z` (INTERVENE, SILENT), `y` and `z` (the same not in capitals), `,`
`:` `-` `(` `)` and `p` for other signs. Every kind of quote is passed over; every kind of dash,
bracket and apostrophe is read as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from bench_lib.replies import cues

SIGNS = str.maketrans({
    **dict.fromkeys("’‘‛ʼʹ′´ʻʽˈ՚׳ꞌ‵`", "'"),
    **dict.fromkeys("“”„‟″«»‹›「」『』〝〞《》〈〉¿¡", '"'),
    **dict.fromkeys("【〔〖⟨⟦[{", "("),
    **dict.fromkeys("】〕〗⟩⟧]}", ")"),
    **dict.fromkeys("‐‑⁃−", "-"),
    **dict.fromkeys("‒–―⸺⸻─━", "—"),
    **dict.fromkeys("∶ː꞉", ":"),
    **dict.fromkeys("、،､﹑", ","),
    **dict.fromkeys("。।؛;", "."),
    **dict.fromkeys("⁄∕⧸", "/"),
    **dict.fromkeys("|¦", "—"),
    **dict.fromkeys("·・•‧", "&"),
    **dict.fromkeys("⇒➜➡⟶", "→"),
    "⋯": "…",
    "؟": "?",
})  # fmt: skip
_LATIN = r"0-9A-Za-zªµºÀ-ÖØ-öø-ɏͰ-ԯ԰-֏Ⴀ-ჿḀ-῿\u0300-\u036f\u0600-\u06ef\u0900-\u097f_"
_RUN = (
    r"\u0e00-\u0e7f\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7a3"
)
_TOKEN = re.compile(
    r"(?P<line>\n\s{0,8})"
    r"|(?P<closed>\(\s?[\"']?\s?[A-Za-z]\s?[\"']?\s?\)|<[A-Z]>(?=\s*(?:$|[.,;\n])))"
    r"|(?P<trail>\.{2,}|…)"
    r"|(?P<sign>[-=]>|→|!=|={1,3})"
    r"|(?P<elided>(?:[qQ]u|[ldncjsmtLDNCJSMT])'(?=[^\W\d_]{2}))"
    rf"|(?P<word>[{_LATIN}]+(?:'[{_LATIN}]+)*)"
    rf"|(?P<run>[{_RUN}]+)"
    r"|(?P<mark>[^\s\"'])"
)
ENDS = ".?~"
"""How a sentence can end beside the end of a line: said, asked, left trailing."""
_OPEN_END = re.compile(r"(?:[:c]|^[fnrok]*n)$")
_WRAPPED = re.compile(r"[IOT,\-ivukf]$")
_SHORT = re.compile(r"\b([eE])\. ?([gG])\.|\b([iI])\. ?([eE])\.|\b([zZ])\. ?([bB])\.")
_DECISION = {"INTERVENE": "V", "SILENT": "Z", "intervene": "y", "silent": "z"}
_WORDY = frozenset("aeiouy")


@dataclass(frozen=True)
class Sentence:
    """Roles, where each stands in the text, how it ends, and its place among the lines.

    `line` is the number of the line it begins in, `first` and `last` whether it begins and ends it.
    """

    roles: str
    spans: tuple[tuple[int, int], ...]
    end: str
    line: int
    first: bool
    last: bool


@cache
def _lexicon() -> tuple[dict[str, list[tuple[tuple[str, ...], str]]], frozenset[str], int]:
    """Phrases by their first word, the longest first; the pieces of scripts without spaces."""
    roles: dict[tuple[str, ...], str] = {}
    pieces: set[str] = set()

    def add(phrase: str, role: str) -> None:
        words: list[str] = [phrase] if phrase.endswith("'") else []
        for match in () if words else _TOKEN.finditer(phrase):
            words.append(match[0].lower())
            pieces.update([match[0]] * (match.lastgroup == "run"))
        roles[tuple(words)] = role

    for role, phrases in cues.listed().items():
        for phrase in phrases:
            add(phrase, role)
    first: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for words, role in sorted(roles.items(), key=lambda item: -len(item[0])):
        first.setdefault(words[0], []).append((words, role))
    return first, frozenset(pieces), max(map(len, pieces))


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def _tokens(text: str) -> Iterator[_Token]:
    _, pieces, longest = _lexicon()
    for match in _TOKEN.finditer(text.translate(SIGNS)):
        kind, start, end = str(match.lastgroup), match.start(), match.end()
        if kind != "run":
            yield _Token(kind, match[0], start, end)
            continue
        unknown = start
        while start < end:
            sizes = range(min(longest, end - start), 0, -1)
            size = next((n for n in sizes if text[start : start + n] in pieces), 0)
            if size and unknown < start:
                yield _Token("run", text[unknown:start], unknown, start)
            if size:
                yield _Token("run", text[start : start + size], start, start + size)
                unknown = start + size
            start += size or 1
        if unknown < end:
            yield _Token("run", text[unknown:end], unknown, end)


def _roles(text: str) -> Iterator[tuple[str, int, int]]:
    r"""Role, start and end of each word, phrase and sign; `\n` and `\f` end a line, a paragraph."""
    first, _, _ = _lexicon()
    tokens = list(_tokens(text))
    words = [token.text.lower() for token in tokens]
    at = 0
    while at < len(tokens):
        token = tokens[at]
        known = first.get(words[at], ())
        found = next((p for p in known if tuple(words[at : at + len(p[0])]) == p[0]), None)
        size, role = (len(found[0]), found[1]) if found else (1, _alone(text, token))
        yield role, token.start, tokens[at + size - 1].end
        at += size


def _alone(text: str, token: _Token) -> str:
    """The role of what is in no list."""
    kind, word = token.kind, token.text
    after = text[token.end : token.end + 2]
    if kind in {"line", "trail"}:
        return "~" if kind == "trail" else "\f" if word.count("\n") > 1 else "\n"
    if kind == "closed":
        return "L"
    if kind == "word":
        if len(word) == 1 and word.isascii() and word.isalpha():
            joined = after[:1] in {"-", "‐", "‑"} and after[1:].isalnum()
            return "x" if joined else "w" if word in _WORDY else "L"
        if word.lower().endswith("n't"):
            return "N"
        return _DECISION.get(word) or _DECISION.get(word.lower(), cues.OTHER)
    if kind == "mark":
        if word == ".":
            return _stop(text, token.end)
        if word == "!":
            return "N" if after[:1].isalnum() else "."
        inside = text[token.start - 1 : token.start].isalnum() and after[:1].isalnum()
        if word == "~":
            return "N" if after[:1].isalpha() and not inside else "p"
        if word in ":-":
            return word if not inside or (word == ":" and not after[:1].isdigit()) else "x"
        return {MARK: "M", "—": "-", ",": ",", "(": "(", ")": ")", "?": "?", "^": "N"}.get(
            word, "p"
        )
    return cues.OTHER


def _stop(text: str, end: int) -> str:
    """What a full stop does: end a sentence, part two letters, or belong to a number."""
    after = text[end : end + 2]
    if not after[:1].isalnum():
        return "."
    if after[:1].isdigit():
        return cues.OTHER
    return "." if after[1:].isalnum() or not after[:1].isascii() else "O"


def sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of a text. A line that ends in a colon, a verb or a negation goes on."""
    text = _SHORT.sub(lambda short: re.sub(r"\W", "", short[0]).ljust(len(short[0])), text)
    found: list[Sentence] = []
    roles, spans = "", []  # type: ignore[var-annotated]
    line, begun, first, broken = 0, 0, True, ""

    def close(end: str, last: bool) -> None:
        nonlocal roles, first
        if roles or end in ("?", "~"):
            found.append(Sentence(roles, tuple(spans), end, begun, first, last))
        roles, first = "", last
        spans.clear()

    for role, start, stop in _roles(text):
        if role in "\n\f":
            broken = role
            line += 1
            continue
        if broken:
            goes_on = bool(_OPEN_END.search(roles[-12:])) or (
                broken == "\n"
                and (
                    bool(_WRAPPED.search(roles))
                    or (roles.endswith("N") and role in "Lw")
                    or _continues(role, text[start])
                )
            )
            if not (roles and goes_on):
                close("\n", True)
                first = True
            broken = ""
        if not roles:
            begun = line
        if role in ENDS:
            rest = text[stop : stop + 40].lstrip(" \t\"'”’»)」』")
            close(role, not rest or rest.startswith("\n"))
            continue
        roles += role
        spans += [(start, stop)] * len(role)
    close("", True)
    return tuple(found)


def _continues(role: str, character: str) -> bool:
    """Whether a line begins as if in the middle of a sentence."""
    return role in "cNWOIT" and not character.isupper()


SHORT = 40
"""Roles of a sentence that does nothing but take back what came before it."""
_TAKES_BACK = re.compile(
    r"[Tfk,]*(?:j|S(?=[,:\-NSLVZWfacijks]|$)|[NW](?=,|$)|[acifnorkTsuU,]*[NW][acifnorkjsuU,]*$)"
)


def takes_back(roles: str) -> bool:
    """Whether a sentence says that what came before it is wrong; a long one says more than that."""
    return bool(_TAKES_BACK.match(roles if len(roles) <= SHORT else roles[:SHORT] + cues.OTHER))


MARK = "\ue000"
"""Stands in a text for a span of it, a box or an object, whose surroundings are looked at."""
AROUND = 240
_EXAMPLE = re.compile(
    r"(?:\bexample\b[^.\n]{0,20}|\binstance|\be\.g\.?|\bsuch as|例如|比如|例えば|예를 들어|ví dụ"
    r"|ejemplo|exemple|beispiel|z\. ?B\.)\W*$",
    re.IGNORECASE,
)
_GOVERNED = re.compile(r"[NW](?:[^,TkL]*[nvURicxsr])?[^,TkL]{0,3}$")
_THEN_DENIED = re.compile(r"[,:)\-]*(?:[cfaiuU]*[NW]|I|S)")


def affirmed(text: str, start: int, end: int) -> bool:
    """Whether the words around a span let it stand: no denial, condition, question or example."""
    before = text[max(0, start - AROUND) : start].rpartition("}")[2]
    before = re.sub(r"```\w*\s*$", "", before)
    if _EXAMPLE.search(before):
        return False
    found = sentences(before + MARK + text[end : end + AROUND // 2])
    for number, sentence in enumerate(found):
        if (at := sentence.roles.find("M")) >= 0:
            left, right = sentence.roles[:at], sentence.roles[at + 1 :]
            denied = _GOVERNED.search(left) or _THEN_DENIED.match(right)
            if denied or any(takes_back(one.roles) for one in found[number + 1 :]):
                return False
            return "I" not in left and not (sentence.end == "?" and not right)
    return True
