"""A short measurement before a run: three clips and, on a local model, one short answer."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import psutil

from bench_lib import sources
from bench_lib.engine.answer import Moment, answer
from bench_lib.engine.conditions import Episode
from bench_lib.measure import counting
from bench_lib.memories.method import Method
from bench_lib.video.clips import clips
from bench_lib.video.decode.images import encoded
from bench_lib.video.session import VideoError, inspect, open_session
from bench_lib.video.stream import Clip, SessionInfo

if TYPE_CHECKING:
    from bench_lib.evaluate.job import Evaluation

CLIPS = 3


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


def calibrate(evaluation: Evaluation, episode: Episode) -> Calibration:
    """Run a few clips and one short answer on a trunk of their own."""
    found = Calibration()
    trunk = evaluation.fresh()
    feed = next((f for f in episode.feeds if f.stretches), None)
    if feed is None:
        return found
    trunk.reset(episode.trajectory.id, evaluation.params.seed)
    try:
        sources.prepare(episode.trajectory)
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
                        pixels = clip.frames[0].pixels()
                        found.stored_bytes = len(encoded(pixels, evaluation.params.store))
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
