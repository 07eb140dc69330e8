"""The parser on the case files, and the laws that hold for every dressing and for noise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_lib.errors import BenchError
from bench_lib.replies.parse import FAILURES, parse, parse_adaptive, parse_choice

CASES = [
    pytest.param(case, id=f"{path.stem}-{number}")
    for path in sorted((Path(__file__).parent / "cases").glob("*.json"))
    for number, case in enumerate(json.loads(path.read_text(encoding="utf-8")))
]


def test_there_are_enough_cases_with_reasons():
    cases = [param.values[0] for param in CASES]
    assert len(cases) >= 450
    assert all(case["because"].endswith(".") for case in cases)
    named = [(c["reply"], c["input"], c.get("letters"), c.get("stop"), str(c.get("options")))
             for c in cases]  # fmt: skip
    assert len(set(named)) == len(named)


@pytest.mark.parametrize("case", CASES)
def test_case(case):
    letters, stop = case.get("letters", "ABCD"), case.get("stop", "")
    parsed = parse(case["reply"], case["input"], letters, stop, case.get("options"))
    assert (parsed.status, parsed.option, parsed.decision) == (
        case["status"],
        case["option"],
        case.get("decision"),
    ), parsed
    for name in ("why", "text", "reason"):
        if name in case:
            assert getattr(parsed, name) == case[name], parsed
    assert (parsed.status == "repaired") == bool(parsed.repairs)
    if parsed.status == "unparsed":
        assert parsed.why in FAILURES


DRESSINGS = {
    "spaces": lambda s: f"  {s}\n\n",
    "fence": lambda s: f"```json\n{s}\n```",
    "reasoning": lambda s: f"<think>Perhaps A, B, C or D. INTERVENE? SILENT?</think>\n{s}",
    "reasoning, other tag": lambda s: f"<REASONING>The answer is D.</REASONING>{s}",
    "closing tag only": lambda s: f"The answer is D, SILENT.</think>{s}",
    "preface": lambda s: f"Here is what I found in the video:\n{s}",
    "epilogue": lambda s: f"{s}\nLet me know what else you need.",
    "end token": lambda s: f"{s}<|im_end|>",
    "repeated": lambda s: f"{s}\n{s}\n{s}",
    "full width": lambda s: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in s),
}
LETTER_DRESSINGS = {
    "object": lambda x: f'{{"answer": "{x}"}}',
    "single quotes": lambda x: f"{{'answer': '{x}'}}",
    "trailing comma": lambda x: f'{{"answer": "{x}",}}',
    "cut end": lambda x: f'{{"answer": "{x}"',
    "box": lambda x: rf"\boxed{{\text{{{x}}}}}",
    "cue": lambda x: f"The answer is ({x}).",
    "bold cue": lambda x: f"**Answer: {x}**",
    "chinese": lambda x: f"答案：{x}。",
}


@given(
    letter=st.sampled_from("ABCD"),
    clean=st.sampled_from(sorted(LETTER_DRESSINGS)),
    outer=st.lists(st.sampled_from(sorted(DRESSINGS)), max_size=3, unique=True),
)
@settings(max_examples=400, deadline=None)
def test_no_dressing_changes_the_letter(letter, clean, outer):
    text = LETTER_DRESSINGS[clean](letter)
    if clean == "cut end":  # a cut end is the end: nothing can follow it
        outer = [name for name in outer if name in {"spaces", "reasoning", "preface"}]
    for name in outer:
        text = DRESSINGS[name](text)
    parsed = parse_choice(text)
    assert parsed.option == letter, (text, parsed)


@given(
    decision=st.sampled_from(["INTERVENE", "SILENT"]),
    letter=st.sampled_from("ABCD"),
    outer=st.lists(st.sampled_from(sorted(DRESSINGS)), max_size=3, unique=True),
)
@settings(max_examples=300, deadline=None)
def test_no_dressing_changes_the_decision(decision, letter, outer):
    reply = {"decision": decision, "reason": "the label"}
    text = json.dumps({**reply, "answer": letter} if decision == "INTERVENE" else reply)
    for name in outer:
        text = DRESSINGS[name](text)
    parsed = parse_adaptive(text, "ABCD")
    assert parsed.decision == decision, (text, parsed)
    assert parsed.option == (letter if decision == "INTERVENE" else None)


SENTENCES = """the cup plate is on a table and an person walks kitchen then red blue near not maybe
option answer question video shows because it was moved before after 3 12 silent intervene I see"""
WORDS = SENTENCES.split()


@given(st.lists(st.sampled_from([*WORDS, ".", ",", "!", "\n", "{", "}", '"', ":"]), max_size=40))
@settings(max_examples=400, deadline=None)
def test_noise_of_words_never_yields_an_answer(words):
    text = " ".join(words)
    parsed = parse_choice(text, "BCD")
    assert parsed.option is None, text


@given(st.text(alphabet=st.characters(exclude_characters="ABCDabcdＡＢＣＤａｂｃｄ"), max_size=200))
@settings(max_examples=300, deadline=None)
def test_text_without_the_letters_never_yields_one(text):
    import unicodedata

    if not set(unicodedata.normalize("NFKC", text).upper()) & set("ABCD"):
        assert parse_choice(text).option is None


@given(st.text(max_size=300), st.sampled_from(["", "length"]))
@settings(max_examples=300, deadline=None)
def test_any_text_gives_a_record_and_never_raises(text, stop):
    for kind in ("choice", "adaptive_choice", "adaptive_text", "free"):
        parsed = parse(kind, text, "ABCDE", stop)
        assert parsed.status in {"ok", "repaired", "unparsed"}
        assert parsed.option in {None, *"ABCDE"}


def test_two_different_answers_never_become_one():
    for first in "ABCD":
        for second in "ABCD":
            text = f'{{"answer": "{first}"}} {{"answer": "{second}"}}'
            assert (parse_choice(text).option is None) == (first != second)


def test_deep_nesting_is_unparsed_and_not_a_crash():
    assert parse_choice('{"a":' * 3000).status == "unparsed"
    assert parse_choice("[" * 100_000).status == "unparsed"


def test_a_cut_reply_with_one_reading_is_marked():
    assert "cut" in parse_choice('{"answer": "B"} and so on', stop="length").repairs
    assert parse_choice('{"answer": "B"}', stop="end").status == "ok"


def test_a_free_reply_keeps_its_signs():
    text = "“Two” cups’ ½ is ①"
    assert parse("free", text) == parse("free", f"{text}\n")
    assert (parse("free", text).status, parse("free", text).text) == ("ok", text)
    dressed = parse("free", f"<think>hm</think>{text}")
    assert (dressed.repairs, dressed.text) == (("reasoning",), text)
    assert parse("free", "＜think＞hm＜/think＞Two cups.").text == "Two cups."


def test_a_free_reply_is_its_text_without_reasoning():
    parsed = parse("free", "<think>hm</think>Two cups.")
    assert (parsed.status, parsed.text) == ("repaired", "Two cups.")
    assert parse("free", "Two cups.").status == "ok"
    assert parse("free", "  ").why == "empty reply"
    assert parse("free", "He waits ........").status == "ok"
    assert parse("free", "!" * 16).why == "repeats itself"


@pytest.mark.parametrize("letters", ["", "AA", "A1", "ÄB"])
def test_letters_that_make_no_sense_are_refused(letters):
    with pytest.raises(BenchError, match="option letters"):
        parse_choice("A", letters)
