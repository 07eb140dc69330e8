"""From stories and lessons to packs, and marks of what is learned, each skill by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import torch

from bench_lib.dollhouse import train_letters, train_stories
from bench_lib.dollhouse.train_layout import Clerk, layout
from bench_lib.dollhouse.train_lessons import Asker, Lesson
from bench_lib.dollhouse.train_letters import LETTERS, options, said
from bench_lib.dollhouse.train_loop import Step
from bench_lib.dollhouse.train_rows import Pack, batch, pack, row
from bench_lib.dollhouse.train_stories import Library, Story
from bench_lib.dollhouse.train_text import Bank, loss
from bench_lib.dollhouse.train_watch import Watch
from bench_lib.methods.base import Query
from bench_lib.prompts import PromptSet

_MOST = 7
"""Questions about one story."""
_OPEN = 0.3
"""Share of questions asked without options, so that finding stays in the mix."""


@dataclass
class Teacher:
    """Writes packs: stories as methods show them, questions as the benchmark asks them."""

    clerk: Clerk
    prompts: PromptSet
    library: Library

    def tell(self, rng: np.random.Generator, story: Story, lessons: Sequence[Lesson]) -> Any:
        """A story and its lessons as a pack, with each row's kind."""
        asked = layout(self.clerk, story.method, story.feeds)
        end = self.clerk.token("<|im_end|>")
        rows = []
        for lesson in lessons:
            text, reply = self.words(rng, lesson)
            query = Query(text, story.session, story.cutoff_s, True, self.prompts.render("system"))
            rows.append(row(asked(query), [*self.clerk.tokenize(reply), end]))
        return pack(rows)

    def words(self, rng: np.random.Generator, lesson: Lesson) -> tuple[str, str]:
        """Request and reply of a lesson."""
        if not lesson.wrong:
            return lesson.question, f'{{"content": "{lesson.right}"}}'
        at = int(rng.integers(4))
        texts = list(lesson.wrong)
        texts.insert(at, lesson.right)
        code = "choice_STU" if lesson.kind.startswith("STU") else "choice"
        text = self.prompts.render(
            code, clock="", question=lesson.question, options=options(texts), letters="A|B|C|D"
        )
        return text, said(lesson.right, LETTERS[at])

    def choose(self, rng: np.random.Generator, found: Sequence[Lesson | None]) -> list[Lesson]:
        """At most eight lessons, some of them without their options."""
        by_kind: dict[str, list[Lesson]] = {}
        for lesson in found:
            if lesson:
                by_kind.setdefault(lesson.kind, []).append(lesson)
        # One of each kind by turns: kinds with much to ask must not crowd out the others.
        turns = zip_longest(*(by_kind[k] for k in rng.permutation(sorted(by_kind))))
        chosen = [lesson for turn in turns for lesson in turn if lesson][:_MOST]
        free = ("ACR", "CT", "OCR", "STU-what", "STU-how", "ER-who", "ER-what", "ER-sign")
        return [
            Lesson(c.kind, c.question, c.right)
            if c.kind in (*free, "EST-where") and rng.random() < _OPEN
            else c
            for c in chosen
        ]

    def caption(self, rng: np.random.Generator) -> Any:
        """A pack about one or two frames: what is where, in order and asked one by one."""
        story = train_stories.now(rng, self.library, frames=int(rng.integers(1, 3)))
        asker = Asker(rng, story)
        return self.tell(rng, story, [asker.caption(), *asker.places(5)])

    def now(self, rng: np.random.Generator) -> Any:
        """A pack about the present."""
        story = train_stories.now(rng, self.library)
        lessons = self.choose(rng, list(Asker(rng, story).now()))
        return self.tell(rng, story, lessons) if lessons else self.now(rng)

    def recall(self, rng: np.random.Generator) -> Any:
        """A pack about a few earlier scenes."""
        story = train_stories.recall(rng, self.library)
        lessons = self.choose(rng, list(Asker(rng, story).earlier()))
        return self.tell(rng, story, lessons) if lessons else self.recall(rng)

    def history(self, rng: np.random.Generator, seconds: int = 90) -> Any:
        """A pack about a long stretch of the past."""
        story = train_stories.history(rng, self.library, seconds)
        lessons = self.choose(rng, list(Asker(rng, story).earlier()))
        return self.tell(rng, story, lessons) if lessons else self.history(rng, seconds)

    def watch(self, rng: np.random.Generator) -> Any:
        """A pack about whether to speak now."""
        watch = Watch(self.prompts, self.library)
        story = watch.story(rng)
        asked = layout(self.clerk, story.method, story.feeds)
        end = self.clerk.token("<|im_end|>")
        found = watch.ask(rng, story)
        rows = [row(asked(query), [*self.clerk.tokenize(reply), end]) for query, reply in found]
        return pack(rows) if rows else self.watch(rng)

    def look_up(self, rng: np.random.Generator) -> Pack:
        """The letter look-up, so that it is kept."""
        return train_letters.lesson(self.clerk, self.prompts, rng)


Mix = Sequence[tuple[float, Callable[[np.random.Generator], Pack]]]


def steps(
    model: Any, clerk: Clerk, bank: Bank, mix: Mix, seed: int, tokens: int, noise: float
) -> Step:
    """Steps over packs drawn from a mixture, `tokens` of them a step."""
    shares = np.array([share for share, _ in mix])
    pad = clerk.token("<|endoftext|>")
    letters = torch.tensor([clerk.token(x) for x in LETTERS])

    def step(number: int) -> Any:
        rng = np.random.default_rng((seed, number))
        packs: list[Pack] = []
        while sum(len(p.x) for p in packs) < tokens:
            packs.append(mix[int(rng.choice(len(mix), p=shares / shares.sum()))][1](rng))
        # Packs of like length side by side: little padding.
        packs.sort(key=lambda p: len(p.x))
        value: Any = 0.0
        marks: dict[str, tuple[float, float]] = {}
        total = sum(int(p.said.sum()) for p in packs)
        for part in groups(packs):
            one, right, wanted = loss(model, batch(part, pad), bank, noise, letters)
            value = value + one * (len(wanted) / total)
            right = right.cpu()
            at = torch.isin(wanted.cpu(), letters)
            for name, which in (("letter", at), ("content", ~at)):
                had = marks.get(name, (0.0, 0.0))
                found = (float(right[which].sum()), float(which.sum()))
                marks[name] = (had[0] + found[0], had[1] + found[1])
        return value, marks

    return step


def groups(packs: Sequence[Pack], stretch: float = 1.4) -> list[list[Pack]]:
    """Sorted packs cut where the longest would be more than `stretch` times the shortest."""
    found: list[list[Pack]] = []
    for p in packs:
        if found and len(p.x) <= stretch * len(found[-1][0].x):
            found[-1].append(p)
        else:
            found.append([p])
    return found
