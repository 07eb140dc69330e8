"""Does a system know when its evidence is out of reach? APM-Bench protocol, section 12.

Half of the questions have all their evidence in the sessions that may be used, half do not, and a
fifth option says so. Balanced accuracy is the mean of the two halves.
"""

from __future__ import annotations

import pandas as pd

from bench_lib.score.cells import Cells, macro, scaled
from bench_lib.score.instances import Instances
from bench_lib.score.stats import estimate
from bench_lib.score.table import line, table

HALVES = ("available", "unavailable")
MEASURES = ("available accuracy", "unavailable detection")


def availability_scores(data: Instances, original: Instances | None = None) -> pd.DataFrame:
    """Accuracy on available questions, detection on unavailable ones, their mean; percent.

    With `original`, the run under the normal protocol, the accuracy of the same questions with
    four options is added; its rows are found by `source_candidate_id`.
    """
    rows = data.rows[data.rows["availability"].isin(HALVES)]
    lines = []
    if original is not None:
        wanted = set(rows["source_candidate"]) - {""}
        own = original.choice[original.choice["candidate"].isin(wanted)]
        note = f"{len(wanted) - len(own)} not in that run" if len(own) < len(wanted) else ""
        found = estimate(_cells(own.assign(part="all"), ["all"]), scaled(macro, 100))
        lines.append(
            line("all", "original accuracy", found, len(wanted), "mean over questions", note=note)
        )
    for half, measure in zip(HALVES, MEASURES, strict=True):
        own = rows[rows["availability"] == half].assign(part=half)
        found = estimate(_cells(own, [half]), scaled(macro, 100))
        lines.append(line("all", measure, found, len(own), "mean over questions"))
    found = estimate(_cells(rows.assign(part=rows["availability"]), HALVES), scaled(macro, 100))
    lines.append(line("all", "balanced accuracy", found, len(rows), "mean of the two halves"))
    return table(lines)


def _cells(rows: pd.DataFrame, names: list[str] | tuple[str, ...]) -> Cells:
    return Cells.of(rows, "correct", "part", names=names)
