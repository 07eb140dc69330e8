"""Which names are one entity's, and which relations hold at a time."""

from __future__ import annotations

import pytest

from bench_lib.search.text_index import TextIndex, containment
from bench_lib.search.tools import Result, relevant
from bench_lib.streammind.bank import Bank
from bench_lib.streammind.entities import distinct, likeness, match
from bench_lib.streammind.log import Entry
from bench_lib.streammind.recall_tools import Tools

APART = [
    ("platform A", "platform B"),
    ("Platform A", "platform"),
    ("gate a", "gate b"),
    ("terminal II", "terminal III"),
    ("second drawer", "third drawer"),
    ("room two", "room three"),
    ("bus 12", "bus 21"),
    ("left glove of Ann", "right glove of Ann"),
    ("upper kitchen shelf", "lower kitchen shelf"),
    ("north staircase door", "south staircase door"),
    ("bottle of olive oil", "bottle of olive soap"),
    ("第一会议室的大门", "第二会议室的大门"),
    ("桌子左边的抽屉", "桌子右边的抽屉"),
    ("三号地铁站台", "四号地铁站台"),
    ("超市里的苹果汁", "超市里的葡萄汁"),
]
SAME = [
    ("platform A", "Platform  a"),
    ("coffee-mug", "coffee mug"),
    ("Ann's cup", "Ann’s cup"),
    ("kitchen tabel", "kitchen table"),
    ("the second drawer", "second drawer"),
    ("一个红色的杯子", "红色的杯子"),
    ("红色杯子", "红色的杯子"),
]


@pytest.mark.parametrize(("one", "other"), APART)
@pytest.mark.parametrize("kind", ["object", "place"])
def test_what_tells_two_things_apart(one: str, other: str, kind: str) -> None:
    assert distinct(one, other, kind)
    assert distinct(other, one, kind)
    assert match([one], [("e1", [other])], kind, 0.85)[0] is None


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spellings_of_one_name(one: str, other: str) -> None:
    assert match([one], [("e1", [other])], "object", 0.85) == ("e1", [])


def test_many_of_those_told_apart_would_have_been_one() -> None:
    """The control: their spelling alone is near enough."""
    assert sum(likeness(a, b) >= 0.85 for a, b in APART) >= 6


def entity(key: str, kind: str = "object", t_s: float = 0.0) -> Entry:
    body = {"id": key, "name": key, "type": kind, "aliases": [], "attributes": {}, "frames": []}
    return Entry("entity", t_s, t_s, t_s, {**body, "event": "m1"})


def edge(label: str, dst: str, start_s: float, src: str = "cup") -> Entry:
    """Seen by a tick of four seconds."""
    body = {"src": src, "label": label, "dst": dst, "event": "m1"}
    return Entry("relation", start_s, start_s + 4, start_s + 4, body)


def session(index: int, at_s: float, wall_s: float) -> Entry:
    return Entry("session", at_s, at_s, at_s, {"id": f"S{index}", "index": index, "wall_s": wall_s})


def holding(*entries: Entry) -> list[str]:
    """What a bank says to be so still."""
    relations = Bank.at(entries, 1e6).relations
    return [f"{r.label} {r.dst}" for r in relations if not r.ended]


@pytest.mark.parametrize("first", ["on", "at", "Lies on", "is on", "standing on", "held by"])
@pytest.mark.parametrize("then", ["in", "inside", "placed  in", "is held by", "located in"])
def test_a_thing_is_in_one_place_whatever_the_words(first: str, then: str) -> None:
    assert holding(edge(first, "table", 0), edge(then, "sink", 4)) == [f"{then} sink"]
    back = [edge(first, "table", 0), edge(then, "sink", 4), edge(first, "table", 8)]
    assert holding(*back) == [f"{first} table"]


def test_what_holds_together_stays() -> None:
    """What one look saw, a thing in its room, other things, and what says no place."""
    both = [edge("on", "table", 0), edge("in", "kitchen", 0)]
    assert holding(*both) == ["on table", "in kitchen"]
    room = [entity("kitchen", "place"), edge("in", "kitchen", 0), edge("on", "table", 4)]
    assert holding(*room) == ["in kitchen", "on table"]
    moved = [*room, entity("bath", "place"), edge("at", "bath", 8)]
    assert holding(*moved) == ["on table", "at bath"]
    assert holding(edge("on", "table", 0), edge("in", "sink", 4, "fork")) == ["on table", "in sink"]
    assert holding(edge("looks at", "A", 0), edge("looks at", "B", 4)) == [
        "looks at A",
        "looks at B",
    ]


def test_no_relation_goes_on_over_sessions() -> None:
    """The stream glues them within a second; days lie between."""
    bank = Bank.at(
        [
            session(0, 0, 72_000),
            edge("on", "table", 46),
            session(1, 51, 3 * 86_400 + 28_800),
            edge("on", "table", 51),
            edge("on", "table", 55),
        ],
        100,
    )
    tools = Tools(bank, 5)
    bank.entities["cup"] = Bank.at([entity("cup")], 1).entities["cup"]
    assert tools.traverse(bank.entities["cup"], 1).lines == (
        "cup [cup] on table [table] (DAY1 20:00:46 to 20:00:50)",
        "cup [cup] on table [table] (DAY4 08:00:00 to 08:00:08)",
    )


def test_an_entity_of_the_session_before_is_not_lately_seen() -> None:
    bank = Bank.at([session(0, 0, 0), entity("cup", t_s=50), session(1, 51, 86_400)], 100)
    assert bank.recent(0.0) == []
    assert [e.id for e in Bank.at([session(0, 0, 0), entity("cup", t_s=50)], 100).recent(0.0)]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("prices of apples", "The price of an apple is 2."),
        ("running shoes", "He runs in a shoe."),
        ("cafes", "Das Café"),
        ("studies", "She studied"),
        ("红色的杯子", "桌上有红色的杯子"),
    ],
)
def test_what_the_index_finds_the_filter_keeps(query: str, text: str) -> None:
    assert TextIndex([("a", text)]).search(query, 1) == ["a"]
    assert relevant(query, [Result(text, "")], 0.6, 5)
    assert containment(query, text) >= 0.6
    assert containment("bananas", text) == 0.0
