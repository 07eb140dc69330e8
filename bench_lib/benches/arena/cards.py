"""Which questions of a StreamArena run are shown up close."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from bench_lib.readings.material import Material
from bench_lib.schema import Key, Response
from bench_lib.score.instances import keys

Wanted = Callable[[pd.Series], bool]
CHOICES: tuple[tuple[str, Wanted], ...] = (
    ("A right answer from memory", lambda r: r["task"] == "HR" and r["value"] == 1),
    ("A wrong answer from memory", lambda r: r["task"] == "HR" and r["value"] == 0),
    ("A right answer with a search", lambda r: r["tool_calls"] > 0 and r["value"] == 1),
    ("A wrong answer with a search", lambda r: r["tool_calls"] > 0 and r["value"] == 0),
    ("A right answer about the present", lambda r: r["task"] == "RTP" and r["value"] == 1),
    ("A wrong answer about the present", lambda r: r["task"] == "RTP" and r["value"] == 0),
    ("An alert in time", lambda r: r["timing"] == "on time"),
    ("An alert too early", lambda r: r["timing"] == "premature"),
    ("An alert too late", lambda r: r["timing"] == "late"),
    ("No alert", lambda r: r["timing"] == "none"),
    ("An unjudged answer", lambda r: bool(r["unjudged"])),
    ("A reply that could not be parsed", lambda r: r["status"] == "unparsed"),
    ("A refusal", lambda r: r["status"] == "refused"),
    ("An error", lambda r: r["status"] == "error"),
)
"""One of each where it occurs: the first in the order of the records."""


def chosen(material: Material) -> list[tuple[str, Response]]:
    """The questions that become cards, and why; none twice."""
    known = {r.key: r for r in material.responses}
    found, used = [], set()
    rows = [row for _, row in material.scored.rows.iterrows()]
    for why, wanted in CHOICES:
        for row in rows:
            key = str(row["trajectory"]), str(row["candidate"]), str(row["probe"])
            if key in known and key not in used and wanted(row):
                found.append((why, known[key]))
                used.add(key)
                break
    return found


def outcomes(material: Material) -> dict[Key, str]:
    """`passed`, `failed` or `answered` by key, for what was scored."""
    rows = material.scored.rows
    rows = rows[rows["scored"].astype(bool)]
    names = rows["value"].map({1.0: "passed", 0.0: "failed"}).fillna("answered")
    return dict(zip(keys(rows), names, strict=True))
