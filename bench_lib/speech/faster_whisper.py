"""faster_whisper: Whisper models in CTranslate2 form, on this machine.

`faster_whisper:FOLDER`, where the folder holds `model.bin`, `config.json`, `tokenizer.json` and the
vocabulary. Needs the extra `asr`. Nothing is downloaded. Decoding is greedy over beams without
sampling, and no window knows of the one before, so that the same sound gives the same text.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench_lib import paths
from bench_lib.errors import BenchError
from bench_lib.speech import Recogniser

BEAMS = 5
NO_SPEECH = 0.6
"""Segments that are more probably no speech than this are left out (Whisper's own default)."""
NEEDED = ("model.bin", "config.json")


def load(where: str, home: Path) -> Recogniser:
    """The model in a folder; see the module and `speech.recogniser`."""
    folder = home / Path(where).expanduser()
    absent = [name for name in NEEDED if not (folder / name).is_file()]
    if not where or absent:
        raise BenchError(
            f"faster_whisper:{where}: {paths.short(folder)} lacks {', '.join(absent or NEEDED)}; "
            "give the folder of a Whisper model in CTranslate2 form, as faster_whisper:FOLDER"
        )
    try:
        import faster_whisper
    except ImportError as error:
        raise BenchError(
            f"faster_whisper cannot be imported ({error}): install the extra, "
            'pip install "bench-lib[asr]"'
        ) from None
    try:
        model = faster_whisper.WhisperModel(str(folder), local_files_only=True)
    except (RuntimeError, ValueError, OSError) as error:
        raise BenchError(f"{paths.short(folder)}: is no Whisper model ({error})") from None

    def listen(samples: NDArray[np.float32]) -> str:
        segments, _ = model.transcribe(
            samples,
            beam_size=BEAMS,
            temperature=0.0,
            condition_on_previous_text=False,
            without_timestamps=True,
        )
        return " ".join(s.text.strip() for s in segments if s.no_speech_prob <= NO_SPEECH)

    with (folder / "model.bin").open("rb") as weights:
        digest = hashlib.file_digest(weights, "sha256").hexdigest()[:16]
    return Recogniser(f"faster_whisper {faster_whisper.__version__} {digest} beams={BEAMS}", listen)
