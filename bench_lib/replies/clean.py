"""What surrounds an answer and is not part of it: reasoning blocks, special tokens, markup."""

from __future__ import annotations

import html
import re
import unicodedata

import numpy as np

_NAMES = (
    r"(?:seed:)?think|thinking|thoughts?|reasoning|analysis|reflection|scratchpad|rationale|cot"
    r"|internal_monologue|(?:begin|end)_of_thought"
)
_TAG = re.compile(
    rf"<\|?\s{{0,3}}(?P<close>/|(?=end_))?\s{{0,3}}(?:{_NAMES})\b[^<>\n]{{0,40}}>"
    r"|\[\s{0,3}(?P<square>/)?\s{0,3}think(?:ing)?\s{0,3}\]"
    r"|◁\s{0,3}(?P<triangle>/)?\s{0,3}think(?:ing)?\s{0,3}▷",
    re.IGNORECASE,
)
_CHANNEL = re.compile(r"<\|channel\|>\s{0,3}(\w{1,20})[^<]{0,40}<\|message\|>")
_SPECIAL = re.compile(
    r"<\|(?!(?:begin|end)_of_box)[a-z_]{1,40}\|>|</?s>|<eos>|<end_of_turn>", re.IGNORECASE
)
_ENTITY = re.compile(r"&(?:[a-z]{2,6}|#\d{1,5}|#x[0-9a-f]{1,4});", re.IGNORECASE)
_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
                        "\ufe00-\ufe0f\ufeff]")  # fmt: skip
_MARKS = re.compile(r"([^\w\s\x00-\x7f]{64})[^\w\s\x00-\x7f]+")
_ACCENTS = re.compile("[\u00b4\u0384\u1fbd\u1fbf\u1ffd\u1ffe]")
_PHRASES = re.compile("[\ufdfa\ufdfb]")
_STRUCK = re.compile(
    r"~~[^~\n]{0,500}~~|<(del|strike)>[^<]{0,500}</\1>|.[\u0335-\u0338]", re.IGNORECASE
)
_TEXT = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathsf|rm|bf)\s?\{([^{}]*)\}")
_BREAK = re.compile(r"<br\s?/?>|</(?:p|div|li|h[1-6])>", re.IGNORECASE)
_HTML = re.compile(
    r"</?(?:[biupsaq]|h[1-6])>|</[BIUPSAQ]>"
    r"|</?(?i:em|strong|mark|code|span|div|li|ul|ol|font|center|small|pre|tt|blockquote)>"
)
_ROLE = re.compile(
    r"[\s\"'“(\[]{0,4}(?:assistant|ai|bot|model|(?:chat)?gpt|asistente|trợ lý"
    r"|助手|アシスタント|어시스턴트)"
    r"(?:[\])\"'”]?\s{0,3}[:：]|\s{0,3}\n)\s{0,8}",
    re.IGNORECASE,
)
_EMPHASIS = re.compile(r"(?<![A-Za-z0-9])[*_]+|[*_]+(?![A-Za-z0-9])|`+|\$+|\\[()\[\]]")
_LINE_START = re.compile(r"^[ \t]*(?:#{1,6}|>+|[-•+]|\d{1,2}[.)])[ \t]+", re.MULTILINE)


LONGEST = 10_000
"""Characters of prose that are read at either end of a reply."""


def normalised(text: str) -> tuple[str, tuple[str, ...]]:
    """Compatibility-normalised text (full-width letters become plain) and what that repaired."""
    repairs = []
    if "&quot;" in text or "&lt;" in text:
        text, before = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text), text
        if text != before:
            repairs.append("escapes")
    # Normalising sorts runs of combining marks, in quadratic time, spells out whole phrases, and
    # makes a blank and a mark of some apostrophes.
    short = _ACCENTS.sub("'", _PHRASES.sub(" ", _MARKS.sub(r"\1", text)))
    plain = _INVISIBLE.sub("", unicodedata.normalize("NFKC", short))
    if len(plain) > 2 * len(text) + 100:  # signs that stand for whole sentences
        plain = text
    if plain != text:
        repairs.append("unicode")
    return plain, tuple(repairs)


def without_reasoning(text: str) -> tuple[str, tuple[str, ...], bool]:
    """The text outside reasoning blocks, what was cut out, and whether a block never closed.

    A closing tag alone ends a block that the prompt had opened, so all before it is reasoning. An
    opening tag that never closes leaves only what came before it.
    """
    channels = list(_CHANNEL.finditer(text))
    if channels:
        last = channels[-1]
        final = last[1].lower() == "final"
        return _SPECIAL.sub(" ", text[last.end() :] if final else ""), ("reasoning",), not final
    kept: list[str] = []
    start, inside, found = 0, False, False
    for tag in _TAG.finditer(text):
        found = True
        closes = tag["close"] is not None or bool(tag["square"] or tag["triangle"])
        if closes:
            if not inside:
                kept = []
            inside, start = False, tag.end()
        elif not inside:
            kept.append(text[start : tag.start()] + "\n")
            inside = True
    if not inside:
        kept.append(text[start:])
    plain, tokens = _SPECIAL.subn(" ", "".join(kept))
    return plain, (*(("reasoning",) * found), *(("tokens",) * (tokens > 0))), inside


def ends(text: str) -> str:
    """A text of which only both ends are kept where it is longer than any answer."""
    return text if len(text) <= 2 * LONGEST else f"{text[:LONGEST]}\n\n{text[-LONGEST:]}"


def without_markup(text: str) -> str:
    """Text without markdown, HTML and LaTeX dressing, without struck words and a speaker's name."""
    text = _HTML.sub("", _BREAK.sub("\n", _STRUCK.sub(" ", text)))
    for _ in range(3):
        text = _TEXT.sub(r"\1", text)
    text = collapsed(_LINE_START.sub("", _EMPHASIS.sub("", text)))
    named = _ROLE.match(text)
    return text[named.end() :] if named else text


def collapsed(text: str) -> str:
    """Text without long runs of blanks or signs, which patterns would read over and over."""
    text = re.sub(r"[^\S\n]+", " ", text)
    text = re.sub(r" ?\n[ \n]*\n ?", "\n\n", text)
    return re.sub(r"\W{16,}", _shortened, text)


def _shortened(run: re.Match[str]) -> str:
    return run[0][:16] + "\n" * ("\n" in run[0][16:])


def loops(text: str) -> bool:
    """Whether a reply ends by saying one thing eight times or more, over half of its last part."""
    last = " ".join(text[-LONGEST:].split())[-1200:].encode("utf-32-le", "surrogatepass")
    tail = np.frombuffer(last, dtype="<u4")
    for period in range(1, min(120, len(tail) // 8) + 1):
        same = tail[period:] == tail[:-period]
        breaks = np.flatnonzero(~same)
        run = len(same) - (breaks[-1] + 1 if len(breaks) else 0)
        if run >= max(7 * period, len(tail) // 2):
            return True
    return False
