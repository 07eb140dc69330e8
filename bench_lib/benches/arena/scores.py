"""StreamArena: a binary judge for every answer, and the first-alert rule for proactive ones.

Accuracy (Eq. 1) is the share of questions whose answer the judge accepts. A proactive case counts
only when the first alert after the registration lies in [due - 0.5 s, due + 2 s] and its content is
accepted (Eq. 2 and 9); an alert at any other time is wrong and needs no judge. A task that a method
does not support is N/A: it has no value, whatever its records say.

Records: the due time is the start of the candidate's first ideal interval, the registration's time
is when the user asked. An alert has two stamps: `Response.timings["alert_s"]`, the newest frame
that was seen, which the paper scores, and `["delivered_s"]`, when its words were out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bench_lib.errors import BenchError
from bench_lib.readings.found import Found
from bench_lib.readings.found import line as line_of
from bench_lib.schema import SCORABLE, Candidate, Key, Response, Trajectory, Verdict
from bench_lib.score.cells import Cells, macro, scaled
from bench_lib.score.instances import Instances
from bench_lib.score.joining import graded, newest
from bench_lib.score.stats import Estimate, estimate
from bench_lib.score.strata import NAMES
from bench_lib.score.table import line, records, refusals_pct, table
from bench_lib.score.timing import alert_timing
from bench_lib.tasks import OBSERVED, REACTIVE, STAMPS, WINDOW, Bench, Window

PROACTIVE = "Pro"
VERDICTS = range(2)
PERCENT = scaled(macro, 100)
NOT_SUPPORTED = "N/A: the method does not support it"
GAP_S = (300.0, 900.0, 1800.0)
WAIT_S = (30.0, 240.0)
"""Upper ends (included) of the strata by gap and by waiting time."""


def arena_instances(
    trajectories: Iterable[Trajectory],
    responses: Iterable[Response],
    verdicts: Iterable[Verdict],
    *,
    bench: Bench,
    window: Window = WINDOW,
    gap: str = "latest",
    stamp: str = OBSERVED,
    judge: str = "",
    asked: Collection[Key] | None = None,
) -> Instances:
    """One row per question; `value` is 1, 0 or NaN.

    `gap` says whether the gap of a question counts from its latest or its earliest evidence,
    `stamp` which of `STAMPS` an alert is scored by. `asked` limits what is expected.

    Raises:
        BenchError: a verdict that is neither 0 nor 1, verdicts of several judges without a choice,
            an unknown `gap` or `stamp`, or a proactive case without a due time.
    """
    if gap not in {"latest", "earliest"}:
        raise BenchError(f"gap must be 'latest' or 'earliest', not {gap!r}")
    if stamp not in STAMPS:
        raise BenchError(f"stamp must be one of {', '.join(STAMPS)}, not {stamp!r}")
    expected = {
        (trajectory.id, candidate.id, candidate.probes[0].id): (trajectory, candidate)
        for trajectory in trajectories
        for candidate in trajectory.candidates
    }
    if asked is not None:
        expected = {key: value for key, value in expected.items() if key in asked}
    notes: list[str] = []
    found = newest(responses, set(expected), notes)
    grades, errors, chosen = graded(verdicts, judge, VERDICTS)
    scores = {key: sum(given) / len(given) for key, given in grades.items()}
    rows = []
    for key, (trajectory, candidate) in expected.items():
        row = _row(trajectory, candidate, found.get(key), bench, window, gap, stamp)
        known = scores.get(key)
        if row["asks_judge"]:
            row["value"] = math.nan if known is None else known
            row["unjudged"] = known is None
            row["judge_error"] = "" if known is not None else errors.get(key, "not judged")
        rows.append(row)
    return Instances(pd.DataFrame(rows, columns=COLUMNS), bench, chosen, tuple(notes))


COLUMNS = [
    "trajectory", "candidate", "probe", "task", "capability", "source", "status", "why", "cut",
    "scored", "timing", "alert_s", "lead_s", "asks_judge", "value", "unjudged", "judge_error",
    "gap_s", "gap", "wait_s", "wait", "pattern", "segments", "domain", "subdomain",
    "language", "asked_s",
    "due_s", "observed_s", "delivered_s", "tool_calls",
]  # fmt: skip


def _row(
    trajectory: Trajectory,
    candidate: Candidate,
    response: Response | None,
    bench: Bench,
    window: Window,
    gap: str,
    stamp: str,
) -> dict[str, object]:
    probe, watches = candidate.probes[0], candidate.task == PROACTIVE
    asked = candidate.registration.t_s if candidate.registration else probe.t_s
    due = candidate.ideal[0].start_s if candidate.ideal else math.nan
    if watches and math.isnan(due):
        raise BenchError(
            f"proactive case {candidate.id} of {trajectory.id} has no due time (ideal)"
        )
    ends = [moment.end_s for moment in candidate.evidence]
    gap_s = asked - (max(ends) if gap == "latest" else min(ends)) if ends else math.nan
    scored = response is not None and response.status in SCORABLE
    stamps = {
        name: response.timings.get(key, math.inf) if response is not None else math.nan
        for name, key in STAMPS.items()
    }
    first = stamps[stamp]
    said = scored and response is not None and response.status != "refused"
    timing = alert_timing(first, due, window) if watches and said else ""
    readable = said and response is not None and response.status != "unparsed"
    ready = readable and (not watches or timing == "on time")
    return {
        "trajectory": trajectory.id,
        "candidate": candidate.id,
        "probe": probe.id,
        "task": candidate.task,
        "capability": bench.task(candidate.task).capability,
        "source": trajectory.source,
        "status": "not_run" if response is None else response.status,
        "why": "" if response is None else response.error,
        "cut": response is not None and response.stop == "length",
        "scored": scored,
        "timing": timing,
        "alert_s": first if watches else math.nan,
        "lead_s": due - first if watches and math.isfinite(first) else math.nan,
        "asks_judge": ready,
        "value": 0.0 if scored else math.nan,
        "unjudged": False,
        "judge_error": "",
        "gap_s": math.nan if watches else gap_s,
        "gap": None if watches else _stratum(gap_s, GAP_S, NAMES["gap"]),
        "wait_s": due - asked if watches else math.nan,
        "wait": _stratum(due - asked, WAIT_S, NAMES["wait"]) if watches else None,
        "pattern": candidate.references.get("pattern", ""),
        "segments": len(candidate.evidence),
        "domain": candidate.references.get("domain", ""),
        "subdomain": candidate.references.get("subdomain", ""),
        "language": candidate.references.get("language", ""),
        "asked_s": asked,
        "due_s": due,
        "observed_s": stamps["observed"] if watches else math.nan,
        "delivered_s": stamps["delivered"] if watches else math.nan,
        "tool_calls": 0 if response is None else response.counters.get("tool_calls", 0),
    }


def _stratum(value: float, ends: Sequence[float], names: Sequence[str]) -> str | None:
    if math.isnan(value):
        return None
    return names[sum(value > end for end in ends)]


def arena_scores(data: Instances, unsupported: Sequence[str] = ()) -> pd.DataFrame:
    """Accuracy per task, then pooled over the reactive ones; percent.

    `unsupported` names the tasks that the method has no ability for.
    """
    rows, lines = data.rows, []
    reactive = {task.code for task in data.bench.tasks} - {PROACTIVE, *unsupported}
    for code in [task.code for task in data.bench.tasks]:
        own = rows[rows["task"] == code]
        if code in unsupported:
            found = Estimate(math.nan, note=NOT_SUPPORTED)
            lines.append(line(code, "accuracy", found, len(own), "mean over questions"))
        else:
            lines.append(_accuracy(code, own, "mean over questions"))
    own = rows[rows["task"].isin(reactive)]
    lines.append(_accuracy(REACTIVE, own, "mean over questions of all reactive tasks"))
    return table(lines)


def _accuracy(name: str, own: pd.DataFrame, how: str) -> dict[str, object]:
    found = estimate(_cells(own), PERCENT)
    missing = own.loc[~own["scored"].astype(bool), "status"].value_counts()
    notes = [f"{count} {status}" for status, count in missing.items()]
    clusters = int(own.loc[own["scored"].astype(bool), "trajectory"].nunique())
    unjudged, bounds = int(own["unjudged"].sum()), None
    if unjudged:
        notes.append(f"{unjudged} unjudged: bounds for 0 and 1")
        low, high = (
            _cells(own.assign(value=own["value"].mask(own["unjudged"].astype(bool), fill)))
            for fill in (0.0, 1.0)
        )
        bounds = low.value(PERCENT), high.value(PERCENT)
    return line(
        name,
        "accuracy",
        found,
        len(own),
        how,
        clusters=clusters,
        bounds=bounds,
        refused_pct=refusals_pct(own),
        note=", ".join(notes),
    )


def _cells(rows: pd.DataFrame) -> Cells:
    return Cells.of(rows.assign(part="all"), "value", "part", names=["all"])


@dataclass(frozen=True)
class ArenaFound(Found):
    """The scores of a StreamArena run: a row per capability, and the reactive ones pooled.

    Its tasks are its capabilities, and it has neither decisions nor a gate.
    """

    def metrics(self) -> dict[str, list[dict[str, Any]]]:
        """The frame as strict JSON."""
        return {"capabilities": records(self.capabilities)}

    def measured(self, capability: str) -> str:
        """See `Found.measured`."""
        return "accuracy"

    def headline(self, capability: str) -> pd.Series:
        """The line of a capability."""
        return line_of(self.capabilities, capability)


def found(data: Instances, unsupported: tuple[str, ...] = ()) -> ArenaFound:
    """From the rows of a run; `unsupported` tasks are N/A whatever their records say."""
    scores = arena_scores(data, unsupported)
    return ArenaFound(data.bench, scores, scores, table(()), table(()))
