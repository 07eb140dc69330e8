"""One rule for each reply contract: what the ideal observer writes, given what it knows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from bench_lib.dollhouse.ideal import grading, rules
from bench_lib.dollhouse.ideal.recall import Recall
from bench_lib.dollhouse.world import sentences as s
from bench_lib.dollhouse.world.grammar import Sentence, say, value
from bench_lib.dollhouse.world.picture import Picture

_COVERAGE = re.compile(r"\bonly the most recent sessions\b", re.IGNORECASE)
_OPTION = re.compile(r"^\W*([A-J])[.):]\s+(.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Shown:
    """What a call showed, in order, and what can be known from it.

    `parts` are texts and pictures (None: a frame whose strip cannot be read), so that a rule can
    tell which label stands before which frame.
    """

    parts: tuple[str | Picture | None, ...]
    known: Recall
    max_words: int

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The texts alone."""
        return tuple(part for part in self.parts if isinstance(part, str))

    @cached_property
    def question(self) -> s.Question | None:
        """The newest question."""
        asked = [x for x in self.known.sentences if isinstance(x, s.Question)]
        return asked[-1] if asked else None

    @cached_property
    def options(self) -> dict[str, str]:
        """Letters and texts of the newest list of options."""
        found: dict[str, str] = {}
        for text in self.texts:
            for letter, option in _OPTION.findall(text):
                if letter == "A":
                    found = {}
                found[letter] = option
        return found

    @property
    def told_coverage(self) -> bool:
        """Whether a text says that only some of the sessions can be seen."""
        return any(_COVERAGE.search(text) for text in self.texts)

    @property
    def registrations(self) -> list[s.Register]:
        """What the wearer asked to be reminded of."""
        return [x for x in self.known.sentences if isinstance(x, s.Register)]

    def option(self) -> str | None:
        """The letter of the answer, None where what was shown does not determine it."""
        if self.question is None:
            return None
        found = rules.answer(self.question, self.known, tuple(self.options.values()))
        if found is None:
            return None
        text = value(self.question.answer, found)
        return next((k for k, v in self.options.items() if v.rstrip(".") == text), None)


Rule = Callable[[Shown], str]


def choice(shown: Shown) -> str:
    """The right letter; else the option that says that evidence is out of reach; else nothing.

    Only who was told that most sessions are closed can know that the evidence lies in one of them:
    without that, what was never seen may never have happened, and the observer abstains.
    """
    letter = shown.option()
    if letter is None and shown.told_coverage:
        enough = s.NotEnough().say()
        letter = next((k for k, v in shown.options.items() if v == enough), None)
    return json.dumps({"answer": letter}) if letter else s.CannotTell().say()


def adaptive_choice(shown: Shown) -> str:
    """Speak once the held question can be answered."""
    letter, question = shown.option(), shown.question
    if letter is None or question is None:
        return _silent(s.Unseen())
    reason = basis(question, shown.known)
    return json.dumps({"decision": "INTERVENE", "answer": letter, "reason": reason})


def basis(question: s.Question, known: Recall) -> str:
    """The fact on which the answer to a held question rests."""
    fits: dict[type, Callable[[s.AnyFact], bool]] = {
        s.TakeFrom: lambda f: isinstance(f, s.PutAt) and f.action == "take",
        s.WhoIn: lambda f: isinstance(f, s.Met),
        s.SignIn: lambda f: isinstance(f, s.Sign),
        s.DoIn: lambda f: isinstance(f, s.Did) and f.act.action == getattr(question, "action", ""),
    }
    fit = fits.get(type(question), lambda f: False)
    start_s, room = getattr(question, "start_s", 0), getattr(question, "room", "")
    place = getattr(question, "place", None)
    for fact in known.facts:
        there = fact.room == room and (place is None or getattr(fact, "place", place) == place)
        if there and fact.wall_s >= start_s and fit(fact):
            return fact.say()
    return ""


def adaptive_text(shown: Shown) -> str:
    """What is due now: a reminder whose condition holds; else, unasked, what the past suggests."""
    known = shown.known
    if known.now is None:
        return _silent(s.CannotTell())
    if shown.registrations:
        for said in shown.registrations:
            if rules.holds(said.condition, known.now):
                return _speak(s.Remind(said.act), s.Holds(said.condition).say())
        return _silent(s.NotYet(shown.registrations[-1].condition))
    due = rules.unasked(known)
    return _speak(*due) if due else _silent(s.NoNeed())


def _speak(response: Sentence, reason: str) -> str:
    return json.dumps(
        {"decision": "INTERVENE", "proactive_response": response.say(), "reason": reason}
    )


def _silent(reason: Sentence) -> str:
    return json.dumps({"decision": "SILENT", "reason": reason.say()})


def free(shown: Shown) -> str:
    """The answer in a few words; without a readable question, what is in view."""
    question, known = shown.question, shown.known
    if question is None:
        return say(*known.now.facts()) if known.now else s.CannotTell().say()
    found = rules.answer(question, known)
    return f"{value(question.answer, found)}." if found is not None else s.CannotTell().say()


def memory(shown: Shown) -> str:
    """All facts that matter later, within the word budget."""
    kept = [x.say() for x in shown.registrations]
    lines = kept + compact(shown.known, shown.max_words - sum(map(_words, kept)))
    return json.dumps({"memory": "\n".join(lines) or s.CannotTell().say()})


def caption(shown: Shown) -> str:
    """What a stretch shows, as lines."""
    return "\n".join(compact(shown.known, shown.max_words)) or s.CannotTell().say()


def _words(line: str) -> int:
    """Tokens of a line, roughly: words, numbers and signs."""
    return len(re.findall(r"\w+|[^\w\s]", line))


def compact(known: Recall, budget: int) -> list[str]:
    """Facts in time order without repetition.

    Where they are too many, acts come first, then the newest sightings.
    """
    acts = _first_of_each(known)
    seen: dict[object, s.Seen] = {}
    for fact in known.facts:
        if isinstance(fact, s.Seen):
            seen[fact.item] = fact
    chosen: list[s.AnyFact] = []
    for fact in [*acts, *sorted(seen.values(), key=lambda f: -f.wall_s)]:
        cost = _words(fact.say())
        if cost > budget:
            continue
        budget -= cost
        chosen.append(fact)
    return [f.say() for f in sorted(chosen, key=lambda f: (f.wall_s, f.say()))]


def _first_of_each(known: Recall) -> list[s.AnyFact]:
    """Acts at their first sighting, with who and what was there at that instant; new rooms."""
    starts = {(d.first_s, d.room) for d in known.doings}
    found: list[s.AnyFact] = []
    room, person, sign = "", "", ""
    for fact in known.facts:
        begins = (fact.wall_s, fact.room) in starts
        if isinstance(fact, s.Here) and fact.room != room:
            room, person, sign = fact.room, "", ""
            found.append(fact)
        elif isinstance(fact, s.Did | s.PutAt) and begins:
            found.append(fact)
        elif isinstance(fact, s.Met) and (begins or fact.person != person):
            person = fact.person
            found.append(fact)
        elif isinstance(fact, s.Sign) and (begins or fact.sign != sign):
            sign = fact.sign
            found.append(fact)
        elif isinstance(fact, s.Heard):
            found.append(fact)
    return found


RULES: dict[str, Rule] = {
    "choice": choice,
    "adaptive_choice": adaptive_choice,
    "adaptive_text": adaptive_text,
    "free": free,
    "memory": memory,
    "caption": caption,
    "judge_apm": lambda shown: grading.grade(shown.texts),
    "judge_arena": lambda shown: grading.verdict(shown.texts),
}
"""By the contract's name. Whoever defines a contract adds its rule with `rule`."""


def rule(name: str) -> Callable[[Rule], Rule]:
    """Decorator: the ideal observer's way to fulfil the contract of that name."""

    def add(function: Rule) -> Rule:
        RULES[name] = function
        return function

    return add


def names() -> Sequence[str]:
    """The contracts that have a rule."""
    return sorted(RULES)
