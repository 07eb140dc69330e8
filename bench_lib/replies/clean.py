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
    rf"<\|?\s*(?P<close>/|(?=end_))?\s*(?:{_NAMES})\b[^<>\n]{{0,40}}>"
    r"|\[\s*(?P<square>/)?\s*think(?:ing)?\s*\]"
    r"|◁\s*(?P<triangle>/)?\s*think(?:ing)?\s*▷",
    re.IGNORECASE,
)
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)[^<]{0,40}<\|message\|>")
_SPECIAL = re.compile(
    r"<\|(?!(?:begin|end)_of_box)[a-z_]+\|>|</?s>|<eos>|<end_of_turn>", re.IGNORECASE
)
_TEXT = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathsf|rm|bf)\s*\{([^{}]*)\}")
_EMPHASIS = re.compile(r"(?<![A-Za-z0-9])[*_]+|[*_]+(?![A-Za-z0-9])|~~|`+|\$+|\\[()\[\]]")
_LINE_START = re.compile(r"^[ \t]*(?:#{1,6}|>+|[-•])[ \t]+", re.MULTILINE)


def normalised(text: str) -> tuple[str, tuple[str, ...]]:
    """Compatibility-normalised text (full-width letters become plain) and what that repaired."""
    repairs = []
    if "&quot;" in text or "&lt;" in text:
        text, before = html.unescape(text), text
        if text != before:
            repairs.append("escapes")
    plain = unicodedata.normalize("NFKC", text).replace("\u200b", "").replace("\ufeff", "")
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
    kept, start, inside, found = "", 0, False, False
    for tag in _TAG.finditer(text):
        found = True
        closes = tag["close"] is not None or bool(tag["square"] or tag["triangle"])
        if closes:
            if not inside:
                kept = ""
            inside, start = False, tag.end()
        elif not inside:
            kept += text[start : tag.start()] + "\n"
            inside = True
    if not inside:
        kept += text[start:]
    plain, tokens = _SPECIAL.subn(" ", kept)
    return plain, (*(("reasoning",) * found), *(("tokens",) * (tokens > 0))), inside


def without_markup(text: str) -> str:
    """Text without markdown and LaTeX dressing; the words stay."""
    for _ in range(3):
        text = _TEXT.sub(r"\1", text)
    return collapsed(_LINE_START.sub("", _EMPHASIS.sub("", text)))


def collapsed(text: str) -> str:
    """Text without long runs of blanks or signs, which patterns would read over and over."""
    text = re.sub(r"[^\S\n]+", " ", text)
    text = re.sub(r" ?\n[ \n]*\n ?", "\n\n", text)
    return re.sub(r"\W{16,}", lambda run: run[0][:16], text)


def loops(text: str) -> bool:
    """Whether a reply ends by saying one thing eight times or more, over half of its last part."""
    last = " ".join(text.split())[-1200:].encode("utf-32-le", "surrogatepass")
    tail = np.frombuffer(last, dtype="<u4")
    for period in range(1, min(120, len(tail) // 8) + 1):
        same = tail[period:] == tail[:-period]
        breaks = np.flatnonzero(~same)
        run = len(same) - (breaks[-1] + 1 if len(breaks) else 0)
        if run >= max(7 * period, len(tail) // 2):
            return True
    return False
