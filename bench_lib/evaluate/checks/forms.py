"""What the forms of a saved memory cost in bytes, and what they change in answers.

    python -m bench_lib.evaluate.checks.forms [NAME ...] [--model tiny-qwen3]

prints a table over the methods whose memory is tensors, with the windows of the contract checks:
three short films, the memory saved after each and, but for `exact`, gone on from as saved; then
questions on a fourth. Without a trained model the logits are those of random weights: their
distance is real, what is answered means nothing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench_lib import methods
from bench_lib.evaluate.checks.trial import Trial, Viewing
from bench_lib.exchange import FORMS, Reply
from bench_lib.measure import counting
from bench_lib.state.packs import Shelf

SESSIONS = (17, 12, 9)
QUESTIONS = (
    "Where is the red cup?",
    "What is on the table?",
    "Who was here?",
    "What happened before?",
    "How many things are there?",
    "Where did the keys go?",
)


@dataclass(frozen=True)
class Effect:
    """A form beside the exact one.

    Attributes:
        memory_bytes: The state in memory, exact.
        disk_bytes: The saved state with all it refers to.
        written_bytes: Written over all sessions.
        distance: Root mean square difference of the first token's logits, relative to their spread
            (standard deviation over the vocabulary); mean over questions.
        same: Share of questions whose reply has the same text.
    """

    method: str
    form: str
    memory_bytes: int
    disk_bytes: int
    written_bytes: int
    distance: float
    same: float


def effects(make: Trial, names: Iterable[str] = FORMS) -> Iterator[Effect]:
    """Each form of a method's memory; the first is compared with as the exact one."""
    exact: list[Reply] = []
    for form in names:
        view, disk, written = _lived(make, form)
        size = sum(view.method.state_bytes().values())
        view.session(3)
        replies = [view.ask(text) for text in QUESTIONS]
        exact = exact or replies
        pairs = list(zip(replies, exact, strict=True))
        yield Effect(
            make.name,
            form,
            size,
            disk,
            written,
            float(np.mean([_distance(a, b) for a, b in pairs])),
            float(np.mean([a.text == b.text for a, b in pairs])),
        )


def _lived(make: Trial, form: str) -> tuple[Viewing, int, int]:
    """A memory after some sessions, each saved in a form and gone on from; bytes of its saves."""
    view, written, disk = Viewing.of(make), 0, 0
    with tempfile.TemporaryDirectory() as home:
        before = None
        for at, frames in enumerate(SESSIONS):
            view.session(frames)
            view.end()
            folder = Path(home) / str(at)
            with counting() as counts:
                view.method.save(folder, Shelf(Path(home) / "packs", before, form))
            written += counts["state_bytes_written"]
            disk = counts["state_bytes_on_disk"]
            before = folder
            if form != "exact":
                view.method.load(folder)
    return view, disk, written


def _distance(one: Reply, other: Reply) -> float:
    assert one.logits is not None
    assert other.logits is not None
    return float(np.sqrt(np.mean((one.logits - other.logits) ** 2)) / other.logits.std())


def table(found: Sequence[Effect]) -> str:
    """Effects as lines of text."""
    head = f"{'method':<18}{'form':<7}{'memory':>10}{'on disk':>10}{'written':>10}"
    lines = [f"{head}{'distance':>10}{'same replies':>14}"]
    for e in found:
        sizes = f"{e.memory_bytes:>10,}{e.disk_bytes:>10,}{e.written_bytes:>10,}"
        lines.append(f"{e.method:<18}{e.form:<7}{sizes}{e.distance:>10.4f}{e.same:>14.0%}")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m bench_lib.evaluate.checks.forms")
    parser.add_argument("names", nargs="*", help="methods; all whose memory is tensors by default")
    parser.add_argument("--model", default="", help="tiny, tiny-qwen3, ...")
    given = parser.parse_args(arguments)
    names = given.names or [n for n in methods.available() if methods.find(n).model == "backbone"]
    found = [effect for name in names for effect in effects(Trial.scaled(name, given.model))]
    print(table(found))


if __name__ == "__main__":
    main(sys.argv[1:])
