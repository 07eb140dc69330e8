"""Option letters in prose: declared, boxed, or standing alone. Nothing here guesses.

A letter counts where the reply says that it is the answer, or where it is the whole reply or the
whole line. A letter that merely occurs does not: "A man puts down the cup" names no option.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from bench_lib.replies import cues
from bench_lib.replies.clean import collapsed, without_markup

SEVERAL = "several answers"
OUTSIDE = "names no offered option"
TEMPLATE = "repeats the reply template"
NONE = "no answer found"

_WORD = "A-Za-z0-9À-ɏͰ-ӿ_"
_OPEN = r"[\s\"'“”‘’«»「『【《(\[<{]*"
_CLOSE = r"[\"'”’»」』】》)\]>}]*"
LETTER = rf"(?P<open>{_OPEN})(?P<letter>[A-Za-z])(?P<close>{_CLOSE})(?![{_WORD}]|['’-][A-Za-z])"
_ONE = rf"{_OPEN}[A-Za-z]{_CLOSE}(?![{_WORD}]|['’-][A-Za-z])"
_AFTER_LIST = (
    rf"\s*(?:&|/|\||、|或|和)\s*{_ONE}"
    rf"|\s+(?:or|and|and/or|oder|und|ou|o|y|e|et|или|и)\s+{_ONE}"
    rf"|\s*,\s*{_ONE}\s*(?:$|[,.;\n]|or\b|and\b)"
    rf"|[ \t]+[A-Z]{_CLOSE}(?![{_WORD}])(?=\s*(?:$|[,.;\n])|\s+[A-Z]\b)|[.;+][A-Z](?![A-Za-z.])"
)
_LIST = re.compile(_AFTER_LIST)
_END = re.compile(r"\s*(?:$|[.,:;!\n)\]。，、；：！—]|[-–]\s)")
_WORDY = frozenset("AIEOYUaieoyu")
"""Letters that are also words of some language, so that a following word makes them doubtful."""
_PLACEHOLDER = re.compile(r"^\W*[A-Za-z](?:\s*[|/]\s*[A-Za-z]){2,}\W*$|^\W*(?:<.*>|\.\.\.|…)\W*$")
_DECLARED = [
    re.compile(unicodedata.normalize("NFKC", cue) + LETTER, re.IGNORECASE) for cue in cues.FORWARD
]
_REVERSE = re.compile(rf"(?<![{_WORD}])" + LETTER + cues.REVERSE, re.IGNORECASE)
_OPTION = re.compile(rf"(?<![{_WORD}])(?:{cues.OPTION})\s*{LETTER}", re.IGNORECASE)
_BARE = re.compile(
    rf"\W*(?:(?:{cues.BARE})\s*[.:：]?)?{_OPEN}([A-Za-z]){_CLOSE}\s*(?:选项|選項|项)?\W*",
    re.IGNORECASE | re.DOTALL,
)
_REPEATED = re.compile(r"\W*([A-Za-z])(?:[\s,.;]+\1)+\W*", re.DOTALL)
_LEAD = re.compile(
    rf"^[ \t]*(?P<open>[\"'“「『【(\[<]*)(?P<letter>[A-Za-z])(?P<close>{_CLOSE})"
    rf"(?P<mark>\s*[.:)\]、。：;,，](?![A-Za-z]\.)|\s+[-–—]\s|\s(?=\()"
    rf"|(?=\s+(?:{cues.CONNECTIVE})\b))?(?P<rest>.*)$",
    re.MULTILINE,
)
_BECAUSE = re.compile(rf"\s+(?:{cues.CONNECTIVE})\b", re.IGNORECASE)
_LETTERS = re.compile(
    r"\W*(?:either|both|between)?\W*[A-Z](?:[\s,;/&|+、.]|or|and|或|和)+[A-Z]"
    r"(?:(?:[\s,;/&|+、.]|or|and|或|和)+[A-Z])*\W*",
    re.IGNORECASE,
)
_INLINE = re.compile(rf"(?<![{_WORD}])\(?([A-Z])[.)]\s+\S")
_BOX = re.compile(
    r"\\(?:boxed|fbox|framebox)\s*\{|<\|begin_of_box\|>|<answer>|\[\[(?!\[)", re.IGNORECASE
)
LONGEST_BOX = 200
"""Characters; what is longer is no answer in a box."""
_BOX_END = {"<": re.compile(r"<\|end_of_box\|>|</answer>|$"), "[": re.compile(r"\]\]|$")}


@dataclass(frozen=True)
class Reading:
    """One rung's finding: a letter, or the reason why the reply gives none."""

    letter: str | None
    why: str = ""
    repairs: tuple[str, ...] = ()


def _one(found: list[str], letters: str, *repairs: str) -> Reading | None:
    values = set(found)
    if not values:
        return None
    if len(values) > 1:
        return Reading(None, SEVERAL)
    letter = found[0]
    if letter not in letters:
        return Reading(None, OUTSIDE)
    extra = ("repeated",) if len(found) > 1 else ()
    return Reading(letter, repairs=(*repairs, *extra))


def _clause(text: str, end: int) -> tuple[str, str]:
    """The clause and the sentence that lead up to a position."""
    before = text[max(0, end - 160) : end]
    sentence = re.split(r"[.!?。！？\n;；]", before)[-1]
    return re.split(r"[,，]", sentence)[-1], sentence


def _asserted(text: str, start: int, match: re.Match[str], cut: bool) -> bool:
    """Whether a matched letter is an option letter that the reply affirms."""
    letter, close, after = match["letter"], match["close"].strip("\"'”’»"), text[match.end() :]
    opened = match["open"].strip(" \n\t\"'“‘«")
    clause, sentence = _clause(text, start)
    if cues.NEGATION.search(clause) or cues.CONDITION.search(sentence):
        return False
    if after.lstrip()[:1] in {"?", "？"} or cues.REJECTED.match(after):
        return False
    if (close and opened) or close.startswith(")"):
        return True
    if _BECAUSE.match(after) and (letter.isupper() or letter not in _WORDY):
        return True
    if letter.islower():
        if not _END.match(after):
            return False
        return not (cut and not after.strip() and letter in _WORDY)
    if letter in _WORDY and re.match(r"[ \t]+[a-zß-ÿа-я]", after):
        return bool(_LIST.match(after))
    return True


def boxed(text: str, letters: str) -> Reading | None:
    r"""The last `\boxed{...}`, `<answer>...` or `[[...]]` that names an option."""
    readings = []
    for match in _BOX.finditer(text):
        token, start = match[0], match.end()
        if token.endswith("{"):
            depth, end = 1, start
            while end < min(len(text), start + LONGEST_BOX) and depth:
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
            inner = text[start : end - 1] if not depth else text[start:end]
        else:
            inner = text[start : _BOX_END[token[0]].search(text, start).start()]  # type: ignore[union-attr]
        if len(inner) < LONGEST_BOX and not _PLACEHOLDER.match(inner):
            # A box inside a box is the same answer; reading it anew would double at each level.
            readings.append(of_value(_BOX.sub(" ", inner), letters))
    if not readings:
        return None
    last = readings[-1]
    return Reading(last.letter, last.why, ("box",)) if last.letter else last


def declared(text: str, letters: str, cut: bool = False) -> Reading | None:
    """What the reply says the answer is. Different statements count only if one is taken back."""
    found: list[tuple[int, int, str, bool]] = []
    for pattern in (*_DECLARED, _REVERSE):
        for match in pattern.finditer(text):
            start = match.start() if pattern is not _REVERSE else match.start("letter")
            if not _asserted(text, start, match, cut):
                continue
            if _LIST.match(text, match.end()):
                return Reading(None, SEVERAL)
            final = bool(
                cues.FINAL.search(text[max(0, match.start() - 12) : match.start("letter")])
            )
            found.append((match.start("letter"), match.end(), match["letter"].upper(), final))
    found = sorted(set(found))
    values = [letter for _, _, letter, _ in found]
    repairs = ["declared"]
    if len(set(values)) > 1:
        finals = [letter for _, _, letter, final in found if final]
        before = [end for _, end, letter, _ in found if letter != values[-1]]
        start = next(at for at, end, _, _ in found if end > before[-1])
        if len(set(finals)) == 1:
            values = finals[:1]
        elif cues.REVISION.search(text[before[-1] : start]):
            values = values[-1:]
        else:
            return Reading(None, SEVERAL)
        repairs.append("revised")
    if found and _taken_back(text[found[-1][1] :], values[-1]):
        return Reading(None, SEVERAL)
    return _one(values[:1], letters, *repairs)


def _taken_back(rest: str, letter: str) -> bool:
    """Whether what follows the last declaration withdraws it in favour of another letter."""
    match = cues.RETRACTION.search(rest)
    others = (
        re.findall(rf"(?<![{_WORD}])([A-Z])(?=\W*(?:$|[.!,;\n]))", rest[match.end() :])
        if match
        else []
    )
    return any(other != letter for other in others)


def alone(text: str, letters: str) -> Reading | None:
    """A reply, or lines of it, that consist of nothing but a letter."""
    if match := _BARE.fullmatch(text):
        return _one([match[1].upper()], letters, "letter")
    if match := _REPEATED.fullmatch(text):
        return _one([match[1].upper()] * 2, letters, "letter")
    if _LETTERS.fullmatch(text) or re.fullmatch(rf"\W*[{letters}]{{2,}}\W*", text):
        return Reading(None, SEVERAL)
    lines = [m[1].upper() for line in text.splitlines() if (m := _BARE.fullmatch(line))]
    return _one(lines, letters, "line")


def leading(text: str, letters: str) -> Reading | None:
    """Lines that begin with a marked letter, as in `B. the plate` or `(b) the plate`."""
    found = []
    for match in _LEAD.finditer(text):
        letter, mark = match["letter"], match["mark"]
        enclosed = bool(match["open"] and match["close"]) or match["close"].endswith(")")
        if mark is None and not enclosed:
            continue
        if not enclosed and not _marked(letter, mark or ""):
            continue
        rest = match["rest"]
        if cues.REJECTED.match(rest) or "?" in rest[:1]:
            continue
        listed = {x for x in _INLINE.findall(rest) if x in letters} - {letter.upper()}
        if listed or _LIST.match(text, match.end("close")):
            return Reading(None, SEVERAL)
        found.append(letter.upper())
    return _one(found, letters, "lead")


def _marked(letter: str, mark: str) -> bool:
    """Whether what follows a leading letter makes it an option and not a word."""
    sign = mark.strip()[:1]
    if sign in {".", ")", ":", "]"}:
        return True
    if letter in _WORDY and (sign == "," or mark.isspace()):
        return letter == "A" and sign == ","
    return letter.isupper() or (not mark and letter not in _WORDY)


def mentioned(text: str, letters: str) -> Reading | None:
    """The one option that a short reply names, as in "Only option B fits the video."."""
    words = re.findall(r"[A-Za-zÀ-ӿ'’]+|[぀-ヿ一-鿿가-힣]{1,2}", text)
    if len(words) > 12 or cues.NEGATION.search(text) or cues.CONDITION.search(text):
        return None
    found = []
    for match in _OPTION.finditer(text):
        if not _asserted(text, match.start(), match, cut=False):
            return None
        if _LIST.match(text, match.end()):
            return Reading(None, SEVERAL)
        found.append(match["letter"].upper())
    return _one(found, letters, "mentioned")


def of_prose(text: str, letters: str, cut: bool = False) -> Reading | None:
    """The rungs for prose, in order; None when none of them says anything."""
    text = collapsed(text)
    if reading := boxed(text, letters):
        return reading
    plain = without_markup(text)
    if _PLACEHOLDER.match(plain):
        return Reading(None, TEMPLATE)
    for reading in (
        declared(plain, letters, cut),
        alone(plain, letters),
        leading(plain, letters),
        mentioned(plain, letters),
    ):
        if reading:
            return reading
    return None


def of_value(value: object, letters: str) -> Reading:
    """The letter that a value of a JSON object or a box holds."""
    if isinstance(value, list):
        if len(value) != 1 or isinstance(value[0], list):
            return Reading(None, SEVERAL if len(value) > 1 else NONE)
        inner = of_value(value[0], letters)
        return Reading(inner.letter, inner.why, ("list", *inner.repairs))
    if not isinstance(value, str):
        return Reading(None, NONE)
    if value in letters and len(value) == 1:
        return Reading(value)
    plain = without_markup(unicodedata.normalize("NFKC", value)).strip()
    if len(plain) == 1 and plain.upper() in letters:
        return Reading(plain.upper(), repairs=("case" if plain == value else "value",))
    if _PLACEHOLDER.match(plain) and not _PLACEHOLDER_LETTER.match(plain):
        return Reading(None, TEMPLATE)
    if re.fullmatch(rf"\W*[{letters}](?:\W*(?:or|and|或|和)?\W*[{letters}])+\W*", plain):
        return Reading(None, SEVERAL)
    lead = re.match(rf"([{letters}])\s+\w", plain)
    if lead and lead[1] not in _WORDY:
        return Reading(lead[1], repairs=("value",))
    reading = of_prose(value, letters)
    if reading is None:
        return Reading(None, NONE)
    return Reading(reading.letter, reading.why, ("value",) if reading.letter else ())


_PLACEHOLDER_LETTER = re.compile(r"^<[A-Za-z]>$")
