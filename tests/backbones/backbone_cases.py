"""Pictures and prompts that tests of backbones share."""

from __future__ import annotations

import numpy as np

from bench_lib.backbones.base import Backbone
from bench_lib.backbones.prompt import Built, Prompt, Visual


def noise_frames(count: int, size: tuple[int, int], seed: int = 0) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.integers(0, 256, (*size, 3), np.uint8) for _ in range(count)]


def uneven(backbone: Backbone) -> tuple[int, int]:
    """Not square, and not a whole number of vision windows: 3 x 5 cells."""
    return 3 * backbone.preparation.factor, 5 * backbone.preparation.factor


def whole(backbone: Backbone, frames: list[np.ndarray], fps: float = 1.0) -> Visual:
    times = [i / fps for i in range(len(frames))]
    return Visual.whole(backbone.encode(frames), times, backbone.lattice(frames[0].shape[:2]))


def video_prompt(backbone: Backbone, seed: int = 0, frames: int = 8) -> Built:
    visual = whole(backbone, noise_frames(frames, uneven(backbone), seed))
    prompt = Prompt(backbone).turn("system").text("You remember what you see.").end().turn("user")
    prompt.show(visual).text("Where is the red cup?")
    return prompt.end().turn("assistant").build()
