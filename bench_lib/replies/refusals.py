"""Replies that decline to answer and say nothing else, in words of several languages.

A reply is a refusal when one of its sentences declines and each of the others is what goes with
that: an apology, a policy, an offer of other help. A sentence that says why the video does not tell
("I can't answer because the kitchen is never shown") is an answer of a kind and no refusal.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from bench_lib.replies.clauses import SIGNS
from bench_lib.replies.clean import without_markup

LONGEST = 1_200
"""Characters; a longer reply says something else."""
MOST_SENTENCES = 12
_END = re.compile(r"[.!?。！？\n;]+")
_AROUND = " ,\"'()*-"


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """The patterns of `refusals.txt` by name; those of one name are alternatives."""
    text = Path(__file__).with_name("refusals.txt").read_text(encoding="utf-8")
    lines: dict[str, list[str]] = {}
    for name, pattern in re.findall(r"^(\w+) = (.+)$", text, re.MULTILINE):
        for known, parts in lines.items():
            pattern = pattern.replace(f"{{{known}}}", parts[0])
        lines.setdefault(name, []).append(pattern)
    joined = {name: "|".join(f"(?:{part})" for part in parts) for name, parts in lines.items()}
    return {name: re.compile(pattern, re.IGNORECASE) for name, pattern in joined.items()}


def declines(text: str) -> bool:
    """Whether a reply declines to answer and says nothing else."""
    if len(text) > LONGEST:
        return False
    known = _patterns()
    parts = _END.split(without_markup(text).translate(SIGNS))
    sentences = [part.strip(_AROUND) for part in parts if part.strip(_AROUND)]
    declined = False
    for sentence in sentences if len(sentences) <= MOST_SENTENCES else ():
        excused = known["policy"].search(sentence) or not known["reason"].search(sentence)
        if excused and known["declines"].fullmatch(sentence):
            declined = True
        elif not known["beside"].fullmatch(sentence):
            return False
    return declined
