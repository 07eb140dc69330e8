"""From a world to candidates: draws drafts for each task, gives letters and ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from bench_lib.dollhouse.world import (
    author_arena,
    author_held,
    author_now,
    author_recall,
    author_reminders,
    author_unasked,
)
from bench_lib.dollhouse.world.chronicle import Chronicle
from bench_lib.dollhouse.world.draft import Brief, Desk, Draft
from bench_lib.dollhouse.world.lore import lore
from bench_lib.dollhouse.world.world import World
from bench_lib.schema import Candidate, Option

TASKS: dict[str, Callable[[Desk], Iterator[Draft | None]]] = {
    "ER": author_recall.er,
    "EST": author_recall.est,
    "TR": author_recall.tr,
    "ACR": author_now.acr,
    "CT": author_now.ct,
    "OCR": author_now.ocr,
    "STU": author_now.stu,
    "ERA": author_held.era,
    "RCR": author_reminders.rcr,
    "MPA": author_unasked.mpa,
    "PRM": author_reminders.prm,
    "TPG": author_unasked.tpg,
}
COUNTS = {
    "ER": 2, "EST": 2, "TR": 2, "ACR": 1, "CT": 1, "OCR": 1, "STU": 1,
    "ERA": 1, "RCR": 1, "MPA": 1, "PRM": 1, "TPG": 1,
}  # fmt: skip
_TRIES = 60
"""Drafts a task may waste for each one that is kept."""


def write(
    world: World, name: str, sessions: tuple[str, ...], brief: Brief
) -> tuple[Candidate, ...]:
    """Candidates of a trajectory, at most as many of each task as the brief counts."""
    rng = np.random.default_rng((world.seed, 13))
    desk = Desk(Chronicle(world), rng, brief, sessions)
    tasks, counts = TASKS, COUNTS
    if brief.bench == "arena":
        tasks, counts = author_arena.tasks(lore(world.house.singles)), author_arena.COUNTS
    drafts: list[Draft] = []
    for task, draw in tasks.items():
        drafts += _distinct(draw(desk), (brief.counts or counts).get(task, 0))
    letters = _letters(rng, sum(bool(d.options) for d in drafts), brief)
    drafts = [_seen(draft, desk) for draft in drafts]
    return tuple(_candidate(d, name, i, letters, rng, brief) for i, d in enumerate(drafts))


def _seen(draft: Draft, desk: Desk) -> Draft:
    """The draft, its probes with what stands out in their newest frame."""
    probes = []
    for probe in draft.probes:
        film = desk.chronicle.world.films[desk.sessions.index(probe.session)]
        newest = film.picture(probe.t_s if probe.closed else probe.t_s - 1)
        probes.append(probe.model_copy(update={"glance": newest.glance()}))
    return replace(draft, probes=tuple(probes))


def _distinct(drafts: Iterator[Draft | None], wanted: int) -> list[Draft]:
    """Drafts that differ in what they ask; fewer than wanted where a world gives no more."""
    found: dict[tuple[str, str, str], Draft] = {}
    for draft in islice(drafts, _TRIES * wanted):
        if len(found) >= wanted:
            break
        if draft:
            said = draft.registration.text if draft.registration else ""
            answer = draft.options[:1] or draft.references.get("answer")
            asked = f"{draft.question} {answer}"
            where = f"{draft.probes[0].session} {draft.ideal}" if not draft.question else ""
            found.setdefault((asked, said, where), draft)
    return list(found.values())


def _letters(rng: np.random.Generator, n: int, brief: Brief) -> Iterator[int]:
    """Places of the right option: each of the four equally often, in random order."""
    places = [int(p) for _ in range(-(-n // 4)) for p in rng.permutation(4)]
    if brief.leak == "letter":
        places = [1 if rng.random() < 0.6 else p for p in places]
    return iter(places)


def _candidate(
    draft: Draft,
    name: str,
    index: int,
    letters: Iterator[int],
    rng: np.random.Generator,
    brief: Brief,
) -> Candidate:
    options: list[str] = []
    answer = None
    if draft.options:
        right, *wrong = draft.options
        right += "." if brief.leak == "text" else ""
        place = next(letters)
        options = [wrong[int(i)] for i in rng.permutation(3)]
        options.insert(place, right)
        answer = "ABCD"[place]
    return Candidate(
        id=f"{name}-{draft.task}-{index:02d}",
        task=draft.task,
        question=draft.question,
        options=tuple(Option(id="ABCD"[i], text=text) for i, text in enumerate(options)),
        answer=answer,
        evidence=draft.evidence,
        ideal=draft.ideal,
        registration=draft.registration,
        probes=tuple(sorted(draft.probes, key=lambda p: (p.session, p.t_s))),
        references=draft.references,
    )
