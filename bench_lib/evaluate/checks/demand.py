"""What a check is, and the list that checks add themselves to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench_lib.evaluate.checks.trial import Trial, Viewing
from bench_lib.exchange import Reply
from bench_lib.memories.method import Method


class Broken(AssertionError):
    """A method does not keep the contract."""


@dataclass(frozen=True)
class Check:
    """One demand. `only` says in words which methods it is for, `applies` decides it."""

    name: str
    text: str
    only: str
    applies: Callable[[Method], bool]
    run: Callable[[Trial], None]


CHECKS: list[Check] = []


def check(
    only: str = "all", when: Callable[[Method], bool] = lambda method: True
) -> Callable[[Callable[[Trial], None]], Callable[[Trial], None]]:
    """Decorator: add a check; its docstring's first line is what it asks."""

    def add(function: Callable[[Trial], None]) -> Callable[[Trial], None]:
        assert function.__doc__
        text = " ".join(function.__doc__.split("\n\n")[0].split())
        name = function.__name__.replace("_", " ")
        CHECKS.append(Check(name, text, only, when, function))
        return function

    return add


def expect(holds: bool, otherwise: str) -> None:
    """Raise Broken with a sentence unless something holds."""
    if not holds:
        raise Broken(otherwise)


def same(one: Reply, other: Reply) -> bool:
    """Whether two replies have the same text and the same logits of the first token."""
    if one.text != other.text or (one.logits is None) != (other.logits is None):
        return False
    return one.logits is None or np.array_equal(one.logits, other.logits)  # type: ignore[arg-type]


def held(view: Viewing) -> dict[str, int]:
    """The sizes of a method's state."""
    return dict(view.method.state_bytes())
