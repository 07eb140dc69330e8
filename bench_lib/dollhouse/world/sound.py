"""The spoken lines of a film as sound, where espeak-ng is installed."""

from __future__ import annotations

import io
import shutil
import subprocess
import wave
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bench_lib.dollhouse.world.camera import Film
from bench_lib.dollhouse.world.grammar import read
from bench_lib.dollhouse.world.sentences import Heard

RATE = 22_050
"""Samples per second that espeak-ng gives."""
VOICES = {
    "grandmother": ("en+f4", 35),
    "grandfather": ("en+m4", 25),
    "girl": ("en+f2", 80),
    "boy": ("en+m1", 85),
    "builder": ("en+m3", 40),
    "wizard": ("en+m7", 20),
    "clown": ("en+croak", 60),
}
"""Voice and pitch of each person."""


def available() -> bool:
    """Whether speech can be made on this machine."""
    return shutil.which("espeak-ng") is not None


def track(film: Film, hiss: float = 0.0) -> NDArray[np.int16]:
    """The sound of a film: each line begins with its caption, all else is silence or hiss."""
    samples = np.zeros(film.duration_s * RATE, np.int16)
    if hiss:
        rng = np.random.default_rng(film.wall_start_s)
        samples = (rng.standard_normal(len(samples), np.float32) * hiss * 32_767).astype(np.int16)
    for caption in film.captions:
        person = film.shot_at(caption.start_s).picture.person
        for said in read(caption.text):
            if isinstance(said, Heard):
                line = _spoken(person, f"number {said.number}")
                start = int(caption.start_s * RATE)
                part = samples[start : start + len(line)]
                part[...] = line[: len(part)]
    return samples


@lru_cache(maxsize=256)
def _spoken(person: str, line: str) -> NDArray[np.int16]:
    voice, pitch = VOICES[person]
    command = ["espeak-ng", "-v", voice, "-p", str(pitch), "-s", "150", "--stdout", line]
    data = subprocess.run(command, check=True, capture_output=True).stdout
    # The header written to a pipe gives no length; what follows its 44 bytes is the sound.
    with wave.open(io.BytesIO(data)) as file:
        if file.getframerate() != RATE or file.getnchannels() != 1:
            raise RuntimeError(f"espeak-ng gave {file.getparams()}, not mono at {RATE} Hz")
    return np.frombuffer(data[44 : 44 + (len(data) - 44) // 2 * 2], np.int16)
