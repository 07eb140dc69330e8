"""What an agent did: its memory along a video, one mission's rounds, what each worker saw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

from bench_lib.benches.arena import story_figures as drawn
from bench_lib.benches.arena.story import WORKERS, Story
from bench_lib.report.sections import Piece, Section
from bench_lib.report.tables import Cell, Row, Table
from bench_lib.report.text import duration
from bench_lib.report.theme import colour

MACROS = 12
"""Macro and super events whose text is shown."""
Builder = Callable[[Story], Iterator[Piece]]


def sections(story: Story) -> list[Section]:
    """All three; none where no agent's work was kept."""
    return [] if story.absent else [memory(story), mission(story), workers(story)]


def memory(story: Story) -> Section:
    """Events and monitors along the video, the entity graph, the calls."""
    return _made(story, "What the agent remembered", _memory)


def mission(story: Story) -> Section:
    """The calls that one question set off."""
    return _made(story, "One mission, round by round", _mission)


def workers(story: Story) -> Section:
    """One call of each worker, the richest."""
    return _made(story, "What each worker saw", _workers)


def _made(story: Story, title: str, build: Builder) -> Section:
    if story.absent:
        return Section(title, absent=story.absent)
    _, trajectory = story.there
    return Section(title, f"{story.label}, video {trajectory.id}.", tuple(build(story)))


def _memory(story: Story) -> Iterator[Piece]:
    yield drawn.events(story)
    yield _events(story)
    yield drawn.graph(story)
    yield _calls(story)


def _events(story: Story) -> Table:
    """What the larger events say."""
    bank = story.bank
    found = [("super", e) for e in bank.supers.values()]
    found += [("macro", e) for e in bank.macros.values()]
    title = "Larger events"
    if not found:
        absent = "No micro event was summed up yet: the video is shorter than a macro event."
        return Table(title, (), (), absent=absent)
    rows = tuple(
        Row((
            Cell(f"{level} {event.id}"),
            Cell(bank.timeline.span(event.start_s, event.end_s)),
            Cell(_brief(event.text, 360)),
            Cell(event.closed.replace("_", " ")),
            Cell(f"{len(event.children):,}"),
        ))
        for level, event in found[:MACROS]
    )  # fmt: skip
    note = f"The first {MACROS} of {len(found):,}." if len(found) > MACROS else ""
    return Table(title, ("event", "when", "what", "closed by", "parts"), rows, note, texts=4)


def _brief(text: str, most: int) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= most else plain[: most - 2].rpartition(" ")[0] + " …"


def _calls(story: Story) -> Table:
    """Calls by worker: how many, what they were shown, how long they took."""
    rows = []
    for worker, what in WORKERS.items():
        own = [c for c in story.calls if c["worker"] == worker]
        left = story.left_out.get(worker, 0)
        if not own:
            continue
        rows.append(Row((
            Cell(worker),
            Cell(what),
            Cell(f"{len(own):,}", f"and {left:,} not kept" if left else ""),
            Cell(f"{sum(bool(c['error']) for c in own):,}"),
            Cell(f"{sum(bool(c['rejected']) for c in own):,}"),
            Cell(f"{sum(len(c['shown']) for c in own) / len(own):.1f}"),
            Cell(f"{median(len(c['text']) + c['cut'] for c in own):,.0f}"),
            Cell(duration(median(c["took_s"] for c in own))),
        )))  # fmt: skip
    columns = ("worker", "", "calls", "failed", "rejected replies", "frames a call",
               "median letters", "median wait")  # fmt: skip
    return Table("Calls by worker", columns, tuple(rows), "", texts=2)


def _mission(story: Story) -> Iterator[Piece]:
    candidate = story.question
    if candidate is None:
        yield Table("Mission", (), (), absent="No question was asked.")
        return
    material, trajectory = story.there
    key = trajectory.id, candidate.id, candidate.probes[0].id
    response = material.run.responses().get(key)
    value = drawn.right(story).get(candidate.id)
    reference = candidate.probes[0].reference.response or candidate.references.get("answer", "")
    verdict = {1.0: "right", 0.0: "wrong"}.get(value if value is not None else -1.0, "not judged")
    said = (candidate.registration and candidate.registration.text) or candidate.question
    rows = (
        ("question", said),
        ("when", f"second {candidate.probes[0].t_s:g} of the video"),
        ("answer", (response.text or response.error) if response else "not asked yet"),
        ("reference", reference),
        ("verdict", verdict),
    )
    made = tuple(Row((Cell(a), Cell(b)), colour=colour(candidate.task)) for a, b in rows)
    yield Table(f"{candidate.task}, {candidate.id}", ("", ""), made, texts=2)
    found = story.of_question(candidate)
    if not found:
        yield Table("Calls", (), (), absent="No call is kept that served this question.")
    yield from story.exchanges(found)


def _workers(story: Story) -> Iterator[Piece]:
    for worker in WORKERS:
        own = [c for c in story.calls if c["worker"] == worker]
        if own:
            yield from story.exchanges([max(own, key=lambda c: (len(c["shown"]), len(c["reply"])))])
