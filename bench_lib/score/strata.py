"""What makes a question hard to remember: distance, gap, number of pieces of evidence, history.

Distance is the number of session boundaries from the query back to the earliest evidence; for tasks
with a registration in an earlier session the registration is the anchor (APM-Bench, table 15).
A candidate's query is its first positive probe, or its first probe where none is positive.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import pandas as pd

from bench_lib.schema import Candidate, Probe, Trajectory
from bench_lib.tasks import Bench

DAY_S = 86_400
BINS: dict[str, tuple[tuple[float, ...], tuple[str, ...]]] = {
    "distance": ((0, 1, 2, 3, 4), ("0", "1", "2", "3", "4+")),
    "gap_h": (
        (0, 0.25, 1, 6, 24, 72),
        ("< 15 min", "15-60 min", "1-6 h", "6-24 h", "1-3 days", "> 3 days"),
    ),
    "evidence_items": ((1, 2, 3), ("1", "2", "3+")),
    "evidence_sessions": ((1, 2, 3), ("1", "2", "3+")),
    "history_h": (
        (0, 1 / 12, 0.25, 0.5, 1, 2),
        ("< 5 min", "5-15 min", "15-30 min", "30-60 min", "1-2 h", "> 2 h"),
    ),
}  # fmt: skip
NAMES = {
    "gap": ("L1, up to 5 min", "L2, 5-15 min", "L3, 15-30 min", "L4, over 30 min"),
    "wait": ("L1, up to 30 s", "L2, 30 s-4 min", "L3, over 4 min"),
    "day": ("same day", "other day"),
}
"""Names of strata that are columns of names already, in their order."""
BINS["probe_history_h"] = BINS["history_h"]
BINS["segments"] = BINS["evidence_items"]
"""Lower edges (included) and names of the bins of each numeric stratum."""
STRATA = ("distance", "gap_h", "day", "evidence_items", "evidence_sessions", "source", "history_h")
"""Columns by which every score can be split."""
OTHERS = (
    "probe_history_h", "task", "pattern", "domain", "subdomain", "language", "gap", "wait",
    "segments",
)  # fmt: skip
"""Further columns; Eq. 1 must not be split by `probe_history_h`, which parts candidates."""


def strata(trajectories: Iterable[Trajectory], bench: Bench) -> pd.DataFrame:
    """One row per probe of every candidate, with what is known of it before any answer.

    `gap_h` counts hours of wall clock from the end of the earliest evidence to the query, missing
    where a session has no clock. `history_h` is the video from the first session to the query,
    `probe_history_h` to the probe's own cutoff.
    """
    rows = []
    for trajectory in trajectories:
        sessions = {session.id: session for session in trajectory.sessions}
        order = sorted(trajectory.sessions, key=lambda session: session.index)
        before, total = {}, 0.0
        for session in order:
            before[session.id] = total
            total += session.duration_s
        place = {session.id: number for number, session in enumerate(order)}
        for candidate in trajectory.candidates:
            query = query_of(candidate)
            shared = {
                "trajectory": trajectory.id,
                "source": trajectory.source,
                "candidate": candidate.id,
                "task": candidate.task,
                "answer": candidate.answer,
                "availability": candidate.references.get("availability", ""),
                "source_candidate": candidate.references.get("source_candidate_id", ""),
                "pattern": candidate.references.get("pattern", ""),
                "domain": candidate.references.get("domain", ""),
                "subdomain": candidate.references.get("subdomain", ""),
                "evidence_items": len(set(candidate.evidence)),
                "evidence_sessions": len({moment.session for moment in candidate.evidence}),
                "history_h": (before[query.session] + query.t_s) / 3600,
                **_anchored(candidate, query, sessions, place, bench),
            }
            for probe in candidate.probes:
                rows.append(
                    {
                        **shared,
                        "probe": probe.id,
                        "session": probe.session,
                        "cutoff_s": probe.t_s,
                        "polarity": probe.polarity,
                        "interval_s": math.nan
                        if probe.interval is None
                        else probe.interval[1] - probe.interval[0],
                        "probe_history_h": (before[probe.session] + probe.t_s) / 3600,
                    }
                )
    return pd.DataFrame(rows, columns=COLUMNS)


COLUMNS = [
    "trajectory", "source", "candidate", "task", "answer", "availability", "source_candidate",
    "pattern", "domain", "subdomain", "evidence_items", "evidence_sessions", "distance", "gap_h",
    "day", "probe", "session", "cutoff_s", "polarity", "interval_s", "history_h",
    "probe_history_h",
]  # fmt: skip


def query_of(candidate: Candidate) -> Probe:
    """The probe that stands for the whole candidate."""
    positive = [probe for probe in candidate.probes if probe.polarity == "positive"]
    return (positive or list(candidate.probes))[0]


def _anchored(
    candidate: Candidate, query: Probe, sessions: dict, place: dict, bench: Bench
) -> dict:  # type: ignore[type-arg]
    task = bench.task(candidate.task)
    registration = candidate.registration
    anchors = [(moment.session, moment.end_s) for moment in candidate.evidence]
    if registration is not None and (task.registers or not anchors):
        anchors = [(registration.session, registration.t_s)]
    if not anchors:
        return {"distance": math.nan, "gap_h": math.nan, "day": ""}
    session, at_s = min(anchors, key=lambda anchor: (place[anchor[0]], anchor[1]))
    then, now = sessions[session].wall_start_s, sessions[query.session].wall_start_s
    gap_h, day = math.nan, ""
    if then is not None and now is not None:
        gap_h = (now + query.t_s - then - at_s) / 3600
        same = (now + query.t_s) // DAY_S == (then + at_s) // DAY_S
        day = "same day" if same else "other day"
    elif session == query.session:
        gap_h = (query.t_s - at_s) / 3600
    return {"distance": place[query.session] - place[session], "gap_h": gap_h, "day": day}


def binned(values: pd.Series, name: str) -> pd.Series:
    """The stratum of each value as an ordered category; missing values stay missing."""
    if name not in BINS:
        return values.astype(object).where(values.notna() & (values != ""), None)
    edges, names = BINS[name]
    return pd.cut(values.astype(float), [*edges, math.inf], right=False, labels=list(names))


def check(name: str) -> str:
    """The name of a stratum; BenchError with the known ones otherwise."""
    from bench_lib.errors import BenchError, nearest

    known = (*STRATA, *OTHERS)
    if name not in known:
        raise BenchError(f"scores cannot be split by {name!r}; {nearest(name, known)}")
    return name
