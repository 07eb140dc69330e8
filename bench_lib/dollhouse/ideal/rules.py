"""How a perfect observer answers: one rule for each form of question, from what was shown alone.

Each rule gives None where what was shown does not determine the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bench_lib.dollhouse.ideal import arena_rules
from bench_lib.dollhouse.ideal.recall import TOGETHER_S, Recall
from bench_lib.dollhouse.world import sentences as s
from bench_lib.dollhouse.world.grammar import Act, Condition, Item, Sentence, read_value
from bench_lib.dollhouse.world.picture import Picture
from bench_lib.dollhouse.world.words import RECIPES
from bench_lib.dollhouse.world.world import DAY_S


def answer(question: s.Question, known: Recall, options: Sequence[str] = ()) -> Any | None:
    """The answer's value, None where it is not determined."""
    rule = RULES[type(question)]
    values = [v for v in (read_value(question.answer, text) for text in options) if v is not None]
    return rule(question, known, values)


def _only(values: Iterable[Any]) -> Any | None:
    """The one value there is, None where there are none or several."""
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _who_with(q: s.WhoWith, known: Recall, _: list[Any]) -> str | None:
    return _only(d.person for d in known.of(q.act) if d.person)


def _what_did(q: s.WhatDid, known: Recall, _: list[Any]) -> Item | None:
    return _only(
        d.act.item
        for d in known.doings
        if (d.act.action, d.room, d.first_s // DAY_S + 1) == (q.action, q.room, q.day)
    )


def _sign_on(q: s.SignOn, known: Recall, _: list[Any]) -> str | None:
    return _only(f.sign for f in known.signs(q.room) if f.wall_s // DAY_S + 1 == q.day)


def _where_last(q: s.WhereLast, known: Recall, _: list[Any]) -> Any | None:
    found = known.where(q.item)
    return found[0] if found else None


def _which_last(q: s.WhichLast, known: Recall, options: list[Any]) -> Item | None:
    states = {item: known.state(item) for item in options}
    if not all(states.values()):
        return None
    return _only(item for item, state in states.items() if state == q.is_state)


def _times(known: Recall, acts: list[Act]) -> list[tuple[int, Act]] | None:
    """When each act was done, in order; None unless each was seen exactly once."""
    found = [known.of(act) for act in acts]
    if not acts or any(len(times) != 1 for times in found):
        return None
    return sorted((times[0].first_s, act) for times, act in zip(found, acts, strict=True))


def _first_of(q: s.FirstOf, known: Recall, options: list[Any]) -> Act | None:
    times = _times(known, options)
    return times[0][1] if times else None


def _last_of(q: s.LastOf, known: Recall, options: list[Any]) -> Act | None:
    times = _times(known, options)
    return times[-1][1] if times else None


def _next_after(q: s.NextAfter, known: Recall, options: list[Any]) -> Act | None:
    times = _times(known, [*options, q.act])
    if times is None:
        return None
    later = [act for _, act in times[[act for _, act in times].index(q.act) + 1 :]]
    return later[0] if later else None


def _doing_now(q: s.DoingNow, known: Recall, _: list[Any]) -> Act | None:
    return known.now.act if known.now else None


def _how_many(q: s.HowManyNow, known: Recall, _: list[Any]) -> int | None:
    if known.now is None:
        return None
    return sum(g.item.n for g in known.now.placed() if g.item.kind == q.kind) or None


def _sign_now(q: s.SignNow, known: Recall, _: list[Any]) -> str | None:
    return (known.now.sign or None) if known.now else None


def _cells(now: Picture | None) -> dict[Item, tuple[int, int]]:
    """Column and row of each thing in view; row 0 is far, row 1 near."""
    placed = now.placed() if now else ()
    return {g.item: (g.slot % 3, g.slot // 3) for g in placed}


def _stands(relation: str, one: tuple[int, int], other: tuple[int, int]) -> bool:
    across, along = one[0] - other[0], one[1] - other[1]
    if relation in ("left of", "right of"):
        return along == 0 and (across < 0 if relation == "left of" else across > 0)
    return across == 0 and (along > 0 if relation == "in front of" else along < 0)


def _relation_now(q: s.RelationNow, known: Recall, options: list[Any]) -> str | None:
    cells = _cells(known.now)
    if q.item not in cells or q.other not in cells:
        return None
    return _only(r for r in options if _stands(r, cells[q.item], cells[q.other]))


def _beside_now(q: s.BesideNow, known: Recall, _: list[Any]) -> Item | None:
    cells = _cells(known.now)
    if q.other not in cells:
        return None
    return _only(i for i in cells if _stands(q.relation, cells[i], cells[q.other]))


def _take_from(q: s.TakeFrom, known: Recall, _: list[Any]) -> Item | None:
    return _only(
        d.act.item
        for d in known.doings
        if d.first_s >= q.start_s and (d.act.action, d.place, d.room) == ("take", q.place, q.room)
    )


def _who_in(q: s.WhoIn, known: Recall, _: list[Any]) -> str | None:
    return next((f.person for f in known.met(q.room) if f.wall_s >= q.start_s), None)


def _sign_in(q: s.SignIn, known: Recall, _: list[Any]) -> str | None:
    return _only(f.sign for f in known.signs(q.room) if f.wall_s >= q.start_s)


def _do_in(q: s.DoIn, known: Recall, _: list[Any]) -> Item | None:
    return _only(
        d.act.item
        for d in known.doings
        if d.first_s >= q.start_s and (d.act.action, d.room) == (q.action, q.room)
    )


RULES: dict[type, Callable[[Any, Recall, list[Any]], Any | None]] = {
    **arena_rules.RULES,
    s.WhoWith: _who_with,
    s.WhatDid: _what_did,
    s.SignOn: _sign_on,
    s.WhereLast: _where_last,
    s.WhichLast: _which_last,
    s.FirstOf: _first_of,
    s.LastOf: _last_of,
    s.NextAfter: _next_after,
    s.DoingNow: _doing_now,
    s.HowManyNow: _how_many,
    s.SignNow: _sign_now,
    s.RelationNow: _relation_now,
    s.BesideNow: _beside_now,
    s.TakeFrom: _take_from,
    s.WhoIn: _who_in,
    s.SignIn: _sign_in,
    s.DoIn: _do_in,
}


def holds(condition: Condition, now: Picture) -> bool:
    """Whether a condition can be seen to hold in a picture."""
    if condition.person:
        return (now.person, now.room) == (condition.person, condition.room)
    if condition.sign:
        return now.sign == condition.sign
    if condition.item:
        return any(g.item == condition.item for g in now.placed())
    return now.act == condition.act


def unasked(known: Recall) -> tuple[Sentence, str] | None:
    """The help that the past gives reason for now, and the facts it rests on."""
    now = known.now
    act = now.act if now else None
    if now is None or act is None:
        return None
    if act.action == "seek" and act.item:
        found = known.where(act.item)
        if found is None or any(g.item == act.item for g in now.placed()):
            return None
        response = s.ItIs(act.item, found[0])
        return response, response.say()
    if act.action == "wait":
        return _next_step(now, known) if now.sign in RECIPES else _habit(now, known)
    return None


def _next_step(now: Picture, known: Recall) -> tuple[Sentence, str] | None:
    steps = [d for d in known.doings if d.sign == now.sign and d.act.item]
    if not steps:
        return None
    last = steps[-1]
    for one, two in known.pairs():
        if one.act == last.act and one.sign == two.sign == now.sign and two.act.item:
            told = [s.Did(d.first_s, d.room, d.act, d.state).say() for d in (one, two, last)]
            return s.NextStep(now.sign, two.act), " ".join(dict.fromkeys(told))
    return None


def _habit(now: Picture, known: Recall) -> tuple[Sentence, str] | None:
    waits = [i for i, d in enumerate(known.doings) if d.act.action == "wait"]
    if not waits or waits[-1] == 0:
        return None
    wait, first = known.doings[waits[-1]], known.doings[waits[-1] - 1]
    if wait.first_s - first.first_s > TOGETHER_S or first.room != now.room:
        return None
    pairs = [(a, b) for a, b in known.pairs() if a.act == first.act and b.act.item]
    counts = Counter(b.act for _, b in pairs)
    if not counts or counts.most_common(1)[0][1] < 2:
        return None
    act = counts.most_common(1)[0][0]
    told = [
        s.Did(d.first_s, d.room, d.act, d.state).say()
        for pair in pairs
        if pair[1].act == act
        for d in pair
    ]
    return s.Usually(act), " ".join(dict.fromkeys(told))
