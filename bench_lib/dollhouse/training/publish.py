"""From training to the weights beside this package: half precision, one file.

`python -m bench_lib.dollhouse.training.publish`
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import torch

from bench_lib import paths
from bench_lib.dollhouse.training import tiny
from bench_lib.dollhouse.training.train import STAGES, blank, resume


def assembled(folder: Path, seed: int) -> Any:
    """The model as far as training has come, in float32."""
    model, _ = blank(seed)
    for name in STAGES:
        part = model.model.visual if name == "vision" else model.model.language_model
        resume(folder / f"{name}.pt", part)
    return model


def publish(folder: Path, target: Path, seed: int) -> int:
    """Write the weights in half precision; returns the size of the file in bytes."""
    model = assembled(folder, seed).to(torch.float16)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as draft:
        model.save_pretrained(draft)
        target.write_bytes((Path(draft) / "model.safetensors").read_bytes())
    return target.stat().st_size


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=paths.cache() / "training")
    parser.add_argument("--target", type=Path, default=tiny.WEIGHTS)
    parser.add_argument("--seed", type=int, default=42)
    given = parser.parse_args()
    size = publish(given.folder, given.target, given.seed)
    print(f"{given.target}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
