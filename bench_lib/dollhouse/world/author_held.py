"""Evidence-Ready Answering: a question held from the session's start until it can be answered.

Moments of a film that answer a question of one kind are taken in their order. At each of them a
coin decides: the question may be the one that is answered here, or one that is answered later. So
a probe's time and order tell nothing, and whatever can be seen at the moment neither. A candidate
ends with the first moment at which its question can be answered; many have one probe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench_lib.dollhouse.world import sentences as s
from bench_lib.dollhouse.world.author_recall import other_signs
from bench_lib.dollhouse.world.camera import Event
from bench_lib.dollhouse.world.chronicle import acts
from bench_lib.dollhouse.world.draft import Desk, Draft, reference
from bench_lib.dollhouse.world.probes import heartbeat, settled
from bench_lib.dollhouse.world.words import ACTIONS, CRAFTS, NOTICES, PEOPLE

READY = 1 / 3
"""How often the question is one that can be answered at a probe."""


@dataclass(frozen=True)
class Answer:
    """A question, and the event that answers it: nothing before does."""

    event: Event
    question: s.Question
    right: Any
    wrong: list[Any]
    fact: str


def era(desk: Desk) -> Iterator[Draft | None]:
    """A question held from the session's start until its answer has been seen."""
    while True:
        film = int(desk.rng.integers(desk.films))
        yield _draft(desk, desk.pick((_take_from, _who_in, _sign_in, _do_in))(desk, film))


def _draft(desk: Desk, answers: list[Answer]) -> Draft | None:
    """Probes at some of the events, the last of them perhaps where the question is answered."""
    answers = sorted(answers, key=lambda a: a.event.start_s)
    at, silent, asked = -1, list[Answer](), None
    while asked is None and len(silent) < desk.brief.negatives[1]:
        # A later answer must be left, else only the present one could be asked about.
        fit = [i for i in range(at + 1, len(answers) - 1) if settled(desk, answers[i].event)]
        if not fit:
            break
        at = desk.pick(fit[:2])
        if desk.rng.random() < READY:
            asked = answers[at]
        else:
            silent.append(answers[at])
    if at < 0:
        return None
    chosen = asked or desk.pick(answers[at + 1 :])
    event, film = chosen.event, chosen.event.film
    probes = [
        heartbeat(desk, film, desk.during(a.event), f"n{i}", reference(None, s.Unseen()))
        for i, a in enumerate(silent)
    ]
    ready_s = desk.during(event) if asked else event.start_s + desk.brief.settle_s
    if asked:
        probes.append(heartbeat(desk, film, ready_s, "p0", reference(None, chosen.fact)))
    evidence = (desk.moment(event, ready_s, chosen.fact),)
    draft = desk.ask("ERA", (film, ready_s), chosen.question, chosen.right, chosen.wrong, evidence)
    if draft is None:
        return None
    ideal = desk.moment(event, desk.chronicle.world.films[film].duration_s)
    return Draft(
        "ERA",
        tuple(probes),
        draft.question,
        draft.options,
        evidence,
        (ideal.model_copy(update={"start_s": float(ready_s)}),),
        references={"evidence": chosen.fact},
    )


def _events(desk: Desk, film: int) -> tuple[int, tuple[Event, ...]]:
    """When a film begins, and its events."""
    one = desk.chronicle.world.films[film]
    return one.wall_start_s, tuple(one.events)


def _take_from(desk: Desk, film: int) -> list[Answer]:
    start_s, events = _events(desk, film)
    taken = [e for e in events if e.act and e.act.action == "take"]
    often = Counter((e.place, e.room) for e in taken)
    found = []
    for event in taken:
        item = acts(event).item
        if item is not None and often[event.place, event.room] == 1:
            state = desk.chronicle.state(item, event.wall_s)[1]
            fact = s.PutAt(event.wall_s, event.room, "take", item, state, event.place).say()
            question = s.TakeFrom(start_s, event.place, event.room)
            found.append(Answer(event, question, item, desk.items((), [item]), fact))
    return found


def _first_in_rooms(events: tuple[Event, ...], what: str) -> list[Event]:
    """The first event with someone (`person`), or a `sign`, in each room."""
    first: dict[str, Event] = {}
    for event in events:
        if getattr(event, what):
            first.setdefault(event.room, event)
    return list(first.values())


def _who_in(desk: Desk, film: int) -> list[Answer]:
    start_s, events = _events(desk, film)
    found = []
    for event in _first_in_rooms(events, "person"):
        others = desk.shuffled([p for p in PEOPLE if p != event.person])
        fact = s.Met(event.wall_s, event.room, event.person).say()
        found.append(Answer(event, s.WhoIn(start_s, event.room), event.person, others, fact))
    return found


def _sign_in(desk: Desk, film: int) -> list[Answer]:
    start_s, events = _events(desk, film)
    found = []
    for event in _first_in_rooms(events, "sign"):
        texts = {e.sign for e in events if e.room == event.room and e.sign}
        if len(texts) == 1 and event.sign.split()[0] in NOTICES:
            fact = s.Sign(event.wall_s, event.room, event.sign).say()
            wrong = other_signs(desk, event.sign)
            found.append(Answer(event, s.SignIn(start_s, event.room), event.sign, wrong, fact))
    return found


def _do_in(desk: Desk, film: int) -> list[Answer]:
    start_s, events = _events(desk, film)
    done = [e for e in events if e.act and e.act.action in CRAFTS]
    often = Counter((acts(e).action, e.room) for e in done)
    found = []
    for event in done:
        act = acts(event)
        if act.item is not None and often[act.action, event.room] == 1:
            wrong = desk.items(ACTIONS[act.action], [act.item])
            question = s.DoIn(start_s, act.action, event.room)
            fact = desk.chronicle.told(event)
            found.append(Answer(event, question, act.item, wrong, fact))
    return found
