"""What training asks about a story, and what is right: from the scenes shown and nothing else.

Questions and wrong options are those of the author's tasks (`author_now`, `author_recall`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bench_lib.dollhouse.training.stories import Scene, Story
from bench_lib.dollhouse.world import sentences as s
from bench_lib.dollhouse.world.grammar import RELATIONS, Act, Item, Spot, value
from bench_lib.dollhouse.world.words import (
    ACTIONS,
    COLOURS,
    CRAFTS,
    MAKES,
    NOTICES,
    NUMBERS,
    PEOPLE,
    SLOTS,
    STATES,
)
from bench_lib.dollhouse.world.world import DAY_S


@dataclass(frozen=True)
class Lesson:
    """A question with its right answer and three wrong ones; without wrong ones it is open.

    `seen` is what is to be said before the answer: several look-ups, each of them easy. `shots` are
    the numbers of the shots that show the answer; empty for all.
    """

    kind: str
    question: str
    right: str
    wrong: tuple[str, ...] = ()
    seen: str = ""
    shots: tuple[int, ...] = ()


class Asker:
    """Asks about one story."""

    def __init__(self, rng: np.random.Generator, story: Story) -> None:
        self.rng, self.story, self.house = rng, story, story.world.house
        self.last: Scene = story.scenes[-1]

    def pick(self, options: Sequence[Any]) -> Any:
        """One of them."""
        return options[int(self.rng.integers(len(options)))]

    def shuffled(self, options: Sequence[Any]) -> list[Any]:
        """All of them in random order."""
        return [options[int(i)] for i in self.rng.permutation(len(options))]

    def lesson(
        self,
        kind: str,
        question: s.Question,
        right: Any,
        wrong: Sequence[Any],
        seen: str = "",
        shown: Sequence[Scene] = (),
    ) -> Any:
        """A lesson, None where there are not four different options."""
        texts = list(dict.fromkeys(value(question.answer, v) for v in (right, *wrong)))
        if len(texts) < 4:
            return None
        shots = tuple(c.code for c in shown)
        return Lesson(kind, question.say(), texts[0], tuple(texts[1:4]), seen, shots)

    # Now ------------------------------------------------------------------------------------------

    def now(self) -> Iterator[Lesson | None]:
        """Everything there is to ask about what is seen now."""
        for lesson in self._now():
            yield replace(lesson, shots=(self.last.code,)) if lesson else None

    def _now(self) -> Iterator[Lesson | None]:
        picture = self.last.picture
        act = picture.act
        if act and act.item and act.action in (*CRAFTS, *MAKES):
            family = CRAFTS if act.action in CRAFTS else tuple(MAKES)
            yield self.lesson("ACR", s.DoingNow(), act, self._like(family, 12))
        totals = Counter[str]()
        for group in picture.placed():
            totals[group.item.kind] += group.item.n
        many = [k for k in totals if any(i.kind == k for i in self.house.collections)]
        for kind in many[:2]:
            total = totals[kind]
            span = range(1, 5) if total < 5 else range(5, 9)
            wrong = [n for n in span if n != total]
            each = [g for g in picture.placed() if g.item.kind == kind]
            each.sort(key=lambda g: g.slot)
            seen = ", ".join(f"{SLOTS[g.slot]} {g.item.n}" for g in each)
            yield self.lesson("CT", s.HowManyNow(kind), total, wrong, seen)
        if picture.sign and picture.sign.split()[0] in NOTICES:
            yield self.lesson("OCR", s.SignNow(), picture.sign, self._signs(picture.sign))
        yield from self._relations()
        yield from self.places(2)

    def _like(self, family: tuple[str, ...], n: int) -> list[Act]:
        found: list[Act] = []
        while len(found) < n:
            item = self.pick(self.house.singles)
            actions = [a for a in family if item.kind in ACTIONS[a]]
            if actions:
                found.append(Act(self.pick(actions), item))
        return found

    def _signs(self, sign: str) -> list[str]:
        word, number = sign.split()
        other = self.pick([w for w in NOTICES if w != word])
        second = self.pick([n for n in NUMBERS if str(n) != number])
        return [f"{word} {second}", f"{other} {number}", f"{other} {second}"]

    def _standing(self) -> dict[Item, int]:
        picture = self.last.picture
        moving = None if picture.acting is None else picture.groups[picture.acting].item
        return {g.item: g.slot for g in picture.placed() if g.item != moving}

    def _relations(self) -> Iterator[Lesson | None]:
        standing = self._standing()
        pairs = [
            (a, b, r)
            for a in standing
            for b in standing
            if a != b and (r := relation(standing[a], standing[b]))
        ]
        for one, other, how in self.shuffled(pairs)[:3]:
            wrong = [r for r in RELATIONS if r != how]
            seen = f"{SLOTS[standing[one]]}, {SLOTS[standing[other]]}"
            yield self.lesson("STU-how", s.RelationNow(one, other), how, wrong, seen)
        for one, other, how in self.shuffled(pairs)[:3]:
            fitting = [a for a in standing if relation(standing[a], standing[other]) == how]
            if len(fitting) == 1:
                here = [i for i in self.shuffled(list(standing)) if i not in (one, other)]
                rest = [i for i in self.shuffled(list(self.house.spots)) if i not in (one, other)]
                seen = f"{SLOTS[standing[other]]}, {SLOTS[standing[one]]}"
                yield self.lesson("STU-what", s.BesideNow(how, other), one, here + rest, seen)

    def caption(self) -> Lesson:
        """All that is seen, place by place in order: dense practice in finding."""
        picture, layout = self.last.picture, self.last.shot.layout
        at = {g.slot: g for g in picture.placed()}
        said = []
        for slot, name in enumerate(SLOTS):
            group = at.get(slot)
            thing = value("item", group.item) if group else "nothing"
            state = f", {group.state}" if group and group.state else ""
            said.append(f"{name}, the {layout[slot]}: {thing}{state}")
        act = picture.act
        if act:
            said.append(f"I {value('act', act)}")
        if picture.person:
            said.append(f"the {picture.person} is here")
        if picture.sign:
            said.append(f"the sign reads {picture.sign}")
        said.append(f"it is the {picture.room}")
        shots = (self.last.code,)
        return Lesson("caption", "What do I see now?", ". ".join(said), shots=shots)

    def places(self, n: int) -> Iterator[Lesson]:
        """Open questions: what is at a place, where is a thing."""
        groups = self.shuffled(self.last.picture.placed())
        for group in groups[:n]:
            thing = value("item", group.item)
            asked = self.rng.integers(3)
            if asked == 0:
                yield Lesson("place", f"What is {SLOTS[group.slot]} now?", thing)
            elif asked == 1:
                yield Lesson("place", f"What is at the {group.place} now?", thing)
            else:
                yield Lesson("slot", f"Where is {thing} now?", SLOTS[group.slot])

    # Earlier --------------------------------------------------------------------------------------

    def earlier(self) -> Iterator[Lesson | None]:
        """Everything there is to ask about the scenes of earlier sessions."""
        scenes = self.story.scenes
        acting = [c for c in scenes if self._done(c)]
        times = Counter(c.event.act for c in acting)
        once = [c for c in acting if times[c.event.act] == 1]
        for c in self.shuffled(once)[:2]:
            if c.event.person:
                others = self.shuffled([p for p in PEOPLE if p != c.event.person])
                question = s.WhoWith(c.event.act)
                yield self.lesson("ER-who", question, c.event.person, others, shown=[c])
        for c in self.shuffled(acting)[:2]:
            yield self._what_did(c)
        for c in self.shuffled(scenes)[:2]:
            yield self._sign_on(c)
        yield from self._where()
        yield from self._which()
        for _ in range(2):
            yield self._order(once)

    def _done(self, c: Scene) -> bool:
        act = c.event.act
        return bool(act and act.item and act.action not in ("take", "put", "seek"))

    def _what_did(self, c: Scene) -> Lesson | None:
        act, day = c.event.act, c.event.wall_s // DAY_S
        assert act
        assert act.item
        same = [
            o
            for o in self.story.scenes
            if o.event.act
            and (o.event.act.action, o.event.room, o.event.wall_s // DAY_S)
            == (act.action, c.event.room, day)
        ]
        if len(same) > 1 or act.action not in CRAFTS:
            return None
        barred = (act.item.colour, act.item.kind)
        kinds = ACTIONS[act.action]
        own = [i for i in self.shuffled(self.house.singles) if i.kind in kinds]
        made = [Item(self.pick(COLOURS), self.pick(kinds)) for _ in range(12)]
        wrong = [i for i in own + made if (i.colour, i.kind) != barred]
        question = s.WhatDid(act.action, c.event.room, day + 1)
        return self.lesson("ER-what", question, act.item, wrong, shown=[c])

    def _sign_on(self, c: Scene) -> Lesson | None:
        sign, day = c.event.sign, c.event.wall_s // DAY_S
        there = [
            o
            for o in self.story.scenes
            if o.event.sign and (o.event.room, o.event.wall_s // DAY_S) == (c.event.room, day)
        ]
        if {o.event.sign for o in there} != {sign} or sign.split()[0] not in NOTICES:
            return None
        question = s.SignOn(c.event.room, day + 1)
        return self.lesson("ER-sign", question, sign, self._signs(sign), shown=there)

    def _where(self) -> Iterator[Lesson | None]:
        seen = {
            g.item: (Spot(g.place, c.event.room), c)
            for c in self.story.scenes
            for g in c.picture.placed()
            if g.item in self.house.spots
            and not (c.event.act and c.event.act.item == g.item and c.event.act.action == "take")
        }
        places = [Spot(p, r) for r, layout in self.house.layout.items() for p in layout]
        singles = [i for i in seen if i not in self.house.collections]
        for item in self.shuffled(singles)[:3]:
            spot, c = seen[item]
            wrong = self.shuffled([p for p in places if p != spot])
            yield self.lesson("EST-where", s.WhereLast(item), spot, wrong, shown=[c])

    def _which(self) -> Iterator[Lesson | None]:
        known = {
            g.item: (g.state, c)
            for c in self.story.scenes
            for g in c.picture.groups
            if g.state and g.item not in self.house.collections
        }
        for pair in self.shuffled(list(dict.fromkeys(STATES.values()))):
            state = self.pick(pair)
            of = [i for i in self.shuffled(list(known)) if STATES.get(i.kind) == pair]
            yes = [i for i in of if known[i][0] == state]
            no = [i for i in of if known[i][0] != state]
            if yes and len(no) < 3:
                # Things of other states that were not shown: only the shown one can be right.
                rest = [i for i in self.house.singles if STATES.get(i.kind) == pair and i not in of]
                no += self.shuffled(rest)
            if yes and len(no) >= 3:
                shown = [known[yes[0]][1]]
                yield self.lesson("EST-which", s.WhichLast(state), yes[0], no[:3], shown=shown)

    def _order(self, once: Sequence[Scene]) -> Lesson | None:
        if len(once) < 4:
            return None
        acts = [c.event.act for c in once]
        way = int(self.rng.integers(3))
        if way < 2:
            four = [acts[i] for i in sorted(self.rng.choice(len(acts), 4, replace=False))]
            seen = ", ".join(value("act", act) for act in four)
            right = four.pop(-1 if way else 0)
            question: s.Question = s.LastOf() if way else s.FirstOf()
            return self.lesson("TR-end", question, right, self.shuffled(four), seen)
        if len(acts) < 5:
            return None
        five = [acts[i] for i in sorted(self.rng.choice(len(acts), 5, replace=False))]
        after = int(self.rng.integers(0, 4))
        anchor, right = five[after], five[after + 1]
        rest = self.shuffled([a for a in five if a not in (anchor, right)])
        seen = ", ".join(value("act", act) for act in five)
        return self.lesson("TR-next", s.NextAfter(anchor), right, rest, seen)


def relation(one: int, other: int) -> str:
    """How a place of the picture stands to another; empty where no relation holds."""
    if one // 3 == other // 3 and one != other:
        return "left of" if one % 3 < other % 3 else "right of"
    if one % 3 == other % 3 and one != other:
        return "in front of" if one // 3 > other // 3 else "behind"
    return ""
