"""Answers worked out a second time: from draw lists, shot by shot, with plain string handling.

It shares no rule with the author (which asks the event log and the household's history) or with the
observer (which reads frames and sentences); it knows only what a shot is and what questions say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from bench_lib.dollhouse.world.picture import Group, Picture
from bench_lib.dollhouse.world.world import World
from bench_lib.schema import Candidate, Probe

AFTER = {"open": "open", "close": "closed", "fill": "full", "pour": "empty",
         "turn on": "on", "turn off": "off"}  # fmt: skip
RECIPES = {"SOUP", "CAKE", "TEA", "SALAD", "JAM"}


def named(group: Group) -> str:
    """A thing in words."""
    item = group.item
    return (
        f"the {item.colour} {item.kind}"
        if item.n == 1
        else (f"the {item.n} {item.colour} {item.kind}s")
    )


def act_of(picture: Picture) -> str:
    """The act in words, empty without one."""
    if not picture.action:
        return ""
    if picture.acting is None:
        return picture.action
    return f"{picture.action} {named(picture.groups[picture.acting])}"


def day_of(picture: Picture) -> str:
    return f"DAY{picture.wall_s // 86_400 + 1}"


Seen = list[Picture]


class Route:
    """The shots of one world."""

    def __init__(self, world: World, sessions: list[str]) -> None:
        self.films = world.films
        self.sessions = sessions

    def shots(self, session: str, t_s: float) -> Iterator[Picture]:
        """Draw lists of all shots that have begun by an instant, in order."""
        last = self.sessions.index(session)
        for at, film in enumerate(self.films[: last + 1]):
            for shot in film.shots:
                if at < last or shot.start_s <= t_s:
                    yield shot.picture

    def answer(self, candidate: Candidate) -> str | None:
        """The text of the right option."""
        ends = [(p.session, p.t_s) for p in candidate.probes if p.polarity != "negative"]
        # A held question that no probe answers is answered by its evidence, which comes later.
        ends += [(m.session, m.end_s) for m in candidate.evidence]
        seen = list(self.shots(*ends[0]))
        question, options = candidate.question, [o.text for o in candidate.options]
        for pattern, rule in RULES:
            found = re.fullmatch(pattern, question)
            if found:
                return rule(seen, options, *found.groups())
        raise AssertionError(question)

    def due(self, candidate: Candidate, probe: Probe) -> str:
        """What is to be said at a probe, empty for silence."""
        instant = probe.t_s if probe.closed else probe.t_s - 1
        seen = list(self.shots(probe.session, instant))
        now = seen[-1]
        if candidate.registration:
            condition, wish = re.fullmatch(
                r"When (.*), please remind me of this: (.*)\.", candidate.registration.text
            ).groups()  # type: ignore[union-attr]
            return f"Please remember this: {wish}." if holds(condition, now) else ""
        return unasked(seen)


def holds(condition: str, now: Picture) -> bool:
    standing = [named(g) for g in now.groups if g.slot < 6]
    if condition.startswith("I see "):
        return condition[6:] in standing
    if condition.startswith("the sign reads "):
        return now.sign == condition[15:]
    if condition.startswith("I "):
        return act_of(now) == condition[2:]
    return bool(now.person) and condition == f"the {now.person} is in the {now.room}"


def unasked(seen: Seen) -> str:
    now = seen[-1]
    act = act_of(now)
    if act.startswith("seek "):
        wanted = act[5:]
        if holds(f"I see {wanted}", now):
            return ""
        for old in seen[::-1]:
            for group in old.groups:
                if group.slot < 6 and named(group) == wanted:
                    where = f"the {group.place} in the {old.room}"
                    return f"It is there: {wanted} was last seen at {where}."
        return ""
    if act != "wait":
        return ""
    follows = [
        (a, b)
        for a, b in pairwise(seen)
        if a.room == b.room and b.wall_s - a.wall_s < 30 and _step(a) and _step(b)
    ]
    if now.sign in RECIPES:
        done = [p for p in seen if p.sign == now.sign and _step(p)]
        for a, b in follows:
            if done and a.sign == now.sign and act_of(a) == act_of(done[-1]):
                return f"The next step of {now.sign} is this: {act_of(b)}."
        return ""
    before = seen[-2] if len(seen) > 1 else now
    if not _step(before) or before.room != now.room:
        return ""
    nexts = [act_of(b) for a, b in follows if act_of(a) == act_of(before)]
    often = [n for n in nexts if nexts.count(n) >= 2]
    return f"After that I usually see you do this: {often[0]}." if often else ""


def _step(picture: Picture) -> bool:
    return picture.acting is not None and picture.action not in ("take", "put", "seek")


def _who(seen: Seen, options: list[str], act: str) -> str | None:
    people = {f"the {p.person}" for p in seen if act_of(p) == act and p.person}
    return people.pop() if len(people) == 1 else None


def _what(seen: Seen, options: list[str], action: str, room: str, day: str) -> str | None:
    things = {
        named(p.groups[p.acting])
        for p in seen
        if p.action == action and p.acting is not None and (p.room, day_of(p)) == (room, day)
    }
    return things.pop() if len(things) == 1 else None


def _sign(seen: Seen, options: list[str], room: str, day: str) -> str | None:
    signs = {p.sign for p in seen if p.sign and (p.room, day_of(p)) == (room, day)}
    return signs.pop() if len(signs) == 1 else None


def _where(seen: Seen, options: list[str], thing: str) -> str | None:
    for picture in seen[::-1]:
        for group in picture.groups:
            if group.slot < 6 and named(group) == thing:
                return f"the {group.place} in the {picture.room}"
    return None


def _which(seen: Seen, options: list[str], state: str) -> str | None:
    last: dict[str, str] = {}
    for picture in seen:
        for group in picture.groups:
            if group.slot != 7:
                last[named(group)] = group.state
        if picture.action in AFTER:
            assert picture.acting is not None
            last[named(picture.groups[picture.acting])] = AFTER[picture.action]
    fits = [o for o in options if last.get(o) == state]
    return fits[0] if len(fits) == 1 else None


def _order(seen: Seen, options: list[str]) -> list[str]:
    acts = [act_of(p) for p in seen]
    assert all(acts.count(o) == 1 for o in options)
    return sorted(options, key=acts.index)


def _next(seen: Seen, options: list[str], act: str) -> str | None:
    line = _order(seen, [*options, act])
    return line[line.index(act) + 1]


def _how_many(seen: Seen, options: list[str], kinds: str) -> str:
    standing = [g for g in seen[-1].groups if g.slot < 6 and g.item.kind == kinds[:-1]]
    return str(sum(g.item.n for g in standing))


def _spots(now: Picture) -> dict[str, tuple[int, int]]:
    """Things by x to the right and y away from the wearer."""
    return {named(g): (g.slot % 3, 1 - g.slot // 3) for g in now.groups if g.slot < 6}


def _placed(seen: Seen, options: list[str], one: str, other: str) -> str | None:
    spots = _spots(seen[-1])
    (x, y), (x0, y0) = spots[one], spots[other]
    if y == y0:
        return "left of" if x < x0 else "right of"
    if x == x0:
        return "behind" if y > y0 else "in front of"
    return None


def _beside(seen: Seen, options: list[str], relation: str, other: str) -> str | None:
    fits = [
        thing
        for thing in _spots(seen[-1])
        if thing != other and _placed(seen, options, thing, other) == relation
    ]
    return fits[0] if len(fits) == 1 else None


def _seconds(start: str) -> int:
    day, clock = start[3:].split()
    h, m, s = map(int, clock.split(":"))
    return (int(day) - 1) * 86_400 + h * 3600 + m * 60 + s


def _since(seen: Seen, start: str) -> list[Picture]:
    return [p for p in seen if p.wall_s >= _seconds(start)]


def _takes(seen: Seen, options: list[str], start: str, place: str, room: str) -> str | None:
    for p in _since(seen, start):
        if p.action == "take" and p.room == room and p.acting is not None:
            group = p.groups[p.acting]
            if group.place == place:
                return named(group)
    return None


def _meets(seen: Seen, options: list[str], start: str, room: str) -> str | None:
    people = [p.person for p in _since(seen, start) if p.room == room and p.person]
    return f"the {people[0]}" if people else None


def _reads(seen: Seen, options: list[str], start: str, room: str) -> str | None:
    signs = [p.sign for p in _since(seen, start) if p.room == room and p.sign]
    return signs[0] if signs else None


def _does(seen: Seen, options: list[str], start: str, action: str, room: str) -> str | None:
    for p in _since(seen, start):
        if (p.action, p.room) == (action, room) and p.acting is not None:
            return named(p.groups[p.acting])
    return None


RULES = (
    (r"Who was with me when I did this: (.*)\?", _who),
    (r"What did I (.*) in the (\w+) on (DAY\d+)\?", _what),
    (r"What did the sign in the (\w+) read on (DAY\d+)\?", _sign),
    (r"Where was (.*) last seen\?", _where),
    (r"Which of these things was last seen (\w+)\?", _which),
    (r"Which of these did I do first\?", lambda seen, options: _order(seen, options)[0]),
    (r"Which of these did I do last\?", lambda seen, options: _order(seen, options)[-1]),
    (r"Which of these did I do next after this: (.*)\?", _next),
    (r"What do I do now\?", lambda seen, options: act_of(seen[-1])),
    (r"How many (\w+) do I see now\?", _how_many),
    (r"What does the sign here read now\?", lambda seen, options: seen[-1].sign),
    (r"As I see it now, how is (.*) placed to (.*)\?", _placed),
    (r"As I see it now, what is right there (.*?) (the .*)\?", _beside),
    (r"From (.*) on, what do I take at the (\w+) in the (\w+)\?", _takes),
    (r"From (.*) on, who is first in the (\w+) with me\?", _meets),
    (r"From (.*) on, what does the sign in the (\w+) read\?", _reads),
    (r"From (.*) on, what do I (.*) in the (\w+)\?", _does),
)
