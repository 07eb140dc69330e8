"""The observer's answers to the questions of the StreamArena set."""

from __future__ import annotations

from typing import Any

from bench_lib.dollhouse.ideal.recall import Doing, Recall
from bench_lib.dollhouse.world import arena_sentences as a
from bench_lib.dollhouse.world.grammar import Act, Item
from bench_lib.dollhouse.world.picture import THOUGHT

JUST_S = 10
"""What was said so many seconds ago at most was said just now."""


def _done(known: Recall, action: str) -> list[Doing]:
    return [d for d in known.doings if d.act.action == action and d.act.item]


def count_did(q: a.CountDid, known: Recall, _: list[Any]) -> int | None:
    """Of a memory without any act nothing can be counted."""
    return len(_done(known, q.action)) or None


def list_did(q: a.ListDid, known: Recall, _: list[Any]) -> tuple[Item, ...] | None:
    """Each thing once, in the order of its first time."""
    return tuple(dict.fromkeys(d.act.item for d in _done(known, q.action) if d.act.item)) or None


def more_often(q: a.MoreOften, known: Recall, _: list[Any]) -> str | None:
    """The action with more doings; a tie has no answer."""
    one, two = len(_done(known, q.action)), len(_done(known, q.second))
    if one == two:
        return None
    return q.action if one > two else q.second


def _number(known: Recall, room: str) -> int | None:
    found = {sign.sign for sign in known.signs(room) if " " in sign.sign}
    return int(found.pop().split()[1]) if len(found) == 1 else None


def higher_sign(q: a.HigherSign, known: Recall, _: list[Any]) -> str | None:
    """Both signs must have been read."""
    one, two = _number(known, q.room), _number(known, q.other_room)
    if one is None or two is None or one == two:
        return None
    return q.room if one > two else q.other_room


def sign_of(q: a.SignOf, known: Recall, _: list[Any]) -> str | None:
    """The one text that was seen there."""
    found = {sign.sign for sign in known.signs(q.room)}
    return found.pop() if len(found) == 1 else None


def did_between(q: a.DidBetween, known: Recall, _: list[Any]) -> tuple[Act, ...] | None:
    """Acts that began in the stretch."""
    done = [d for d in known.doings if d.room == q.room and q.start_s <= d.first_s < q.end_s]
    return tuple(d.act for d in done) or None


def heard_now(q: a.HeardNow, known: Recall, _: list[Any]) -> int | None:
    """The newest number, if it was said just now."""
    said = known.heard()
    if known.now is None or not said or known.now.wall_s - said[-1].wall_s > JUST_S:
        return None
    return said[-1].number


def _held(known: Recall) -> Item | None:
    now = known.now
    if now is None or now.acting is None or now.groups[now.acting].slot == THOUGHT:
        return None
    return now.groups[now.acting].item


def _price(known: Recall, item: Item | None) -> int | None:
    found = {s.coins for s in known.sentences if isinstance(s, a.Price) and s.item == item}
    return found.pop() if len(found) == 1 else None


def price_now(q: a.PriceNow, known: Recall, _: list[Any]) -> int | None:
    """The held thing is seen, its price must have been looked up."""
    return _price(known, _held(known))


def town_now(q: a.TownNow, known: Recall, _: list[Any]) -> str | None:
    """The held thing is seen; maker and town must have been looked up."""
    item = _held(known)
    makers = {s.maker for s in known.sentences if isinstance(s, a.Made) and s.item == item}
    towns = {s.town for s in known.sentences if isinstance(s, a.Lives) and s.maker in makers}
    return towns.pop() if len(makers) == len(towns) == 1 else None


def put_there(q: a.PricePut, known: Recall) -> Item | None:
    """The one thing that was put at a place."""
    put = {
        d.act.item
        for d in known.doings
        if (d.act.action, d.place, d.room) == ("put", q.place, q.room)
    }
    return put.pop() if len(put) == 1 else None


def price_put(q: a.PricePut, known: Recall, _: list[Any]) -> int | None:
    """The thing is remembered, its price must have been looked up."""
    return _price(known, put_there(q, known))


def wanted(known: Recall) -> list[str]:
    """What a search for the newest question would have to look up: names of things and makers."""
    asked = [s for s in known.sentences if type(s) in RULES]
    if not asked:
        return []
    question = asked[-1]
    item = put_there(question, known) if isinstance(question, a.PricePut) else _held(known)
    if item is None or not isinstance(question, a.PriceNow | a.TownNow | a.PricePut):
        return []
    makers = [s.maker for s in known.sentences if isinstance(s, a.Made) and s.item == item]
    return [f"{item.colour} {item.kind}", *dict.fromkeys(makers)]


RULES: dict[type, Any] = {
    a.CountDid: count_did,
    a.ListDid: list_did,
    a.MoreOften: more_often,
    a.HigherSign: higher_sign,
    a.SignOf: sign_of,
    a.DidBetween: did_between,
    a.HeardNow: heard_now,
    a.PriceNow: price_now,
    a.TownNow: town_now,
    a.PricePut: price_put,
}
