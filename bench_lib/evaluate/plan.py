"""What a run will take, said before it starts: counted where possible, else calibrated.

Video, frames and calls follow from the episodes; seconds, tokens and bytes are extrapolated from a
calibration on the first pending episode. A server is looked at before it is relied on.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pandas as pd
import psutil

from bench_lib import paths
from bench_lib.engine.conditions import Episode
from bench_lib.engine.kept import States
from bench_lib.errors import BenchError
from bench_lib.evaluate.calibration import Calibration, calibrate
from bench_lib.report.text import duration, size
from bench_lib.runs.provenance import code, code_of
from bench_lib.schema import Dataset

if TYPE_CHECKING:
    from bench_lib.evaluate.job import Evaluation

QUEUE_BYTES = 64 * 2**20
"""What the decoder keeps ready, at most."""
SHOWN = 20
"""Lines on files, and as many on problems."""
Row = tuple[str, str, str]


def plan(evaluation: Evaluation) -> pd.DataFrame:
    """A table of what is left to do; raises BenchError where disk or memory is short."""
    waiting = evaluation.pending()
    method = evaluation.method
    fed_s = sum(feed.duration_s for episode in waiting for feed in episode.feeds)
    frames = sum(int(feed.duration_s * method.fps) for e in waiting for feed in e.feeds)
    asks = sum(len(episode.asks) for episode in waiting)
    measured = calibrate(evaluation, waiting[0]) if waiting else Calibration()
    longest = max((sum(f.duration_s for f in e.feeds) * method.fps for e in waiting), default=0.0)
    state = measured.state_bytes + measured.state_growth * longest
    worked = _worked_frames(evaluation, longest)
    per_ask_s = measured.ask_s * max(1.0, worked / max(1, measured.ask_frames))
    seconds = frames * measured.frame_s + asks * per_ask_s
    memory = state * (1 + evaluation.params.workers) + measured.working_bytes + QUEUE_BYTES
    kept = _kept_states(evaluation, waiting) * min(state, States.limit_bytes)
    stored = frames * measured.stored_bytes
    _refuse_if_short(memory, kept + stored)
    tokens = frames * measured.frame_tokens + asks * measured.ask_tokens
    rows: list[Row] = [
        *_kept(evaluation),
        ("asks left", f"{asks:,}", f"in {len(waiting):,} episodes"),
        ("video fed", f"{fed_s / 3600:.2f} h", f"condition {evaluation.params.condition}"),
        ("frames sampled", f"{frames:,}", f"{method.fps:g} a second, {method.input_class}"),
        (
            "frames worked on at each probe",
            f"{worked:,.0f}",
            "tail of a clip, window, or thinned prefix",
        ),
        ("tokens prefilled", _or_dash(tokens, f"{tokens:,.0f}"), "calibrated"),
        ("model calls", f"{asks:,}", "answers; a memory that writes adds one a session"),
        ("memory of the method", size(state), "at the end of the longest episode"),
        ("peak memory", size(psutil.Process().memory_info().rss + memory), "this process"),
        ("states on disk", size(kept), f"states: {evaluation.params.states}"),
        ("frame store", size(stored), f"store: {evaluation.params.store}"),
        (
            "time",
            _or_dash(seconds, duration(seconds)),
            "calibrated on this machine, decoding apart",
        ),
    ]
    if waiting:
        rows += _server(evaluation, round(worked))
    rows += _source(evaluation.data)
    # What was read and what was not used is named in full.
    pd.set_option("display.max_colwidth", None)
    return pd.DataFrame(rows, columns=["what", "expected", "note"]).set_index("what")


def _source(data: Dataset) -> list[Row]:
    """How the source's files were taken, and what is wrong with them."""
    taken = [(one.what, one.value, one.how) for one in data.taken]
    wrong = [(p.file, f"{p.record}: {p.field} = {p.value}", p.reason) for p in data.problems]
    rows: list[Row] = []
    for found, what in ((taken, "files"), (wrong, "problems")):
        rows += found[:SHOWN]
        if len(found) > SHOWN:
            rows.append((what, f"and {len(found) - SHOWN:,} more", "all are in the report"))
    return rows


def _kept(evaluation: Evaluation) -> Iterator[Row]:
    """What is on record, and by whose code; else which runs of these parameters do not go on."""
    run = evaluation.run
    asked = {ask.key for asks in evaluation.asks.values() for ask in asks}
    given = {key: p for key, p in run.given_by().items() if key in asked & run.done()}
    if not given:
        yield from (("begun anew", "", reason) for reason in run.others)
        return
    codes = Counter(code_of(one) for one in given.values() if one.get("code") != code())
    note = "they stand"
    if codes:
        told = ", ".join(f"{n:,} by {name}" for name, n in codes.most_common())
        note = f"not all by the code of now: {told}; to ask anew, move {run.folder.name} away"
    yield "answers on record", f"{len(given):,}", note


def _worked_frames(evaluation: Evaluation, longest: float) -> float:
    method = evaluation.method
    if method.input_class == "incremental":
        return (method.clip_frames - 1) / 2
    limit = getattr(method, "max_frames", 0) or getattr(method, "recent_frames", 0) or longest
    return min(limit, longest / 2 if method.input_class == "thinned" else limit)


def _kept_states(evaluation: Evaluation, waiting: list[Episode]) -> int:
    if evaluation.params.states == "none" or evaluation.params.mode == "replay":
        return 0
    if evaluation.params.states == "all":
        return sum(max(0, len(episode.feeds) - 1) for episode in waiting)
    return sum(1 for episode in waiting if len(episode.feeds) > 1)


def _refuse_if_short(memory: float, disk: float) -> None:
    available = psutil.virtual_memory().available
    if memory > available:
        raise BenchError(
            f"memory is short: about {size(memory)} needed, {size(available)} available; use "
            "fewer workers, a smaller max_pixels or a bounded method"
        )
    free = shutil.disk_usage(paths.there(paths.outputs())).free
    if disk > free:
        raise BenchError(
            f"disk is short: about {size(disk)} needed below {paths.short(paths.outputs())}, "
            f"{size(free)} free; set states to none, or a smaller store_gib, or move BENCH_OUTPUTS"
        )


def _server(evaluation: Evaluation, frames: int) -> list[Row]:
    """What is found out about a server that will serve the run; BenchError where it cannot."""
    kind = evaluation.params.backbone.partition(":")[0]
    if evaluation.method.model != "chat" or kind not in ("endpoint", "vllm"):
        return []
    from bench_lib.chat.preflight import canary, preflight, require
    from bench_lib.chat.server import expect, servers

    method = evaluation.method
    expect(method.served, evaluation.run.manifest().get("facts", {}).get("servers", ()))
    as_video = bool(getattr(method, "as_video", False))
    limit = max(evaluation.setting.max_new_tokens.values())
    checks = preflight(
        method.served, frames, method.frame_size((448, 448)), as_video, max_new_tokens=limit
    )
    require(checks)
    checks = (*checks, canary(method.served, as_video=as_video))
    require(checks)
    evaluation.run.note(
        preflight=[f"{check.name}: {check.detail}" for check in checks],
        servers=[one.record() for one in servers(method.served)],
    )
    return [(check.name, "ok" if check.ok else "not known", check.detail) for check in checks]


def _or_dash(value: float, text: str) -> str:
    return text if value else "-"
