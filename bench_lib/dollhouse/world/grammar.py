"""The one small language of the dollhouse: `say` writes a sentence, `read` finds all in a text.

A sentence is a frozen dataclass with a `form` whose `<slots>` are its fields. The form serves both
ways, so writing and reading are inverse by construction. `read` ignores whatever is no sentence of
the language, so sentences can stand inside any prompt, reply or JSON string.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar

from bench_lib.dollhouse.world import words
from bench_lib.schema import clock


@dataclass(frozen=True, order=True)
class Item:
    """A thing: kind and colour name it within a household; `n` of the same may lie together."""

    colour: str
    kind: str
    n: int = 1


@dataclass(frozen=True, order=True)
class Act:
    """Something the wearer does, mostly with a thing."""

    action: str
    item: Item | None = None


@dataclass(frozen=True, order=True)
class Spot:
    """A place in a room."""

    place: str
    room: str


@dataclass(frozen=True)
class Condition:
    """What can be seen to hold: someone is somewhere, a thing is in view, a sign reads, an act."""

    person: str = ""
    room: str = ""
    item: Item | None = None
    sign: str = ""
    act: Act | None = None


@dataclass(frozen=True)
class Slot:
    """A pattern without capturing groups, and the two directions between text and value."""

    pattern: str
    say: Callable[[Any], str]
    read: Callable[[str], Any]


def _either(options: tuple[str, ...]) -> str:
    return "(?:" + "|".join(sorted(map(re.escape, options), key=len, reverse=True)) + ")"


def _plain(options: tuple[str, ...]) -> Slot:
    return Slot(_either(options), str, str)


_ITEM = rf"the (?:[2-9] )?{_either(words.COLOURS)} {_either(words.KINDS)}s?"
_ACT = rf"{_either(tuple(words.ACTIONS))}(?: {_ITEM})?"
_NUMBER = r"\d+"
_SIGN = rf"{_either(words.SIGN_WORDS)}(?: {_either(tuple(map(str, words.NUMBERS)))})?"
_WHO = rf"the {_either(words.PEOPLE)}"
_ROOM = _either(words.ROOMS)
_SPOT = rf"the {_either(words.PLACES)} in the {_ROOM}"
_CLOCK = r"DAY\d+ \d\d:\d\d:\d\d"
_STATE = _either(tuple(dict.fromkeys(s for pair in words.STATES.values() for s in pair)))
_CONDITION = rf"(?:{_WHO} is in the {_ROOM}|I see {_ITEM}|the sign reads {_SIGN}|I {_ACT})"


def _say_item(item: Item) -> str:
    if item.n == 1:
        return f"the {item.colour} {item.kind}"
    return f"the {item.n} {item.colour} {item.kind}s"


def _read_item(text: str) -> Item:
    parts = text.split()[1:]
    n = int(parts.pop(0)) if parts[0].isdigit() else 1
    return Item(parts[0], parts[1] if n == 1 else parts[1].removesuffix("s"), n)


def _say_act(act: Act) -> str:
    return f"{act.action} {_say_item(act.item)}" if act.item else act.action


def _read_act(text: str) -> Act:
    action, _, thing = text.partition(" the ")
    return Act(action, _read_item(f"the {thing}") if thing else None)


def _say_condition(c: Condition) -> str:
    if c.person:
        return f"the {c.person} is in the {c.room}"
    if c.sign:
        return f"the sign reads {c.sign}"
    return f"I see {_say_item(c.item)}" if c.item else f"I {_say_act(c.act or Act('wait'))}"


def _read_condition(text: str) -> Condition:
    if text.startswith("the sign reads "):
        return Condition(sign=text.removeprefix("the sign reads "))
    if text.startswith("I see "):
        return Condition(item=_read_item(text.removeprefix("I see ")))
    if text.startswith("I "):
        return Condition(act=_read_act(text.removeprefix("I ")))
    person, _, room = text.removeprefix("the ").partition(" is in the ")
    return Condition(person=person, room=room)


def _read_spot(text: str) -> Spot:
    place, _, room = text.removeprefix("the ").partition(" in the ")
    return Spot(place, room)


def _read_clock(text: str) -> int:
    day, time = text.removeprefix("DAY").split()
    h, m, s = map(int, time.split(":"))
    return (int(day) - 1) * 86_400 + h * 3600 + m * 60 + s


def _several(pattern: str, say: Callable[[Any], str], read: Callable[[str], Any]) -> Slot:
    """Values in order, with commas between."""
    return Slot(
        f"{pattern}(?:, {pattern})*",
        lambda values: ", ".join(map(say, values)),
        lambda text: tuple(read(part) for part in text.split(", ")),
    )


RELATIONS = ("left of", "right of", "in front of", "behind")
SLOTS = {
    "wall_s": Slot(_CLOCK, clock, _read_clock),
    "start_s": Slot(_CLOCK, clock, _read_clock),
    "end_s": Slot(_CLOCK, clock, _read_clock),
    "day": Slot(r"DAY\d+", lambda d: f"DAY{d}", lambda t: int(t.removeprefix("DAY"))),
    "until": Slot(r"DAY\d+", lambda d: f"DAY{d}", lambda t: int(t.removeprefix("DAY"))),
    "room": _plain(words.ROOMS),
    "place": _plain(words.PLACES),
    "slot": Slot(_either(words.SLOTS), lambda i: words.SLOTS[i], words.SLOTS.index),
    "state": Slot(f"(?:, {_STATE})?", lambda s: f", {s}" if s else "", lambda t: t[2:]),
    "is_state": _plain(tuple(dict.fromkeys(s for p in words.STATES.values() for s in p))),
    "person": Slot(_WHO, lambda p: f"the {p}", lambda t: t[4:]),
    "item": Slot(_ITEM, _say_item, _read_item),
    "other": Slot(_ITEM, _say_item, _read_item),
    "act": Slot(_ACT, _say_act, _read_act),
    "action": _plain(tuple(words.ACTIONS)),
    "spot": Slot(_SPOT, lambda s: f"the {s.place} in the {s.room}", _read_spot),
    "sign": Slot(_SIGN, str, str),
    "recipe": _plain(words.RECIPES),
    "number": Slot(_NUMBER, str, int),
    "kind": Slot(
        _either(tuple(f"{k}s" for k in words.KINDS)),
        lambda k: f"{k}s",
        lambda t: t.removesuffix("s"),
    ),
    "relation": _plain(RELATIONS),
    "condition": Slot(_CONDITION, _say_condition, _read_condition),
    "second": _plain(tuple(words.ACTIONS)),
    "other_room": _plain(words.ROOMS),
    "items": _several(_ITEM, _say_item, _read_item),
    "acts": _several(_ACT, _say_act, _read_act),
    "coins": Slot(r"\d+ coins", lambda n: f"{n} coins", lambda t: int(t.split()[0])),
    "maker": _plain(words.MAKERS),
    "town": _plain(words.TOWNS),
}

FORMS: list[type[Sentence]] = []


class Sentence:
    """A sentence of the language; subclasses are registered by being defined."""

    form: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        if cls.form:
            FORMS.append(cls)

    def say(self) -> str:
        """The sentence in words."""
        return re.sub(r"<(\w+)>", lambda m: SLOTS[m[1]].say(getattr(self, m[1])), self.form)


def say(*sentences: Sentence) -> str:
    """Several sentences, one a line."""
    return "\n".join(sentence.say() for sentence in sentences)


def value(slot: str, thing: Any) -> str:
    """A value in words, as it stands in an option: `the red cup`, `DAY2`, `13`."""
    return SLOTS[slot].say(thing)


def read_value(slot: str, text: str) -> Any | None:
    """The value that `text` names, None when it names none."""
    text = text.strip().rstrip(".")
    return SLOTS[slot].read(text) if re.fullmatch(SLOTS[slot].pattern, text) else None


@lru_cache
def _reader() -> tuple[re.Pattern[str], tuple[type[Sentence], ...]]:
    """One pattern for all forms. Group names are `f<form>` and `f<form>_<slot>`."""
    forms = tuple(FORMS)
    options = []
    for i, cls in enumerate(forms):
        # Odd pieces are slot names. Spaces match any white space: prompts may wrap lines.
        pieces = re.split(r"<(\w+)>", cls.form)
        body = "".join(
            f"(?P<f{i}_{piece}>{SLOTS[piece].pattern})" if at % 2 else re.escape(piece)
            for at, piece in enumerate(pieces)
        )
        options.append(f"(?P<f{i}>{body})")
    pattern = "|".join(options).replace(r"\ ", " ").replace(" ", r"\s+")
    # A line break inside a JSON string reads as a backslash and an n.
    return re.compile(rf"(?:(?<!\w)|(?<=\\n))(?:{pattern})"), forms


@lru_cache(maxsize=8192)
def read(text: str) -> tuple[Sentence, ...]:
    """All sentences in a text, in their order."""
    return tuple(sentence for _, _, sentence in spans(text))


def spans(text: str) -> list[tuple[int, int, Sentence]]:
    """All sentences of a text with their start and end in it."""
    pattern, forms = _reader()
    found = []
    for match in pattern.finditer(text):
        index = int(next(n[1:] for n, v in match.groupdict().items() if v and "_" not in n))
        cls = forms[index]
        values = {
            f.name: SLOTS[f.name].read(" ".join(match[f"f{index}_{f.name}"].split()))
            if match[f"f{index}_{f.name}"]
            else ""
            for f in fields(cls)  # type: ignore[arg-type]
        }
        found.append((match.start(), match.end(), cls(**values)))
    return found
