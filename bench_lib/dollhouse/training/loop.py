"""A stage of training that can be stopped and resumed at any time, and logs what it reaches."""

from __future__ import annotations

import json
import math
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

SAVE_EVERY_S = 120.0
LOG_EVERY = 10
_WARM_UP = 20
_LOWEST = 0.05

Step = Callable[[int], tuple[Tensor, dict[str, tuple[float, float]]]]
"""From a step's number to its loss and its marks: sums and counts by name."""


@dataclass(frozen=True)
class Stage:
    """How a stage is trained: its name, its steps, its highest learning rate.

    `enough` is a mark, and the mean of ten steps at which the stage may end before its last step.
    """

    name: str
    steps: int
    rate: float
    enough: tuple[str, float] | None = None

    def rate_at(self, step: int) -> float:
        """A short rise, then half a cosine down to a twentieth."""
        rise = min(1.0, (step + 1) / _WARM_UP)
        fall = 0.5 * (1 + math.cos(math.pi * step / max(1, self.steps)))
        return self.rate * rise * (_LOWEST + (1 - _LOWEST) * fall)


def fit(
    stage: Stage,
    folder: Path,
    model: Any,
    trained: Iterable[Tensor],
    step: Step,
    pause_after_s: float = math.inf,
) -> bool:
    """Train `trained` parameters of `model` for what is left of a stage; False if stopped.

    It stops after `pause_after_s` or at a SIGTERM, and keeps what it has.

    Each step depends on its number alone, so that a resumed stage goes on as if never stopped.
    Processes that train together (torchrun) take steps of their own and share the mean gradient.
    `{stage}.pt` holds weights and optimiser while it runs and the weights once it is done;
    `log.jsonl` gets a line every ten steps.
    """
    file = folder / f"{stage.name}.pt"
    parameters = [p for p in trained if p.requires_grad]
    optimiser = torch.optim.AdamW(parameters, lr=stage.rate, betas=(0.9, 0.98), weight_decay=0.01)
    first = 0
    if file.exists():
        held = torch.load(file, map_location="cpu", weights_only=True)
        model.load_state_dict(held["model"])
        first = int(held["step"])
        if held["optimiser"]:
            optimiser.load_state_dict(held["optimiser"])
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stop.append(number))
    rank, size = ranks()
    began = saved = time.monotonic()
    marks: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for number in range(first, stage.steps):
        for group in optimiser.param_groups:
            group["lr"] = stage.rate_at(number)
        torch.manual_seed(number * size + rank)
        value, found = step(number * size + rank)
        optimiser.zero_grad(set_to_none=True)
        value.backward()  # type: ignore[no-untyped-call]
        _average(parameters, size)
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        for name, (total, count) in {**found, "loss": (float(value.detach()), 1.0)}.items():
            marks[name][0] += total
            marks[name][1] += count
        ended = False
        if (number + 1) % LOG_EVERY == 0 or number + 1 == stage.steps:
            line = {k: round(t / n, 4) for k, (t, n) in sorted(marks.items()) if n}
            marks.clear()
            if not rank:
                _log(folder, stage.name, number + 1, time.monotonic() - began, line)
            ended = bool(stage.enough and line.get(stage.enough[0], 0.0) >= stage.enough[1])
        now = time.monotonic()
        paused = now - began > pause_after_s or bool(stop)
        ended, paused = _agreed(ended, paused)
        if ended:
            break
        if not rank and (paused or now - saved > SAVE_EVERY_S):
            _save(file, model, optimiser.state_dict(), number + 1)
            saved = now
        if paused:
            return False
    if first < stage.steps and not rank:
        _save(file, model, None, stage.steps)
    return True


def ranks() -> tuple[int, int]:
    """The number of this process among those that train together, and how many they are."""
    if not dist.is_initialized():
        return 0, 1
    return dist.get_rank(), dist.get_world_size()


def _agreed(*flags: bool) -> list[bool]:
    """What the first process found, for all."""
    if not dist.is_initialized():
        return list(flags)
    found = torch.tensor(flags)
    dist.broadcast(found, 0)
    return found.tolist()


def _average(parameters: list[Tensor], size: int) -> None:
    """Give all processes the mean of their gradients."""
    if size > 1:
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = torch.cat([g.flatten() for g in grads])
        dist.all_reduce(flat)
        for p, part in zip(parameters, flat.split([g.numel() for g in grads]), strict=True):
            p.grad = (part / size).view_as(p)


def _save(file: Path, model: Any, optimiser: Any, step: int) -> None:
    """Atomically, so that a kill at any time leaves a whole file."""
    part = file.with_suffix(f".{os.getpid()}")
    torch.save({"model": model.state_dict(), "optimiser": optimiser, "step": step}, part)
    part.replace(file)


def _log(folder: Path, stage: str, step: int, seconds: float, marks: dict[str, float]) -> None:
    line = {"stage": stage, "step": step, "s": round(seconds, 1), **marks}
    with (folder / "log.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(line), flush=True)
