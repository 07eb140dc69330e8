"""Local models by name: embedded ones, folders, ids on a hub, shapes to rehearse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench_lib.backbones import TINY, family
from bench_lib.errors import BenchError

if TYPE_CHECKING:
    import torch

    from bench_lib.backbones.base import Backbone


def load(
    spec: str,
    device: str = "auto",
    dtype: str = "auto",
    attention: str = "sdpa",
    max_pixels: int | None = None,
    seed: int = 42,
) -> Backbone:
    """Open a model.

    Args:
        spec: `tiny` (trained on the embedded household), `tiny-untrained` or `tiny-qwen3` (both
            built on this machine from configuration and seed), a folder
            in the Hugging Face layout, a model id (`owner/name`, `owner/name@revision`), or
            `rehearse:NAME?layers=N&vision=N` (full-size shape, random weights).
        device: `auto` is `cuda` where there is one, else `cpu`. `meta` holds shapes only.
        dtype: `auto` is bfloat16 on CUDA and the meta device, float32 on the CPU.
        attention: `sdpa`, or `eager` for the written-out definition.
        max_pixels: Most pixels of a frame, below the checkpoint's own limit.
        seed: Of random weights.

    Raises:
        BenchError: When there is no such model, family, device or dtype.
    """
    import torch

    from bench_lib.backbones import checkpoints, hf_compat

    place = _device(device)
    kind = _dtype(dtype, place)
    if spec.startswith("rehearse:"):
        from bench_lib.backbones.rehearse import rehearse

        parts = rehearse(spec.removeprefix("rehearse:"), place, kind, seed, _folder("tiny", seed))
    elif place == "meta":
        raise BenchError(f"device 'meta' holds no weights: use rehearse:NAME, not {spec!r}")
    else:
        folder = _folder(spec, seed)
        read = checkpoints.find(folder) or hf_compat.load
        parts = read(folder, spec, place, kind)
    with torch.inference_mode():
        return family(parts.model_type)(parts, attention, max_pixels)


def _folder(spec: str, seed: int) -> Path:
    from bench_lib.backbones import hf_compat

    if spec in TINY:
        from bench_lib.dollhouse.training import tiny

        return tiny.checkpoint(spec, seed)
    path = Path(spec).expanduser()
    return path if path.is_dir() else hf_compat.download(spec)


def _device(device: str) -> str:
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind = device.partition(":")[0]
    if kind not in ("cpu", "cuda", "meta"):
        raise BenchError(f"unknown device {device!r}; known: auto, cpu, cuda, cuda:N, meta")
    if kind == "cuda" and not torch.cuda.is_available():
        raise BenchError(f"device {device!r} was asked for, but torch finds no CUDA device here")
    return device


def _dtype(dtype: str, device: str) -> torch.dtype:
    import torch

    if dtype == "auto":
        return torch.float32 if device == "cpu" else torch.bfloat16
    if dtype not in ("float32", "bfloat16", "float16"):
        raise BenchError(f"unknown dtype {dtype!r}; known: auto, float32, bfloat16, float16")
    return getattr(torch, dtype)
