"""Training prompts are the methods' own, and a pack is worth its rows."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
import torch

from bench_lib import prompts
from bench_lib.backbones.base import Backbone
from bench_lib.chat.local import LocalChat
from bench_lib.dollhouse.training import lessons, stories, train
from bench_lib.dollhouse.training import letters as train_letters
from bench_lib.dollhouse.training.layout import METHODS, Clerk, layout
from bench_lib.dollhouse.training.packs import Teacher
from bench_lib.dollhouse.training.rows import Row, batch, pack, row
from bench_lib.dollhouse.training.text import Bank, shown, states_of
from bench_lib.dollhouse.training.watch import Watch
from bench_lib.dollhouse.training.words import CELLS, SLOT_CELLS
from bench_lib.dollhouse.world.grammar import value
from bench_lib.dollhouse.world.words import SLOTS
from bench_lib.exchange import Query
from bench_lib.opening import backbones
from bench_lib.replies.parse import parse
from bench_lib.video.stream import ArrayFrame, Clip, SessionInfo


@pytest.fixture(scope="module")
def model() -> Backbone:
    return backbones.load("tiny-untrained", device="cpu")


@pytest.fixture(scope="module")
def clerk(model: Backbone) -> Clerk:
    return Clerk(model.tokenizer)


@pytest.fixture(scope="module")
def teacher(clerk: Clerk) -> Teacher:
    library = stories.Library(Bank(clerk.tokenizer), 3)
    return Teacher(clerk, prompts.load("compact"), library)


@pytest.mark.parametrize("name", ["simplestream", "raw_video"])
def test_a_training_prompt_is_what_the_method_shows(
    model: Backbone, teacher: Teacher, name: str
) -> None:
    """Ids and positions, token for token, as the real model would be given them."""
    story = stories.now(np.random.default_rng(3), teacher.library, name)
    query = Query("What do I do now?", story.session, story.cutoff_s, system="Reply.")
    x, places = layout(teacher.clerk, name, story.feeds)(query)
    method: Any = METHODS[name]().attach(LocalChat(model))
    method.reset("t", 0)
    feed = story.feeds[0]
    picture = np.zeros((112, 112, 3), np.uint8)
    frames = tuple(ArrayFrame(f.t_s, picture) for f in feed.frames)
    info = feed.info
    method.begin_session(SessionInfo(info.id, info.index, info.wall_start_s, (112, 112)))
    method.observe(Clip(info.index, frames))
    built = LocalChat(model).prompt(method.messages(query))
    assert x[x >= 0].tolist() == built.text_ids.tolist()
    assert np.array_equal(places, built.positions.numpy())
    assert (x < 0).sum() == built.visual_tokens > 0


def _loss(model: Any, packs: list[Any], bank: Bank) -> float:
    with torch.no_grad():
        states, wanted, _ = states_of(model, batch(packs, 0), bank, noise=0.0)
        return float(torch.nn.functional.cross_entropy(model.lm_head(states), wanted))


def test_a_pack_costs_what_its_rows_cost(model: Backbone, clerk: Clerk, teacher: Teacher) -> None:
    """Branches see the common beginning and themselves; the control looks across."""
    rng = np.random.default_rng(5)
    model, _ = train.blank(1)
    story = stories.now(rng, teacher.library, "simplestream")
    asked = layout(clerk, "simplestream", story.feeds)
    rows: list[Row] = []
    for question, reply in (("What is far left now?", "the red cup"), ("Who is here?", "a boy")):
        prompt = asked(Query(question, story.session, story.cutoff_s, system="Reply."))
        rows.append(row(prompt, clerk.tokenize(reply)))
    together = pack(rows)
    assert len(together.x) < sum(len(r.x) for r in rows) - 60
    counts = [int(r.said.sum()) for r in rows]
    apart = [_loss(model, [pack([r])], teacher.library.bank) for r in rows]
    expected = sum(a * n for a, n in zip(apart, counts, strict=True)) / sum(counts)
    found = _loss(model, [together], teacher.library.bank)
    assert found == pytest.approx(expected, rel=1e-4)
    across = type(together)(
        together.x, together.places, together.said, np.zeros_like(together.branch)
    )
    assert _loss(model, [across], teacher.library.bank) != pytest.approx(found, rel=1e-4)


def test_lessons_are_true_and_have_four_different_options(teacher: Teacher) -> None:
    rng = np.random.default_rng(7)
    kinds: set[str] = set()
    for _ in range(40):
        for tell, ask in ((stories.now, "now"), (stories.recall, "earlier")):
            story = tell(rng, teacher.library)
            asker = lessons.Asker(rng, story)
            for lesson in filter(None, getattr(asker, ask)()):
                kinds.add(lesson.kind)
                if lesson.wrong:
                    assert len({lesson.right, *lesson.wrong}) == 4
                if lesson.kind == "ACR":
                    act = story.scenes[-1].picture.act
                    assert act is not None
                    assert lesson.right.startswith(act.action)
                if lesson.kind == "CT":
                    kind = lesson.question.split()[2].removesuffix("s")
                    placed = story.scenes[-1].picture.placed()
                    assert int(lesson.right) == sum(g.item.n for g in placed if g.item.kind == kind)
                    assert int(lesson.right) == sum(map(int, re.findall(r"\d", lesson.seen)))
                if lesson.kind == "STU-how":
                    one, other = (SLOTS.index(place) for place in lesson.seen.split(", "))
                    assert lessons.relation(one, other) == lesson.right
                if lesson.kind == "STU-what":
                    slot = SLOTS.index(lesson.seen.split(", ")[1])
                    placed = story.scenes[-1].picture.placed()
                    (there,) = (g.item for g in placed if g.slot == slot)
                    assert lesson.right == value("item", there)
                if lesson.kind == "TR-end":
                    first = "first" in lesson.question
                    assert lesson.seen.split(", ")[0 if first else -1] == lesson.right
    assert {"ACR", "CT", "OCR", "STU-how", "STU-what", "ER-who", "EST-where", "TR-end"} <= kinds


def test_a_caption_names_every_place_and_all_that_is_there(teacher: Teacher) -> None:
    rng = np.random.default_rng(11)
    for _ in range(10):
        story = stories.now(rng, teacher.library, frames=1)
        assert len(story.feeds[0].frames) == 1
        text = lessons.Asker(rng, story).caption().right
        picture = story.scenes[-1].picture
        for group in picture.placed():
            thing = value("item", group.item)
            assert f"{SLOTS[group.slot]}, the {group.place}: {thing}" in text
        assert text.count("nothing") == 6 - len(picture.placed())
        assert (f"the sign reads {picture.sign}" in text) == bool(picture.sign)


@pytest.mark.parametrize(
    ("one", "other", "how"),
    [(0, 2, "left of"), (5, 3, "right of"), (0, 3, "behind"), (4, 1, "in front of"), (0, 4, "")],
)
def test_relations_are_those_of_the_picture(one: int, other: int, how: str) -> None:
    assert lessons.relation(one, other) == how


def test_a_named_place_is_looked_for_where_it_stands(clerk: Clerk) -> None:
    bank = Bank(clerk.tokenizer)
    reply = '{"seen": "far left, near middle", "content": "left of", "answer": "A"}'
    ids = clerk.tokenize(reply)
    words = [clerk.tokenizer.decode([i]) for i in ids]
    found = bank.slots(torch.tensor([ids]))[0].tolist()
    named = {words[i]: cell for i, cell in enumerate(found) if cell >= 0}
    far_left, near_middle = SLOT_CELLS[0], SLOT_CELLS[4]
    assert named == {
        "far": far_left,
        " left": far_left,
        "near": near_middle,
        " middle": near_middle,
    }


def test_replies_that_decide_say_first_what_is_seen(teacher: Teacher) -> None:
    """And what they say is parsed as any other reply is."""
    rng = np.random.default_rng(2)
    watch = Watch(teacher.prompts, teacher.library)
    for _ in range(30):
        for _, reply in watch.ask(rng, watch.story(rng)):
            said = json.loads(reply)
            assert next(iter(said)) == "seen"
            found = parse("adaptive_choice" if "answer" in said else "adaptive_text", reply)
            assert (found.status, found.decision) == ("ok", said["decision"])


def test_speaking_and_silence_are_both_taught(teacher: Teacher) -> None:
    rng = np.random.default_rng(9)
    watch = Watch(teacher.prompts, teacher.library)
    replies = [r for _ in range(60) for _, r in watch.ask(rng, watch.story(rng))]
    spoke = sum("INTERVENE" in reply for reply in replies) / len(replies)
    assert 0.25 < spoke < 0.6


def test_every_option_is_looked_up_once(clerk: Clerk) -> None:
    found = train_letters.lesson(clerk, prompts.load("compact"), np.random.default_rng(1))
    letters = [clerk.token(x) for x in "ABCD"]
    assert sorted(int(x) for x in found.x[found.said] if x in letters) == sorted(letters)


def test_training_worlds_are_in_no_set() -> None:
    from bench_lib.dollhouse.world.library import LARGE, SETS
    from bench_lib.evaluate.tiny_check import FIRST_SEED

    assert LARGE
    most = max(max(s.seeds) for s in SETS.values()) + 40_000
    trained = stories.FIRST_SEED
    assert most < FIRST_SEED < trained
    assert trained > FIRST_SEED + 1_000
    assert train.SPOKEN_WORLDS < 10_000


def test_attention_is_aimed_at_the_shots_that_show_the_answer(
    clerk: Clerk, teacher: Teacher
) -> None:
    rng = np.random.default_rng(12)
    story = stories.recall(rng, teacher.library, "raw_video")
    while len(story.scenes) < 3:
        story = stories.recall(rng, teacher.library, "raw_video")
    asked = layout(clerk, "raw_video", story.feeds)
    query = Query("Who was there?", story.session, story.cutoff_s, system="Reply.")
    told = row(asked(query), clerk.tokenize("the boy"), shots=(story.scenes[0].code,))
    lot = batch([pack([told, row(asked(query), clerk.tokenize("a clown"))])], 0)
    named, free = shown(lot)[0, 1], shown(lot)[0, 2]
    seen = lot.x[0] < 0
    shots = (-1 - lot.x[0]) // CELLS
    assert free.all()
    assert named[~seen].all()
    assert torch.equal(named & seen, seen & (shots == story.scenes[0].code))
    assert 0 < int((named & seen).sum()) < int(seen.sum())
