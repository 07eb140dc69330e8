"""What a run will take, said before it starts: counted where possible, else calibrated.

Video, frames and calls follow from the episodes. Seconds, tokens and bytes are extrapolated from a
calibration: three clips of the first pending episode and, on a local model, one short answer.
"""

from __future__ import annotations

import io
import shutil
import time
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import psutil
from numpy.typing import NDArray
from PIL import Image

from bench_lib import paths
from bench_lib.answer import Moment, answer
from bench_lib.clips import clips
from bench_lib.errors import BenchError
from bench_lib.feeds import Episode
from bench_lib.measure import counting
from bench_lib.methods.base import Method
from bench_lib.sources import prepare
from bench_lib.stream import Clip, SessionInfo
from bench_lib.video import VideoError, inspect, open_session

if TYPE_CHECKING:
    from bench_lib.evaluation import Evaluation

CLIPS = 3
QUEUE_BYTES = 64 * 2**20
"""What the decoder keeps ready, at most."""


@dataclass
class Calibration:
    """Measured on the first clips: per frame, per ask, and the state's growth."""

    frame_s: float = 0.0
    ask_s: float = 0.0
    ask_frames: int = 0
    frame_tokens: float = 0.0
    ask_tokens: float = 0.0
    state_bytes: int = 0
    state_growth: float = 0.0
    working_bytes: int = 0
    stored_bytes: float = 0.0


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
    kept = _kept_states(evaluation, waiting) * min(state, 512 * 2**20)
    stored = frames * measured.stored_bytes
    _refuse_if_short(memory, kept + stored)
    tokens = frames * measured.frame_tokens + asks * measured.ask_tokens
    rows = [
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
        ("memory of the method", _size(state), "at the end of the longest episode"),
        ("peak memory", _size(psutil.Process().memory_info().rss + memory), "this process"),
        ("states on disk", _size(kept), f"states: {evaluation.params.states}"),
        ("frame store", _size(stored), f"store: {evaluation.params.store}"),
        (
            "time",
            _or_dash(seconds, _duration(seconds)),
            "calibrated on this machine, decoding apart",
        ),
    ]
    return pd.DataFrame(rows, columns=["what", "expected", "note"]).set_index("what")


def calibrate(evaluation: Evaluation, episode: Episode) -> Calibration:
    """Run a few clips and one short answer on a trunk of their own."""
    found = Calibration()
    trunk = evaluation.fresh()
    feed = next((f for f in episode.feeds if f.stretches), None)
    if feed is None:
        return found
    trunk.reset(episode.trajectory.id, evaluation.params.seed)
    try:
        prepare(episode.trajectory)
        size = trunk.frame_size(inspect(feed.session.spans[0].file).size)
        trunk.begin_session(
            SessionInfo(feed.session.id, feed.position, feed.session.wall_start_s, size)
        )
        before = psutil.Process().memory_info().rss
        sizes, frames = [], 0
        need_s = CLIPS * trunk.clip_frames / trunk.fps
        start_s, end_s = feed.stretches[0]
        cut = ((start_s, min(end_s, start_s + need_s)),)
        with open_session(feed.session, trunk.fps, cut, size, audio=trunk.wants_audio) as stream:
            for clip in islice(clips(stream, (), cut, feed.position, trunk.clip_frames), CLIPS):
                with counting() as counts:
                    begun = time.perf_counter()
                    trunk.observe(clip)
                    spent_s = time.perf_counter() - begun
                frames += len(clip.frames)
                sizes.append((frames, sum(trunk.state_bytes().values())))
                if clip.frames:
                    found.frame_s = spent_s / len(clip.frames)
                    found.frame_tokens = counts.get("tokens_prefilled", 0) / len(clip.frames)
                    if evaluation.params.store != "none":
                        found.stored_bytes = _stored(
                            clip.frames[0].pixels(), evaluation.params.store
                        )
        if len(sizes) > 1 and sizes[-1][0] > sizes[0][0] and not trunk.bounded:
            found.state_growth = (sizes[-1][1] - sizes[0][1]) / (sizes[-1][0] - sizes[0][0])
        found.state_bytes = sizes[-1][1] if sizes else 0
        found.ask_frames = frames
        if trunk.model != "chat":
            _calibrate_ask(evaluation, episode, trunk, found)
        found.working_bytes = max(0, psutil.Process().memory_info().rss - before)
    except VideoError:
        # The run itself records what is wrong with the file; the plan only lacks its calibration.
        return found
    return found


def _calibrate_ask(
    evaluation: Evaluation, episode: Episode, trunk: Method, found: Calibration
) -> None:
    ask = episode.asks[0]
    feed = episode.feed(ask.probe.session)
    short = replace(
        evaluation.setting, max_new_tokens=dict.fromkeys(evaluation.setting.max_new_tokens, 8)
    )
    at = Moment(tuple(f.session for f in episode.feeds), feed, Clip(feed.position, ()))
    begun = time.perf_counter()
    response = answer(trunk.branch(), ask, at, episode.trajectory.id, short)
    spent_s = time.perf_counter() - begun
    first_s = response.timings.get("ttft_prep_s", spent_s)
    steps = max(1, response.counters.get("decode_steps", 1))
    limits = evaluation.setting.max_new_tokens
    task = evaluation.setting.bench.task(ask.candidate.task)
    found.ask_s = first_s + (spent_s - first_s) / steps * limits[task.reply]
    found.ask_tokens = response.counters.get("tokens_prefilled", 0)


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
            f"memory is short: about {_size(memory)} needed, {_size(available)} available; use "
            "fewer workers, a smaller max_pixels or a bounded method"
        )
    free = shutil.disk_usage(paths.outputs()).free
    if disk > free:
        raise BenchError(
            f"disk is short: about {_size(disk)} needed below {paths.short(paths.outputs())}, "
            f"{_size(free)} free; set states to none, or a smaller store_gib, or move BENCH_OUTPUTS"
        )


def _stored(pixels: NDArray[np.uint8], form: str) -> float:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG" if form == "jpeg" else "PNG", quality=90)
    return float(buffer.tell())


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _or_dash(value: float, text: str) -> str:
    return text if value else "-"
