"""From stories and lessons to packs, and marks of what is learned, each skill by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np
import torch

from bench_lib.dollhouse.training import letters as train_letters
from bench_lib.dollhouse.training import stories
from bench_lib.dollhouse.training.layout import Clerk, layout
from bench_lib.dollhouse.training.lessons import Asker, Lesson
from bench_lib.dollhouse.training.letters import LETTERS, options, said
from bench_lib.dollhouse.training.loop import Step
from bench_lib.dollhouse.training.rows import Pack, batch, pack, row
from bench_lib.dollhouse.training.stories import Library, Story
from bench_lib.dollhouse.training.text import Bank, loss
from bench_lib.dollhouse.training.watch import Watch
from bench_lib.exchange import Query
from bench_lib.prompts import PromptSet

_MOST = 7
"""Questions about one story."""
_OPEN = 0.3
_FREE = (
    "ACR", "CT", "OCR", "STU-what", "STU-how", "ER-who", "ER-what", "ER-sign", "EST-where",
)  # fmt: skip
"""Share of questions asked without options, so that finding stays in the mix; of these kinds."""


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
            reply_ids = [*self.clerk.tokenize(reply), end]
            rows.append(row(asked(query), reply_ids, shots=lesson.shots))
        return pack(rows)

    def words(self, rng: np.random.Generator, lesson: Lesson) -> tuple[str, str]:
        """Request and reply of a lesson."""
        if not lesson.wrong:
            return lesson.question, said(lesson.right, seen=lesson.seen)
        at = int(rng.integers(4))
        texts = list(lesson.wrong)
        texts.insert(at, lesson.right)
        code = "choice_STU" if lesson.kind.startswith("STU") else "choice"
        text = self.prompts.render(
            code, clock="", question=lesson.question, options=options(texts), letters="A|B|C|D"
        )
        return text, said(lesson.right, LETTERS[at], lesson.seen)

    def choose(self, rng: np.random.Generator, found: Sequence[Lesson | None]) -> list[Lesson]:
        """At most `_MOST` lessons, some of them without their options."""
        by_kind: dict[str, list[Lesson]] = {}
        for lesson in found:
            if lesson:
                by_kind.setdefault(lesson.kind, []).append(lesson)
        # One of each kind by turns: kinds with much to ask must not crowd out the others.
        turns = zip_longest(*(by_kind[k] for k in rng.permutation(sorted(by_kind))))
        chosen = [lesson for turn in turns for lesson in turn if lesson][:_MOST]
        return [
            replace(c, wrong=()) if c.kind in _FREE and rng.random() < _OPEN else c for c in chosen
        ]

    def caption(self, rng: np.random.Generator) -> Any:
        """A pack about one or two frames: what is where, in order and asked one by one."""
        story = stories.now(rng, self.library, frames=int(rng.integers(1, 3)))
        asker = Asker(rng, story)
        return self.tell(rng, story, [asker.caption(), *asker.places(5)])

    def now(self, rng: np.random.Generator) -> Any:
        """A pack about the present."""
        story = stories.now(rng, self.library)
        lessons = self.choose(rng, list(Asker(rng, story).now()))
        return self.tell(rng, story, lessons) if lessons else self.now(rng)

    def recall(self, rng: np.random.Generator) -> Any:
        """A pack about a few earlier scenes."""
        story = stories.recall(rng, self.library)
        lessons = self.choose(rng, list(Asker(rng, story).earlier()))
        return self.tell(rng, story, lessons) if lessons else self.recall(rng)

    def history(self, rng: np.random.Generator, seconds: int = 90) -> Any:
        """A pack about a long stretch of the past."""
        story = stories.history(rng, self.library, seconds)
        lessons = self.choose(rng, list(Asker(rng, story).earlier()))
        return self.tell(rng, story, lessons) if lessons else self.history(rng, seconds)

    def watch(self, rng: np.random.Generator) -> Any:
        """A pack about whether to speak now."""
        watch = Watch(self.prompts, self.library)
        story = watch.story(rng)
        asked = layout(self.clerk, story.method, story.feeds)
        end = self.clerk.token("<|im_end|>")
        found = watch.ask(rng, story)
        newest = (story.scenes[-1].code,)
        rows = [
            row(asked(query), [*self.clerk.tokenize(reply), end], shots=newest)
            for query, reply in found
        ]
        return pack(rows) if rows else self.watch(rng)

    def look_up(self, rng: np.random.Generator) -> Pack:
        """The letter look-up, so that it is kept."""
        return train_letters.lesson(self.clerk, self.prompts, rng)


Named = tuple[str, Pack]
Mix = Sequence[tuple[str, float, Callable[[np.random.Generator], Pack]]]
"""The parts of a mixture: their names, their shares, and what draws a pack."""


def steps(
    model: Any, clerk: Clerk, bank: Bank, mix: Mix, seed: int, tokens: int, noise: float
) -> Step:
    """Steps over packs drawn from a mixture, `tokens` of them a step.

    Marks are the shares of tokens that are right: letters, decisions, and what else is said, that
    also by the part of the mixture (`now` is perception, `recall` memory).
    """
    shares = np.array([share for _, share, _ in mix])
    pad = clerk.token("<|endoftext|>")
    letters = torch.tensor([clerk.token(x) for x in LETTERS])
    decisions = torch.tensor([clerk.token(x) for x in ("SILENT", "INTERVENE")])
    heavy = torch.cat([letters, decisions])

    def step(number: int) -> Any:
        rng = np.random.default_rng((seed, number))
        drawn: list[Named] = []
        while sum(len(p.x) for _, p in drawn) < tokens:
            name, _, draw = mix[int(rng.choice(len(mix), p=shares / shares.sum()))]
            drawn.append((name, draw(rng)))
        # Packs of like length side by side: little padding.
        drawn.sort(key=lambda one: len(one[1].x))
        value: Any = 0.0
        marks: dict[str, tuple[float, float]] = {}
        total = sum(int(p.said.sum()) for _, p in drawn)
        for part in groups(drawn):
            lot = batch([p for _, p in part], pad)
            one, right, wanted = loss(model, lot, bank, noise, heavy)
            value = value + one * (len(wanted) / total)
            counts = [int(p.said.sum()) for _, p in part]
            each = zip(part, right.cpu().split(counts), wanted.cpu().split(counts), strict=True)
            for (name, _), ok, tokens_said in each:
                letter, decision = (torch.isin(tokens_said, ids) for ids in (letters, decisions))
                content = ~letter & ~decision
                parts = (("letter", letter), ("decision", decision), ("content", content))
                for mark, which in (*parts, (name, content)):
                    had = marks.get(mark, (0.0, 0.0))
                    found = (float(ok[which].sum()), float(which.sum()))
                    marks[mark] = (had[0] + found[0], had[1] + found[1])
        return value, marks

    return step


def groups(packs: Sequence[Named], stretch: float = 1.4) -> list[list[Named]]:
    """Packs sorted by length, cut where one would be more than `stretch` times the shortest."""
    found: list[list[Named]] = []
    for one in packs:
        if found and len(one[1].x) <= stretch * len(found[-1][0][1].x):
            found[-1].append(one)
        else:
            found.append([one])
    return found
