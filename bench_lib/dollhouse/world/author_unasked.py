"""Memory-Grounded Proactive Assistance and Task Progress Guidance: help that nobody asked for.

A candidate is about moments of one film that look alike: at one of them help is due, at the others
it is not, and only earlier films tell which (`threads`).
"""

from __future__ import annotations

from collections.abc import Iterator

from bench_lib.dollhouse.world import sentences as s
from bench_lib.dollhouse.world.camera import Event
from bench_lib.dollhouse.world.chronicle import acts
from bench_lib.dollhouse.world.draft import Desk, Draft, reference
from bench_lib.dollhouse.world.grammar import Sentence
from bench_lib.dollhouse.world.probes import ends, window
from bench_lib.dollhouse.world.words import RECIPES


def mpa(desk: Desk) -> Iterator[Draft | None]:
    """Unasked help from memory: where a sought thing is, what usually comes next."""
    return _unasked(desk, "MPA", ("seek", "wait"))


def tpg(desk: Desk) -> Iterator[Draft | None]:
    """The next step of a recipe that was broken off in an earlier session."""
    return _unasked(desk, "TPG", ("card",))


def _unasked(desk: Desk, task: str, kinds: tuple[str, ...]) -> Iterator[Draft]:
    """Each moment at which help is due once, beside those of its film that look alike."""
    alike: dict[tuple[int, str], list[Event]] = {}
    for event in desk.shuffled(desk.chronicle.events):
        kind = _kind(event) if desk.chronicle.cue(event) else ""
        if kind in kinds and ends(desk, event) and _from_earlier(desk, event):
            alike.setdefault((event.film, kind), []).append(event)
    for moments in alike.values():
        others = [e for e in moments if not _due(desk, e)]
        for event in moments:
            if others and _due(desk, event):
                yield _draft(desk, task, event, desk.shuffled(others))


def _kind(event: Event) -> str:
    return "card" if event.sign in RECIPES else acts(event).action


def _due(desk: Desk, event: Event) -> bool:
    return desk.chronicle.help_due(event) is not None


def _from_earlier(desk: Desk, event: Event) -> bool:
    """Whether nothing in the film itself tells if help is due, or would for a thing's twin."""
    chronicle, act = desk.chronicle, acts(event)
    due = chronicle.help_due(event)
    if act.item is None:
        return due is None or all(e.film < event.film for e in due[1])
    item = chronicle.world.house.lost.get(act.item, act.item)
    before = chronicle.world.films[event.film].events[: event.shot + 1]
    return not any(chronicle.in_view(item, e) for e in before)


def _draft(desk: Desk, task: str, event: Event, others: list[Event]) -> Draft:
    due = desk.chronicle.help_due(event)
    assert due is not None
    response, sources = due
    reason = _because(desk, response, sources)
    chosen = [(event, "p0", reference(response, reason))]
    for i, other in enumerate(others[: desk.brief.negatives[1]]):
        chosen.append((other, f"n{i}", reference(None, s.NoNeed())))
    probes = [window(desk, e.film, desk.pick(ends(desk, e)), name, to) for e, name, to in chosen]
    return Draft(
        task,
        tuple(probes),
        evidence=desk.moments(sources, {e: _told(desk, response, e) for e in sources}),
        ideal=(desk.moment(event),),
        references={"response_window_rationale" if task == "MPA" else "memory_relevance": reason},
    )


def _told(desk: Desk, response: Sentence, event: Event) -> str:
    return response.say() if isinstance(response, s.ItIs) else desk.chronicle.told(event)


def _because(desk: Desk, response: Sentence, sources: list[Event]) -> str:
    """The remembered facts that the help rests on."""
    return " ".join(dict.fromkeys(_told(desk, response, e) for e in sources))
