# ruff: noqa: E501 - replies stand in lines of their own width
"""Replies by the thousand, every clean form in every dressing and denial, and the time they take.

No wrong option is ever read; options that are not read are counted and few. `replies/*.txt` hold
replies in English, Chinese, Japanese, Korean, Vietnamese, Spanish, French and German.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_lib.replies.parse import parse, parse_adaptive, parse_choice
from bench_lib.replies.refusals import declines

HERE = Path(__file__).parent / "replies"


def listed(name: str) -> list[str]:
    lines = (HERE / f"{name}.txt").read_text(encoding="utf-8").splitlines()[1:]
    return [line.replace("\\\\", "\0").replace("\\n", "\n").replace("\0", "\\") for line in lines]


def full_width(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def test_options_that_are_stated_are_read():
    pairs = [line.split("\t", 1) for line in listed("stated")]
    read = {text: parse_choice(text).option for _, text in pairs}
    assert len(pairs) > 1000
    assert [(text, read[text]) for letter, text in pairs if read[text] != letter] == []


def test_options_that_are_not_stated_are_not_read():
    texts = listed("unstated")
    assert len(texts) > 2000
    assert [t for t in texts if parse_choice(t, "ABCDE").option] == []


def test_decisions_that_are_stated_are_read():
    pairs = [line.split("\t", 1) for line in listed("decided")]
    wanted = {"I": "INTERVENE", "S": "SILENT"}
    read = {text: parse_adaptive(text).decision for _, text in pairs}
    assert [(t, read[t]) for word, t in pairs if read[t] != wanted[word]] == []


def test_decisions_that_are_not_stated_are_not_read():
    assert [t for t in listed("undecided") if parse_adaptive(t).decision] == []


def test_refusals_say_nothing_else():
    assert [t for t in listed("refused") if not declines(t)] == []
    assert [t for t in listed("not_refused") if declines(t)] == []
    for text in listed("refused"):
        for kind in ("choice", "adaptive_choice", "adaptive_text", "free"):
            assert parse(kind, text).status == "refused", text
    for name in ("stated", "decided"):
        texts = [line.split("\t", 1)[1] for line in listed(name)]
        assert [t for t in texts if declines(t)] == []


CLEAN = """{x}|({x})|{x}.|Answer: {x}|The answer is {x}.|The correct answer is ({x}).|I choose {x}.
The answer is {x} because the cup is red.|I think it's {x}.|It's {x}.|Option {x} is correct.|Option {x}
{x} is the correct answer.|So the answer is {x}.|**Answer:** {x}|Final answer: {x}|My answer is {x}.
{x}. a red cup|{x}) a red cup|答案是{x}。|选{x}。|正确答案：{x}|正解は{x}です。|答え：{x}|정답은 {x}입니다.|정답: {x}
Đáp án là {x}.|Tôi chọn {x}.|La respuesta correcta es {x}.|Respuesta: {x}|La réponse est {x}.
Réponse : {x}|Die Antwort ist {x}.|Antwort: {x}|\\boxed{{{x}}}|<answer>{x}</answer>""".replace(
    "\n", "|"
)
FORMS = [*CLEAN.split("|"), '{{"answer": "{x}"}}']
DRESSINGS = {
    **{f"in {a}{b}": lambda s, a=a, b=b: f"{a}{s}{b}" for a, b in (
        ("**", "**"), ("*", "*"), ("__", "__"), ("`", "`"), ('"', '"'), ("“", "”"), ("'", "'"),
        ("‘", "’"), ("«", "»"), ("「", "」"), ("„", "“"), ("(", ")"), ("<b>", "</b>"), ("<p>", "</p>"),
        ("## ", ""), ("> ", ""), ("- ", ""), ("1. ", ""), ("  ", " \n"), ("\u200b", "\ufeff"),
        ("", "<|im_end|>"), ("<s>", "</s>"), ("```\n", "\n```"),
    )},
    "full width": full_width,
    **{f"after {role!r}": lambda s, role=role: f"{role}{s}" for role in (
        "ASSISTANT: ", "assistant\n", "Assistant:\n", "<|assistant|>", "### Response:\n", "助手：",
        "Sure! Here is my answer:\n", "The man is not sitting.\n",
        "<think>The answer is D. INTERVENE?</think>\n", "Perhaps D, SILENT.</think>",
    )},
    **{f"before {end!r}": lambda s, end=end: f"{s}{end}" for end in (
        "\n\nThe man is not sitting on the chair.", "\nThe other options are wrong.",
        "\nLet me know if you have any questions.",
    )},
}  # fmt: skip


def test_each_clean_form_is_read_in_each_dressing():
    """One form in one dressing has two readings: `(B: a red cup)`; it is left out of neither."""
    missed, wrong, count = [], [], 0
    for name, dress in DRESSINGS.items():
        for form in FORMS:
            for letter in "ABCD":
                text = dress(form.format(x=letter))
                option = parse_choice(text).option
                count += 1
                missed += [(name, form)] * (option is None)
                wrong += [text] * (option not in (None, letter))
    assert wrong == []
    assert len(missed) <= 0.002 * count, sorted(set(missed))


@given(
    letter=st.sampled_from("ABCD"),
    form=st.sampled_from(FORMS),
    outer=st.lists(st.sampled_from(sorted(DRESSINGS)), min_size=2, max_size=4, unique=True),
)
@settings(max_examples=300, deadline=None)
def test_dressings_over_dressings_never_give_another_letter(letter, form, outer):
    text = form.format(x=letter)
    for name in outer:
        text = DRESSINGS[name](text)
    # Reasoning inside a tag, or marked as a quotation, is cut out like any other.
    assert parse_choice(text).option in (None, letter), text


STATED = """the answer is {x}|the correct answer is {x}|it's {x}|it is {x}|{x} is correct|{x} is the answer
option {x} is correct|the answer is option {x}|the answer is ({x})|I choose {x}|the answer must be {x}
the answer is probably {x}""".replace("\n", "|").split("|")
DECIDED = """INTERVENE|SILENT|I will INTERVENE|I stay SILENT|I should INTERVENE now|the decision is SILENT
my decision is INTERVENE|it is time to INTERVENE|I choose SILENT|Decision: SILENT""".replace(
    "\n", "|"
).split("|")
BEFORE = [
    "It is not true that |It isn't true that |It is false that |I don't think |I doubt |I doubt that",
    "I do not believe |I can't say that |I would not say |I'm not sure that |I'm unsure whether |I wonder if",
    "Nobody says |Nothing suggests that |There is no evidence that |It would be wrong to say |If it is red,",
    "If it is red then |If so, |Unless it moved, |Suppose |Assume |Provided it is red, |In case it is red,",
    "Had it been red, |Otherwise, |Maybe |Perhaps |It could be that |It may be that |At first I thought",
    "At first, |Initially, |I thought |You might think |Some would say |He says |The man says that |The sign says:",
    "For example, |e.g. |Example: |You asked me to say |The instruction says |Never say |Don't say |I refuse to say",
    "Imagine |Hypothetically, |Wrong: |False: |Not true: |If it is red:",
    "",
]
BEFORE = [f"{frame.strip()} " for line in BEFORE for frame in line.split("|") if frame.strip()]
AFTER = """? No.|? I don't think so.|, if the cup is red.| if the cup is red.| unless it moved.|, unless it moved.
 only if it is red.|, provided it is red.|. Wait, that is wrong.|. No, wait.|. That's wrong.|. That’s not right.
. This is incorrect.|. Just kidding.|. Scratch that.|. Never mind.|, but that is wrong.|, which is wrong.
 is wrong.| is a false claim.| would be wrong.|, not.| — not!|... not.|, he said.|. On second thought, no.
. I was wrong.|. Actually, no.|, or {o}.| or {o}.| and {o}.|. Or {o}.|, no, {o}.|. Correction: {o}.
?""".replace("\n", "|").split("|")
FRAMES = [frame + "{s}." for frame in BEFORE] + ["{s}" + frame for frame in AFTER]
ABROAD = {
    "答案是{x}|选{x}|{x}是正确的": """我不认为{s}。|说{s}是错的。|如果是红色，{s}。|除非动了，{s}。|也许{s}。|可能{s}。|有人说{s}。|他认为{s}。
一开始我以为{s}。|例如{s}。|难道{s}？|不能说{s}。|我怀疑{s}。|假设{s}。|否则{s}。|{s}吗|{s}。不对。|{s}，不对。|{s}是错的。|{s}。其实不是。""",
    "答えは{x}です|正解は{x}です|{x}が正解です": """もし赤いなら、{s}。|赤い場合、{s}。|彼は{s}と言った。|最初は{s}と思った。|例えば、{s}。|{s}か？
{s}とは思いません。|{s}とは限りません。|{s}というのは間違いです。|{s}。違います。|{s}。いや、違います。|そうでなければ、{s}。""",
    "정답은 {x}입니다|{x}가 정답입니다": """만약 빨간색이면 {s}.|그는 {s}라고 말했습니다.|처음에는 {s}라고 생각했습니다.|예를 들어 {s}.|{s}?
{s}라고 생각하지 않습니다.|{s}는 틀렸습니다.|{s}. 아닙니다.|그렇지 않으면 {s}.|어쩌면 {s}.""",
    "đáp án là {x}|tôi chọn {x}": """Nếu màu đỏ thì {s}.|Tôi không nghĩ {s}.|Không phải {s}.|Có thể {s}.|Anh ấy nói {s}.|Ban đầu {s}.
Ví dụ, {s}.|Trừ khi màu đỏ, {s}.|Giả sử {s}.|{s} là sai.|{s} phải không?|{s}. Sai.|{s} nếu màu đỏ.|{s}, nếu màu đỏ.""",
    "la respuesta es {x}|elijo {x}|{x} es correcta": """Si es roja, {s}.|No creo que {s}.|Es falso que {s}.|Dudo que {s}.|Quizás {s}.
Él dice que {s}.|Al principio {s}.|Por ejemplo, {s}.|A menos que sea roja, {s}.|De lo contrario, {s}.|¿{s}?|{s} es falso.|{s}, si es roja.
{s}. No.|{s}. Eso es incorrecto.|{s}. No, espera.""",
    "la réponse est {x}|je choisis {x}|c’est {x}": """Si elle est rouge, {s}.|Je ne pense pas que {s}.|Il est faux que {s}.|Je doute que {s}.
Peut-être que {s}.|Il dit que {s}.|Au début, {s}.|Par exemple, {s}.|Supposons que {s}.|Sinon, {s}.|Est-ce que {s} ?|{s} est faux.|{s} si elle est rouge.
{s}. Non.|{s}. C’est faux.|{s}. Non, attendez.""",
    "die Antwort ist {x}|ich wähle {x}|{x} ist richtig": """Wenn sie rot ist, {s}.|Ich glaube nicht, dass {s}.|Es ist falsch, dass {s}.
Ich bezweifle, dass {s}.|Vielleicht {s}.|Er sagt, {s}.|Anfangs dachte ich, {s}.|Zum Beispiel {s}.|Angenommen, {s}.|Sonst {s}.|{s}, oder?
{s} ist falsch.|{s}, wenn sie rot ist.|{s}. Nein.|{s}. Das ist falsch.|{s}. Nein, warte.""",
}
ALIKE = ("'", "’", "ʼ", "＇", "´", "‛")
"""Apostrophes that keyboards and models write."""


def dressed(text: str, apostrophe: str, outer: str) -> str:
    return {
        "plain": lambda s: s,
        "bold": lambda s: f"**{s}**",
        "full width": full_width,
        "role": lambda s: f"ASSISTANT: {s}",
        "explained": lambda s: f"{s}\n\nThe man is in the kitchen.",
        "after a sentence": lambda s: f"The man is in the kitchen.\n{s}",
        "reasoned": lambda s: f"<think>B.</think>{s}",
    }[outer]((text[:1].upper() + text[1:]).replace("'", apostrophe))


OUTER = ("plain", "bold", "full width", "role", "explained", "after a sentence", "reasoned")


@given(st.sampled_from(FRAMES), st.sampled_from(STATED), st.sampled_from("ABCD"),
       st.sampled_from(ALIKE), st.sampled_from(OUTER))  # fmt: skip
@settings(max_examples=600, deadline=None)
def test_what_is_denied_supposed_asked_or_reported_is_no_option(frame, said, letter, mark, outer):
    said = said.format(x=letter)
    text = dressed(frame.format(s=said, o="D" if letter != "D" else "C"), mark, outer)
    assert parse_choice(text).option is None, text


@given(st.sampled_from(FRAMES), st.sampled_from(DECIDED), st.sampled_from(ALIKE),
       st.sampled_from(OUTER))  # fmt: skip
@settings(max_examples=600, deadline=None)
def test_what_is_denied_supposed_asked_or_reported_is_no_decision(frame, said, mark, outer):
    other = "SILENT" if "INTERVENE" in said else "INTERVENE"
    text = dressed(frame.format(s=said, o=other), mark, outer)
    assert parse_adaptive(text).decision is None, text


def test_the_same_in_other_languages():
    texts = [
        frame.format(s=said.format(x=letter))
        for stated, frames in ABROAD.items()
        for said in stated.split("|")
        for frame in frames.replace("\n", "|").split("|")
        for letter in "ABC"
    ]
    assert len(texts) > 500
    assert [t for t in texts if parse_choice(t).option] == []


# One megabyte of anything is read in a second.

UNITS = [
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    '"',
    "'",
    "`",
    "*",
    "_",
    "~",
    "<",
    ">",
    ".",
    ",",
    ":",
    ";",
    "-",
    "—",
    "!",
    "?",
    "|",
    "/",
    "\\",
    "$",
    "#",
    "&",
    "=",
    "a",
    "A",
    "B",
    "AB",
    "A,",
    "(A)",
    "[A]",
    "<A>",
    "B?",
    "<think>",
    "</think>",
    "<think></think>",
    "[think]",
    "◁think▷",
    "<answer>",
    "</answer>",
    "<answer>B</answer>",
    "\\boxed{",
    "\\boxed{B}",
    "[[",
    "[[B]]",
    "\\text{",
    "<|im_end|>",
    "<s>",
    "&quot;",
    "&lt;",
    "answer",
    "Answer:",
    "not",
    "if",
    "or",
    "so",
    "is",
    "option",
    "答案",
    "答案是",
    "选",
    "不",
    "不是",
    "如果",
    "정답은",
    "は",
    "INTERVENE",
    "Decision:",
    "reason:",
    '{"',
    '{"a":',
    '{"answer":',
    '{"answer":"',
    '{"answer":"B"}',
    '{"decision":"SILENT"}',
    "{'answer':'B'}",
    "{'answer':",
    "{answer:",
    '{"a":[',
    '[{"a":',
    '{"\\',
    '\\"',
    "“",
    "”",
    "«",
    "【",
    "（",
    "Ｂ",
    "：",
    "ﷺ",
    "~~",
    "~~B~~",
    "<del>",
    "<b>",
    "```",
    "```json",
    "❌",
    "sorry",
]
UNITS += ["\n", " ", "\t", "\r\n", "\n ", "A ", "A\n", "A\nB\n", "B. ", "A or ", "The answer is B. ", "B, ",
          "The answer is B", "The answer is not B. ", "if B ", "so ", "The ", "INTERVENE or ", "SILENT. ",
          "If INTERVENE, ", '{"answer": "B. x"}\n', '{"decision": "stay SILENT"}', "answer: 'B', ",
          '","answer":"', "\u0300\u0315", "\u0315\u0300", "B\u0336", "\u200b", "\ud800", "- ", "1. B\n",
          "I cannot help. ", "I can't ", "<|channel|>", "<|channel|>final<|message|>"]  # fmt: skip


def mixed(size: int) -> dict[str, str]:
    """Shapes that no repetition makes."""
    return {
        "list in openings": '{"a":' * 100 + "[1," * 2 + "1," * (size // 2),
        "spaces in a tag": "<" + " " * size,
        "a long entity": "&quot;&#" + "9" * size + ";",
        "a long number": '{"answer": ' + "1" * size + "}",
        "a long key": '{"' + "a" * size + '": "B"}',
        "many keys": "{" + ",".join(f'"k{i}": {i}' for i in range(size // 14)) + "}",
        "a channel": "<|channel|>" + "a" * size,
        "an open string": '{"answer": "' + "B" * size,
        "many objects": "".join(f'not {{"answer": "B. {i}"}}' for i in range(size // 25)),
        "one sentence": "if " + "the cup and " * (size // 12) + "the answer is B",
    }


@pytest.mark.parametrize("size", [60_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_anything_is_read_in_linear_time(size):
    """A pattern that reads a stretch over and over takes minutes for the smaller size already."""
    shapes = {unit: (unit * (size // len(unit) + 1))[:size] for unit in UNITS} | mixed(size)
    slow = {}
    for name, text in shapes.items():
        for kind in ("choice", "adaptive_text") if size == 1_000_000 else ("choice",):
            begun = time.process_time()
            parsed = parse(kind, text, "ABCD", "length")
            took_s = time.process_time() - begun
            assert parsed.status in ("unparsed", "repaired")
            if took_s > 1.0:
                slow[name, kind] = took_s
    assert slow == {}


def test_an_answer_is_found_at_the_end_of_a_long_reply():
    words = "the cup is red. " * 60_000
    assert parse_choice(f"{words}\nThe answer is B.").option == "B"
    assert parse_choice(f'{words}\n{{"answer": "B"}}').option == "B"
    assert parse_adaptive(f"{words}\nDecision: SILENT").decision == "SILENT"
