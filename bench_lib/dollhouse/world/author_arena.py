"""StreamArena's items on one long film: RTP, HR in five patterns, Tool, Pro.

Open questions with a reference answer. Gaps between evidence and question are spread over the four
strata of the benchmark, waits of proactive items over its three, and many watches overlap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bench_lib.dollhouse.world import arena_sentences as a
from bench_lib.dollhouse.world import sentences as s
from bench_lib.dollhouse.world.author_reminders import conditions
from bench_lib.dollhouse.world.camera import Event
from bench_lib.dollhouse.world.chronicle import acts
from bench_lib.dollhouse.world.draft import Desk, Draft
from bench_lib.dollhouse.world.grammar import read, value
from bench_lib.dollhouse.world.lore import Lore
from bench_lib.dollhouse.world.words import CRAFTS, NOTICES
from bench_lib.schema import Moment, Probe, Reference, Registration

GAPS_S = ((20, 300), (300, 900), (900, 1800), (1800, 10_000))
WAITS_S = ((4, 30), (30, 240), (240, 10_000))
ABOUT = {"domain": "household", "subdomain": "chores", "language": "en"}


def _item(
    desk: Desk,
    task: str,
    t_s: int,
    question: s.Question,
    answer: Any,
    evidence: Sequence[Event],
    pattern: str = "",
) -> Draft:
    """An open question at an instant of the film, with its reference answer."""
    text = value(question.answer, answer)
    probe = Probe(
        id="q",
        session=desk.sessions[0],
        t_s=float(t_s),
        reference=Reference(response=text),
    )
    moments = tuple(
        Moment(
            session=desk.sessions[0],
            start_s=e.start_s,
            end_s=min(e.end_s, t_s),
            text=desk.chronicle.told(e) if e.act and e.act.item else "",
        )
        for e in sorted(evidence, key=lambda e: e.start_s)
    )
    kept = {"answer": text, "pattern": pattern, **ABOUT}
    return Draft(
        task,
        (probe,),
        question.say(),
        evidence=moments,
        references={k: v for k, v in kept.items() if v},
    )


def _end(desk: Desk) -> int:
    return desk.chronicle.world.films[0].duration_s


def rtp(desk: Desk) -> Iterator[Draft | None]:
    """What is seen or heard at the very moment."""
    while True:
        yield desk.pick((_now, _sign_now, _heard_now))(desk)


def _seen_event(desk: Desk, fits: Callable[[Event], bool]) -> Event | None:
    events = [e for e in desk.chronicle.events if fits(e) and e.end_s - e.start_s > 3]
    return desk.pick(events) if events else None


def _now(desk: Desk) -> Draft | None:
    event = _seen_event(desk, lambda e: bool(e.act and e.act.action in CRAFTS))
    if event is None:
        return None
    return _item(desk, "RTP", desk.during(event), s.DoingNow(), event.act, [event])


def _sign_now(desk: Desk) -> Draft | None:
    event = _seen_event(desk, lambda e: bool(e.sign))
    if event is None:
        return None
    return _item(desk, "RTP", desk.during(event), s.SignNow(), event.sign, [event])


def _heard_now(desk: Desk) -> Draft | None:
    film = desk.chronicle.world.films[0]
    if not film.captions:
        return None
    caption = desk.pick(film.captions)
    said = next(x for x in read(caption.text) if isinstance(x, s.Heard))
    t_s = int(caption.end_s) + 2
    later = [c for c in film.captions if caption.end_s < c.end_s <= t_s]
    if later or t_s >= film.duration_s:
        return None
    event = desk.chronicle.at(0, caption.start_s)
    return _item(desk, "RTP", t_s, a.HeardNow(), said.number, [event])


def hr(desk: Desk) -> Iterator[Draft | None]:
    """Something earlier in the stream; patterns and gaps take turns."""
    turn = 0
    patterns = (_single, _count, _single, _recall, _single, _compare, _single, _range)
    while True:
        pattern, gap = patterns[turn % len(patterns)], GAPS_S[turn // 2 % len(GAPS_S)]
        for _ in range(20):
            draft = pattern(desk, gap)
            if draft:
                break
        turn += 1
        yield draft


def _ask_after(desk: Desk, event: Event, gap: tuple[int, int]) -> int | None:
    """An instant that lies after an event by a gap of a stratum."""
    low, high = event.end_s + gap[0] + 1, min(event.end_s + gap[1], _end(desk))
    return int(desk.rng.integers(low, high)) if low < high else None


def _single(desk: Desk, gap: tuple[int, int]) -> Draft | None:
    event = desk.pick(desk.chronicle.events)
    t_s = _ask_after(desk, event, gap)
    if t_s is None:
        return None
    if event.act and event.act.item and event.person:
        if event in desk.chronicle.once(0, t_s):
            return _item(
                desk, "HR", t_s, s.WhoWith(acts(event)), event.person, [event], "single_point"
            )
        return None
    past = [e for e in desk.chronicle.before(0, t_s) if e.sign and e.room == event.room]
    if event.sign and len({e.sign for e in past}) == 1 and past[-1] is event:
        return _item(desk, "HR", t_s, a.SignOf(event.room), event.sign, [event], "single_point")
    return None


def _done(desk: Desk, action: str, t_s: float) -> list[Event]:
    past = desk.chronicle.before(0, t_s)
    return [e for e in past if e.act and e.act.item and e.act.action == action]


def _late(desk: Desk) -> int:
    return int(desk.rng.integers(_end(desk) // 2, _end(desk)))


def _count(desk: Desk, gap: tuple[int, int]) -> Draft | None:
    t_s, action = _late(desk), desk.pick(CRAFTS)
    done = _done(desk, action, t_s)
    if not 2 <= len(done) <= 15 or done[-1].end_s > t_s:
        return None
    return _item(desk, "HR", t_s, a.CountDid(action), len(done), done, "multi_count")


def _recall(desk: Desk, gap: tuple[int, int]) -> Draft | None:
    t_s, action = _late(desk), desk.pick(CRAFTS)
    done = _done(desk, action, t_s)
    things = tuple(dict.fromkeys(acts(e).item for e in done))
    if not 2 <= len(things) <= 6 or done[-1].end_s > t_s:
        return None
    first = [next(e for e in done if acts(e).item == thing) for thing in things]
    return _item(desk, "HR", t_s, a.ListDid(action), things, first, "multi_recall")


def _compare(desk: Desk, gap: tuple[int, int]) -> Draft | None:
    t_s = _late(desk)
    if desk.rng.random() < 0.5:
        one, two = desk.shuffled(CRAFTS)[:2]
        counts = [_done(desk, x, t_s) for x in (one, two)]
        if not all(counts) or len(counts[0]) == len(counts[1]):
            return None
        # Whoever has only just seen one of them done would name that one.
        if max(done[-1].end_s for done in counts) > t_s - GAPS_S[0][0]:
            return None
        best = one if len(counts[0]) > len(counts[1]) else two
        question = a.MoreOften(one, two)
        return _item(desk, "HR", t_s, question, best, [*counts[0], *counts[1]], "multi_compare")
    shown: dict[str, Event] = {}
    for event in desk.chronicle.before(0, t_s):
        if event.sign and event.sign.split()[0] in NOTICES:
            shown[event.room] = event
    if len(shown) < 2:
        return None
    first, second = desk.shuffled(list(shown))[:2]
    numbers = [int(shown[r].sign.split()[1]) for r in (first, second)]
    if numbers[0] == numbers[1]:
        return None
    best = first if numbers[0] > numbers[1] else second
    evidence = [shown[first], shown[second]]
    return _item(desk, "HR", t_s, a.HigherSign(first, second), best, evidence, "multi_compare")


def _range(desk: Desk, gap: tuple[int, int]) -> Draft | None:
    events = desk.chronicle.events
    middle = desk.pick([e for e in events if e.act and e.act.item])
    t_s = _ask_after(desk, middle, gap)
    if t_s is None:
        return None
    visit = _visit(events, middle)
    done = [e for e in visit if e.act and e.act.item]
    if len(done) < 2 or visit[-1].end_s > t_s:
        return None
    start_s, end_s = visit[0].wall_s, visit[-1].wall_s + visit[-1].end_s - visit[-1].start_s
    question = a.DidBetween(middle.room, start_s, end_s)
    return _item(desk, "HR", t_s, question, tuple(acts(e) for e in done), done, "temporal_range")


def _visit(events: list[Event], middle: Event) -> list[Event]:
    """The events of one stay in a room."""
    first = last = middle.shot
    while first > 0 and events[first - 1].room == middle.room:
        first -= 1
    while last + 1 < len(events) and events[last + 1].room == middle.room:
        last += 1
    return events[first : last + 1]


def tool(desk: Desk, lore: Lore) -> Iterator[Draft | None]:
    """What only the fact store knows, about a thing that must be seen or remembered first."""
    while True:
        kind = int(desk.rng.integers(3))
        event = _seen_event(desk, lambda e: bool(e.act and e.act.action in CRAFTS))
        if kind == 2:
            yield _price_put(desk, lore)
        elif event is None:
            yield None
        else:
            item, t_s = acts(event).item, desk.during(event)
            assert item is not None
            if kind == 0:
                yield _item(desk, "Tool", t_s, a.PriceNow(), lore.prices[item], [event])
            else:
                town = lore.towns[lore.makers[item]]
                yield _item(desk, "Tool", t_s, a.TownNow(), town, [event])


def _price_put(desk: Desk, lore: Lore) -> Draft | None:
    t_s = _late(desk)
    put = [e for e in desk.chronicle.before(0, t_s) if e.act and e.act.action == "put"]
    times = Counter((e.place, e.room) for e in put)
    once = [e for e in put if times[e.place, e.room] == 1 and e.end_s <= t_s]
    if not once:
        return None
    event = desk.pick(once)
    item = acts(event).item
    assert item is not None
    question = a.PricePut(event.place, event.room)
    return _item(desk, "Tool", t_s, question, lore.prices[item], [event])


def pro(desk: Desk) -> Iterator[Draft | None]:
    """A watch: registered, then due when its condition comes true for the first time.

    Waits of the three strata take turns. In every second turn the watch is under way at the film's
    middle, so that more watches run at once than an agent may have monitors.
    """
    found = conditions(desk, 0)
    turn = 0
    while True:
        draft, middle = None, _end(desk) // 2 if turn % 2 else None
        for _ in range(60):
            draft = _watch(desk, desk.pick(found), WAITS_S[turn // 2 % len(WAITS_S)], middle)
            if draft:
                break
        turn += 1
        yield draft


def _watch(
    desk: Desk, condition: s.Condition, wait: tuple[int, int], middle: int | None
) -> Draft | None:
    events = desk.chronicle.events
    due = desk.pick([e for e in events if desk.chronicle.holds(condition, e)])
    low, high = max(5, due.start_s - wait[1] + 1), due.start_s - wait[0]
    if middle is not None:
        low, high = 5, min(middle, due.start_s - 4) if due.start_s > middle else 0
    if low >= high or due.end_s - due.start_s < 3:
        return None
    t_s = int(desk.rng.integers(low, high))
    between = [e for e in events if e.end_s > t_s and e.start_s < due.start_s]
    if any(desk.chronicle.holds(condition, e) for e in between):
        return None
    watch, holds = a.Watch(condition), s.Holds(condition)
    probe = Probe(
        id="q",
        session=desk.sessions[0],
        t_s=float(t_s),
        reference=Reference(response=holds.say(), reason=holds.say()),
    )
    return Draft(
        "Pro",
        (probe,),
        watch.say(),
        ideal=(desk.moment(due),),
        registration=Registration(session=desk.sessions[0], t_s=float(t_s), text=watch.say()),
        references={"answer": holds.say(), **ABOUT},
    )


def tasks(lore: Lore) -> dict[str, Callable[[Desk], Iterator[Draft | None]]]:
    """The four capabilities, as StreamArena's records name them."""
    return {"RTP": rtp, "HR": hr, "Tool": lambda desk: tool(desk, lore), "Pro": pro}


COUNTS = {"RTP": 6, "HR": 16, "Tool": 6, "Pro": 24}
