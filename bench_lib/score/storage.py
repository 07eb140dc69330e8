"""Storage per hour of video (Eq. 2): the largest memory of earlier sessions over their length.

For each trajectory: the peak size of the state kept for completed sessions, the current one left
out, divided by the hours of earlier video at that peak; then the mean over trajectories.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from bench_lib.score.cells import Cells, macro
from bench_lib.score.stats import Estimate, estimate

Tie = Literal["latest", "earliest"]


@dataclass(frozen=True)
class PriorState:
    """Size of the memory of completed sessions when a session begins, after `hours` of video."""

    trajectory: str
    hours: float
    size_bytes: int


def peaks(states: Iterable[PriorState], tie: Tie = "latest") -> pd.DataFrame:
    """One row per trajectory with earlier video: peak bytes, its hours, bytes per hour.

    Where the peak is reached more than once, `tie` says which moment gives the hours: for a state
    of constant size the earliest one makes storage per hour several times larger.
    """
    frame = pd.DataFrame(
        [(s.trajectory, s.hours, float(s.size_bytes)) for s in states if s.hours > 0],
        columns=["trajectory", "hours", "peak_bytes"],
    )
    order = frame.sort_values(["peak_bytes", "hours"], ascending=[False, tie == "earliest"])
    top = order.drop_duplicates("trajectory").sort_values("trajectory", ignore_index=True)
    return top.assign(bytes_per_hour=top["peak_bytes"] / top["hours"])


def storage_per_hour(states: Iterable[PriorState], tie: Tie = "latest") -> Estimate:
    """Mean over trajectories of peak bytes per hour; the note counts those without such video."""
    listed = list(states)
    found = peaks(listed, tie).assign(part="all")
    left = len({s.trajectory for s in listed}) - len(found)
    cells = Cells.of(found, "bytes_per_hour", "part", names=["all"])
    result = estimate(cells, macro, bounds=(0, np.inf))
    note = f"{left} trajectories have no earlier video" if left else ""
    return Estimate(**{**vars(result), "note": "; ".join(p for p in (note, result.note) if p)})


def peak_bytes(states: Iterable[PriorState]) -> tuple[float, float]:
    """Mean and maximum over trajectories of the peak size; NaN where there is none."""
    found = peaks(states)["peak_bytes"]
    return (float(found.mean()), float(found.max())) if len(found) else (math.nan, math.nan)
