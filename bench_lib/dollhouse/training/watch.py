"""Lessons in speaking and staying silent: the adaptive tasks, half of them with reason to speak.

A story is a session until now; whether to speak follows from its newest scene, as in the author's
tasks (`author_held`, `author_reminders`, `author_unasked`). A reply first says what is seen of what
is waited for, then decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench_lib.dollhouse.training import stories
from bench_lib.dollhouse.training.lessons import Asker
from bench_lib.dollhouse.training.letters import LETTERS, options
from bench_lib.dollhouse.training.stories import Library, Scene, Story
from bench_lib.dollhouse.world import sentences as s
from bench_lib.dollhouse.world.grammar import Act, Condition, Item, Sentence, value
from bench_lib.dollhouse.world.words import (
    ACTIONS,
    COLOURS,
    CRAFTS,
    NOTICES,
    NUMBERS,
    PEOPLE,
    ROOMS,
    SLOTS,
)
from bench_lib.exchange import Note, Query
from bench_lib.prompts import PromptSet
from bench_lib.schema import clock


@dataclass
class Watch:
    """Writes requests and replies of the adaptive tasks."""

    prompts: PromptSet
    library: Library

    def story(self, rng: np.random.Generator) -> Story:
        """A session until now, or its newest seconds."""
        return stories.now(rng, self.library, until=True)

    def ask(self, rng: np.random.Generator, story: Story) -> list[tuple[Query, str]]:
        """Requests about a story with their replies."""
        found = [self._reminder(rng, story, late=bool(rng.integers(2))) for _ in range(2)]
        found += [self._held(rng, story), self._held(rng, story)]
        if rng.random() < 0.3:
            found.append(self._unasked(rng, story))
        return [f for f in found if f]

    def _reminder(self, rng: np.random.Generator, story: Story, late: bool) -> Any:
        """A registered reminder; `late` where it was asked for in an earlier session."""
        ask = Asker(rng, story)
        condition = _condition(ask, story.scenes[-1], bool(rng.integers(2)))
        if condition is None:
            return None
        item = ask.pick(ask.house.singles)
        act = _craft(ask, item)
        said = self.prompts.render("registration", text=s.Register(condition, act).say())
        holds = _holds(condition, story.scenes[-1])
        why: Sentence = s.Holds(condition) if holds else s.NotYet(condition)
        seen = _seen(condition, story.scenes[-1])
        reply = _speaks(s.Remind(act), why, seen) if holds else _silent(why, seen)
        start_s = float(story.feeds[-1].info.wall_start_s or 0.0)
        since = float(rng.integers(int(story.cutoff_s) // 2 + 1))
        note = Note(story.session, since, said, start_s + since)
        if late:
            note = Note(story.session - 1, since, said, start_s - 7_200)
        return self._query(rng, story, "prm" if late else "rcr", (note,), late), reply

    def _held(self, rng: np.random.Generator, story: Story) -> Any:
        """A question held from the session's start; unanswerable where it is about other things."""
        ask = Asker(rng, story)
        found = _question(ask, story.scenes[-1])
        if found is None:
            return None
        question, right, wrong, there, seen = found
        lesson = ask.lesson("ERA", question, right, wrong)
        if lesson is None:
            return None
        at = int(rng.integers(4))
        texts = [*lesson.wrong]
        texts.insert(at, lesson.right)
        text = self.prompts.render("era_start", question=lesson.question, options=options(texts))
        note = Note(story.session, 0.0, text, story.feeds[-1].info.wall_start_s)
        reply = _silent(s.Unseen(), seen)
        if there:
            chosen = f'"content": "{lesson.right}", "answer": "{LETTERS[at]}"'
            reply = f'{{"seen": "{seen}", "decision": "INTERVENE", {chosen}}}'
        return self._query(rng, story, "era", (note,), False), reply

    def _unasked(self, rng: np.random.Generator, story: Story) -> Any:
        """Unasked help where nothing earlier is shown: there is none to give."""
        code = str(rng.choice(["mpa", "tpg"]))
        return self._query(rng, story, code, (), True), _silent(s.NoNeed(), "nothing")

    def _query(
        self,
        rng: np.random.Generator,
        story: Story,
        code: str,
        notes: tuple[Note, ...],
        windowed: bool,
    ) -> Query:
        wall_s = float(story.feeds[-1].info.wall_start_s or 0.0)
        opened_s = max(0.0, story.cutoff_s - float(rng.choice([3, 4, 6, 8, 10, 12])))
        start = clock(wall_s + opened_s)
        if windowed:
            marker = self.prompts.render("interval", start=start)
            notes = (*notes, Note(story.session, opened_s, marker, wall_s + opened_s))
        text = self.prompts.render(
            code, start=start, clock=clock(wall_s + story.cutoff_s), letters="A|B|C|D"
        )
        system = self.prompts.render("system")
        return Query(text, story.session, story.cutoff_s, True, system, notes=notes)


def _speaks(response: Sentence, reason: Sentence, seen: str) -> str:
    return (
        f'{{"seen": "{seen}", "decision": "INTERVENE", "proactive_response": "{response.say()}", '
        f'"reason": "{reason.say()}"}}'
    )


def _silent(reason: Sentence, seen: str) -> str:
    return f'{{"seen": "{seen}", "decision": "SILENT", "reason": "{reason.say()}"}}'


def _seen(c: Condition, scene: Scene) -> str:
    """What a scene shows of the kind of thing that a condition waits for."""
    event = scene.event
    if c.person:
        return f"{event.person or 'nothing'} in the {event.room}"
    if c.sign:
        return event.sign or "nothing"
    if c.act:
        return value("act", event.act) if event.act and event.act.item else "nothing"
    at = [g.slot for g in scene.picture.placed() if g.item == c.item]
    return SLOTS[at[0]] if at else "nothing"


def _condition(ask: Asker, scene: Scene, true: bool) -> Condition | None:
    """A condition that the scene meets, or one like it that it does not meet."""
    event, picture = scene.event, scene.picture
    found: list[Condition] = []
    if event.person:
        found.append(Condition(person=event.person, room=event.room))
    if event.sign.split()[:1] and event.sign.split()[0] in NOTICES:
        found.append(Condition(sign=event.sign))
    if event.act and event.act.action in CRAFTS:
        found.append(Condition(act=event.act))
    singles = [g.item for g in picture.placed() if g.item in ask.house.singles]
    if singles:
        found.append(Condition(item=ask.pick(singles)))
    if not found:
        return None
    condition: Condition = ask.pick(found)
    return condition if true else _other(ask, condition)


def _other(ask: Asker, c: Condition) -> Condition:
    if c.person:
        if ask.rng.random() < 0.5:
            return Condition(person=ask.pick([p for p in PEOPLE if p != c.person]), room=c.room)
        return Condition(person=c.person, room=ask.pick([r for r in ROOMS if r != c.room]))
    if c.sign:
        word, number = c.sign.split()
        if ask.rng.random() < 0.5:
            word = ask.pick([w for w in NOTICES if w != word])
        else:
            number = ask.pick([n for n in NUMBERS if str(n) != number])
        return Condition(sign=f"{word} {number}")
    if c.act:
        others = [i for i in ask.house.singles if i != c.act.item]
        item = ask.pick(others)
        return Condition(
            act=Act(ask.pick([a for a in CRAFTS if item.kind in ACTIONS[a]] or ["take"]), item)
        )
    return Condition(item=ask.pick(ask.house.singles))


def _craft(ask: Asker, item: Item) -> Act:
    return Act(ask.pick([a for a in CRAFTS if item.kind in ACTIONS[a]] or ["take"]), item)


def _holds(c: Condition, scene: Scene) -> bool:
    event = scene.event
    if c.person:
        return (event.person, event.room) == (c.person, c.room)
    if c.sign:
        return event.sign == c.sign
    if c.act:
        return event.act == c.act
    return any(g.item == c.item for g in scene.picture.placed())


def _question(ask: Asker, scene: Scene) -> tuple[s.Question, Any, Sequence[Any], bool, str] | None:
    """A question of ERA, its answer, wrong ones, whether the scene answers it, and what it shows.

    One that the scene does not answer is about another room, place or action, or about this room
    while there is nobody, no sign, or no such act.
    """
    event, start = scene.event, scene.wall_start_s
    there = bool(ask.rng.integers(2))
    here = f" in the {event.room}"
    elsewhere = ask.pick([r for r in ask.house.layout if r != event.room])
    way = int(ask.rng.integers(4))
    if way == 0 and (event.person or not there):
        right = event.person or ask.pick(PEOPLE)
        wrong = ask.shuffled([p for p in PEOPLE if p != right])
        room = event.room if there or not event.person else elsewhere
        return s.WhoIn(start, room), right, wrong, there, (event.person or "nothing") + here
    if way == 1:
        sign = event.sign if event.sign.split()[:1] and event.sign.split()[0] in NOTICES else ""
        if there and not sign:
            return None
        right = sign or f"{ask.pick(NOTICES)} {ask.pick(NUMBERS)}"
        room = event.room if there or not event.sign else elsewhere
        return (
            s.SignIn(start, room),
            right,
            ask._signs(right),
            there,
            (event.sign or "nothing") + here,
        )
    act = event.act if event.act and event.act.item else None
    done = act.action if act else ""
    item = act.item if act and act.item else ask.pick(ask.house.singles)
    shown = value("act", act) if act else "nothing"
    shown += (f" at the {event.place}" if done == "take" else "") + here
    if way == 2:
        fitting = done in CRAFTS
        if there and not fitting:
            return None
        other = ask.pick([a for a in CRAFTS if a != done])
        same = there or (fitting and bool(ask.rng.integers(2)))
        action, room = (done if same else other), (event.room if there or not same else elsewhere)
        return s.DoIn(start, action, room), item, _made(ask, action, item), there, shown
    if way == 3:
        taken = done == "take"
        if there and not taken:
            return None
        place, room = event.place if taken else ask.pick(ask.house.layout[event.room]), event.room
        if taken and not there:
            room = elsewhere
            place = ask.pick(ask.house.layout[room])
        return s.TakeFrom(start, place, room), item, _made(ask, "take", item), there, shown
    return None


def _made(ask: Asker, action: str, item: Item) -> list[Item]:
    kinds = ACTIONS[action]
    made = [Item(ask.pick(COLOURS), ask.pick(kinds)) for _ in range(12)]
    return [i for i in made if value("item", i) != value("item", item)]
