"""The letter look-up, alone and text only: which letter is this option?

Mixed in with easier lessons the skill does not start, so it comes first. Several replies share one
list of options: each states an option's text, then its letter; only the letter is learned.
"""

from __future__ import annotations

import numpy as np

from bench_lib.dollhouse.training.layout import Clerk, layout
from bench_lib.dollhouse.training.rows import Pack, Row, pack, row
from bench_lib.dollhouse.world.grammar import RELATIONS, Act, Item, Spot, value
from bench_lib.dollhouse.world.words import ACTIONS, COLOURS, KINDS, NUMBERS, PEOPLE, PLACES, ROOMS
from bench_lib.dollhouse.world.words import SIGN_WORDS as SIGNS
from bench_lib.exchange import Query
from bench_lib.prompts import PromptSet

LETTERS = "ABCD"
_SINGLE = (*COLOURS, *KINDS, *PEOPLE, *PLACES, *ROOMS, *SIGNS, *ACTIONS)
FILLERS = (
    "What do I do now?",
    "Who was with me?",
    "Where was it last seen?",
    "What does the sign here read now?",
    "Which of these did I do first?",
)


def said(content: str, letter: str = "", seen: str = "") -> str:
    """The reply to a question: what was seen for it, the content, then its letter, if any."""
    first = f'"seen": "{seen}", ' if seen else ""
    last = f', "answer": "{letter}"' if letter else ""
    return f'{{{first}"content": "{content}"{last}}}'


def options(texts: list[str]) -> str:
    """Options as prompts list them."""
    return "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, texts, strict=False))


def four(rng: np.random.Generator) -> list[str]:
    """Four different options of one type: single words, or phrases, half of them alike in parts."""
    kind = int(rng.integers(10))
    found: dict[str, None] = {}
    few = bool(rng.random() < 0.5)
    colours, kinds = _some(rng, COLOURS, 3 if few else 8), _some(rng, KINDS, 3 if few else 20)
    actions, rooms, places = _some(rng, ACTIONS, 3), _some(rng, ROOMS, 3), _some(rng, PLACES, 6)
    numbers, signs = _some(rng, NUMBERS, 2), _some(rng, SIGNS, 2)
    first = int(rng.choice([1, 5]))
    for _ in range(100):
        item = Item(_one(rng, colours), _one(rng, kinds))
        if kind == 0:
            text = value("item", item)
        elif kind == 1:
            text = value("act", Act(_one(rng, actions), item))
        elif kind == 2:
            text = value("spot", Spot(_one(rng, places), _one(rng, rooms)))
        elif kind == 3:
            text = f"{_one(rng, signs)} {_one(rng, numbers)}"
        elif kind == 4:
            text = value("person", _one(rng, PEOPLE))
        elif kind == 5:
            text = str(int(rng.integers(first, first + 4)))
        elif kind == 6:
            text = _one(rng, RELATIONS)
        else:
            text = _one(rng, _SINGLE)
        found[text] = None
        if len(found) == 4:
            return [list(found)[int(i)] for i in rng.permutation(4)]
    return four(rng)


def lesson(clerk: Clerk, prompts: PromptSet, rng: np.random.Generator) -> Pack:
    """One list of options and the look-up of each of them."""
    texts = four(rng)
    question = FILLERS[int(rng.integers(len(FILLERS)))]
    text = prompts.render(
        "choice", clock="", question=question, options=options(texts), letters="A|B|C|D"
    )
    query = Query(text=text, session=0, cutoff_s=0.0, system=prompts.render("system"))
    asked = layout(clerk, "kept", [])(query)
    end = clerk.token("<|im_end|>")
    rows: list[Row] = []
    for letter, content in zip(LETTERS, texts, strict=True):
        reply = clerk.tokenize(said(content, letter))
        at = len(reply) - 2  # the letter, then the closing piece
        rows.append(row(asked, [*reply, end], at))
    return pack(rows)


def _some(rng: np.random.Generator, words: object, n: int) -> list[str]:
    listed = list(words)  # type: ignore[call-overload]
    return [listed[int(i)] for i in rng.choice(len(listed), n, replace=False)]


def _one(rng: np.random.Generator, words: object) -> str:
    listed = list(words)  # type: ignore[call-overload]
    return listed[int(rng.integers(len(listed)))]
