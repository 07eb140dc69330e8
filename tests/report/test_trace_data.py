"""Which calls served which question."""

from __future__ import annotations

import pytest

from bench_lib.benches.arena.story import Story
from bench_lib.schema import Candidate, Probe, Registration
from bench_lib.streammind.models import Path, ask_place, called_for, turn_place


def asked(key: str, text: str, t_s: float, watch: bool = False) -> Candidate:
    probe = Probe(id="p", session="S", t_s=t_s)
    said = Registration(session="S", t_s=t_s, text=text) if watch else None
    return Candidate(
        id=key, task="Pro" if watch else "RTP", question=text, probes=(probe,), registration=said
    )


def test_two_questions_of_one_second_keep_their_calls_apart() -> None:
    """One's words stand in the other's dialogue, and one is the begin of the other."""
    one, two = asked("q1", "Which cup?", 5.0), asked("q2", "Which cup? Which 1/2?", 5.0)
    wish = asked("q3", "Which cup?", 5.0, watch=True)
    other = asked("q4", "Which cup?", 5.0, watch=True)
    places = {
        "q1": [f"{ask_place(5.0, one.question)}/{step}" for step in ("0", "1", "2.0/0", "2.1/3")],
        "q2": [f"{ask_place(5.0, two.question)}/{step}" for step in ("0", "1.0/0")],
        "q3": [f"{turn_place(5.0, 'q3')}/0"],
        "q4": [f"{turn_place(5.0, 'q4')}/0"],
    }
    story = Story()
    everything = [place for own in places.values() for place in own]
    vars(story)["calls"] = [
        {"place": place, "text": "user: Which cup? user: Which cup? Which 1/2?"}
        for place in [*everything, "memory_writer@5/0", "w1@5/0"]
    ]
    for candidate in (one, two, wish, other):
        found = [call["place"] for call in story.of_question(candidate)]
        assert found == places[candidate.id]


@pytest.mark.parametrize("text", ["plain", "with/slash", "ends/in x", "1.5 / 2"])
def test_a_call_names_the_path_on_which_it_was_made(text: str) -> None:
    path = Path(ask_place(7.25, text))
    [branch, _] = path.branches(2)
    [deeper] = branch.branches(1)
    for own in (path, branch, deeper):
        assert called_for(f"{own.name}/{len(own.calls)}") == path.name
