"""How long answers took to come, and where the time went."""

from __future__ import annotations

import math
from collections.abc import Callable

from bench_lib.readings import times as readings
from bench_lib.readings.material import Material
from bench_lib.report.tables import Cell, Row, Table, dash
from bench_lib.report.text import duration, ratio
from bench_lib.score import stats
from bench_lib.score.stats import Estimate

BEFORE = "the run was made before ends and starts of sessions and notes were timed"
TIMES = (
    ("ttft_query_s", "First token, from the question", "memory ready, its own prefill begins"),
    ("ttft_prep_s", "First token, with preparation", "plus the open clip and all memory work"),
    ("ttft_e2e_s", "First token, end to end", "plus decoding the frames worked on"),
    ("rest_s", "Rest of the reply", "after the first token"),
    ("total_s", "Whole reply", "with preparation"),
    ("ttft_paper_s", "First token, as APM-Bench", "where input does not stream: from the start"),
    ("full_paper_s", "Whole reply, as APM-Bench", "from the request to its complete reply"),
    ("rtf", "Real-time factor", "all work to the first token / seconds of video; no decoding"),
    ("rtf_stream", "Real-time factor of the stream", "the memory's work / seconds of video"),
    ("decode_rate", "Video decoding", "seconds for each second of video"),
)
"""Columns of `readings.times.derived`, and what they are called."""


def times(material: Material) -> Table:
    """Waiting and working times over the answered asks."""
    frame = readings.derived(material)
    rows = []
    for name, title, meaning in TIMES:
        own = frame[frame[name].notna()]
        values = own[name].astype(float)
        unit = duration if name.endswith("_s") else ratio
        if own.empty:
            why = "no ask was answered" if frame.empty else BEFORE
            cells = [dash(why)] * 3 + [Cell("0")]
        else:
            found = [stats.quantile(values, own["trajectory"], q) for q in (0.5, 0.95)]
            cells = [Cell(unit(e.value), _between(e, unit), e.note) for e in found]
            cells += [Cell(unit(float(values.mean()))), Cell(f"{len(values):,}")]
        rows.append(Row((Cell(title, meaning), *cells)))
    return Table(
        "Time to an answer",
        ("", "median", "95th percentile", "mean", "n asks"),
        tuple(rows),
        "Ranges are 95 % intervals that take whole trajectories as the unit.",
    )


def _between(found: Estimate, unit: Callable[[float], str]) -> str:
    """The interval of an estimate, empty where it has none."""
    return "" if math.isnan(found.low) else f"{unit(found.low)} to {unit(found.high)}"


NAMES = {
    "observe": "Observing",
    "session_start": "Starts of sessions",
    "session_end": "Ends of sessions",
    "notes": "Notes and instructions",
    "preparation": "Preparation",
    "generation": "Generation",
}
"""Of the kinds of work."""


def spent(material: Material) -> Table:
    """All work of the method by kind."""
    title = "Where the time went"
    found = readings.spent(material)
    if not material.sessions:
        return Table(title, (), (), absent=f"{title}: no session was walked yet.")
    hours = sum(record["duration_s"] for record in material.sessions) / 3600
    rows = []
    for kind, name in NAMES.items():
        stream, branches = (float(found.at[kind, side]) for side in ("stream_s", "branches_s"))
        known = not math.isnan(stream) and hours > 0
        cells = (
            dash(BEFORE) if math.isnan(stream) else Cell(duration(stream)),
            Cell(duration(stream / hours)) if known else dash(BEFORE),
            dash(BEFORE) if math.isnan(branches) else Cell(duration(branches)),
        )
        rows.append(Row((Cell(name), *cells)))
    note = "Seconds of the method alone, video decoding left out. Branches are those of the asks, "
    note += "and of candidates whose registration the memory heard. Preparation ends where the "
    note += "question's own prefill begins or its request is sent."
    return Table(title, ("", "on the stream", "an hour of video", "on branches"), tuple(rows), note)
