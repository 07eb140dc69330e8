"""A letter in its sentence, and what its clause says of it.

A clause states a letter when everything else in it is a word with which one states an answer. What
stands around the clause can take that away: a condition or a question anywhere in its sentence, a
report or a doubt before it, a denial or another letter after it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bench_lib.replies.clauses import Sentence

Kind = Literal["declared", "letter", "sentence", "lead", "loose"]
"""By a cue; as the whole line; as a whole sentence; as the mark in front of an option's text; as a
sentence among others, which states nothing but is another letter beside one that is stated."""
SAFE = "nocuUivrfkj"
"""Roles that may stand beside a stated letter."""
WINDOW = 80
"""Roles; farther from a letter nothing is looked at, but for conditions and reports before it."""
WORDS = str.maketrans("VZyzst", "xxxxxx")
"""Roles that mean nothing for letters."""
# The whole sentence states a letter; another letter is added to one; a line is a heading.
_FULL = re.compile(rf"[{SAFE}:,()\-]*[Lw][{SAFE}:,()\-]*")
_NEXT_LETTER = re.compile(r"[,(\-:]*[Ow]?[,ODfonck]*L(?=$|[,.:;gB()\-])")
_HEADING = re.compile("[fr]*[NW][^L]{0,3}")
# A denial of the letter: right after it, after brackets that hold it, before it, of a whole list,
# and in a later clause that goes on about it.
_DENIED_AFTER = re.compile(r"[cfaiuU]*[NW](?![fonac]*L)")
_CLOSED_DENIED = re.compile(r"f*(?:[cauiU]f*N|[cauiU]*f*W)")
_DENIED_BEFORE = re.compile(r"[NW][fonvcrauUi:]*$")
_LIST_BEFORE = re.compile(r"(?:^|[,(\-:T])[fo]*(?:L[,fo]*)*$")
_LIST_DENIED = re.compile(r"(?:,[fo]*L)*,?O[fo]*L[cfaiuU]*[NW]")
_DENIAL = re.compile(r"[acifonrkjuU]*(?:W|N(?![fonac]*L))")
_OF_IT = re.compile(r"[ai][cfo]*[NW]")
_TURNS = re.compile("[,:(-][IS]|^N,[acfionk]*(?:[LNSW]|$)")
_REPORTED = re.compile("[^LB]{0,5}R|R[^LB]{0,3}")
_INLINE = re.compile(r"(?<![^\W_])(?:\(([A-Za-z])\)|([A-Z])[.):]\s+\S)")
"""The mark of an option within a line."""
_ASKS = frozenset(("is", "are", "was", "were", "ist", "had", "should", "do", "does"))
"""Words that ask or suppose where a sentence begins with them."""
_NO = frozenset(("no", "nein", "non", "não", "нет", "không", "none", "never", "nothing", "nobody",
                 "否", "没有", "いいえ", "なし", "아니요"))  # fmt: skip
"""Denials that are an option's text where they stand alone behind its mark."""
_ARROWS = frozenset(("=", "->", "=>", "→"))
_NO_REASON = frozenset(("car", "given", "due"))
"""Words after an `A` that do not make it a letter: it may be the article."""


def folded(text: str) -> str:
    """An option's text as it is compared: without case, outer signs and runs of blanks."""
    return " ".join(text.casefold().split()).strip(" .,:;!?()[]\"'-")


@dataclass(frozen=True)
class Place:
    """A letter in its sentence."""

    text: str
    found: Sequence[Sentence]
    number: int
    roles: str
    at: int
    options: Mapping[str, str]

    @property
    def sentence(self) -> Sentence:
        return self.found[self.number]

    @property
    def role(self) -> str:
        return self.roles[self.at]

    @property
    def letter(self) -> str:
        found = re.search("[A-Za-z]", self.text[slice(*self.span)])
        assert found is not None
        return found[0].upper()

    @property
    def span(self) -> tuple[int, int]:
        return self.sentence.spans[self.at]

    @property
    def closed(self) -> bool:
        """Whether brackets hold the letter and nothing else."""
        start, end = self.span
        return end - start > 1

    def word(self, at: int) -> str:
        return self.text[slice(*self.sentence.spans[at])].lower()

    def denied(self) -> bool:
        """Whether its own clause denies the letter."""
        after = self.roles[self.at + 1 : self.at + WINDOW]
        before = self.roles[max(0, self.at - WINDOW) : self.at]
        denies = _CLOSED_DENIED if self.closed else _DENIED_AFTER
        if _LIST_BEFORE.search(before) and _LIST_DENIED.match(after):
            return True
        return bool(denies.match(after) or _DENIED_BEFORE.search(before))

    def clause(self) -> tuple[int, str]:
        """Where the letter's clause begins, and after what; -1 where it holds other words."""
        roles, begin = self.roles, self.at
        while begin and roles[begin - 1] in SAFE + ":":
            begin -= 1
        if begin == 0:
            return 0, "^"
        if roles[begin - 1] in ",-()TO":
            return begin, "T" if roles[begin - 2 : begin] == "T," else roles[begin - 1]
        for at in range(begin, self.at):
            if roles[at] in "k:":
                return at + (roles[at] == ":"), roles[at]
        opening = max(roles.rfind(sign, max(0, begin - WINDOW), begin) for sign in ",-()T:") + 1
        said = roles[opening:begin]
        adverbial = said[:1] in {"g", "B"} and not re.search("[NWIDSQRat]", said)
        return (begin, "g") if adverbial and len(said) < WINDOW else (-1, "")

    def kind(self, supposes: int, doubts: int) -> Kind | Literal["listed", ""]:
        """How the clause states the letter; empty where it does not, `listed` beside others."""
        roles, at = self.roles, self.at
        full = bool(_FULL.fullmatch(roles[max(0, at - WINDOW) : at + WINDOW]))
        begin, sign = (0, "^") if full and at < WINDOW else self.clause()
        if sign == "," and (roles[0] == "T" or "k" in roles[begin:at]):
            sign = "k" if "k" in roles[begin:at] else "T"
        if begin < 0 or supposes < at:
            return ""
        if doubts < begin and sign not in "kT" and not self.labelled(begin):
            return ""
        if (
            self.quoted(begin)
            or self.word(0) in _ASKS
            or (sign in ":-(" and re.search("[NW]", roles[:begin]))
        ):
            return ""
        if self.texted() is None:
            return "listed"
        left, stop = roles[begin:at], at + 1
        while stop < len(roles) and roles[stop] in SAFE and roles[stop] != "k":
            stop += 1
        right = roles[at + 1 : stop]
        if right.endswith("c") and roles[stop : stop + 1] in {"g", "O"}:
            return ""
        cued = bool(
            re.search(r"[nviUr]|o.*[c:u]", left)
            or re.search("[rn]", right)
            or roles[stop : stop + 1] == "q"
        )
        after = "" if full else self.after(stop, "U" in left or "u" in left + right)
        if not after and sign in ",O" and not set(left) & set("nvi") and self.follows_letter(begin):
            after = "listed"
        if after == "listed":
            return "listed" if cued or begin == 0 else ""
        if cued and not after and (sign != "g" or re.search("n[f]*[c:]", left)):
            return "declared" if self.role == "L" or self.small(stop) else ""
        return "" if cued else self.bare(begin, sign, left, stop, full, after)

    def labelled(self, begin: int) -> bool:
        """Whether the clause is a line of its own, such as `Answer: B` below a preface."""
        start = self.sentence.spans[begin][0]
        own = self.text[max(0, start - 4) : start].rstrip(" ").endswith("\n")
        return own and bool(re.search("n[f]*[c:]", self.roles[begin : self.at]))

    def quoted(self, begin: int) -> bool:
        """Whether the clause is something said or written that the sentence quotes."""
        start = self.sentence.spans[begin][0] if begin else 0
        before = self.text[max(0, start - 4) : start].rstrip()
        return before[-1:] in set('"“„‟«「『‘') and begin < self.at

    def follows_letter(self, begin: int) -> bool:
        """Whether another letter, not denied, stands right before the clause."""
        earlier = self.roles[max(0, begin - WINDOW) : begin]
        listed = re.search("[Lw][,fo]*[O,][,fo]*$", earlier)
        return listed is not None and not re.search("[NW][fonac]*$", earlier[: listed.start()])

    def small(self, stop: int) -> bool:
        """Whether a small letter that is also a word is meant as a letter after a cue."""
        ends = stop == len(self.roles) and stop == self.at + 1
        return ends and self.sentence.end != "~"

    def bare(
        self, begin: int, sign: str, left: str, stop: int, full: bool, after: str
    ) -> Kind | Literal[""]:
        """How a letter without a cue is stated: by all of its line or sentence, or as a mark."""
        if re.search("[^ofkcj:,(]", left):
            return ""
        sentence, roles = self.sentence, self.roles
        last = self.number == len(self.found) - 1
        if self.role == "w" and not self.closed:
            alone = full and last and self.number == 0
            return "letter" if alone else ""
        if full and sentence.first and sentence.last:
            before = self.found[self.number - 1] if self.number else None
            headed = before and before.first and before.last and _HEADING.fullmatch(before.roles)
            return "" if headed else "letter"
        if full and not sentence.first:
            return "sentence" if "k" in left or last else "loose"
        if full and "k" in left:
            return "sentence"
        if not after and stop == len(roles):
            if sign == "k":
                return "sentence"
            if sign == "T" and re.search("N[^L]*L[^L]*$|L[cf]*N[^L]*$", roles[:begin]):
                return "declared"
            if sign == "T" and re.fullmatch("[^LIDQ]*,T", roles[:begin]):
                return "sentence"
        return self.leads() if sign == "^" and sentence.first else ""

    def leads(self) -> Kind | Literal[""]:
        """How a letter states its option as the mark in front of a text, a reason or `right`."""
        roles, at = self.roles, self.at
        head = roles[at + 1 : at + 2]
        if self.marked_after() or self.sentence.end == "?":
            return ""
        if self.texted():
            return "lead"
        if not head:
            follows = self.found[self.number + 1 : self.number + 2]
            rest = follows[0].roles.translate(WORDS) if follows else ""
            if re.fullmatch("f*rf*", rest):
                return "declared"
            if not follows or self.sentence.end != "." or follows[0].end == "?":
                return ""
            first = self.text[slice(*follows[0].spans[0])] if rest else ""
            return "" if _off(rest, ".", first) else "lead"
        if re.match(",[fo]*L(?![cfaiuU]*[NW])", roles[at + 1 :]):
            return ""
        if head == "k" and not self.word(at + 1).isascii():
            return ""
        marked = self.closed or head in ":)-,(Bk" or self.word(at + 1) in _ARROWS
        if not marked or (self.letter == "A" and head == "(" and not self.closed):
            return ""
        if head == "c":
            return "" if _off(roles[at + 2 :], "-", "") else "lead"
        return "lead" if self.after(at + 1, False) == "" else ""

    def marked_after(self) -> bool:
        """Whether the line goes on with the mark of another option."""
        end = self.span[1]
        line = self.text[end : end + 500].split("\n")[0]
        return any((one[1] or one[2]).upper() != self.letter for one in _INLINE.finditer(line))

    def texted(self) -> bool | None:
        """Whether the letter's own text follows it; None where that of another option does."""
        end = self.span[1]
        line = folded(self.text[end : end + 500].lstrip(" .:)-\n").split("\n")[0])
        if not line or not self.options:
            return False
        named = {letter for letter, text in self.options.items() if text == line}
        if named and self.letter not in named:
            return None
        own = self.options.get(self.letter, "")
        return bool(own) and (line == own or line.startswith((own + ".", own + ",")))

    def after(self, stop: int, loose: bool) -> Literal["", "listed", "no"]:
        """What the rest of the sentence does to a letter: nothing, adds others, takes it away."""
        tail = self.roles[stop : stop + WINDOW]
        if not tail or self.texted():
            return ""
        head, closed = tail[0], self.closed and set(self.roles[self.at + 1 : stop]) <= {"f"}
        if (listed := _NEXT_LETTER.match(tail)) and self.other(stop + listed.end() - 1):
            return "listed"
        if head in ":)-(" or (closed and head not in ",TBkO"):
            first = self.word(min(stop + (head in ":)-("), len(self.roles) - 1))
            return "no" if _off(tail, ")" if closed else head, first) else ""
        if head in "Bk":
            return "no" if self.letter == "A" and self.word(stop) in _NO_REASON else ""
        if re.match("O?N[fona]*L", tail):
            return ""
        if head in "gq" or (head == "O" and self.word(stop).isalpha()):
            return "no" if loose or re.search("[NWIDSQR]", tail) else ""
        if head not in ",T":
            return "no"
        return self.clauses_after(stop, tail, loose)

    def clauses_after(self, stop: int, tail: str, loose: bool) -> Literal["", "listed", "no"]:
        """The same where a comma or a contrast follows: clause by clause, up to a reason."""
        for clause in re.finditer(r"([,()\-:T]+)([^,()\-:TB]*)(B?)", tail):
            turned, said = "T" in clause[1], clause[2]
            if said[:1] in {"I", "D", "S"} or (turned and loose):
                return "no"
            listed = re.match("(?:[OfakocD]*|[^NWIB]{0,2})L$", said)
            if listed and self.other(stop + clause.start(2) + listed.end() - 1):
                return "listed"
            if (
                _REPORTED.fullmatch(said)
                or _DENIAL.match(said)
                or (said[:1] in {"c", "u"} and re.search("[^cufonrki]", said))
            ):
                return "no"
            if turned and (re.search("[WD]", said) or ("N" in said) != ("L" in said)):
                return "no"
            if clause[3]:
                return ""
        return ""

    def other(self, at: int) -> bool:
        """Whether the letter at another place of the sentence is another one."""
        return Place(self.text, self.found, self.number, self.roles, at, {}).letter != self.letter


def _off(rest: str, mark: str, first: str) -> bool:
    """Whether what follows a marked letter denies it rather than being its text.

    `first` is the first word of it: an option may be the word `No`.
    """
    rest = rest.lstrip(",:-()")
    if rest[:1] in {"I", "D", "S"} or _TURNS.search(rest):
        return True
    if re.match("[acifonrk]*W", rest) or _OF_IT.search(rest):
        return True
    if re.match("[acif]*N[cfnorkij]*$", rest):
        return not (mark in ".)" and rest == "N" and first.lower() in _NO)
    return rest[:1] == "N" and mark in ":-,("
