"""The ideal observer's rules for StreamMind's contracts: perfect workers, given what they see.

They are as simple as the agent's structure allows: the front answers what the present shows and
delegates the rest, recall reads the stretch of memory that a question is about, the writer notes
every new fact. What then is missing is missing because of a limit of the agent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bench_lib.dollhouse.ideal import arena_rules, replies, rules
from bench_lib.dollhouse.ideal.replies import Shown, compact, rule
from bench_lib.dollhouse.world import arena_sentences as a
from bench_lib.dollhouse.world import sentences as s
from bench_lib.dollhouse.world.grammar import (
    SLOTS,
    Act,
    Item,
    Sentence,
    read,
    read_value,
    say,
    value,
)
from bench_lib.schema import clock

KINDS = ("free", "choice", "adaptive_choice", "adaptive_text")
PRESENT = (s.DoingNow, s.HowManyNow, s.SignNow, s.RelationNow, s.BesideNow, a.HeardNow)
LOOKED_UP = (a.PriceNow, a.TownNow, a.PricePut)
_LISTED = re.compile(r"\[(actions|tasks|tools): ([^\]]*)\]")
_LEFT = re.compile(r"\[rounds left after this one: (\d+)\]")
_LABEL = re.compile(r"\[(f\d+) (DAY\d+ \d\d:\d\d:\d\d)\]")
_RETURNED = re.compile(r"<data from='(recall|search) worker'>")
_UNTIL = re.compile(r"\[described until (DAY\d+ \d\d:\d\d:\d\d)\]")
_ENTITY = re.compile(r"\[(e\d+)\] ([^,\n]+)")


def _all(shown: Shown) -> str:
    return "\n".join(shown.texts)


def _listed(shown: Shown, name: str) -> list[str]:
    found = [body for kind, body in _LISTED.findall(_all(shown)) if kind == name]
    return [word.strip() for word in found[-1].split(",")] if found else []


def _left(shown: Shown) -> int:
    found = _LEFT.findall(_all(shown))
    return int(found[-1]) if found else 0


def _asked(shown: Shown) -> Sentence | None:
    """The newest question, watch or registration."""
    kinds = s.Question | a.Watch | s.Register
    found = [x for x in shown.known.sentences if isinstance(x, kinds)]
    return found[-1] if found else None


def _reply(shown: Shown, kind: str) -> str:
    return replies.RULES[kind](shown)


def front(kind: str) -> Callable[[Shown], str]:
    """The present answers some requests; the others are for the team."""

    def decide(shown: Shown) -> str:
        asked, can = _asked(shown), _listed(shown, "actions")
        if kind == "free" and isinstance(asked, a.Watch | s.Register) and "monitor" in can:
            hint = s.Remind(asked.act).say() if isinstance(asked, s.Register) else ""
            wish = {"condition": asked.say(), "mode": "once", "message_hint": hint}
            return json.dumps({"action": "monitor", "monitor": wish})
        present = isinstance(asked, PRESENT) or (kind == "adaptive_text" and shown.registrations)
        if present or "delegate" not in can or (asked is None and kind == "free"):
            return json.dumps({"action": "answer", "answer": _reply(shown, kind)})
        goal = asked.say() if asked else "What does the past suggest for now?"
        return json.dumps({"action": "delegate", "brief": {"goal": goal}})

    return decide


def _instruction(asked: Sentence | None, shown: Shown) -> str:
    """Where nothing is asked, what is in view says what may matter."""
    now = shown.known.now
    seen = say(*now.facts()) if asked is None and now else ""
    return f"Recall what this needs. {seen}".strip()


def router(kind: str) -> Callable[[Shown], str]:
    """Recall once where the past matters, look up what is named, then answer."""

    def decide(shown: Shown) -> str:
        asked, can = _asked(shown), _listed(shown, "tasks")
        returned = _RETURNED.findall(_all(shown))
        tasks: list[dict[str, str]] = []
        if _left(shown):
            past = not isinstance(asked, (*PRESENT, a.PriceNow, a.TownNow))
            if past and "recall" in can and "recall" not in returned:
                tasks.append({"kind": "recall", "instruction": _instruction(asked, shown)})
            elif isinstance(asked, LOOKED_UP) and "search" in can:
                tasks += [
                    {"kind": "search", "instruction": f"Look up: {name}."}
                    for name in arena_rules.wanted(shown.known)
                    if f"Look up: {name}." not in _all(shown)
                ]
        if tasks:
            return json.dumps({"tasks": tasks})
        return json.dumps({"answer": _reply(shown, kind)})

    return decide


def fallback(kind: str) -> Callable[[Shown], str]:
    """What can be said from what is there."""
    return lambda shown: _reply(shown, kind)


for _kind in KINDS:
    rule(f"front_{_kind}")(front(_kind))
    rule(f"router_{_kind}")(router(_kind))
    rule(f"fallback_{_kind}")(fallback(_kind))


@rule("monitor")
def monitor(shown: Shown) -> str:
    """Whether the condition holds in the newest picture."""
    asked, now = _asked(shown), shown.known.now
    holds = (
        isinstance(asked, a.Watch | s.Register)
        and now is not None
        and rules.holds(asked.condition, now)
    )
    if not holds:
        return json.dumps({"satisfied": False, "confidence": 1.0})
    assert isinstance(asked, a.Watch | s.Register)
    told = s.Remind(asked.act) if isinstance(asked, s.Register) else s.Holds(asked.condition)
    return json.dumps({"satisfied": True, "confidence": 1.0, "message": told.say()})


@rule("search")
def search(shown: Shown) -> str:
    """The name that the task gives, then what the results say."""
    names = re.findall(r"Look up: ([^.\n]+)\.", _all(shown))
    found = [x for x in shown.known.sentences if isinstance(x, a.Price | a.Made | a.Lives)]
    if names and "<data from='search'>" not in _all(shown) and _left(shown):
        return json.dumps({"calls": [{"tool": "text_search", "query": names[-1]}]})
    return json.dumps({"report": say(*dict.fromkeys(found)) or s.CannotTell().say()})


@rule("recall")
def recall(shown: Shown) -> str:
    """Read the part of memory that the question is about."""
    asked = _asked(shown)
    first = "<data from='memory'>" not in _all(shown)
    if first and _left(shown):
        return json.dumps({"calls": _calls(asked, shown)})
    if isinstance(asked, s.WhereLast) and "Result 2 of" not in _all(shown) and _left(shown):
        name = value("item", asked.item)
        ids = [key for key, known in _ENTITY.findall(_all(shown)) if known.strip() == name]
        if ids:
            return json.dumps({"calls": [{"tool": "events_of", "entity": ids[-1]}]})
    return json.dumps({"report": _relevant(asked, shown)})


def _calls(asked: Sentence | None, shown: Shown) -> list[dict[str, Any]]:
    if isinstance(asked, a.DidBetween):
        stretch = {"start": clock(asked.start_s), "end": clock(asked.end_s)}
        return [{"tool": "time_window", **stretch}]
    if isinstance(asked, s.WhoWith):
        return [{"tool": "search_events", "text": value("act", asked.act)}]
    if isinstance(asked, s.WhereLast):
        return [{"tool": "find_entity", "text": value("item", asked.item)}]
    if isinstance(asked, a.SignOf):
        return [{"tool": "search_events", "text": f"{asked.room}: the sign reads"}]
    return [{"tool": "time_window", "start": 0}]


def _relevant(asked: Sentence | None, shown: Shown) -> str:
    """The facts that a question is about, within the word budget; the rest is left out."""
    fits = _fits(asked, shown)
    facts = [f for f in shown.known.facts if fits(f)]
    at = {(f.wall_s, f.room) for f in facts if isinstance(f, s.Did | s.PutAt)}
    beside = s.Met | s.Sign
    facts = [
        f
        for f in shown.known.facts
        if f in facts or (isinstance(f, beside) and (f.wall_s, f.room) in at)
    ]
    looked_up = [x for x in shown.known.sentences if isinstance(x, a.Price | a.Made | a.Lives)]
    lines = compact(replace(shown.known, facts=facts), shown.max_words)
    return "\n".join([*lines, *(x.say() for x in looked_up)]) or s.CannotTell().say()


def _act(fact: s.AnyFact) -> Act | None:
    if isinstance(fact, s.PutAt):
        return Act(fact.action, fact.item)
    return fact.act if isinstance(fact, s.Did) else None


def _fits(asked: Sentence | None, shown: Shown) -> Callable[[s.AnyFact], bool]:
    def action(fact: s.AnyFact) -> str:
        act = _act(fact)
        return act.action if act else ""

    if isinstance(asked, a.CountDid | a.ListDid):
        return lambda f: action(f) == asked.action
    if isinstance(asked, a.MoreOften):
        return lambda f: action(f) in (asked.action, asked.second)
    if isinstance(asked, a.HigherSign):
        return lambda f: isinstance(f, s.Sign) and f.room in (asked.room, asked.other_room)
    if isinstance(asked, a.SignOf | s.SignOn):
        return lambda f: isinstance(f, s.Sign) and f.room == asked.room
    if isinstance(asked, a.PricePut):
        return lambda f: isinstance(f, s.PutAt) and (f.place, f.room) == (asked.place, asked.room)
    if isinstance(asked, a.DidBetween):
        return lambda f: f.room == asked.room and asked.start_s <= f.wall_s < asked.end_s
    if isinstance(asked, s.WhoWith):
        return lambda f: _act(f) == asked.act
    if isinstance(asked, s.WhereLast):
        return lambda f: isinstance(f, s.Seen | s.PutAt) and f.item == asked.item
    if isinstance(asked, s.WhichLast):
        items = _options(shown, "item")
        return lambda f: getattr(f, "item", None) in items or _thing(f) in items
    if isinstance(asked, s.FirstOf | s.LastOf | s.NextAfter):
        acts = [*_options(shown, "act"), getattr(asked, "act", None)]
        return lambda f: _act(f) in acts
    if isinstance(asked, s.WhatDid | s.DoIn):
        return lambda f: action(f) == asked.action and f.room == asked.room
    if isinstance(asked, s.TakeFrom | s.WhoIn | s.SignIn):
        return lambda f: f.room == asked.room and f.wall_s >= asked.start_s
    sought = [_thing(f) for f in shown.known.facts if action(f) == "seek"][-1:]
    last = [action(f) for f in shown.known.facts if _act(f)][-1:]
    if last == ["seek"]:
        return lambda f: isinstance(f, s.Seen | s.PutAt) and f.item in sought
    return lambda f: _act(f) is not None


def _options(shown: Shown, slot: str) -> list[Any]:
    return [read_value(slot, text) for text in shown.options.values()]


def _thing(fact: s.AnyFact) -> Item | None:
    act = _act(fact)
    return act.item if act else None


@rule("distil")
def distil(shown: Shown) -> str:
    """What of a result matters for the question."""
    return json.dumps({"text": _relevant(_asked(shown), shown)})


@rule("verify")
def verify(shown: Shown) -> str:
    """All of them."""
    return json.dumps({"frames": [key for key, _ in _LABEL.findall(_all(shown))]})


@rule("summary")
def summary(shown: Shown) -> str:
    """The events' facts within the word budget."""
    return json.dumps({"summary": replies.caption(shown)})


@rule("memory_writer")
def memory_writer(shown: Shown) -> str:
    """Every fact that is new since the instant up to which it was described."""
    text = _all(shown)
    until = _UNTIL.findall(text)
    since_s = _wall_s(until[-1]) if until else -1
    heard = [x.say() for x in shown.known.sentences if isinstance(x, s.Heard)]
    told = {line for line in heard if heard.count(line) > len(_spoken(shown, line))}
    seen = shown.known.facts
    lines = [
        line
        for line in compact(shown.known, shown.max_words)
        if _wall_s(line.partition(",")[0]) > since_s or (line in heard and line not in told)
    ]
    rooms = [f.room for f in seen if isinstance(f, s.Here)]
    earlier = [f.room for f in seen if isinstance(f, s.Here) and f.wall_s <= since_s]
    labels = {label: key for key, label in _LABEL.findall(text)}
    times = list(dict.fromkeys(line.partition(",")[0] for line in lines))
    keys = [labels[time] for time in times if time in labels]
    return json.dumps(
        {
            "boundary": bool(rooms and earlier and rooms[-1] != earlier[-1]),
            "text": "\n".join(lines),
            "key_frames": [{"id": key} for key in keys[:8]],
            **_graph(seen, since_s, keys),
        }
    )


def _spoken(shown: Shown, line: str) -> list[Sentence]:
    """How often the speech of this call says a line; where else it stands, it was noted before."""
    speech = re.findall(r"<data from='speech'>(.*?)</data>", _all(shown), re.DOTALL)
    return [x for text in speech for x in read(text) if x.say() == line]


def _graph(seen: list[s.AnyFact], since_s: int, keys: list[str]) -> dict[str, Any]:
    entities: dict[str, dict[str, Any]] = {}
    relations: list[dict[str, str]] = []

    def add(name: str, kind: str) -> str:
        entities.setdefault(name, {"name": name, "type": kind, "frames": keys[:1]})
        return name

    for fact in seen:
        if fact.wall_s <= since_s:
            continue
        if isinstance(fact, s.Seen | s.PutAt):
            src, dst = add(value("item", fact.item), "object"), add(fact.room, "place")
            relations.append({"src": src, "label": "at", "dst": dst})
        elif isinstance(fact, s.Did) and fact.act.item:
            src, dst = add("I", "person"), add(value("item", fact.act.item), "object")
            relations.append({"src": src, "label": fact.act.action, "dst": dst})
        elif isinstance(fact, s.Met):
            src, dst = add(fact.person, "person"), add(fact.room, "place")
            relations.append({"src": src, "label": "in", "dst": dst})
    unique = {tuple(r.items()): r for r in relations}
    return {"entities": list(entities.values()), "relations": list(unique.values())}


def _wall_s(text: str) -> int:
    """Seconds of a clock such as `DAY1 10:03:12`."""
    return int(SLOTS["wall_s"].read(text))
