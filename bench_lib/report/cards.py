"""Single asks up close: frames, question, reply, and what was made of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from bench_lib.asks.ask import Ask
from bench_lib.readings.material import Material, outcome
from bench_lib.report.frames import Picture, Shot, last_visible, take
from bench_lib.report.text import duration, instant
from bench_lib.report.theme import colour
from bench_lib.schema import Candidate, Moment, Probe, Response, Trajectory
from bench_lib.tasks import Task, task_of

if TYPE_CHECKING:
    from bench_lib.report.kit import Fragment

RAW_LIMIT = 1200
"""Characters of a raw reply that a card shows."""
EVIDENCE_FRAMES = 3
LONG_S = 6.0
"""Evidence of at least this length is shown in three frames instead of one."""
LEAD_S = 3.0
"""How long before the cutoff the first of the two frames at a probe lies."""


@dataclass(frozen=True)
class Line:
    """An option of the question: whether it is the key, and whether it was chosen."""

    letter: str
    text: str
    key: bool
    chosen: bool


@dataclass(frozen=True)
class Card:
    """What a card shows; texts are plain and are escaped where they are printed."""

    why: str
    task: Task
    candidate: Candidate | None
    where: str
    colour: str
    response: Response | None = None
    outcome: str = ""
    options: tuple[Line, ...] = ()
    registration: str = ""
    interval: str = ""
    expected: str = ""
    reference: str = ""
    evidence: tuple[str, ...] = ()
    shots: tuple[Shot, ...] = ()
    frames: tuple[Picture, ...] = ()
    probes: tuple[str, ...] = ()

    @property
    def raw(self) -> str:
        """The raw reply, cut at `RAW_LIMIT`."""
        return self.response.raw_text[:RAW_LIMIT] if self.response else ""

    @property
    def left_out(self) -> int:
        """Characters of the raw reply that are not shown."""
        return max(0, len(self.response.raw_text) - RAW_LIMIT) if self.response else 0


def replies(material: Material) -> list[Card]:
    """Cards of a few asks with their replies."""
    known = material.bench.outcomes_by_key(material)
    made = [_card(material, why, response) for why, response in material.bench.picked(material)]
    named = [
        replace(card, outcome=known.get(card.response.key, card.outcome))
        for card in made
        if card.response
    ]
    return _pictured(named)


def _pictured(made: list[Card]) -> list[Card]:
    """The cards with their frames, which are read session by session for all of them."""
    pictures = iter(take([shot for card in made for shot in card.shots]))
    return [replace(card, frames=tuple(islice(pictures, len(card.shots)))) for card in made]


def _card(material: Material, why: str, response: Response) -> Card:
    task = material.bench.task(response.task)
    known = material.asks.get(response.key)
    plain = Card(
        why,
        task,
        known[1].candidate if known else None,
        f"{response.trajectory} · {response.session} at {duration(response.cutoff_s)}",
        colour(task.capability),
        response,
        outcome(response),
    )
    if known is None:
        return plain
    return _filled(plain, *known)


def _filled(card: Card, trajectory: Trajectory, ask: Ask) -> Card:
    candidate, probe = ask.candidate, ask.probe
    session = trajectory.session(probe.session)
    picked = card.response.option if card.response else None
    said = candidate.registration
    edge = "its own frame included" if probe.closed else "its own frame excluded"
    interval = ""
    if probe.interval:
        interval = f"from {instant(session, probe.interval[0])} to the cutoff"
    return replace(
        card,
        where=f"{trajectory.title or trajectory.id} · cutoff {instant(session, probe.t_s)}, {edge}",
        options=tuple(
            Line(o.id, o.text, o.id == candidate.answer, o.id == picked) for o in candidate.options
        ),
        registration=f"{said.text} ({_at(trajectory, said.session, said.t_s)})" if said else "",
        interval=interval,
        expected=_expected(card.task, candidate, probe),
        reference=_reference(candidate, probe),
        evidence=tuple(
            f"{_at(trajectory, m.session, m.start_s)}, {duration(m.end_s - m.start_s)}"
            + (f": {m.text}" if m.text else "")
            for m in candidate.evidence
        ),
        shots=tuple(_shots(trajectory, candidate.evidence, probe)),
    )


def _reference(candidate: Candidate, probe: Probe) -> str:
    """What a judge compares with; StreamArena's answers belong to the candidate."""
    said = " ".join(filter(None, (probe.reference.response, probe.reference.reason)))
    return said or candidate.references.get("answer", "")


def _at(trajectory: Trajectory, session: str, t_s: float) -> str:
    return instant(trajectory.session(session), t_s)


def _expected(task: Task, candidate: Candidate, probe: Probe) -> str:
    if probe.polarity == "negative":
        return "SILENT"
    letter = f"option {candidate.answer}" if candidate.answer else ""
    if probe.polarity == "positive":
        return f"INTERVENE with {letter}" if task.reply == "adaptive_choice" else "INTERVENE"
    return letter


def _shots(trajectory: Trajectory, evidence: Sequence[Moment], probe: Probe) -> Iterator[Shot]:
    """At the evidence, then two at the probe: a little earlier, and the last visible frame."""
    order = [session.id for session in trajectory.sessions]
    now = order.index(probe.session), probe.t_s
    for where, t_s in _instants(evidence):
        seen = (order.index(where), t_s) <= now
        label = "evidence" if seen else "evidence, not yet seen"
        yield Shot(label, trajectory.session(where), t_s)
    here, cutoff = trajectory.session(probe.session), last_visible(probe.t_s, probe.closed)
    before = max(0.0, probe.interval[0] if probe.interval else cutoff - LEAD_S)
    if before < cutoff:
        yield Shot("interval opens" if probe.interval else "before", here, before)
    yield Shot("last visible", here, cutoff)


def _instants(evidence: Sequence[Moment]) -> list[tuple[str, float]]:
    """At most `EVIDENCE_FRAMES` instants: over one moment, or in the middle of each of several."""
    if len(evidence) == 1 and evidence[0].end_s - evidence[0].start_s >= LONG_S:
        only = evidence[0]
        length = only.end_s - only.start_s
        return [(only.session, only.start_s + length * part) for part in (0.15, 0.5, 0.85)]
    return [(m.session, (m.start_s + m.end_s) / 2) for m in evidence[:EVIDENCE_FRAMES]]


def candidates(trajectory: Trajectory, tasks: Iterable[str]) -> Fragment:
    """The first candidate of each task of a trajectory with its probes, for a notebook."""
    from bench_lib.report.kit import cards

    return cards(questions(trajectory, tasks))


def questions(trajectory: Trajectory, tasks: Iterable[str]) -> list[Card]:
    """Cards of the first candidate of each task of a trajectory, unanswered."""
    found = []
    for code in tasks:
        task = task_of(code)
        candidate = next((c for c in trajectory.candidates if c.task == code), None)
        if candidate is None:
            continue
        probe = next((p for p in candidate.probes if p.polarity != "negative"), candidate.probes[0])
        why = "An adaptive case" if task.adaptive else "A question"
        why = "A proactive case" if task.watches else why
        plain = Card(why, task, candidate, "", colour(task.capability))
        filled = _filled(plain, trajectory, Ask(trajectory.id, candidate, probe))
        listed = tuple(
            f"{_at(trajectory, p.session, p.t_s)} → {_expected(task, candidate, p)}"
            for p in candidate.probes
        )
        found.append(replace(filled, probes=listed))
    return _pictured(found)
