"""What an observer knows: facts from frames and texts, put in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from bench_lib.dollhouse.world.grammar import Act, Item, Sentence, Spot
from bench_lib.dollhouse.world.picture import Picture
from bench_lib.dollhouse.world.sentences import AnyFact, Did, Heard, Met, PutAt, Seen, Sign
from bench_lib.dollhouse.world.words import MAKES

STALE_S = 20
"""A picture older than this, by a clock in the text, is not the present."""
TOGETHER_S = 8
"""Acts that begin within so many seconds in one room follow each other directly."""


@dataclass(frozen=True)
class Doing:
    """An act from its first to its last sighting, with its circumstances."""

    first_s: int
    last_s: int
    room: str
    act: Act
    state: str
    place: str
    person: str
    sign: str


@dataclass
class Recall:
    """Facts in time order. `now` is the newest picture, None where the present is not in view."""

    facts: list[AnyFact]
    now: Picture | None = None
    sentences: Sequence[Sentence] = field(default_factory=tuple)

    @cached_property
    def doings(self) -> list[Doing]:
        """All acts in the order in which they began."""
        people = {(f.wall_s, f.room): f.person for f in self.facts if isinstance(f, Met)}
        signs = {(f.wall_s, f.room): f.sign for f in self.facts if isinstance(f, Sign)}
        found: list[Doing] = []
        for fact in self.facts:
            if isinstance(fact, Did):
                act, place = fact.act, ""
            elif isinstance(fact, PutAt):
                act, place = Act(fact.action, fact.item), fact.place
            else:
                continue
            at = (fact.wall_s, fact.room)
            new = Doing(
                *(fact.wall_s, fact.wall_s, fact.room, act, fact.state, place),
                people.get(at, ""),
                signs.get(at, ""),
            )
            if found and _same(found[-1], new):
                found[-1] = replace(
                    found[-1],
                    last_s=new.last_s,
                    person=found[-1].person or new.person,
                    sign=found[-1].sign or new.sign,
                )
            else:
                found.append(new)
        return found

    def of(self, act: Act) -> list[Doing]:
        """Each time an act was done."""
        return [d for d in self.doings if d.act == act]

    def pairs(self) -> list[tuple[Doing, Doing]]:
        """Acts that follow each other directly."""
        return [
            (a, b)
            for a, b in pairwise(self.doings)
            if a.room == b.room and b.first_s - a.first_s <= TOGETHER_S
        ]

    def where(self, item: Item) -> tuple[Spot, int] | None:
        """Where a thing was last seen, and when; None if never, or if it was taken since."""
        found: tuple[Spot | None, int] | None = None
        for fact in self.facts:
            if isinstance(fact, Seen) and fact.item == item:
                found = (Spot(fact.place, fact.room), fact.wall_s)
            elif isinstance(fact, PutAt) and fact.item == item:
                put = fact.action == "put"
                found = (Spot(fact.place, fact.room) if put else None, fact.wall_s)
        return (found[0], found[1]) if found and found[0] else None

    def state(self, item: Item) -> str:
        """The state in which a thing was last seen, empty if unknown."""
        state = ""
        for fact in self.facts:
            if isinstance(fact, Seen | PutAt) and fact.item == item:
                state = fact.state or state
            elif isinstance(fact, Did) and fact.act.item == item:
                state = fact.state or MAKES.get(fact.act.action, state)
        return state

    def signs(self, room: str) -> list[Sign]:
        """The signs seen in a room."""
        return [f for f in self.facts if isinstance(f, Sign) and f.room == room]

    def met(self, room: str) -> list[Met]:
        """The people seen in a room."""
        return [f for f in self.facts if isinstance(f, Met) and f.room == room]

    def heard(self) -> list[Heard]:
        """The numbers that were said."""
        return [f for f in self.facts if isinstance(f, Heard)]


def _same(one: Doing, two: Doing) -> bool:
    """Whether two sightings are of one act that goes on."""
    alike = (one.act, one.room, one.place) == (two.act, two.room, two.place)
    return alike and two.first_s - one.last_s <= TOGETHER_S


def gather(
    pictures: Iterable[Picture], sentences: Sequence[Sentence], cutoff_s: int | None
) -> Recall:
    """Facts of pictures and texts in time order.

    The newest picture is the present unless a clock in the text is much later than it.
    """
    shown = sorted(pictures, key=lambda p: p.wall_s)
    facts: dict[AnyFact, None] = dict.fromkeys(f for picture in shown for f in picture.facts())
    facts |= dict.fromkeys(s for s in sentences if isinstance(s, AnyFact))
    now = shown[-1] if shown else None
    if now and cutoff_s is not None and cutoff_s - now.wall_s > STALE_S:
        now = None
    return Recall(sorted(facts, key=lambda fact: fact.wall_s), now, sentences)
