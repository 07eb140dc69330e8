"""The small set, worked by hand: a person read the list of shots and wrote down what is right."""

from __future__ import annotations

import pytest
from house_worlds import composed

from bench_lib.schema import Candidate

QUESTIONS = {
    # 010: S001 lounge (clean lamp, clean phone), hallway at the CAKE card with the grandmother
    # (clean torch, fix parcel, paint vase), lounge (fix phone), hallway (clean torch).
    "010-ER-00": ("What did I fix in the lounge on DAY1?", "the yellow phone"),
    "010-EST-01": ("Where was the yellow phone last seen?", "the chair in the lounge"),
    # Seconds 5, 15, 18 and 23 of the first session.
    "010-TR-02": ("Which of these did I do last?", "fix the yellow phone"),
    "010-ACR-03": ("What do I do now?", "fix the yellow phone"),
    # Three red ones on the chair, an orange one on the sofa.
    "010-CT-04": ("How many keys do I see now?", "4"),
    "010-OCR-05": ("What does the sign here read now?", "POST 13"),
    # Near right on the desk, the pies near middle on the fridge.
    "010-STU-06": (
        "As I see it now, how is the orange vase placed to the 4 red pies?",
        "right of",
    ),
    "010-ERA-07": (
        "From DAY1 09:46:55 on, who is first in the hallway with me?",
        "the grandmother",
    ),
    "039-ER-00": ("Who was with me when I did this: paint the red bottle?", "the grandmother"),
    "039-EST-01": ("Where was the yellow torch last seen?", "the counter in the bedroom"),
    # S001: fill the kettle, wash the kettle, ..., turn off the torch; the rest is in S002.
    "039-TR-02": (
        "Which of these did I do next after this: wash the orange kettle?",
        "turn off the red torch",
    ),
    "039-ACR-03": ("What do I do now?", "turn off the purple phone"),
    # An orange one on the box, a yellow one on the shelf.
    "039-CT-04": ("How many eggs do I see now?", "2"),
    "039-OCR-05": ("What does the sign here read now?", "FISH 47"),
    # Far right on the counter, the lemon far left on the chair.
    "039-STU-06": (
        "As I see it now, how is the black candle placed to the blue lemon?",
        "right of",
    ),
    "039-ERA-07": ("From DAY5 07:10:41 on, what do I wash in the bedroom?", "the white kettle"),
}
PROBES = {
    # The vase stands in the hallway; the wearer is there from second 10, in the garage at 21.
    "010-RCR-08": {
        ("S003", 6): "",
        ("S003", 11): "Please remember this: paint the blue vase.",
        ("S003", 21): "",
    },
    # The vase was on the garage's counter at the end of S002; the lamp sought at 27 is in view.
    "010-MPA-09": {
        ("S003", 13): "It is there: the blue vase was last seen at the counter in the garage.",
        ("S003", 29): "",
    },
    "010-PRM-10": {
        ("S003", 6): "",
        ("S003", 12): "Please remember this: paint the blue vase.",
    },
    # S001: clean the torch, fix the parcel, paint the vase; begun again with the torch alone.
    "010-TPG-11": {
        ("S002", 6): "",
        ("S002", 7): "",
        ("S002", 13): "The next step of CAKE is this: fix the yellow parcel.",
    },
    "039-RCR-08": {
        ("S002", 4): "",
        ("S002", 14): "Please remember this: fix the red torch.",
    },
    # Twice the kettle was washed and then stirred; now it was washed and nothing follows.
    "039-MPA-09": {
        ("S003", 7): "",
        ("S003", 14): "After that I usually see you do this: stir the white kettle.",
    },
    "039-PRM-10": {
        ("S002", 13): "",
        ("S002", 15): "Please remember this: stir the blue bowl.",
    },
}


def _candidate(name: str) -> Candidate:
    seed = int(name[:3])
    candidates = composed(seed, "small")[1].candidates
    return next(c for c in candidates if c.id.endswith(name))


@pytest.mark.parametrize("name", QUESTIONS)
def test_answers(name: str) -> None:
    candidate = _candidate(name)
    question, answer = QUESTIONS[name]
    assert candidate.question == question
    assert next(o.text for o in candidate.options if o.id == candidate.answer) == answer


@pytest.mark.parametrize("name", PROBES)
def test_what_is_due(name: str) -> None:
    told = {(p.session, p.t_s): p.reference.response for p in _candidate(name).probes}
    assert told == PROBES[name]


def test_when_a_held_question_can_be_answered() -> None:
    """The grandmother is met at second 10; the kettle is washed from second 9 on."""
    for name, ready_s in (("010-ERA-07", 10), ("039-ERA-07", 9)):
        for probe in _candidate(name).probes:
            assert (probe.t_s >= ready_s) == (probe.polarity == "positive")
