"""Frames per second, time to first token, decoding speed and peak memory of a backbone.

    python tests/bench_backbone.py                                     the tiny model, on the CPU
    python tests/bench_backbone.py "rehearse:qwen2.5-vl-7b?layers=2&vision=2" --frames 16
    pytest tests/bench_backbone.py -s                                  full size, on a GPU

On a cut depth the figures are those of the cut model, at full width: the time of a layer is what
the depth divides.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable

import numpy as np
import pytest
import torch

from bench_lib.backbones.base import Backbone
from bench_lib.backbones.generate import decode, synchronize
from bench_lib.backbones.prompt import Prompt, Visual
from bench_lib.exchange import Generation
from bench_lib.opening import backbones


def seconds(backbone: Backbone, work: Callable[[], object], repeats: int) -> float:
    """Median wall seconds after one warm-up, each waited for."""
    spent = []
    for turn in range(repeats + 1):
        begun = time.perf_counter()
        work()
        synchronize(backbone.device)
        if turn:
            spent.append(time.perf_counter() - begun)
    return statistics.median(spent)


def peak_mib(backbone: Backbone) -> float:
    """Most memory held so far: of the device, or of this process."""
    if backbone.device.type == "cuda":
        return torch.cuda.max_memory_allocated(backbone.device) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(spec: str, device: str, frames: int, max_pixels: int, repeats: int) -> dict[str, float]:
    """All figures of one model."""
    backbone = backbones.load(spec, device=device)
    size = backbone.frame_size((720, 720), max_pixels)
    random = np.random.default_rng(0)
    pictures = [random.integers(0, 256, (*size, 3), np.uint8) for _ in range(frames)]
    vision_s = seconds(backbone, lambda: backbone.encode(pictures), repeats)
    tokens = backbone.encode(pictures)
    visual = Visual.whole(tokens, [float(i) for i in range(frames)], backbone.lattice(size))
    prompt = Prompt(backbone).turn("user").show(visual).text("Where is the red cup?").end()
    built = prompt.turn("assistant").build()
    replies = [decode(backbone, built, Generation(max_new_tokens=17)) for _ in range(repeats + 1)]
    ttft_s = statistics.median(r.first_token_at - r.ready_at for r in replies[1:])
    steps_s = [(r.done_at - r.first_token_at) / max(1, len(r.ids) - 1) for r in replies[1:]]
    return {
        "frames_per_s": frames / vision_s,
        "tokens_per_grid": float(tokens.shape[1]),
        "prompt_tokens": float(len(built.x)),
        "prefill_tokens_per_s": len(built.x) / ttft_s,
        "ttft_s": ttft_s,
        "decode_tokens_per_s": 1 / statistics.median(steps_s),
        "peak_mib": peak_mib(backbone),
        "kv_bytes_per_token": float(backbone.kv_bytes_per_token),
    }


@pytest.mark.gpu
@pytest.mark.parametrize("shape", ["qwen2.5-vl-7b", "qwen3-vl-8b"])
def test_full_size_on_a_gpu(shape: str) -> None:
    found = measure(f"rehearse:{shape}", "cuda", frames=64, max_pixels=401_408, repeats=5)
    show(shape, found)
    assert found["peak_mib"] < 40 * 1024


def show(spec: str, found: dict[str, float]) -> None:
    """Print the figures, one a line."""
    print(f"\n{spec} on {torch.get_num_threads()} threads")
    for name, value in found.items():
        print(f"  {name:22} {value:12,.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("backbone", nargs="?", default="tiny")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--frames", type=int, default=64)
    parser.add_argument("--max-pixels", type=int, default=401_408)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    show(
        given.backbone,
        measure(given.backbone, given.device, given.frames, given.max_pixels, given.repeats),
    )
