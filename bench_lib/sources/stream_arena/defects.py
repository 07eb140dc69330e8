"""Annotations that contradict themselves or their video; the release is known to hold some.

A question with a defect cannot be scored as the paper scores it. It is left out and counted, with
the value that is wrong; whether it is to be mended is for who works on the data to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench_lib.sources.check import SLACK_S
from bench_lib.sources.stream_arena.rows import Fault, Row

HORIZON_SLACK_S = 1.0
"""Horizons are rounded to whole seconds here and there."""
NEGATIVE_GAP = "evidence after the question"
NO_WAIT = "trigger not after the question"
LATE_ASK = "question beyond the video"
LATE_EVIDENCE = "evidence beyond the video"
LATE_DUE = "due time beyond the video"
HORIZON = "horizon contradicts the times"


def defect(row: Row, duration_s: float, horizon: bool = True) -> Fault | None:
    """The first defect of a row in a video of that length, if it has one.

    `horizon` says whether the annotated horizon is compared with the times. It is ask minus the
    latest evidence in the released HR rows and ask minus the earliest in the paper's words: both
    are taken. For Pro it is due minus ask. Elsewhere its meaning is not published.
    """
    return next(_found(row, duration_s, horizon), None)


def _found(row: Row, duration_s: float, horizon: bool) -> Iterator[Fault]:
    names, ask_s, ref_s = row.fields, row.ask_s, row.ref_s
    lasts = f"the video lasts {duration_s:.1f} s; correct the time, or give the whole video"
    if ask_s > duration_s + SLACK_S:
        yield Fault(LATE_ASK, names["ask"], ask_s, lasts)
    latest_s = max((end_s for _, end_s, _ in row.evidence), default=0.0)
    if ref_s is not None and ref_s > duration_s:
        yield Fault(LATE_DUE, names["ref"], ref_s, lasts)
    if latest_s > duration_s + SLACK_S:
        yield Fault(LATE_EVIDENCE, names["evidence"], latest_s, lasts)
    if ref_s is not None and ref_s <= ask_s:
        reason = f"is not after the question at {ask_s:g} s, nothing is left to wait for"
        yield Fault(NO_WAIT, names["ref"], ref_s, f"{reason}; correct one of the two")
    if ref_s is None and latest_s > ask_s + SLACK_S:
        reason = f"is {latest_s - ask_s:g} s after the question at {ask_s:g} s"
        told = f"{reason}, which it is to answer; correct one of the two"
        yield Fault(NEGATIVE_GAP, names["evidence"], latest_s, told)
    known = _horizons(row)
    if horizon and row.horizon_s is not None and known:
        apart = min(abs(row.horizon_s - one) for one in known)
        if apart > HORIZON_SLACK_S:
            told = " or ".join(f"{one:g}" for one in sorted(known))
            reason = f"the times give {told} s; correct one of them, or load with horizon=ignore"
            yield Fault(HORIZON, names["horizon"], row.horizon_s, reason)


def _horizons(row: Row) -> set[float]:
    if row.ref_s is not None:
        return {row.ref_s - row.ask_s}
    if row.task != "HR" or not row.evidence:
        return set()
    starts = [start_s for start_s, _, _ in row.evidence]
    ends = [end_s for _, end_s, _ in row.evidence]
    return {row.ask_s - t_s for t_s in (min(starts), min(ends), max(starts), max(ends))}
