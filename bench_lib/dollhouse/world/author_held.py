"""Evidence-Ready Answering: a question held from the session's start until it can be answered."""

from __future__ import annotations

from collections.abc import Iterator

from bench_lib.dollhouse.world import sentences as s
from bench_lib.dollhouse.world.author_recall import other_signs
from bench_lib.dollhouse.world.camera import Event
from bench_lib.dollhouse.world.chronicle import acts
from bench_lib.dollhouse.world.draft import Desk, Draft, reference
from bench_lib.dollhouse.world.probes import heartbeats
from bench_lib.dollhouse.world.words import ACTIONS, CRAFTS, NOTICES, PEOPLE
from bench_lib.schema import Probe


def era(desk: Desk) -> Iterator[Draft | None]:
    """A question held from the session's start until its answer has been seen."""
    while True:
        film = int(desk.rng.integers(desk.films))
        yield desk.pick((_take_from, _who_in, _sign_in, _do_in))(desk, film)


def _era(
    desk: Desk, film: int, question: s.Question, right: object, wrong: list, event: Event, fact: str
) -> Draft | None:
    """The draft of a question that an event of a film answers, in the words of `fact`."""
    settle = desk.brief.settle_s
    if event.start_s < 4 * settle or event.end_s - event.start_s <= settle:
        return None
    end_s = desk.during(event)
    positive = Probe(
        id="p0",
        session=desk.sessions[film],
        t_s=float(end_s),
        polarity="positive",
        reference=reference(None, fact),
    )
    times = [t for t in range(settle, event.start_s) if event.start_s - t >= 1]
    negatives = heartbeats(desk, film, event.start_s, times, s.Unseen())
    evidence = (desk.moment(event, end_s, fact),)
    draft = desk.ask("ERA", (film, end_s), question, right, wrong, evidence)
    if draft is None or not negatives:
        return None
    ideal = desk.moment(event, desk.chronicle.world.films[film].duration_s)
    ideal = ideal.model_copy(update={"start_s": float(end_s)})
    return Draft(
        "ERA",
        (positive, *negatives),
        draft.question,
        draft.options,
        evidence,
        (ideal,),
        references={"evidence": fact},
    )


def _start(desk: Desk, film: int) -> int:
    return desk.chronicle.world.films[film].wall_start_s


def _take_from(desk: Desk, film: int) -> Draft | None:
    events = desk.chronicle.world.films[film].events
    taken = [e for e in events if e.act and e.act.action == "take"]
    if not taken:
        return None
    event = desk.pick(taken)
    item = acts(event).item
    if item is None or sum((e.place, e.room) == (event.place, event.room) for e in taken) > 1:
        return None
    question = s.TakeFrom(_start(desk, film), event.place, event.room)
    state = desk.chronicle.state(item, event.wall_s)[1]
    fact = s.PutAt(event.wall_s, event.room, "take", item, state, event.place).say()
    wrong = desk.items((), [item])
    return _era(desk, film, question, item, wrong, event, fact)


def _who_in(desk: Desk, film: int) -> Draft | None:
    events = [e for e in desk.chronicle.world.films[film].events if e.person]
    if not events:
        return None
    room = desk.pick(events).room
    event = next(e for e in events if e.room == room)
    others = desk.shuffled([p for p in PEOPLE if p != event.person])
    fact = s.Met(event.wall_s, room, event.person).say()
    question = s.WhoIn(_start(desk, film), room)
    return _era(desk, film, question, event.person, others, event, fact)


def _sign_in(desk: Desk, film: int) -> Draft | None:
    events = [e for e in desk.chronicle.world.films[film].events if e.sign]
    if not events:
        return None
    room = desk.pick(events).room
    event = next(e for e in events if e.room == room)
    if len({e.sign for e in events if e.room == room}) > 1 or event.sign.split()[0] not in NOTICES:
        return None
    fact = s.Sign(event.wall_s, room, event.sign).say()
    wrong = other_signs(desk, event.sign)
    question = s.SignIn(_start(desk, film), room)
    return _era(desk, film, question, event.sign, wrong, event, fact)


def _do_in(desk: Desk, film: int) -> Draft | None:
    events = desk.chronicle.world.films[film].events
    done = [e for e in events if e.act and e.act.action in CRAFTS]
    if not done:
        return None
    event = desk.pick(done)
    act = acts(event)
    same = [e for e in done if (acts(e).action, e.room) == (act.action, event.room)]
    if len(same) > 1 or act.item is None:
        return None
    fact = desk.chronicle.told(event)
    wrong = desk.items(ACTIONS[act.action], [act.item])
    question = s.DoIn(_start(desk, film), act.action, event.room)
    return _era(desk, film, question, act.item, wrong, event, fact)
