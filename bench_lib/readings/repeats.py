"""Asks that were put twice: how often a run gave the same reply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench_lib.runs.folder import Run
from bench_lib.schema import SCORABLE, Response
from bench_lib.score.repeats import Agreement, agreement

if TYPE_CHECKING:
    pass


KIND = "repeats"


def repeats(run: Run) -> tuple[Agreement, Agreement]:
    """Agreement of raw replies, and of what was read from them, over the asks put twice."""
    first = run.responses()
    second = [Response.model_validate(record) for record in run.read(KIND)]
    pairs = [(first[r.key], r) for r in second if r.key in first]
    pairs = [(a, b) for a, b in pairs if a.status in SCORABLE]
    texts = agreement([a.raw_text for a, _ in pairs], [b.raw_text for _, b in pairs])
    return texts, agreement([_read(a) for a, _ in pairs], [_read(b) for _, b in pairs])


def _read(response: Response) -> str:
    """What counts of a reply: its status, option and decision; a free reply's text."""
    what = [response.option, response.decision]
    return repr(
        [response.status in ("unparsed", "refused"), *(what if any(what) else [response.text])]
    )
