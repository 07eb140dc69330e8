"""Memory-Grounded Proactive Assistance and Task Progress Guidance: help that nobody asked for."""

from __future__ import annotations

from collections.abc import Iterator

from bench_lib.dollhouse.world import sentences as s
from bench_lib.dollhouse.world.camera import Event
from bench_lib.dollhouse.world.draft import Desk, Draft, reference
from bench_lib.dollhouse.world.grammar import Sentence
from bench_lib.dollhouse.world.probes import windows

Help = tuple[Event, Sentence, list[Event]]


def mpa(desk: Desk) -> Iterator[Draft | None]:
    """Unasked help from memory: where a sought thing is, what usually comes next."""
    return _unasked(desk, "MPA", (s.ItIs, s.Usually))


def tpg(desk: Desk) -> Iterator[Draft | None]:
    """The next step of a recipe that was broken off in an earlier session."""
    return _unasked(desk, "TPG", (s.NextStep,))


def _unasked(desk: Desk, task: str, kinds: tuple[type[Sentence], ...]) -> Iterator[Draft | None]:
    moments: list[Help] = []
    for event in desk.chronicle.events:
        found = desk.chronicle.help_due(event)
        if found and isinstance(found[0], kinds) and all(e.film < event.film for e in found[1]):
            moments.append((event, *found))
    while True:
        yield _draft(desk, task, desk.pick(moments)) if moments else None


def _draft(desk: Desk, task: str, due: Help) -> Draft | None:
    event, response, sources = due
    reason = _because(desk, response, sources)
    probes = windows(
        desk, event, lambda e: False, reference(response, reason), reference(None, s.NoNeed())
    )
    if probes is None:
        return None
    return Draft(
        task,
        probes,
        evidence=desk.moments(sources, {e: _told(desk, response, e) for e in sources}),
        ideal=(desk.moment(event),),
        references={"response_window_rationale" if task == "MPA" else "memory_relevance": reason},
    )


def _told(desk: Desk, response: Sentence, event: Event) -> str:
    return response.say() if isinstance(response, s.ItIs) else desk.chronicle.told(event)


def _because(desk: Desk, response: Sentence, sources: list[Event]) -> str:
    """The remembered facts that the help rests on."""
    return " ".join(dict.fromkeys(_told(desk, response, e) for e in sources))
