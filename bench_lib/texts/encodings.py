"""Texts in encodings that their files do not name, such as captions: a mark, UTF-8, else a guess.

The guess takes that of the named encodings in which the bytes make the likeliest text: the one that
needs the fewest bits, where a character needs minus the logarithm of its share in running text of a
language (`letters.json`: characters from the most frequent on; shares fall as in Zipf's law, or as
letters do). Letters of another script inside a word, capitals behind small letters, and characters
that no text holds cost more. No encoding is certain: who shows a text says how it was read.
"""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from bench_lib.errors import BenchError
from bench_lib.texts import Unreadable

SHOWN = {
    "gb18030": "gb18030 (GBK)",
    "cp950": "cp950 (Big5)",
    "cp932": "cp932 (Shift-JIS)",
    "cp949": "cp949 (EUC-KR)",
}
EAST = {
    "gb18030": (("Chinese, simplified", 0.75),),
    "cp950": (("Chinese, traditional", 0.75),),
    "cp932": (
        ("Japanese, hiragana", 0.45), ("Japanese, katakana", 0.15), ("Japanese, kanji", 0.2),
    ),
    "cp949": (("Korean", 0.8),),
}  # fmt: skip
"""Parts of a language's characters, with the share of a text that they make up."""
EAST["euc_jp"] = EAST["cp932"]
COMMON = {
    "gb18030": ("gb2312", 0xB0, 0xD7),
    "cp950": ("big5", 0xA4, 0xC6),
    "cp932": ("euc_jp", 0xB0, 0xCF),
    "euc_jp": ("euc_jp", 0xB0, 0xCF),
    "cp949": ("euc_kr", 0xB0, 0xC8),
}
"""The standard's first level, made of common characters: its lead bytes in an encoding."""
WEST = {
    "cp1252": (
        "English", "German", "French", "Spanish", "Italian", "Portuguese", "Catalan", "Dutch",
        "Swedish", "Danish", "Norwegian", "Icelandic", "Finnish",
    ),
    "cp1250": ("Polish", "Czech", "Slovak", "Hungarian", "Romanian", "Croatian"),
    "cp1254": ("Turkish",),
    "cp1251": ("Russian", "Ukrainian", "Bulgarian"),
    "koi8_r": ("Russian",),
    "cp1253": ("Greek",),
    "cp1255": ("Hebrew",),
    "cp1256": ("Arabic", "Persian"),
    "cp874": ("Thai",),
}  # fmt: skip
LATIN = ("cp1252", "cp1250", "cp1254")
RARITY = {
    "cp1252": 0, "gb18030": 0, "cp950": 1, "cp932": 1, "cp949": 1, "cp1250": 2, "cp1251": 3,
    "cp1253": 4, "cp1255": 4, "cp1256": 4, "cp874": 4, "euc_jp": 3, "cp1254": 3, "koi8_r": 6,
}  # fmt: skip
"""Bits that an encoding costs before any text: the less usual, the more."""
SHARES = (
    12, 9, 8, 7.5, 7, 6.5, 6, 5.5, 4.5, 4, 3.5, 3, 2.8, 2.5, 2.2, 2, 1.8, 1.5, 1.2, 1, 0.8, 0.6,
    0.4, 0.3, 0.2, 0.1,
)  # fmt: skip
"""Percent of a text that its most frequent letters make up, as in most alphabets."""
MARKS = frozenset("，。、！？：；“”‘’（）《》〈〉「」『』【】…—～·・　％«»–„¿¡€°♪")
NEVER = 30.0
"""Bits of what no text holds: bytes that are none of an encoding, control, private characters."""
NEAR = 4.0
"""An encoding that needs at most so many bits more is nearly as likely."""
LOOKED_AT = 4000
"""Bytes, of lines that are not plain ASCII, by which a file is judged."""


@dataclass(frozen=True)
class Text:
    """A text, and how it was read; `lost` counts what is damaged in it (U+FFFD)."""

    text: str
    encoding: str
    how: str

    @property
    def lost(self) -> int:
        """Characters that could not be read, here or before the file was written."""
        return self.text.count("\ufffd")

    def __str__(self) -> str:
        return f"{SHOWN.get(self.encoding, self.encoding)}{self.how and f', {self.how}'}"


def known(name: str) -> str:
    """A text encoding's name as Python has it; BenchError for one that it does not know."""
    try:
        "".encode(name)
        return codecs.lookup(name).name
    except (LookupError, ValueError):
        raise BenchError(f"encoding {name!r} is not known; give one such as gb18030") from None


def read(path: Path, encoding: str = "", otherwise: str = "") -> Text:
    """The text of a file: in `encoding`, else by its mark, in UTF-8, in `otherwise`, or by a guess.

    Raises Unreadable where it is no text.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror})") from None
    if encoding:
        return _text(data, encoding, "as given")
    marked = json.detect_encoding(data[:4] if data[:1] in b"\xef\xff\xfe\0" else b"")
    if marked in ("utf-8-sig", "utf-16", "utf-32"):
        return _text(data, marked, "by its mark")
    if data.count(0) > len(data) // 20:
        high, low = data[::2].count(0), data[1::2].count(0)
        if 4 * min(high, low) > max(high, low):
            raise Unreadable("is no text: it holds zero bytes")
        return _text(data, "utf-16-le" if low > high else "utf-16-be", "by its zeros")
    data = data.replace(b"\0", b"")
    try:
        return Text(data.decode("utf-8"), "utf-8", "")
    except UnicodeDecodeError:
        pass
    if otherwise:
        return _text(data, otherwise, "as given")
    (best, least), (second, more), *_ = likeliest(data)
    near = f", {SHOWN.get(second, second)} is nearly as likely" if more - least <= NEAR else ""
    return _text(data, best, f"guessed{near}")


def _text(data: bytes, encoding: str, how: str) -> Text:
    return Text(data.decode(encoding, "replace").removeprefix("\ufeff"), encoding, how)


def likeliest(data: bytes) -> list[tuple[str, float]]:
    """The named encodings with the bits that they need for a text, the likeliest first."""
    lines = b"\n".join(line for line in data.split(b"\n") if not line.isascii())[:LOOKED_AT]
    found = [("utf-8", _bits(lines.decode("utf-8", "replace"), _utf8, 5.0))]
    for encoding in (*EAST, *WEST):
        text = lines.decode(encoding, "replace")
        plain = 0.0 if encoding in LATIN else 5.0
        needs = min(_bits(text, cost, plain, encoding in WEST) for cost in _costs(encoding))
        found.append((encoding, needs + RARITY[encoding]))
    return sorted(found, key=lambda one: one[1])


Cost = Callable[[str], float]


def _bits(text: str, cost: Cost, plain: float, words: bool = False) -> float:
    """Bits of a text; an ASCII letter needs `plain` ones, or its `cost` where that is 0.

    `words`: a word has letters of one script, and its capitals in front.
    """
    total, before = 0.0, " "
    for c in text:
        if c.isascii():
            total += (plain or cost(c)) if c.isalpha() else 0.0
        else:
            total += cost(c)
            if words and c.isupper() and before.islower():
                total += 6.0
        if words and plain and c.isascii() != before.isascii() and _spells(c) and _spells(before):
            total += 8.0
        before = c
    return total


def _spells(c: str) -> bool:
    """Whether a character can stand inside a word; vowel signs do, and are no letters."""
    return c.isalpha() or not (c.isascii() or c.isspace() or c in MARKS)


@cache
def _costs(encoding: str) -> tuple[Cost, ...]:
    """What a character costs in each language of an encoding."""
    if encoding in EAST:
        return (lru_cache(None)(_east(encoding)),)
    letters = _frequent()["letters"]
    return tuple(lru_cache(None)(_west(letters[language])) for language in WEST[encoding])


def _east(encoding: str) -> Cost:
    table: dict[str, float] = {}
    for part, mass in EAST[encoding]:
        order = _frequent()["characters"][part]
        whole = sum(1 / (rank + 5) for rank in range(len(order)))
        for rank, c in enumerate(order):
            table[c] = -math.log2(mass / (rank + 5) / whole)
    base, first, last = COMMON[encoding]

    def cost(c: str) -> float:
        if c in table or c in MARKS:
            return table.get(c, 6.0)
        if _never(c):
            return NEVER
        lead = c.encode(base, "ignore")[:1]
        return 12.7 if lead and first <= lead[0] <= last else 19.0

    return cost


def _west(order: str) -> Cost:
    table = {c: -math.log2(share / 100) for c, share in zip(order, SHARES, strict=False)}
    table |= dict.fromkeys(order[len(SHARES) :], 10.0)

    def cost(c: str) -> float:
        small = c.lower()
        if small in table:
            return table[small] + (c != small)
        if c in MARKS:
            return 7.0
        return NEVER if _never(c) else 12.0 + (not c.isalpha())

    return cost


def _utf8(c: str) -> float:
    """Bytes that follow UTF-8's rules by chance are rare."""
    return NEVER if _never(c) else 5.0


def _never(c: str) -> bool:
    return c == "\ufffd" or "\x80" <= c <= "\x9f" or "\ue000" <= c <= "\uf8ff"


@cache
def _frequent() -> dict[str, dict[str, str]]:
    path = Path(__file__).parent / "letters.json"
    return json.loads(path.read_text(encoding="utf-8"))
