"""Token memories saved by one process answer alike in another."""

from __future__ import annotations

from pathlib import Path

import pytest
import token_laws as laws
from token_laws import begun, film, session

from bench_lib.opening import backbones

FLASH = {"temporal_length": 12, "spatial_length": 6, "bank_frames": 24}
FOREST = {"short_frames": 6, "short_tokens": 8, "event_window": 4, "frame_tokens": 4, "quota": 48}
SALMONN = {"memory_tokens": 96, "step": 32, "chunk_grids": 4, "lag": 48, "mini_batch": 32}
CASES = (
    ("flash_vstream", "tiny-untrained", FLASH),
    ("flash_vstream", "tiny-qwen3", {**FLASH, "time_mode": "weighted"}),
    ("flash_vstream", "tiny-untrained", {**FLASH, "form": "thinned"}),
    ("streamforest", "tiny-untrained", {**FOREST, "mode": "streaming"}),
    ("streamforest", "tiny-qwen3", FOREST),
    ("video_salmonn_s", "tiny-untrained", SALMONN),
    ("video_salmonn_s", "tiny-qwen3", {**SALMONN, "empty_units": False}),
    ("timechat_online", "tiny-untrained", {"threshold": 0.98}),
    ("timechat_online", "tiny-qwen3", {"form": "thinned", "max_frames": 16}),
)


@pytest.mark.slow  # the contract of all methods asks it of each in its usual form
def test_a_new_process_answers_from_saved_states(tmp_path: Path) -> None:
    saved = []
    for i, (name, spec, args) in enumerate(CASES):
        method = begun(backbones.load(spec, device="cpu"), name, **args)
        for index in range(2):
            session(method, index, film(33, seed=index))
        saved.append((method, tmp_path / str(i), spec, args))
    laws.a_new_process_answers_alike(saved)
