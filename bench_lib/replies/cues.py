"""What words do in a reply: declare, deny, ask, suppose, report, give reasons, take back.

`cues.txt` gives words and phrases of several languages one character each, so that a clause becomes
a short string on which `places` and `decisions` put their grammar. What is not listed is `OTHER`,
and a clause with such a word declares nothing: a new wording can be missed, but not misread.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path

OTHER = "x"
CHOOSE = (
    "choose", "pick", "select", "go with", "opt for", "say", "answer", "answer with", "settle on",
    "vote for", "respond with", "reply with",
)  # fmt: skip
FIRM = (
    "{}", "{} will", "{}'ll", "{} must", "{} have to", "{} choose to", "{} am going to",
    "{}'m going to", "{} do",
)  # fmt: skip
LOOSE = ("{} would", "{}'d")
"""What stands around `I` and a verb of choosing, as it says so or as it would say so."""
FINAL = re.compile(r"\bfinal|definitiv|最终|最後|最終|최종|окончательн|cuối cùng", re.IGNORECASE)


@cache
def listed() -> dict[str, tuple[str, ...]]:
    """Words and phrases by role."""
    text = Path(__file__).with_name("cues.txt").read_text(encoding="utf-8")
    found: dict[str, tuple[str, ...]] = {}
    for role, phrases in re.findall(
        r"^\[(\w+)\][^\n]*\n(.+?)(?=\n\n|\Z)", text, re.DOTALL | re.MULTILINE
    ):
        folded = unicodedata.normalize("NFKC", " ".join(phrases.split()))
        found[role] = tuple(filter(None, folded.split(", ")))
    for who in ("i", "we"):
        for role, forms in (("v", FIRM), ("U", LOOSE)):
            every = (f"{form.format(who)} {verb}" for form in forms for verb in CHOOSE)
            found[role] = (*found.get(role, ()), *every)
    return found
