"""Whole recordings as captions: the stream's own windows and level, kept as .vtt in the cache.

The windows and the gate are those of `speech.windows.Ear` (5 s, 0.005), so that what is read in a
transcript is what would have been heard. A window is one cue, readable once it has passed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench_lib import paths
from bench_lib.schema import Caption
from bench_lib.speech import Recogniser
from bench_lib.speech.repeats import across, wary
from bench_lib.speech.windows import MIN_RMS, WINDOW_S, Ear, Listen
from bench_lib.video import captions
from bench_lib.video.decode.audio import SessionSound
from bench_lib.video.decode.protocol import SpanTuple
from bench_lib.video.stream import SAMPLE_RATE

VERSION = 2
_digests: dict[tuple[str, int, int], str] = {}


def transcribe(
    spans: tuple[SpanTuple, ...], listen: Listen, window_s: float, min_rms: float
) -> tuple[Caption, ...]:
    """What is said in the spans of one session, on its clock; repetitions are marked.

    Raises:
        VideoError: a file is missing, or its sound cannot be decoded.
    """
    end = round(sum(end_s - start_s for _, start_s, end_s in spans) * SAMPLE_RATE)
    step = int(window_s * SAMPLE_RATE)
    ear = Ear(window_s, min_rms, end // step + 1, wary(listen))
    sound = SessionSound(spans, lambda: None)
    try:
        for at in range(0, end, step):
            samples = sound.read(at, min(at + step, end))
            ear.sound(samples.astype(np.float32) / np.float32(32_768), at / SAMPLE_RATE)
        ear.rest()
    finally:
        sound.close()
    return tuple(Caption(start_s=h.start_s, end_s=h.end_s, text=h.text) for h in across(ear.heard))


def transcript(
    spans: tuple[SpanTuple, ...],
    recogniser: Callable[[], Recogniser],
    window_s: float = WINDOW_S,
    min_rms: float = MIN_RMS,
) -> tuple[Caption, ...]:
    """The captions of a session, transcribed once for its content and the recogniser's id.

    `recogniser` is called once; its `listen` only where the cache has nothing. Raises what
    `transcribe` raises; nothing is kept then.
    """
    used = recogniser()
    recorded = [(content(file), start_s, end_s) for file, start_s, end_s in spans]
    named = repr((VERSION, recorded, used.id, window_s, min_rms))
    key = hashlib.sha256(named.encode()).hexdigest()[:24]
    path = paths.cache() / "transcripts" / f"{key}.vtt"
    if not path.exists():
        found = transcribe(spans, used.listen, window_s, min_rms)
        captions.write(path, found, f"{used.id}; windows of {window_s} s from {min_rms} on")
    return captions.read(path)


def content(file: str) -> str:
    """The digest of a file's bytes, read once per path, size and modification time."""
    status = Path(file).stat()
    seen = (file, status.st_size, status.st_mtime_ns)
    if seen not in _digests:
        with Path(file).open("rb") as recorded:
            _digests[seen] = hashlib.file_digest(recorded, "sha256").hexdigest()
    return _digests[seen]
