"""What every memory system must do, as small checks. `run(Trial(name))` tries them all.

Each check is a function of a `Trial`, which makes a method attached to a small model. It raises
`Broken` with a sentence that says what was expected. A method is tried as it is configured; where
its published settings are meant for hours, `scaled.json` gives it windows that a stream of a few
dozen frames fills (`Trial.scaled`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench_lib.errors import BenchError
from bench_lib.evaluate.checks import answers, memory, watching  # noqa: F401 - they add theirs
from bench_lib.evaluate.checks.demand import CHECKS, Broken, Check
from bench_lib.evaluate.checks.trial import Trial

if TYPE_CHECKING:
    from bench_lib.report.kit import Fragment


@dataclass(frozen=True)
class Outcome:
    """What came of a check: `passed`, `failed` with a message, or `not asked`."""

    check: Check
    result: str
    message: str = ""


def run(make: Trial) -> list[Outcome]:
    """Try all checks on a method."""
    return [tried(one, make) for one in CHECKS]


def tried(one: Check, make: Trial) -> Outcome:
    """Try one check; whatever the method raises is a failure with its words."""
    try:
        if not one.applies(make()):
            return Outcome(one, "not asked", f"for {one.only}")
        one.run(make)
    except Broken as broken:
        return Outcome(one, "failed", str(broken))
    except Exception as error:
        return Outcome(one, "failed", f"{type(error).__name__}: {error}")
    return Outcome(one, "passed")


def require(outcomes: Sequence[Outcome]) -> None:
    """Raise BenchError that names the checks that failed, if any did."""
    failed = [f"{o.check.name} ({o.message})" for o in outcomes if o.result == "failed"]
    if failed:
        raise BenchError(f"{len(failed)} checks failed: {'; '.join(failed)}")


def describe() -> Fragment:
    """The contract as a table for a notebook."""
    rows = [(one.name, one.text.replace("`", ""), one.only) for one in CHECKS]
    return _table("What a memory system must do", ("check", "what it asks", "for"), rows)


def show(outcomes: Sequence[Outcome]) -> Fragment:
    """Outcomes as a table for a notebook."""
    marks = {"passed": "✓ passed", "failed": "✗ failed", "not asked": "– not asked"}
    rows = [(o.check.name, marks[o.result], o.message) for o in outcomes]
    passed = sum(o.result == "passed" for o in outcomes)
    title = f"{passed} of {sum(o.result != 'not asked' for o in outcomes)} checks passed"
    return _table(title, ("check", "result", "why"), rows)


def _table(title: str, columns: tuple[str, ...], rows: Sequence[Sequence[str]]) -> Fragment:
    from bench_lib.report.kit import table
    from bench_lib.report.tables import Cell, Row, Table

    cells = [Row(tuple(Cell(text) for text in row)) for row in rows]
    return table(Table(title, columns, tuple(cells), texts=len(columns)))
