"""dollhouse: a small rendered household with known answers, generated on this machine.

Variants (`dollhouse-NAME`): the default set; `small`, the fast default of tests; `arena` with
StreamArena's items on two videos of more than 40 minutes, `arena-small` on two of seven minutes;
`recall` and `availability`, the same cross-session questions with four options and, half of them,
with five; `large`, which has the size of APM-Bench. Videos are rendered into the cache when they
are first needed (`large`: when a trajectory is prepared); the same parameters give the same
pictures everywhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench_lib.dollhouse.world import library
from bench_lib.dollhouse.world.render import Look
from bench_lib.dollhouse.world.world import World
from bench_lib.errors import BenchError
from bench_lib.schema import Dataset, Trajectory

KNOBS: dict[str, Any] = {**vars(Look()), "leak": ""}
"""What may stand in the source's name (`dollhouse-small?strip=false&noise=8`), with defaults."""
_undrawn: dict[str, tuple[World, Look]] = {}
"""Worlds loaded without rendering, by the file of their first session."""


def load(data_root: str = "", variant: str = "default", **knobs: object) -> Dataset:
    """The trajectories of a set, their videos in the cache.

    `data_root` is not used: nothing needs to be on disk. `knobs` replace fields of the set's plan
    (`films`, `film_s`, ...), brief (`counts`, `leak`, ...), look (`strip`, `noise`, `motion`,
    `light`, `fps`, `size`), or its `seeds`, `totals` or `drawn`; BenchError names the nearest known
    one.
    """
    # In a source's name knobs are text.
    knobs = {name: _read(name, v) if isinstance(v, str) else v for name, v in knobs.items()}
    chosen = library.with_knobs(library.find(variant), **knobs)
    trajectories = []
    for seed in chosen.seeds:
        world, trajectory = library.compose(chosen, library.title(variant), seed)
        if chosen.drawn:
            library.film(world, trajectory, chosen.look)
        else:
            _undrawn[trajectory.sessions[0].spans[0].file] = (world, chosen.look)
        trajectories.append(trajectory)
    note = "generated household: answers are exact by design"
    if chosen.look.strip:
        note += "; frames carry the code strip that the ideal observer reads"
    return Dataset(tuple(trajectories), (), note, generated=True, judge="ideal")


def shown_to(program: bool) -> dict[str, Any]:
    """The code strip is drawn for the ideal observer alone."""
    return {"strip": program}


def recorded(file: str) -> str:
    """What a video is known by: its folder is named by a digest of all that is seen and heard."""
    return "/".join(Path(file).parts[-2:])


def _read(name: str, text: str) -> Any:
    """The value of a knob that came as text; BenchError where it is of another kind."""
    kind = type(KNOBS.get(name, ""))
    try:
        return {"true": True, "false": False}[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        wanted = "true or false" if kind is bool else f"a number ({kind.__name__})"
        raise BenchError(f"dollhouse knob {name} must be {wanted}, not {text!r}") from None


def prepare(trajectory: Trajectory) -> None:
    """Render the videos of a trajectory that was loaded without them; nothing where they exist."""
    file = trajectory.sessions[0].spans[0].file
    if file in _undrawn:
        world, look = _undrawn[file]
        library.film(world, trajectory, look)
    elif not all(Path(s.spans[0].file).exists() for s in trajectory.sessions):
        raise BenchError(f"trajectory {trajectory.id} was not loaded in this process")
