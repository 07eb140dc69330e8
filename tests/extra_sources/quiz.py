"""quiz: made-up films with questions of a third benchmark."""

from __future__ import annotations

from pathlib import Path

import synthetic

from bench_lib.schema import Candidate, Dataset, Moment, Option, Probe, Trajectory
from bench_lib.tasks import Bench, Task

QUIZ = Bench(
    "quiz",
    (
        Task("NOW", "What is there", "Seeing", "choice", "current"),
        Task("THEN", "What was there", "Recalling", "choice", "earlier"),
    ),
    "apm",
)
OPTIONS = tuple(
    Option(id=letter, text=f"a {word}") for letter, word in (("A", "cat"), ("B", "dog"))
)


def load(data_root: str) -> Dataset:
    """Two films of two sessions, with one question a task and film."""
    return Dataset(tuple(_film(Path(data_root), number) for number in range(2)))


def _film(home: Path, number: int) -> Trajectory:
    sessions = tuple(
        synthetic.session(_video(home / f"{number}-{i}.mp4", 10 * number + i), i, 4.0)
        for i in range(2)
    )
    asked = [
        Candidate(
            id=f"{code}-{number}",
            task=code,
            question="What is it?",
            options=OPTIONS,
            answer="AB"[number],
            evidence=(Moment(session=sessions[where].id, start_s=1.0, end_s=2.0),),
            probes=(Probe(id="p", session=sessions[1].id, t_s=3.0),),
        )
        for code, where in (("NOW", 1), ("THEN", 0))
    ]
    return Trajectory(id=f"film{number}", source="quiz", sessions=sessions, candidates=tuple(asked))


def _video(path: Path, seed: int) -> Path:
    return path if path.exists() else synthetic.movie(path, 4.0, seed)
