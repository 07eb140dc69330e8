"""Worlds: a household and the films of one trajectory, from a seed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bench_lib.dollhouse.world.camera import Event, Film
from bench_lib.dollhouse.world.household import Household, furnish
from bench_lib.dollhouse.world.script import Director, Pace, Scene, carry, notices, visit
from bench_lib.dollhouse.world.threads import plan
from bench_lib.dollhouse.world.words import ROOMS

DAY_S = 86_400
GAPS_S = ((900, 3000), (7200, 18_000), (DAY_S, DAY_S), (2 * DAY_S, 3 * DAY_S))
"""Gaps between sessions: minutes, hours, a day, days."""


@dataclass(frozen=True)
class Plan:
    """What a world is made of. Lengths in seconds; pairs are the ends of uniform ranges.

    `threads` names what runs through a world, pairs of recipes, habits or searches; with
    `one_thread` each world has only one of them, by turns.
    """

    films: tuple[int, int] = (4, 6)
    film_s: tuple[int, int] = (60, 100)
    rooms: tuple[int, int] = (4, 6)
    singles: int = 20
    steps: int = 3
    pace: Pace = field(default_factory=Pace)
    between_s: int = 24
    threads: tuple[str, ...] = ("recipe", "habit", "search")
    one_thread: bool = False


SMALL = Plan(
    films=(3, 3),
    film_s=(18, 26),
    rooms=(3, 4),
    singles=13,
    steps=2,
    pace=Pace((2, 2), (3, 3), 0.7, 0.8),
    between_s=8,
    one_thread=True,
)

ARENA = Plan(
    films=(1, 1),
    film_s=(2520, 2640),
    rooms=(6, 6),
    singles=24,
    pace=Pace((3, 7), (4, 8), 0.5, 0.7, repeats=True),
    threads=(),
)


@dataclass
class World:
    """A household after all its films, with the films and the footage between them."""

    seed: int
    house: Household
    films: list[Film]
    between: list[Film]

    @property
    def events(self) -> list[Event]:
        """The event log of all films in time order."""
        return [event for film in self.films for event in film.events]


def build(seed: int, plan_: Plan) -> World:
    """The world of a seed: the same on every machine and in every process."""
    rng = np.random.default_rng((seed, 7))
    names = [str(r) for r in rng.choice(ROOMS, _draw(rng, plan_.rooms), replace=False)]
    house = furnish(rng, names, plan_.singles)
    films = _draw(rng, plan_.films)
    kinds = plan_.threads
    if plan_.one_thread:
        kinds = (kinds[seed % len(kinds)],)
    outline = plan(rng, house, films, plan_.steps, kinds)
    starts = _starts(rng, films)
    filmed = []
    for index, start in enumerate(starts):
        film = Film(index, start)
        signs = notices(rng, list(house.layout), plan_.pace.signs)
        director = Director(rng, house, film, plan_.pace, signs, outline.closed[index])
        _stage(director, outline.scenes[index], _draw(rng, plan_.film_s))
        filmed.append(film)
    between = [_between(rng, house, plan_, filmed, index) for index in range(1, films)]
    return World(seed, house, filmed, between)


def _draw(rng: np.random.Generator, span: tuple[int, int]) -> int:
    return int(rng.integers(span[0], span[1] + 1))


def _starts(rng: np.random.Generator, films: int) -> list[int]:
    """Wall-clock starts between 07:00 and 20:00; what would be later moves to the next morning."""
    starts = [int(rng.integers(8 * 3600, 12 * 3600))]
    while len(starts) < films:
        low, high = GAPS_S[int(rng.integers(len(GAPS_S)))]
        start = starts[-1] + int(rng.integers(low, high + 1)) + int(rng.integers(600))
        if not 7 * 3600 <= start % DAY_S <= 20 * 3600:
            start = (start // DAY_S + 1) * DAY_S + int(rng.integers(7 * 3600, 10 * 3600))
        starts.append(start)
    return starts


def _stage(director: Director, threads: list[Scene], film_s: int) -> None:
    """Film the scenes of threads in their order, with random visits before, between and after."""
    rng = director.rng
    visit(director)
    waiting = list(threads)
    while waiting or director.film.duration_s < film_s:
        left = film_s - director.film.duration_s
        each = 5 * director.pace.act_s[1]
        if waiting and (each * len(waiting) >= left or rng.random() < 0.4):
            waiting.pop(0)(director)
        if waiting or left > 0:
            (carry if rng.random() < 0.6 else visit)(director)


def _between(
    rng: np.random.Generator, house: Household, plan_: Plan, films: list[Film], index: int
) -> Film:
    """A walk through a room of another house, filmed between two sessions: nobody needs it."""
    names = [room for room in ROOMS if room not in house.layout]
    away = furnish(rng, names, 8, without=house.spots)
    end_s = films[index - 1].wall_start_s + films[index - 1].duration_s
    gap_s = films[index].wall_start_s - end_s
    film = Film(index, end_s + gap_s // 2)
    director = Director(rng, away, film, plan_.pace)
    while film.duration_s < plan_.between_s:
        visit(director)
    return film
