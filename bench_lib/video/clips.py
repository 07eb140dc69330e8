"""The clip law: fed samples in, clips out. See `stream` for the law itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from bench_lib.schema import Caption
from bench_lib.video.session import Sample
from bench_lib.video.stream import SAMPLE_RATE, Clip, Frame, visible


def clips(
    samples: Iterable[Sample],
    captions: Sequence[Caption],
    stretches: Sequence[tuple[float, float]],
    position: int,
    clip_frames: int,
) -> Iterator[Clip]:
    """Cut samples into clips of `clip_frames`; the last one may be shorter.

    A caption belongs to the first clip whose last frame is not earlier than the caption's end, so
    it never arrives with a frame that precedes its last word; what ends after the last frame comes
    in a closing clip without frames.
    """
    waiting = sorted(
        (c for c in captions if any(s <= c.end_s < e for s, e in stretches)), key=lambda c: c.end_s
    )
    held: list[Sample] = []
    for sample in samples:
        held.append(sample)
        if len(held) == clip_frames:
            yield _clip(held, _spoken(waiting, sample.t_s), position)
            held = []
    if held or waiting:
        yield _clip(held, tuple(waiting), position)


def _spoken(waiting: list[Caption], t_s: float) -> tuple[Caption, ...]:
    """Take from `waiting` what has ended by `t_s`."""
    ended = 0
    while ended < len(waiting) and visible(waiting[ended].end_s, t_s, closed=True):
        ended += 1
    spoken = tuple(waiting[:ended])
    del waiting[:ended]
    return spoken


def _clip(samples: list[Sample], captions: tuple[Caption, ...], position: int) -> Clip:
    frames: tuple[Frame, ...] = tuple(sample.frame for sample in samples)
    sounds = [sample.audio for sample in samples if sample.audio is not None]
    if not sounds:
        return Clip(position, frames, captions)
    audio = np.concatenate(sounds)
    # A sample brings the sound that ends at its own instant.
    start_s = samples[-1].t_s - len(audio) / SAMPLE_RATE
    return Clip(position, frames, captions, audio, start_s)
