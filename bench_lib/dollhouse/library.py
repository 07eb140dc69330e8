"""The sets of the dollhouse: which worlds, how they are asked about, where their films lie."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench_lib import paths
from bench_lib.dollhouse import author, render, sound
from bench_lib.dollhouse.camera import Film
from bench_lib.dollhouse.draft import Brief
from bench_lib.dollhouse.render import Look
from bench_lib.dollhouse.world import SMALL, Plan, World, build
from bench_lib.errors import BenchError, nearest
from bench_lib.schema import Session, Span, Trajectory

PARTICIPANT = "wearer"


@dataclass(frozen=True)
class HouseSet:
    """A set: seeds of its worlds, and what all of them share. `drawn` renders when loading."""

    seeds: tuple[int, ...]
    plan: Plan = field(default_factory=Plan)
    brief: Brief = field(default_factory=Brief)
    look: Look = field(default_factory=Look)
    drawn: bool = True


SETS: dict[str, HouseSet] = {
    "default": HouseSet((0, 1, 2, 3)),
    "small": HouseSet(
        (12, 35),
        SMALL,
        Brief(
            dict.fromkeys(author.TASKS, 1),
            settle_s=1,
            windows_s=(3, 4, 5, 6),
            negatives=(1, 2),
        ),
    ),
}


def find(name: str) -> HouseSet:
    """The set of that name; raises BenchError with the nearest known one."""
    if name not in SETS:
        raise BenchError(f"unknown dollhouse set {name!r}; {nearest(name, SETS)}")
    return SETS[name]


def compose(chosen: HouseSet, name: str, seed: int) -> tuple[World, Trajectory]:
    """A world and its trajectory. The files of its sessions may not exist yet; see `film`."""
    world = build(seed, chosen.plan)
    name = f"{name}-{seed:03d}"
    ids = tuple(f"S{film.index + 1:03d}" for film in world.films)
    home = folder(world, chosen.look)
    sessions = tuple(
        _session(film, identity, home, chosen.look)
        for film, identity in zip(world.films, ids, strict=True)
    )
    between = tuple(
        _session(film, f"B{film.index + 1:03d}", home, chosen.look) for film in world.between
    )
    return world, Trajectory(
        id=name,
        source="dollhouse",
        title=f"Days in a home of {len(world.house.layout)} rooms",
        participant=PARTICIPANT,
        sessions=sessions,
        candidates=author.write(world, name, ids, chosen.brief),
        between=between,
    )


def folder(world: World, look: Look) -> Path:
    """Where the films of a world lie: a digest of all that can be seen and heard in them."""
    shown = [(f.wall_start_s, f.shots, f.captions) for f in (*world.films, *world.between)]
    spoken = look.sound and sound.available()
    text = repr((render.VERSION, replace(look, sound=spoken), shown))
    return paths.cache() / "dollhouse" / hashlib.sha256(text.encode()).hexdigest()[:16]


def _session(film: Film, identity: str, home: Path, look: Look) -> Session:
    duration_s = float(film.duration_s)
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
    for name, value in knobs.items():
        if name in ("seeds", "drawn"):
            chosen = replace(chosen, **{name: value})  # type: ignore[arg-type]
            continue
        for part in ("plan", "brief", "look"):
            if hasattr(getattr(chosen, part), name):
                new = replace(getattr(chosen, part), **{name: value})
                chosen = replace(chosen, **{part: new})  # type: ignore[arg-type]
                break
        else:
            known = [*vars(chosen.plan), *vars(chosen.brief), *vars(chosen.look), "seeds", "drawn"]
            raise BenchError(f"unknown dollhouse knob {name!r}; {nearest(name, known)}")
    return chosen
