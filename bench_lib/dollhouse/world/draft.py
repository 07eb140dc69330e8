"""What the author's task files share: drafts of candidates before letters and ids are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from bench_lib.dollhouse.world.camera import Event
from bench_lib.dollhouse.world.chronicle import Chronicle
from bench_lib.dollhouse.world.grammar import Item, Sentence, value
from bench_lib.dollhouse.world.sentences import Question
from bench_lib.dollhouse.world.words import COLOURS, KINDS
from bench_lib.schema import Moment, Probe, Reference, Registration


@dataclass(frozen=True)
class Brief:
    """How an author works: for `apm`, for `arena`, or for the five options of `availability`.

    `probes_s` keeps probes that far behind a shot's start. `windows_s` are the lengths of announced
    intervals, drawn alike for both polarities. `negatives` is how many silent probes a reminder
    has, and how many others have at most. `leak` plants a shortcut on purpose: `letter` (B is right
    too often), `text` (right options end in a full stop) or `length` (positive windows are short).
    """

    counts: dict[str, int] = field(default_factory=dict)
    settle_s: int = 2
    windows_s: tuple[int, ...] = (4, 6, 8, 10, 12)
    negatives: tuple[int, int] = (2, 4)
    leak: str = ""
    bench: Literal["apm", "arena", "availability"] = "apm"


@dataclass(frozen=True)
class Draft:
    """A candidate without id and letters; `options` holds the right value first."""

    task: str
    probes: tuple[Probe, ...]
    question: str = ""
    options: tuple[str, ...] = ()
    evidence: tuple[Moment, ...] = ()
    ideal: tuple[Moment, ...] = ()
    registration: Registration | None = None
    references: dict[str, str] = field(default_factory=dict)


@dataclass
class Desk:
    """The author's place of work on one world."""

    chronicle: Chronicle
    rng: np.random.Generator
    brief: Brief
    sessions: tuple[str, ...]

    @property
    def films(self) -> int:
        """How many films there are."""
        return len(self.chronicle.world.films)

    def pick(self, options: Sequence[Any]) -> Any:
        """One of them."""
        return options[int(self.rng.integers(len(options)))]

    def shuffled(self, options: Sequence[Any]) -> list[Any]:
        """All of them in random order."""
        return [options[int(i)] for i in self.rng.permutation(len(options))]

    def moment(self, event: Event, end_s: float | None = None, text: str = "") -> Moment:
        """An event as a moment of its session."""
        return Moment(
            session=self.sessions[event.film],
            start_s=event.start_s,
            end_s=event.end_s if end_s is None else end_s,
            text=text,
        )

    def moments(self, events: Sequence[Event], texts: dict[Event, str]) -> tuple[Moment, ...]:
        """Events as moments, in time order."""
        ordered = sorted(set(events), key=lambda e: (e.film, e.start_s))
        return tuple(self.moment(e, text=texts.get(e, "")) for e in ordered)

    def later(self, share: float = 1.0) -> tuple[int, int]:
        """A random cutoff in the first part of a film that is not the first: film and second."""
        film = int(self.rng.integers(1, self.films))
        end_s = self.chronicle.world.films[film].duration_s
        return film, int(self.rng.integers(4, max(5, int(end_s * share))))

    def during(self, event: Event) -> int:
        """A random whole second at which an event has been seen for a while."""
        return int(self.rng.integers(event.start_s + self.brief.settle_s, event.end_s))

    def ask(
        self,
        task: str,
        at: tuple[int, float],
        question: Question,
        right: Any,
        wrong: Sequence[Any],
        evidence: tuple[Moment, ...],
    ) -> Draft | None:
        """A multiple-choice draft; None when there are not three different wrong options."""
        options = dict.fromkeys(value(question.answer, v) for v in (right, *wrong))
        if len(options) < 4:
            return None
        probe = Probe(id="q", session=self.sessions[at[0]], t_s=float(at[1]))
        chosen = tuple(options)[:4]
        return Draft(task, (probe,), question.say(), chosen, evidence)

    def items(self, kinds: Sequence[str], without: Sequence[Item]) -> list[Item]:
        """Things of some kinds as wrong options: the household's first, then made-up ones.

        Those are of kinds that could be handled there, not of those that only lie about.
        """
        counted = {i.kind for i in self.chronicle.world.house.collections}
        kinds = [kind for kind in kinds or KINDS if kind not in counted]
        barred = {(i.colour, i.kind) for i in without}
        own = [i for i in self.chronicle.world.house.singles if i.kind in kinds]
        own = [i for i in self.shuffled(own) if (i.colour, i.kind) not in barred]
        made = [Item(self.pick(COLOURS), self.pick(kinds)) for _ in range(12)]
        return own + [i for i in made if (i.colour, i.kind) not in barred]


def reference(response: Sentence | None, reason: Sentence | str) -> Reference:
    """Reference texts from sentences."""
    text = reason if isinstance(reason, str) else reason.say()
    return Reference(response=response.say() if response else "", reason=text)
