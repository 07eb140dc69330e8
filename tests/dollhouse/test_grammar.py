"""The language: writing and reading are inverse, in any surroundings, with known words only."""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_lib.dollhouse.world import grammar as g
from bench_lib.dollhouse.world import sentences, words

ITEMS = st.builds(
    g.Item, st.sampled_from(words.COLOURS), st.sampled_from(words.KINDS), st.integers(1, 4)
)
ACTS = st.one_of(
    st.builds(g.Act, st.sampled_from([a for a in words.ACTIONS if words.ACTIONS[a]]), ITEMS),
    st.builds(g.Act, st.sampled_from(["wait", "leave"])),
)
SIGNS = st.one_of(
    st.sampled_from(words.RECIPES),
    st.builds("{} {}".format, st.sampled_from(words.NOTICES), st.sampled_from(words.NUMBERS)),
)
STATES = [s for pair in words.STATES.values() for s in pair]
CLOCKS = st.integers(0, 9 * 86_400)
VALUES = {
    **dict.fromkeys(("wall_s", "start_s", "end_s"), CLOCKS),
    "day": st.integers(1, 30),
    "room": st.sampled_from(words.ROOMS),
    "place": st.sampled_from(words.PLACES),
    "slot": st.integers(0, 5),
    "state": st.sampled_from(["", *STATES]),
    "is_state": st.sampled_from(STATES),
    "person": st.sampled_from(words.PEOPLE),
    "item": ITEMS,
    "other": ITEMS,
    "act": ACTS,
    "action": st.sampled_from([a for a in words.ACTIONS if words.ACTIONS[a]]),
    "spot": st.builds(g.Spot, st.sampled_from(words.PLACES), st.sampled_from(words.ROOMS)),
    "sign": SIGNS,
    "recipe": st.sampled_from(words.RECIPES),
    "number": st.sampled_from(words.NUMBERS),
    "kind": st.sampled_from(words.KINDS),
    "relation": st.sampled_from(g.RELATIONS),
    "condition": st.one_of(
        st.builds(
            g.Condition, person=st.sampled_from(words.PEOPLE), room=st.sampled_from(words.ROOMS)
        ),
        st.builds(g.Condition, item=ITEMS),
        st.builds(g.Condition, sign=SIGNS),
        st.builds(g.Condition, act=ACTS),
    ),
    "until": st.integers(1, 30),
    "second": st.sampled_from(list(words.ACTIONS)),
    "other_room": st.sampled_from(words.ROOMS),
    "items": st.lists(ITEMS, min_size=1, max_size=4).map(tuple),
    "acts": st.lists(ACTS, min_size=1, max_size=4).map(tuple),
    "coins": st.integers(1, 99),
    "maker": st.sampled_from(words.MAKERS),
    "town": st.sampled_from(words.TOWNS),
}


@st.composite
def sentence(draw: st.DrawFn) -> g.Sentence:
    cls = draw(st.sampled_from(g.FORMS))
    return cls(**{f.name: draw(VALUES[f.name]) for f in fields(cls)})


@given(st.lists(sentence(), min_size=1, max_size=5))
@settings(max_examples=200, deadline=None)
def test_reading_inverts_writing(said: list[g.Sentence]) -> None:
    assert g.read(g.say(*said)) == tuple(said)


@given(st.lists(sentence(), min_size=1, max_size=4), st.sampled_from(["json", "wrap", "prose"]))
@settings(max_examples=150, deadline=None)
def test_sentences_are_found_in_any_surroundings(said: list[g.Sentence], form: str) -> None:
    text = g.say(*said)
    if form == "json":
        text = json.dumps({"memory": text, "n": 3})
    elif form == "wrap":
        text = textwrap.fill(text, 37)
    else:
        text = f"(Notes, perhaps wrong.) {text.replace(chr(10), ' And: ')} What else?"
    assert g.read(text) == tuple(said)


@given(sentence())
@settings(max_examples=100, deadline=None)
def test_a_changed_word_is_another_sentence_or_none(said: g.Sentence) -> None:
    tokens = said.say().split()
    middle = len(tokens) // 2
    changed = " ".join([*tokens[:middle], "zebra", *tokens[middle + 1 :]])
    assert g.read(changed) != (said,)


@given(sentence())
@settings(max_examples=200, deadline=None)
def test_every_word_is_in_the_vocabulary(said: g.Sentence) -> None:
    for token in re.findall(r"[A-Za-z]+|\d+", said.say()):
        assert token in words.WORDS, token


def test_the_vocabulary_is_exactly_what_the_forms_need() -> None:
    """Beside forms, slots bring words of their own; `words` must have no others."""
    used = {w for f in g.FORMS for w in re.findall(r"[A-Za-z]+", re.sub(r"<\w+>", "", f.form))}
    slots = "the is in I see sign reads left of right in front of behind DAY coins far near middle"
    assert set(words._FUNCTION_WORDS.split()) - used - set(slots.split()) == set()
    assert used <= set(words.WORDS)


def test_the_vocabulary_names_each_word_once() -> None:
    assert len(set(words.WORDS)) == len(words.WORDS)


def test_plain_prompt_words_are_no_sentences() -> None:
    assert g.read("The interval from DAY1 10:00:00 to DAY1 10:00:20 ends now. Speak?") == ()


def test_values_are_read_only_when_they_are_whole() -> None:
    assert g.read_value("item", "the red cup") == g.Item("red", "cup")
    assert g.read_value("item", "the 3 red cups.") == g.Item("red", "cup", 3)
    assert g.read_value("item", "the red cup and more") is None
    assert g.read_value("act", "turn on the blue lamp") == g.Act("turn on", g.Item("blue", "lamp"))


def test_two_forms_with_one_text_would_be_noticed() -> None:
    """The control of the inverse law: a second form with the text of a first one breaks it."""
    one = sentences.CannotTell()
    clash = type("Clash", (g.Sentence,), {"form": one.form})
    try:
        g._reader.cache_clear()
        g.read.cache_clear()
        assert g.read(one.say()) == (one,)
        assert g.read(clash().say()) != (clash(),)
    finally:
        g.FORMS.remove(clash)
        g._reader.cache_clear()
        g.read.cache_clear()


@pytest.mark.parametrize("cls", g.FORMS, ids=lambda cls: cls.__name__)
def test_fields_and_slots_of_a_form_agree(cls: type[g.Sentence]) -> None:
    assert set(re.findall(r"<(\w+)>", cls.form)) == {f.name for f in fields(cls)}  # type: ignore[arg-type]
