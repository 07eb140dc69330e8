"""When a system spoke: against an ideal interval, and by the first-alert rule of StreamArena."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import pandas as pd

from bench_lib.schema import Trajectory
from bench_lib.score.instances import Instances
from bench_lib.tasks import WINDOW, Window

Placement = Literal["early", "inside", "late", "none"]
PLACEMENTS: tuple[Placement, ...] = ("early", "inside", "late", "none")
AlertTiming = Literal["premature", "on time", "late", "none"]
ALERT_TIMINGS: tuple[AlertTiming, ...] = ("premature", "on time", "late", "none")


def alert_timing(first_s: float, due_s: float, window: Window = WINDOW) -> AlertTiming:
    """Where a first alert lies; only `on time` can be right, whatever follows a premature one."""
    if math.isinf(first_s) or math.isnan(first_s):
        return "none"
    # Times are read from decimals: half a second early must not fail by rounding.
    if first_s < due_s - window.early_s - 1e-9:
        return "premature"
    return "on time" if first_s <= due_s + window.late_s + 1e-9 else "late"


def place(t_s: float, intervals: Sequence[tuple[float, float]]) -> Placement:
    """A probe's instant against ideal intervals, ends included; outside, the nearest one decides.

    The end is included because the probe of an announced interval lies at its end.
    """
    if not intervals:
        return "none"
    if any(start <= t_s <= end for start, end in intervals):
        return "inside"
    start, _ = min(intervals, key=lambda span: max(span[0] - t_s, t_s - span[1]))
    return "early" if t_s < start else "late"


def interventions(data: Instances, trajectories: Iterable[Trajectory]) -> pd.DataFrame:
    """First intervention of each adaptive candidate against its ideal intervals.

    One row per candidate with an ideal interval and a scored probe in that session: `placement`,
    `t_s` of the first INTERVENE there (NaN for none) and `lead_s`, seconds before the first
    interval's start (negative after it). Probes are few: this is where the system spoke among the
    moments it was asked, not when it would have spoken.
    """
    ideals: dict[tuple[str, str], list[tuple[str, float, float]]] = {
        (trajectory.id, candidate.id): [(m.session, m.start_s, m.end_s) for m in candidate.ideal]
        for trajectory in trajectories
        for candidate in trajectory.candidates
        if candidate.ideal
    }
    rows = data.adaptive
    out = []
    groups = rows[rows["scored"]].groupby(["trajectory", "candidate"], sort=False, observed=True)
    for owner, group in groups:
        if owner not in ideals:
            continue
        session = ideals[owner][0][0]
        spans = [(start, end) for name, start, end in ideals[owner] if name == session]
        own = group[group["session"] == session]
        if own.empty:
            continue
        spoken = own.loc[own["spoke"] == 1, "cutoff_s"]
        first = float(spoken.min()) if len(spoken) else math.nan
        out.append(
            {
                "trajectory": owner[0],
                "task": group["task"].iloc[0],
                "candidate": owner[1],
                "placement": place(first, spans) if len(spoken) else "none",
                "t_s": first,
                "lead_s": min(spans)[0] - first,
            }
        )
    columns = ["trajectory", "task", "candidate", "placement", "t_s", "lead_s"]
    return pd.DataFrame(out, columns=columns)


def placements(found: pd.DataFrame, order: Sequence[str] = PLACEMENTS) -> pd.DataFrame:
    """Counts of placements by task, with n."""
    kind = pd.Categorical(found["placement"], list(order))
    counts = pd.crosstab(found["task"], kind, dropna=False)
    counts = counts.reindex(columns=list(order), fill_value=0)
    return counts.assign(n=counts.sum(axis=1))


def interventions_an_hour(data: Instances, every_s: float) -> pd.DataFrame:
    """Interventions an hour of dense probing, by trajectory.

    Dense probes have no polarity; each scored one stands for `every_s` seconds of watched video.
    A run of consecutive INTERVENE replies is one intervention.
    """
    rows = data.adaptive
    rows = rows[rows["polarity"].isna() & rows["scored"]]
    rows = rows.sort_values(["trajectory", "candidate", "session", "cutoff_s"])
    keys = ["trajectory", "candidate", "session"]
    before = rows.groupby(keys, observed=True)["spoke"].shift(fill_value=0.0)
    begun = ((rows["spoke"] == 1) & (before == 0)).astype(int)
    found = rows.assign(begun=begun).groupby("trajectory", observed=True)
    table = found.agg(probes=("begun", "size"), interventions=("begun", "sum")).reset_index()
    hours = table["probes"] * every_s / 3600
    return table.assign(hours=hours, per_hour=table["interventions"] / hours.replace(0, np.nan))
