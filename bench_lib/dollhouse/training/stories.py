"""What training shows: stretches of the films of many worlds, fed as methods are fed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from torch import Tensor

from bench_lib.dollhouse.training.layout import SIZE, Feed, Still
from bench_lib.dollhouse.training.text import Bank
from bench_lib.dollhouse.training.words import cells
from bench_lib.dollhouse.world.camera import Event, Film, Shot
from bench_lib.dollhouse.world.picture import Picture
from bench_lib.dollhouse.world.world import SMALL, Plan, World, build
from bench_lib.video.stream import SessionInfo

FIRST_SEED = 1_000_000
"""Training worlds begin here; no set has such seeds."""


@dataclass(frozen=True)
class Scene:
    """One shot as it was seen, with its event and its number in the bank."""

    event: Event
    shot: Shot
    wall_start_s: int
    code: int

    @property
    def picture(self) -> Picture:
        """Its draw list."""
        return self.shot.picture


@dataclass(frozen=True)
class Story:
    """What one method is fed, and the scenes in it in time order; `cutoff_s` ends the last."""

    method: str
    world: World
    feeds: tuple[Feed, ...]
    scenes: tuple[Scene, ...]
    cutoff_s: float

    @property
    def session(self) -> int:
        """The position of the session of the question."""
        return self.feeds[-1].info.index


Eyes = Callable[[World], Iterable[Tensor]]
"""What is seen of each shot of a world, `[16, width]` each."""


class Library:
    """Worlds by number, with the bank's number of each of their shots.

    With `eyes` the bank holds what is seen of them, else what there is to say.
    """

    def __init__(
        self, bank: Bank, worlds: int, first: int = FIRST_SEED, eyes: Eyes | None = None
    ) -> None:
        self.bank, self.worlds, self.first, self.eyes = bank, worlds, first, eyes
        self._held: dict[int, tuple[World, list[list[int]]]] = {}

    def world(self, number: int) -> tuple[World, list[list[int]]]:
        """A world and, per film, the numbers of its shots. Every third world is a small one."""
        if number not in self._held:
            world = build(self.first + number, SMALL if number % 3 == 2 else Plan())
            seen = iter(self.eyes(world)) if self.eyes else repeat(None)
            codes = [[self.bank.add(cells(s), next(seen)) for s in f.shots] for f in world.films]
            self._held[number] = (world, codes)
        return self._held[number]

    def pick(self, rng: np.random.Generator) -> tuple[World, list[list[int]]]:
        """One of the worlds."""
        return self.world(int(rng.integers(self.worlds)))


def stills(film: Film, codes: Sequence[int], times: Sequence[int]) -> tuple[Still, ...]:
    """The frames of a film at whole seconds."""
    at = {t: i for i, s in enumerate(film.shots) for t in range(s.start_s, s.end_s)}
    return tuple(Still(float(t), codes[at[t]]) for t in times)


def feed(
    world: World, codes: Sequence[Sequence[int]], film: int, place: int, times: object
) -> Feed:
    """A session at a place of the stream with frames at these times."""
    one = world.films[film]
    info = SessionInfo(f"S{film + 1:03d}", place, float(one.wall_start_s), SIZE)
    listed: list[int] = list(times)  # type: ignore[call-overload]
    return Feed(info, stills(one, codes[film], listed))


def scene(world: World, codes: Sequence[Sequence[int]], film: int, shot: int) -> Scene:
    """A shot of a film."""
    one = world.films[film]
    return Scene(one.events[shot], one.shots[shot], one.wall_start_s, codes[film][shot])


def now(
    rng: np.random.Generator,
    library: Library,
    method: str = "",
    frames: int = 0,
    until: bool = False,
) -> Story:
    """The newest frames of a session, mostly four of them as images, or as many as are asked.

    `until`: where a method keeps more than the newest, up to 48 seconds of the session; an earlier
    session went before it, of which nothing is kept.
    """
    world, codes = library.pick(rng)
    film = int(rng.integers(len(world.films)))
    shots = world.films[film].shots
    at = int(rng.integers(len(shots)))
    shot = shots[at]
    t = int(rng.integers(min(shot.start_s + 1, shot.end_s - 1), shot.end_s))
    method = method or str(rng.choice(["simplestream", "raw_video", "kept"], p=[0.6, 0.2, 0.2]))
    whole = method != "simplestream" and rng.random() < 0.5
    reach = frames or (t - shot.start_s + 1 if whole else 4)
    if until and method != "simplestream":
        reach = int(rng.choice([8, 16, 32, 48], p=[0.35, 0.35, 0.2, 0.1]))
    times = range(max(0, t - reach + 1), t + 1)
    place = int(rng.integers(film + 1))
    fed = [feed(world, codes, film, place, times)]
    if until and place:
        fed.insert(0, feed(world, codes, film - 1, place - 1, ()))
    return Story(method, world, tuple(fed), (scene(world, codes, film, at),), float(t))


def recall(rng: np.random.Generator, library: Library, method: str = "", most: int = 5) -> Story:
    """A few scenes of earlier sessions, then the question in a later one: the oracle's input."""
    world, codes = library.pick(rng)
    current = int(rng.integers(1, len(world.films)))
    earlier = [(f, i) for f in range(current) for i in range(len(world.films[f].shots))]
    acting = [(f, i) for f, i in earlier if _acts(world.films[f].events[i])]
    n = int(rng.choice([1, 2, 4, 5], p=[0.35, 0.15, 0.3, 0.2]))
    pool = acting if n > 2 or rng.random() < 0.5 else earlier
    n = min(n, most, len(pool))
    chosen = sorted(pool[int(i)] for i in rng.choice(len(pool), n, replace=False))
    return _told(rng, world, codes, chosen, current, method)


def history(rng: np.random.Generator, library: Library, seconds: int, method: str = "") -> Story:
    """A long stretch of earlier sessions, whole, then a question in a later one."""
    world, codes = library.pick(rng)
    current = int(rng.integers(1, len(world.films)))
    earlier = [(f, i) for f in range(current) for i in range(len(world.films[f].shots))]
    lengths = [world.films[f].shots[i].end_s - world.films[f].shots[i].start_s for f, i in earlier]
    n = max(1, int(len(earlier) * min(1.0, seconds / sum(lengths))))
    first = int(rng.integers(len(earlier) - n + 1))
    return _told(rng, world, codes, earlier[first : first + n], current, method)


def _told(
    rng: np.random.Generator,
    world: World,
    codes: Sequence[Sequence[int]],
    chosen: Sequence[tuple[int, int]],
    current: int,
    method: str,
) -> Story:
    method = method or str(rng.choice(["raw_video", "kept"]))
    feeds: list[Feed] = []
    for film in dict.fromkeys([*(f for f, _ in chosen), current]):
        shots = [world.films[f].shots[i] for f, i in chosen if f == film]
        times = [t for s in shots for t in range(s.start_s, s.end_s)]
        feeds.append(feed(world, codes, film, len(feeds), times))
    scenes = tuple(scene(world, codes, f, i) for f, i in chosen)
    return Story(method, world, tuple(feeds), scenes, 4.0)


def _acts(event: Event) -> bool:
    return bool(event.act and event.act.item and event.act.action not in ("take", "put", "seek"))
