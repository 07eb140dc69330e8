"""Threads that run through a trajectory: a recipe, a habit, a search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench_lib.dollhouse.world.grammar import Act, Item
from bench_lib.dollhouse.world.household import Household
from bench_lib.dollhouse.world.script import Director, Scene
from bench_lib.dollhouse.world.words import RECIPES


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
    if not rooms:
        return
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

    `kinds` lists the recipes and habits of this trajectory.
    """
    scenes: list[list[Scene]] = [[] for _ in range(films)]
    rooms, names = list(house.layout), [str(n) for n in rng.permutation(RECIPES)]
    for kind in kinds:
        if kind == "recipe":
            _plan_recipe(rng, house, rooms, names.pop(), steps, scenes)
        else:
            _plan_habit(rng, house, rooms, scenes)
    kept = house.reserved
    free = [i for i in house.singles if i not in kept]
    for i in rng.permutation(len(free))[:searches]:
        search = Search(free[i])
        kept.add(free[i])
        when = int(rng.integers(1, films))
        scenes[int(rng.integers(0, when))].append(search.show)
        scenes[when].append(search.seek)
        scenes[when].append(seek_in_view)
    return scenes


def _plan_recipe(
    rng: np.random.Generator,
    house: Household,
    rooms: list[str],
    name: str,
    steps: int,
    scenes: list[list[Scene]],
) -> None:
    """A recipe in a room whose things allow so many different acts, if there is one."""
    for at in rng.permutation(len(rooms)):
        chosen = _different(rng, house.crafts(rooms[at]), steps)
        if len(chosen) == steps:
            recipe = Recipe(name, rooms[at], tuple(chosen), int(rng.integers(1, steps)))
            house.reserved |= {a.item for a in chosen if a.item}
            again = int(rng.integers(1, len(scenes)))
            scenes[0].append(recipe.whole)
            scenes[int(rng.integers(0, again))].append(recipe.begin)
            scenes[again].append(recipe.resume)
            return


def _plan_habit(
    rng: np.random.Generator, house: Household, rooms: list[str], scenes: list[list[Scene]]
) -> None:
    """A habit in a room whose things allow two different acts, if there is one."""
    for at in rng.permutation(len(rooms)):
        chosen = _different(rng, house.crafts(rooms[at]), 2)
        if len(chosen) == 2:
            habit = Habit(rooms[at], *chosen)
            house.reserved |= {a.item for a in chosen if a.item}
            for film in rng.integers(0, len(scenes) - 1, 2):
                scenes[int(film)].append(habit.both)
            scenes[-1].append(habit.half)
            return


def _different(rng: np.random.Generator, acts: list[Act], n: int) -> list[Act]:
    """Up to `n` different random acts."""
    return [acts[i] for i in rng.permutation(len(acts))[:n]]
