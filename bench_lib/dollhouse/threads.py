"""Threads that run through a trajectory: a recipe, a habit, a search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench_lib.dollhouse.grammar import Act, Item
from bench_lib.dollhouse.household import Household
from bench_lib.dollhouse.script import Director, Scene
from bench_lib.dollhouse.words import RECIPES


@dataclass(frozen=True)
class Recipe:
    """Steps done before a card with the recipe's name: shown whole, broken off, taken up again."""

    name: str
    room: str
    steps: tuple[Act, ...]
    stop: int

    def whole(self, d: Director) -> None:
        """All steps."""
        self._do(d, self.steps)

    def begin(self, d: Director) -> None:
        """The first steps; then the wearer leaves it."""
        self._do(d, self.steps[: self.stop])

    def resume(self, d: Director) -> None:
        """Back at the card the wearer hesitates, goes on to the end, and rests."""
        d.enter(self.room, self.name)
        d.look()
        d.act(Act("wait"))
        for step in self.steps[self.stop :]:
            d.act(step)
        d.act(Act("wait"))

    def _do(self, d: Director, steps: tuple[Act, ...]) -> None:
        d.enter(self.room, self.name)
        d.look()
        for step in steps:
            d.act(step)


@dataclass(frozen=True)
class Habit:
    """One act is always followed by another; once the wearer stops short of the second."""

    room: str
    first: Act
    then: Act

    def both(self, d: Director) -> None:
        """The habit as usual."""
        d.enter(self.room, "")
        d.act(self.first)
        d.act(self.then)

    def half(self, d: Director) -> None:
        """The first act, then nothing."""
        d.enter(self.room, "")
        d.look()
        d.act(self.first)
        d.act(Act("wait"))


@dataclass(frozen=True)
class Search:
    """The wearer seeks a thing that was seen in an earlier film."""

    item: Item

    def seek(self, d: Director) -> None:
        """Seek it in a room where it is not."""
        spot = d.house.spots[self.item]
        d.enter(d.elsewhere(spot.room if spot else ""))
        d.look()
        d.act(Act("seek", self.item))

    def show(self, d: Director) -> None:
        """Pass the thing without touching it."""
        spot = d.house.spots[self.item]
        assert spot is not None
        d.enter(spot.room)
        d.look()


def seek_in_view(d: Director) -> None:
    """Seek a thing that stands right there: no memory is needed."""
    rooms = [r for r in d.house.layout if r != d.camera.room and d.house.crafts(r)]
    d.enter(str(d.rng.choice(rooms)))
    things = [i for i in d.house.here(d.camera.room) if i not in d.house.collections]
    d.look()
    d.act(Act("seek", things[int(d.rng.integers(len(things)))]))


def plan(
    rng: np.random.Generator,
    house: Household,
    films: int,
    steps: int,
    searches: int,
    kinds: tuple[str, ...],
) -> list[list[Scene]]:
    """Scenes of threads for each of `films` films; their things become reserved.

    `kinds` are those of `recipe` and `habit` that this trajectory has.
    """
    scenes: list[list[Scene]] = [[] for _ in range(films)]
    kept = house.reserved
    rooms = list(house.layout)
    last = films - 1
    recipe = _recipe(rng, house, rooms, steps) if "recipe" in kinds else None
    if recipe:
        kept |= {a.item for a in recipe.steps if a.item}
        again = int(rng.integers(1, films))
        scenes[0].append(recipe.whole)
        scenes[int(rng.integers(0, again))].append(recipe.begin)
        scenes[again].append(recipe.resume)
    habit = _habit(rng, house, rooms) if "habit" in kinds else None
    if habit:
        kept |= {a.item for a in (habit.first, habit.then) if a.item}
        for film in rng.integers(0, last, 2):
            scenes[int(film)].append(habit.both)
        scenes[last].append(habit.half)
    free = [i for i in house.singles if i not in kept]
    for i in rng.permutation(len(free))[:searches]:
        search = Search(free[i])
        kept.add(free[i])
        when = int(rng.integers(1, films))
        scenes[int(rng.integers(0, when))].append(search.show)
        scenes[when].append(search.seek)
        scenes[when].append(seek_in_view)
    return scenes


def _recipe(
    rng: np.random.Generator, house: Household, rooms: list[str], steps: int
) -> Recipe | None:
    """A recipe in the first room (in random order) whose things allow `steps` different acts."""
    for at in rng.permutation(len(rooms)):
        acts = house.crafts(rooms[at])
        chosen = _different(rng, acts, steps)
        if len(chosen) == steps:
            stop = int(rng.integers(1, steps))
            return Recipe(str(rng.choice(RECIPES)), rooms[at], tuple(chosen), stop)
    return None


def _habit(rng: np.random.Generator, house: Household, rooms: list[str]) -> Habit | None:
    for at in rng.permutation(len(rooms)):
        chosen = _different(rng, house.crafts(rooms[at]), 2)
        if len(chosen) == 2:
            return Habit(rooms[at], *chosen)
    return None


def _different(rng: np.random.Generator, acts: list[Act], n: int) -> list[Act]:
    """Up to `n` different random acts."""
    return [acts[i] for i in rng.permutation(len(acts))[:n]]
