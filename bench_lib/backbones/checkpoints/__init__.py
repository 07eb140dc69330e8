"""Checkpoints trained for one method, in their authors' layout. `find` knows one by its folder.

Beside each loader lies `NAME.json`: the tensors of the published checkpoint, names and shapes, as
the authors' classes give them when they are built without weights.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bench_lib.errors import BenchError

if TYPE_CHECKING:
    import torch

    from bench_lib.backbones.hf_compat import Parts

FOREST_PROJECTOR = "tome729_fstw_pemf"


def find(folder: Path) -> Callable[[Path, str, str, torch.dtype], Parts] | None:
    """The loader `(folder, name, device, dtype)` of a checkpoint, or None for a plain one.

    Raises BenchError for one of a known kind that no method here was made for.
    """
    from bench_lib.backbones.checkpoints import flash_vstream, streamforest, video_salmonn_s

    if (folder / video_salmonn_s.BASE / "config.json").exists():
        return video_salmonn_s.load
    if not (folder / "config.json").exists():
        return None
    config = json.loads((folder / "config.json").read_text())
    kind = config.get("model_type")
    if kind == "flash_vstream_qwen2_vl":
        return flash_vstream.load
    if kind == "llava_qwen":
        projector = config.get("mm_projector_type")
        if projector != FOREST_PROJECTOR:
            raise BenchError(
                f"{folder}: a llava_qwen checkpoint with projector {projector!r}; only "
                f"StreamForest's {FOREST_PROJECTOR!r} is known"
            )
        return streamforest.load
    return None


def published(name: str) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the tensors of a published checkpoint, layers written out."""
    listed = json.loads((Path(__file__).parent / f"{name}.json").read_text())["tensors"]
    found: dict[str, tuple[int, ...]] = {}
    for pattern, shape, layers in listed:
        for i in range(layers):
            found[pattern.replace("*", str(i), 1)] = tuple(shape)
    return found
