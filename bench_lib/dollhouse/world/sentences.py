"""The sentences of the dollhouse: facts, questions, registrations, replies and reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bench_lib.dollhouse.world.grammar import Act, Condition, Item, Sentence, Spot


@dataclass(frozen=True)
class Fact(Sentence):
    """What was seen or heard at an instant of the wall clock."""

    wall_s: int
    room: str


@dataclass(frozen=True)
class Here(Fact):
    """The wearer is in a room."""

    form = "<wall_s>, <room>: I am here."


@dataclass(frozen=True)
class Seen(Fact):
    """A thing at a place; `slot` is where it stands in the picture."""

    item: Item
    state: str
    place: str
    slot: int
    form = "<wall_s>, <room>: <item><state> at the <place>, <slot>."


@dataclass(frozen=True)
class Did(Fact):
    """What the wearer does, and the state of the thing then."""

    act: Act
    state: str = ""
    form = "<wall_s>, <room>: I <act><state>."


@dataclass(frozen=True)
class PutAt(Fact):
    """The wearer puts a thing somewhere, or takes it from there."""

    action: str
    item: Item
    state: str
    place: str
    form = "<wall_s>, <room>: I <action> <item><state> at the <place>."


@dataclass(frozen=True)
class Met(Fact):
    """Someone is there."""

    person: str
    form = "<wall_s>, <room>: <person> is here."


@dataclass(frozen=True)
class Sign(Fact):
    """A sign with its text."""

    sign: str
    form = "<wall_s>, <room>: the sign reads <sign>."


@dataclass(frozen=True)
class Heard(Sentence):
    """A number is said; only in speech and captions. Who says it, and where, is for the eye."""

    room: ClassVar[str] = ""
    wall_s: int
    number: int
    form = "<wall_s>, it says number <number>."


AnyFact = Fact | Heard
"""What an observer can know: what was seen, and what was said."""

# Questions about earlier sessions. `answer` names the slot of the answer.


@dataclass(frozen=True)
class Question(Sentence):
    """A question of the wearer."""

    answer: ClassVar[str] = ""


@dataclass(frozen=True)
class WhoWith(Question):
    """Who was there at an act."""

    act: Act
    answer = "person"
    form = "Who was with me when I did this: <act>?"


@dataclass(frozen=True)
class WhatDid(Question):
    """The thing of an act, by action, room and day."""

    action: str
    room: str
    day: int
    answer = "item"
    form = "What did I <action> in the <room> on <day>?"


@dataclass(frozen=True)
class SignOn(Question):
    """A sign's text, by room and day."""

    room: str
    day: int
    answer = "sign"
    form = "What did the sign in the <room> read on <day>?"


@dataclass(frozen=True)
class WhereLast(Question):
    """Where a thing is, as far as is known."""

    item: Item
    answer = "spot"
    form = "Where was <item> last seen?"


@dataclass(frozen=True)
class WhichLast(Question):
    """The one thing among the options that was last seen in a state."""

    is_state: str
    answer = "item"
    form = "Which of these things was last seen <is_state>?"


@dataclass(frozen=True)
class FirstOf(Question):
    """The earliest of the acts among the options."""

    answer = "act"
    form = "Which of these did I do first?"


@dataclass(frozen=True)
class LastOf(Question):
    """The latest of the acts among the options."""

    answer = "act"
    form = "Which of these did I do last?"


@dataclass(frozen=True)
class NextAfter(Question):
    """The first of the acts among the options that came after an act."""

    act: Act
    answer = "act"
    form = "Which of these did I do next after this: <act>?"


@dataclass(frozen=True)
class AboutDays(Sentence):
    """The coarse time span of a question in the availability set."""

    day: int
    until: int
    form = "It is about <day> to <until>."


# Questions about now.


@dataclass(frozen=True)
class DoingNow(Question):
    """The current act."""

    answer = "act"
    form = "What do I do now?"


@dataclass(frozen=True)
class HowManyNow(Question):
    """How many things of a kind are in view, of all colours together."""

    kind: str
    answer = "number"
    form = "How many <kind> do I see now?"


@dataclass(frozen=True)
class SignNow(Question):
    """The text of the sign in view."""

    answer = "sign"
    form = "What does the sign here read now?"


@dataclass(frozen=True)
class RelationNow(Question):
    """How one thing stands to another, from the wearer's view."""

    item: Item
    other: Item
    answer = "relation"
    form = "As I see it now, how is <item> placed to <other>?"


@dataclass(frozen=True)
class BesideNow(Question):
    """The thing that stands in a relation to another, from the wearer's view."""

    relation: str
    other: Item
    answer = "item"
    form = "As I see it now, what is right there <relation> <other>?"


# Questions held from a session's start.


@dataclass(frozen=True)
class TakeFrom(Question):
    """What the wearer takes from a place."""

    start_s: int
    place: str
    room: str
    answer = "item"
    form = "From <start_s> on, what do I take at the <place> in the <room>?"


@dataclass(frozen=True)
class WhoIn(Question):
    """Who is first seen in a room."""

    start_s: int
    room: str
    answer = "person"
    form = "From <start_s> on, who is first in the <room> with me?"


@dataclass(frozen=True)
class SignIn(Question):
    """What the sign in a room reads."""

    start_s: int
    room: str
    answer = "sign"
    form = "From <start_s> on, what does the sign in the <room> read?"


@dataclass(frozen=True)
class DoIn(Question):
    """The thing of an action in a room."""

    start_s: int
    action: str
    room: str
    answer = "item"
    form = "From <start_s> on, what do I <action> in the <room>?"


# What the wearer registers, what is said in reply, and why.


@dataclass(frozen=True)
class Register(Sentence):
    """A condition and what to be reminded of when it holds."""

    condition: Condition
    act: Act
    form = "When <condition>, please remind me of this: <act>."


@dataclass(frozen=True)
class Remind(Sentence):
    """The reminder itself."""

    act: Act
    form = "Please remember this: <act>."


@dataclass(frozen=True)
class ItIs(Sentence):
    """Where the sought thing is."""

    item: Item
    spot: Spot
    form = "It is there: <item> was last seen at <spot>."


@dataclass(frozen=True)
class NextStep(Sentence):
    """The next step of a recipe."""

    recipe: str
    act: Act
    form = "The next step of <recipe> is this: <act>."


@dataclass(frozen=True)
class Usually(Sentence):
    """What the wearer usually does after what was just done."""

    act: Act
    form = "After that I usually see you do this: <act>."


@dataclass(frozen=True)
class Holds(Sentence):
    """A reason to speak: the condition can be seen."""

    condition: Condition
    form = "It is so now that <condition>."


@dataclass(frozen=True)
class NotYet(Sentence):
    """A reason to be silent: the condition cannot be seen."""

    condition: Condition
    form = "It is not so now that <condition>."


@dataclass(frozen=True)
class NoNeed(Sentence):
    """A reason to be silent: nothing calls for help."""

    form = "No help from before is needed now."


@dataclass(frozen=True)
class Unseen(Sentence):
    """A reason to be silent: the answer has not been shown."""

    form = "The answer is not yet seen."


@dataclass(frozen=True)
class CannotTell(Sentence):
    """The abstention: no option is named, so no parser can take it for one."""

    form = "I cannot tell from what is shown."


@dataclass(frozen=True)
class NotEnough(Sentence):
    """The fifth option of the availability set."""

    form = "The evidence shown does not suffice."
