"""dollhouse: a small rendered household with known answers, generated on this machine.

Variants: `default` (`dollhouse`), `small` (the fast default of tests). Videos are rendered into the
cache when they are first needed; the same parameters give the same pictures everywhere.
"""

from __future__ import annotations

from bench_lib.dollhouse import library
from bench_lib.sources import Dataset


def load(data_root: str = "", variant: str = "default", **knobs: object) -> Dataset:
    """The trajectories of a set, their videos in the cache.

    `data_root` is not used: nothing needs to be on disk. `knobs` replace fields of the set's plan
    (`films`, `film_s`, ...), brief (`counts`, `leak`, ...), look (`strip`, `noise`, `motion`,
    `light`, `fps`, `size`), or its `seeds`; BenchError names the nearest known one.
    """
    chosen = library.with_knobs(library.find(variant), **knobs)
    name = "dollhouse" if variant == "default" else f"dollhouse-{variant}"
    trajectories = []
    for seed in chosen.seeds:
        world, trajectory = library.compose(chosen, name, seed)
        if chosen.drawn:
            library.film(world, trajectory, chosen.look)
        trajectories.append(trajectory)
    return Dataset(tuple(trajectories), (), "generated household: answers are exact by design")
