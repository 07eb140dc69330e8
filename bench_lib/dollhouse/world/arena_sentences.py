"""Sentences of the StreamArena set: longer questions, watches, and the fact store's documents."""

from __future__ import annotations

from dataclasses import dataclass

from bench_lib.dollhouse.world.grammar import Condition, Item, Sentence
from bench_lib.dollhouse.world.sentences import Question


@dataclass(frozen=True)
class CountDid(Question):
    """How often an action was done."""

    action: str
    answer = "number"
    form = "How many times did I <action> something up to now?"


@dataclass(frozen=True)
class ListDid(Question):
    """The things of an action, each once, in the order of their first time."""

    action: str
    answer = "items"
    form = "Which things did I <action> up to now, in order?"


@dataclass(frozen=True)
class MoreOften(Question):
    """Which of two actions was done more often."""

    action: str
    second: str
    answer = "action"
    form = "Which did I do more often up to now: <action> or <second>?"


@dataclass(frozen=True)
class HigherSign(Question):
    """Which of two rooms has the sign with the higher number."""

    room: str
    other_room: str
    answer = "room"
    form = "Which sign has the higher number, that in the <room> or that in the <other_room>?"


@dataclass(frozen=True)
class DidBetween(Question):
    """All acts in a room during a stretch."""

    room: str
    start_s: int
    end_s: int
    answer = "acts"
    form = "What did I do in the <room> between <start_s> and <end_s>, in order?"


@dataclass(frozen=True)
class SignOf(Question):
    """What the one sign of a room read."""

    room: str
    answer = "sign"
    form = "What did the sign in the <room> read?"


@dataclass(frozen=True)
class HeardNow(Question):
    """The number that was just said; it can be heard and not seen."""

    answer = "number"
    form = "Which number was said just now?"


@dataclass(frozen=True)
class PriceNow(Question):
    """What the thing in hand costs, by the fact store."""

    answer = "coins"
    form = "What is the price of the thing that I hold now?"


@dataclass(frozen=True)
class TownNow(Question):
    """Where the maker of the thing in hand lives: two steps in the fact store."""

    answer = "town"
    form = "In which town lives the maker of the thing that I hold now?"


@dataclass(frozen=True)
class PricePut(Question):
    """What a thing costs that was put somewhere earlier."""

    place: str
    room: str
    answer = "coins"
    form = "What is the price of the thing that I put at the <place> in the <room>?"


@dataclass(frozen=True)
class Watch(Sentence):
    """An instruction to speak up once, when a condition comes true."""

    condition: Condition
    form = "Please tell me when <condition>."


@dataclass(frozen=True)
class Price(Sentence):
    """A document of the fact store."""

    item: Item
    coins: int
    form = "The price of <item> is <coins>."


@dataclass(frozen=True)
class Made(Sentence):
    """A document of the fact store."""

    item: Item
    maker: str
    form = "The maker of <item> is <maker>."


@dataclass(frozen=True)
class Lives(Sentence):
    """A document of the fact store."""

    maker: str
    town: str
    form = "The maker <maker> lives in <town>."
