"""A free question is asked when it is meant to be, or one line says which times there are."""

from __future__ import annotations

import re

import pytest

from bench_lib.asks.free import free_question
from bench_lib.errors import BenchError
from bench_lib.schema import Session, Trajectory


def when(at: str, **lengths: float) -> tuple[str, float]:
    named = {name.replace("_", " "): length for name, length in lengths.items()}
    sessions = tuple(
        Session(id=name, index=n, spans=(), duration_s=length)
        for n, (name, length) in enumerate(named.items())
    )
    (asks,) = free_question(
        (Trajectory(id="t", source="folder", sessions=sessions),), "Where?", at
    ).values()
    return asks[0].probe.session, asks[0].probe.t_s


WEEK = {"monday": 3725.25, "tuesday": 10.0, "day_2__at_sea": 90.0, "é": 5.0, "gone": 0.0}


@pytest.mark.parametrize(
    ("at", "session", "t_s"),
    [
        ("", "gone", 0.0),
        ("tuesday", "tuesday", 10.0),
        ("tuesday 7", "tuesday", 7.0),
        ("tuesday 00:07.5", "tuesday", 7.5),
        ("tuesday 10.4", "tuesday", 10.0),  # lengths are told in rounded seconds
        ("monday 1:02:05", "monday", 3725.0),
        ("monday 62:05", "monday", 3725.0),
        ("day 2  at sea", "day 2  at sea", 90.0),
        ("day 2  at sea 01:29", "day 2  at sea", 89.0),
        ("e\u0301 1", "é", 1.0),
    ],
)
def test_a_question_is_put_at_its_time(at: str, session: str, t_s: float) -> None:
    assert when(at, **WEEK) == (session, t_s)


def test_a_time_alone_is_one_in_the_only_session() -> None:
    assert when("00:07", tuesday=10.0) == ("tuesday", 7.0)


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (
            "tuesday 00:40",
            "00:40 lies after the session; tuesday lasts 00:10 (10.0 s): give",
        ),
        ("tuesday 00:40", "or 'tuesday' alone for its end"),
        ("monday 2:00:00", "monday lasts 62:05 (3725.2 s)"),
        ("tuesday noon", "must be seconds, MM:SS or HH:MM:SS, not 'noon'; tuesday lasts 00:10"),
        ("tuesday 0:75", "not '0:75'"),
        ("tuesday -1", "not '-1'"),
        ("tuesday nan", "not 'nan'"),
        ("gone 3", "gone could not be read"),
        ("00:07", "no session '00:07' in t; known"),
        ("wednesday 3", "no session 'wednesday' in t; did you mean 'tuesday'?"),
    ],
)
def test_what_cannot_be_meant_says_what_can(at: str, said: str) -> None:
    with pytest.raises(BenchError, match=re.escape(said)):
        when(at, **WEEK)
