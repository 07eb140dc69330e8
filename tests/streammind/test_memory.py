"""What memory is made of: names that must not fuse, words that must be found, frames kept."""

from __future__ import annotations

import numpy as np
import pytest
from by_contract import ByContract, agent, begin, entries, feed
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from bench_lib.errors import BenchError
from bench_lib.search.text_index import TextIndex, tokens
from bench_lib.streammind.bank import Bank, Turn, dialogue
from bench_lib.streammind.entities import likeness, match
from bench_lib.streammind.frame_buffer import FrameBuffer
from bench_lib.streammind.frame_store import FrameStore, alike, dhash, print_of
from bench_lib.streammind.log import Entry, Log
from bench_lib.streammind.recall_tools import Tools
from bench_lib.video.picture import Picture, encoded, picture
from bench_lib.video.stream import ArrayFrame

APART = [
    ("man in black jacket", "man in blue jacket", "person"),
    ("female host", "male host", "person"),
    ("Room 302", "Room 303", "place"),
    ("iPhone 16", "iPhone 15", "object"),
    ("Zhang San", "Zhang Shan", "person"),
    ("穿黑衣服的男人", "穿蓝衣服的男人", "person"),
    ("主持人", "女主持人", "person"),
]
SAME = [
    ("host", "the host", "person"),
    ("Coffee Mug", "coffee mug", "object"),
    ("red cofee mug", "red coffee mug", "object"),
    ("主持人", "主持人", "person"),
]


@pytest.mark.parametrize(("one", "other", "kind"), APART)
def test_near_names_of_different_things_do_not_fuse(one, other, kind):
    assert likeness(one, other) > 0.8  # the ratio alone would fuse most of them
    assert match([one], [("e1", [other])], kind, 0.85)[0] is None


@pytest.mark.parametrize(("one", "other", "kind"), SAME)
def test_spellings_of_one_name_fuse(one, other, kind):
    assert match([one], [("e1", [other])], kind, 0.85) == ("e1", [])


def written(*ticks, **args):
    """A memory whose ticks see these entities, one list per tick."""
    seen = [[{"name": n, "type": k} for n, k in tick] for tick in ticks]
    rule = lambda a: {"text": "t", "entities": seen[(a.now_s // 4 - 1) % len(seen)]}  # noqa: E731
    method = begin(agent(ByContract(memory_writer=rule), **args))
    return feed(method, 0, 4 * len(ticks) + 0.5)


@pytest.mark.parametrize(("one", "other", "kind"), APART)
def test_the_graph_keeps_them_apart_and_says_that_they_may_be_one(one, other, kind):
    bank = written([(one, kind)], [(other, kind)]).stream.bank
    assert [e.name for e in bank.entities.values()] == [one, other]
    doubt = [r for r in bank.relations if r.label == "possibly same"]
    assert len(doubt) == (likeness(one, other) >= 0.85)


def test_two_things_of_one_tick_are_two_however_alike():
    two = [("red coffee mug", "object"), ("red cofee mug", "object")]
    assert len(written(two).stream.bank.entities) == 2
    assert len(written(two[:1], two[1:]).stream.bank.entities) == 1  # the control


def test_a_type_that_differs_keeps_apart():
    assert len(written([("Apple", "object")], [("apple", "group")]).stream.bank.entities) == 2


def test_an_old_entity_is_found_by_its_exact_name_only():
    filler = [[("table", "place")]] * 40
    again = written([("red coffee mug", "object")], *filler, [("the red coffee mug", "object")])
    assert len(again.stream.bank.entities) == 2
    near = written([("red coffee mug", "object")], *filler, [("red cofee mug", "object")])
    assert len(near.stream.bank.entities) == 3


def entity(key, name, kind="object", t_s=0.0, **more):
    body = {"id": key, "name": name, "type": kind, "aliases": [], "attributes": {}, "frames": []}
    return Entry("entity", t_s, t_s, t_s, {**body, "event": "m1", **more})


def fragment(event, text, start_s, end_s, **more):
    body = {"event": event, "text": text, "status": "ok", "seen_s": 0, "frames": [], "entities": []}
    return Entry("fragment", start_s, end_s, end_s, {**body, **more})


def edge(src, label, dst, t_s):
    body = {"src": src, "label": label, "dst": dst, "event": "m1"}
    return Entry("relation", t_s, t_s, t_s, body)


def test_chinese_words_of_two_characters_are_found():
    bank = Bank.at(
        [
            fragment("m1", "主持人把红色的杯子放在桌上", 0, 4),
            fragment("m2", "The guest opens the window. 302房间", 4, 8),
            entity("e1", "红色的杯子", attributes={"材料": "陶瓷"}),
        ],
        10,
    )
    tools = Tools(bank, 5)
    assert tools.search_events("杯子", 5).lines[0].startswith("[m1 ")
    assert tools.search_events("房间", 5).lines[0].startswith("[m2 ")
    assert tools.search_events("opened windows", 5).lines[0].startswith("[m2 ")
    assert tools.search_events("椅子", 5).lines == ()
    assert tools.find_entity("杯子", 5).entities == ("e1",)
    assert tools.find_entity("陶瓷", 5).entities == ("e1",)


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_can_be_indexed_and_asked_for(one, other):
    index = TextIndex([("a", one), ("b", other)])
    found = index.search(one, 2)
    assert set(found) <= {"a", "b"}
    if any(token.isascii() and token.isalpha() for token in tokens(one)):
        assert "a" in found


def test_the_six_tools_and_what_they_give():
    bank = Bank.at(
        [
            Entry("session", 0, 0, 0, {"id": "S", "index": 0, "wall_s": None}),
            entity("e1", "the host", "person", 1, frames=["f0001000"]),
            entity("e2", "red cup", t_s=1),
            entity("e3", "kitchen", "place", t_s=1),
            fragment("m1", "the host takes the red cup", 0, 4, entities=["e1", "e2"]),
            fragment("m2", "nobody is there", 4, 8),
            edge("e1", "holds", "e2", 2),
            edge("e2", "at", "e3", 5),
        ],
        10,
    )
    tools = Tools(bank, 5)
    assert tools.time_window(5, 6).text == "[m2 00:00:04 to 00:00:08] nobody is there"
    assert tools.find_entity("Host", 5).entities == ("e1",)
    assert "m1" in tools.search_events("cup", 5).text
    assert "m1" in tools.events_of(bank.entities["e2"]).text
    assert tools.frames_of(bank.entities["e1"]).frames == ("f0001000",)
    assert tools.traverse(bank.entities["e1"], 1).entities == ("e1", "e2")
    assert tools.traverse(bank.entities["e1"], 2).entities == ("e1", "e2", "e3")
    assert tools.traverse(bank.entities["e1"], 2, ["holds"]).entities == ("e1", "e2")


def test_a_relation_ends_where_another_place_is_seen():
    at = [entity("e1", "cup"), *(edge("e1", "at", where, t) for t, where in enumerate("ABB"))]
    relations = Bank.at(at, 10).relations
    assert [(r.dst, r.start_s, r.end_s, r.ended) for r in relations] == [
        ("A", 0, 0, True),
        ("B", 1, 2, False),
    ]
    washed = [entity("e1", "I"), *(edge("e1", "wash", "e2", t) for t in (0, 5, 100))]
    assert len(Bank.at(washed, 200).relations) == 2  # two occasions


def scoreboard(text):
    image = Image.new("RGB", (640, 360), "white")
    ImageDraw.Draw(image).text((300, 170), text, fill="black", font_size=16)
    return Picture(0.0 if text == "21:19" else 4.0, encoded(np.asarray(image), 720, 75))


def test_a_changed_score_is_no_duplicate():
    one, other = print_of(scoreboard("21:19")), print_of(scoreboard("21:20"))
    assert one.bits == other.bits  # the hash alone does not see it
    assert not alike(one, other, 6, 24)
    assert alike(one, other, 6, 255)  # the control: without the cells they are one


@pytest.mark.parametrize(
    ("change", "marked", "kept"), [(24, False, 2), (255, False, 1), (255, True, 2)]
)
def test_a_changed_score_is_kept(change, marked, kept):
    store = FrameStore(100, 8, 6, change)
    first, new = store.keep(scoreboard("21:19"), 1.0)
    assert new
    second, new = store.keep(scoreboard("21:20"), 4.0, text_bearing=marked)
    assert len(store.frames) == kept
    assert (second == first) is (kept == 1)


def test_the_same_picture_is_kept_once_within_the_look_back():
    plain = np.zeros((36, 64, 3), np.uint8)
    store = FrameStore(100, 8, 6, 24)
    for t_s in (0.0, 4.0, 12.5):
        store.keep(Picture(t_s, encoded(plain, 720, 75)), t_s)
    assert list(store.frames) == ["f0000000", "f0012500"]
    assert store.refs["f0000000"] == 2


def test_a_full_store_drops_the_oldest_and_says_so():
    rule = lambda a: {"text": "t", "key_frames": [{"id": i, "text": True} for i in a.ids[-2:]]}  # noqa: E731
    method = begin(agent(ByContract(memory_writer=rule), store_frames=5))
    feed(method, 0, 20.5)
    assert len(method.stream.store.frames) == 5
    dropped = [e.body["id"] for e in entries(method, "frame_out")]
    assert dropped == sorted(dropped)
    assert len(dropped) == 5


def test_the_ring_holds_its_seconds_and_takes_no_frame_of_before():
    ring = FrameBuffer(60)
    for n in range(400):
        ring.push(Picture(n / 2, b"x"))
    assert len(ring) == 120
    with pytest.raises(BenchError, match="comes after"):
        ring.push(Picture(10.0, b"x"))
    assert ring.find("f0199500").t_s == 199.5
    assert ring.find("f0010000") is None
    assert ring.find("nonsense") is None


def test_frames_are_reduced_to_the_longest_side():
    big = ArrayFrame(0.0, np.zeros((1080, 1920, 3), np.uint8))
    assert picture(big, 0.0, 720, 75).pixels().shape == (405, 720, 3)


@given(st.lists(st.integers(0, 30), max_size=12), st.integers(0, 100), st.integers(0, 12))
def test_the_dialogue_is_the_longest_tail_that_fits(sizes, characters, most):
    turns = [Turn("user", "x" * n, float(at)) for at, n in enumerate(sizes)]
    kept = dialogue(turns, characters, most)
    assert kept == turns[len(turns) - len(kept) :]
    assert sum(len(t.text) for t in kept) <= characters
    assert len(kept) <= most
    if len(kept) < min(most, len(turns)):
        assert sum(len(t.text) for t in turns[len(turns) - len(kept) - 1 :]) > characters


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20), st.integers(0, 9))
def test_any_past_state_is_a_fold_of_what_was_known_then(stamps, t_s):
    log = Log(Entry("fact", e, e, max(e, r), {"text": f"{n}"}) for n, (e, r) in enumerate(stamps))
    facts = [text for _, text in Bank.at(log.until(), t_s).facts]
    assert facts == [f"{n}" for n, (e, r) in enumerate(stamps) if max(e, r) <= t_s]
    assert log.nbytes() == sum(len(line.encode()) + 1 for line in log.lines())


def test_hashes_of_flat_frames_are_equal_whatever_their_grey():
    flat = [dhash(Image.new("L", (64, 36), level)) for level in (20, 200)]
    assert flat[0] == flat[1]
    prints = [
        print_of(Picture(0.0, encoded(np.full((36, 64, 3), g, np.uint8), 720, 75)))
        for g in (20, 200)
    ]
    assert not alike(*prints, 6, 24)
