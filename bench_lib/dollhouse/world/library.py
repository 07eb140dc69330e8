"""The sets of the dollhouse: which worlds, how they are asked about, where their films lie."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench_lib import paths
from bench_lib.dollhouse.world import author, author_availability, render, sound
from bench_lib.dollhouse.world.camera import Film
from bench_lib.dollhouse.world.draft import Brief
from bench_lib.dollhouse.world.render import Look
from bench_lib.dollhouse.world.world import ARENA, SMALL, Plan, World, build
from bench_lib.errors import BenchError, nearest
from bench_lib.schema import Candidate, Session, Span, Trajectory

PARTICIPANT = "wearer"
LARGE = {
    "ER": 327, "EST": 298, "TR": 262, "ACR": 202, "CT": 195, "OCR": 166, "STU": 153,
    "ERA": 377, "RCR": 377, "MPA": 116, "PRM": 114, "TPG": 132,
}  # fmt: skip
"""Candidates of each task in APM-Bench; ERA and RCR are known together only (754)."""
_ATTEMPTS = 8


@dataclass(frozen=True)
class HouseSet:
    """A set: seeds of its worlds, and what all of them share.

    `drawn` renders when loading; else videos are rendered by `sources.dollhouse.prepare`.
    `totals` and `sessions` are spread over the worlds: the set as a whole has exactly so many
    candidates of each task, and sessions.
    """

    seeds: tuple[int, ...]
    plan: Plan = field(default_factory=Plan)
    brief: Brief = field(default_factory=Brief)
    look: Look = field(default_factory=Look)
    drawn: bool = True
    totals: Mapping[str, int] = field(default_factory=dict)
    sessions: int = 0


_RECALL = HouseSet(
    tuple(range(100, 108)),
    Plan(films=(5, 6)),
    Brief({"ER": 5, "EST": 5, "TR": 5}),
    Look(fps=2),
)
SETS: dict[str, HouseSet] = {
    "default": HouseSet((0, 1, 2, 3)),
    "small": HouseSet(
        (10, 63),
        SMALL,
        Brief(
            {**dict.fromkeys(author.TASKS, 1), "ERA": 2, "RCR": 2},
            settle_s=1,
            windows_s=(3, 4, 5, 6),
            negatives=(1, 2),
        ),
    ),
    "arena": HouseSet((0, 1), ARENA, Brief(bench="arena"), Look(fps=1, hiss=0.01)),
    "arena-small": HouseSet(
        (3, 4),
        replace(ARENA, film_s=(420, 420)),
        Brief({"RTP": 6, "HR": 8, "Tool": 6, "Pro": 8}, bench="arena"),
        Look(fps=2, hiss=0.01),
    ),
    "recall": _RECALL,
    "availability": replace(_RECALL, brief=replace(_RECALL.brief, bench="availability")),
    "large": HouseSet(
        tuple(range(104)),
        Plan(
            rooms=(5, 6),
            singles=26,
            threads=("recipe", "habit", "recipe", "search", "search"),
        ),
        look=Look(fps=2),
        drawn=False,
        totals=LARGE,
        sessions=549,
    ),
}
"""`recall` has cross-session questions only; `availability` asks some of them with five options."""


def find(name: str) -> HouseSet:
    """The set of that name; raises BenchError with the nearest known one."""
    if name not in SETS:
        raise BenchError(f"unknown dollhouse set {name!r}; {nearest(name, SETS)}")
    return SETS[name]


def title(variant: str) -> str:
    """The name of a set's source, by which its trajectories are called."""
    return "dollhouse" if variant == "default" else f"dollhouse-{variant}"


def compose(chosen: HouseSet, name: str, seed: int) -> tuple[World, Trajectory]:
    """A world and its trajectory. The files of its sessions may not exist yet; see `film`."""
    at, n = chosen.seeds.index(seed) if chosen.totals else 0, len(chosen.seeds)
    if not chosen.totals:
        return _compose(chosen, name, seed, seed)
    counts = {task: _share(total, at, n) for task, total in chosen.totals.items()}
    films = _share(chosen.sessions, at, n)
    own = replace(chosen, brief=replace(chosen.brief, counts=counts))
    if films:
        own = replace(own, plan=replace(own.plan, films=(films, films)))
    for attempt in range(_ATTEMPTS):
        world, trajectory = _compose(own, name, seed, seed + 1000 * attempt)
        found = Counter(c.task for c in trajectory.candidates)
        if all(found[task] == count for task, count in counts.items()):
            return world, trajectory
    raise BenchError(f"{name}-{seed:03d}: no world of {_ATTEMPTS} gives {counts}; ask for fewer")


def _share(total: int, at: int, n: int) -> int:
    """What falls to one of `n` when a total is spread evenly."""
    return total * (at + 1) // n - total * at // n


def _compose(chosen: HouseSet, name: str, seed: int, world_seed: int) -> tuple[World, Trajectory]:
    world = build(world_seed, chosen.plan)
    name = f"{name}-{seed:03d}"
    ids = tuple(f"S{film.index + 1:03d}" for film in world.films)
    home = folder(world, chosen.look)
    return world, Trajectory(
        id=name,
        source="dollhouse",
        title=f"Days in a home of {len(world.house.layout)} rooms",
        participant=PARTICIPANT,
        sessions=tuple(_session(film, home) for film in world.films),
        candidates=_candidates(chosen, world, name, ids),
        between=tuple(_session(film, home, "B") for film in world.between),
    )


def _candidates(
    chosen: HouseSet, world: World, name: str, ids: tuple[str, ...]
) -> tuple[Candidate, ...]:
    if chosen.brief.bench != "availability":
        return author.write(world, name, ids, chosen.brief)
    source = author.write(world, name.replace("availability", "recall"), ids, chosen.brief)
    return author_availability.transform(source, world, ids, name)


def folder(world: World, look: Look) -> Path:
    """Where the films of a world lie: a digest of all that can be seen and heard in them."""
    shown = [(f.wall_start_s, f.shots, f.captions) for f in (*world.films, *world.between)]
    spoken = look.sound and sound.available()
    text = repr((render.VERSION, replace(look, sound=spoken), shown))
    return paths.cache() / "dollhouse" / hashlib.sha256(text.encode()).hexdigest()[:16]


def _session(film: Film, home: Path, letter: str = "S") -> Session:
    identity, duration_s = f"{letter}{film.index + 1:03d}", float(film.duration_s)
    span = Span(file=str(home / f"{identity}.mp4"), start_s=0.0, end_s=duration_s)
    return Session(
        id=identity,
        index=film.index,
        spans=(span,),
        duration_s=duration_s,
        wall_start_s=float(film.wall_start_s),
        captions=tuple(film.captions),
    )


def film(world: World, trajectory: Trajectory, look: Look) -> None:
    """Render what is missing of a trajectory's videos. Two processes may do so at once."""
    films = (*world.films, *world.between)
    for one, session in zip(films, (*trajectory.sessions, *trajectory.between), strict=True):
        path = Path(session.spans[0].file)
        if not path.exists():
            render.write(one, look, path)


def with_knobs(chosen: HouseSet, **knobs: object) -> HouseSet:
    """A set with some of the fields of its plan, brief or look replaced by name."""
    own = ("seeds", "drawn", "totals", "sessions")
    for name, value in knobs.items():
        if name in own:
            chosen = replace(chosen, **{name: value})  # type: ignore[arg-type]
            continue
        for part in ("plan", "brief", "look"):
            if hasattr(getattr(chosen, part), name):
                new = replace(getattr(chosen, part), **{name: value})
                chosen = replace(chosen, **{part: new})  # type: ignore[arg-type]
                break
        else:
            known = [*vars(chosen.plan), *vars(chosen.brief), *vars(chosen.look), *own]
            raise BenchError(f"unknown dollhouse knob {name!r}; {nearest(name, known)}")
    return chosen
