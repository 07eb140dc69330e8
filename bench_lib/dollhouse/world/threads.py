"""Threads that run through a trajectory: recipes, habits, searches, always two and two alike.

Twins take the wearer to the same kind of moment in one film: one needs help from before, the other
does not, and only earlier films tell which. What needs help is drawn by a coin, so nothing else
about the moment says it: neither its time, nor what is seen then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench_lib.dollhouse.world.grammar import Act, Item
from bench_lib.dollhouse.world.household import Household
from bench_lib.dollhouse.world.script import Director, Scene
from bench_lib.dollhouse.world.words import ACTIONS, CRAFTS, RECIPES


@dataclass(frozen=True)
class Recipe:
    """Steps done before a card with the recipe's name: once to the end, once broken off.

    Where it was broken off last, the wearer, back at the card, needs the next step.
    """

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

    def back(self, d: Director) -> None:
        """Back at the card the wearer hesitates."""
        self._do(d, (Act("wait"),))

    def _do(self, d: Director, steps: tuple[Act, ...]) -> None:
        d.enter(self.room, self.name)
        d.look()
        for step in steps:
            d.act(step)


@dataclass(frozen=True)
class Habit:
    """An act that is always followed by one other, or by a different one each time."""

    room: str
    first: Act
    then: tuple[Act, Act]

    def once(self, d: Director) -> None:
        """The act, and what follows."""
        self._both(d, self.then[0])

    def again(self, d: Director) -> None:
        """The act, and what follows this time."""
        self._both(d, self.then[1])

    def half(self, d: Director) -> None:
        """The act, then nothing."""
        d.enter(self.room, "")
        d.look()
        d.act(self.first)
        d.act(Act("wait"))

    def _both(self, d: Director, then: Act) -> None:
        d.enter(self.room, "")
        d.act(self.first)
        d.act(then)


@dataclass(frozen=True)
class Search:
    """The wearer seeks a thing: one that was seen in an earlier film, or one that never was."""

    item: Item
    room: str

    def seek(self, d: Director) -> None:
        """Seek it in a room where it is not."""
        d.enter(d.elsewhere(self.room))
        d.look()
        d.act(Act("seek", self.item))

    def show(self, d: Director) -> None:
        """Pass the place where it stands, or could stand."""
        d.enter(self.room)
        d.look()


@dataclass
class Outline:
    """What each film of a trajectory has to show, and the rooms that chance keeps out of."""

    scenes: list[list[Scene]]
    closed: list[set[str]]


def plan(
    rng: np.random.Generator,
    house: Household,
    films: int,
    steps: int,
    kinds: tuple[str, ...],
) -> Outline:
    """Scenes of threads for each of `films` films; their things become reserved.

    `kinds` lists what runs through this trajectory: `recipe`, `habit`, `search`, each a pair.
    """
    outline = Outline([[] for _ in range(films)], [set() for _ in range(films)])
    names = [str(n) for n in rng.permutation(RECIPES)]
    used: set[Act] = set()
    for kind in kinds:
        if kind == "recipe" and len(names) > 1:
            _recipes(rng, house, outline, (names.pop(), names.pop()), steps, used)
        elif kind == "habit":
            _habits(rng, house, outline, used)
        elif kind == "search":
            _searches(rng, house, outline)
    return outline


def _recipes(
    rng: np.random.Generator,
    house: Household,
    outline: Outline,
    names: tuple[str, str],
    steps: int,
    used: set[Act],
) -> None:
    """Two recipes: the first was broken off last, the second was done to the end last."""
    places = _acts(rng, house, steps, used)
    if places is None:
        return
    one, two = (
        Recipe(name, room, acts, int(rng.integers(1, steps)))
        for name, (room, acts) in zip(names, places, strict=True)
    )
    when = _when(rng, outline)
    for first, second in ((one.whole, one.begin), (two.begin, two.whole)):
        films = _earlier(rng, outline, when)
        outline.scenes[films[0]].append(first)
        outline.scenes[films[1]].append(second)
    _both(rng, outline, when, one.back, two.back)


def _habits(rng: np.random.Generator, house: Household, outline: Outline, used: set[Act]) -> None:
    """Two habits: what follows the first act is always the same, or not."""
    places = _acts(rng, house, 3, used)
    if places is None:
        return
    (room, (a, b, _)), (other, (x, y, z)) = places
    one, two = Habit(room, a, (b, b)), Habit(other, x, (y, z))
    when = _when(rng, outline)
    for habit in (one, two):
        films = _earlier(rng, outline, when)
        outline.scenes[films[0]].append(habit.once)
        outline.scenes[films[1]].append(habit.again)
    _both(rng, outline, when, one.half, two.half)


def _searches(rng: np.random.Generator, house: Household, outline: Outline) -> None:
    """Two things are sought; one of them is in a room passed before, the other never was."""
    free = [i for i in house.singles if i not in house.reserved]
    when = _when(rng, outline)
    shut = outline.closed[when]
    if len(free) < 2 or len(house.layout) - len(shut) < 3:
        return
    one, two = (free[int(i)] for i in rng.choice(len(free), 2, replace=False))
    spot = house.spots[one]
    assert spot is not None
    house.lose(two, one)
    house.reserved.add(one)
    shut.add(spot.room)
    outline.scenes[int(rng.integers(0, when))].append(Search(one, spot.room).show)
    _both(rng, outline, when, Search(one, spot.room).seek, Search(two, spot.room).seek)


def _when(rng: np.random.Generator, outline: Outline) -> int:
    """The film in which twins come to their moment: in the later half, so that others go before."""
    films = len(outline.scenes)
    return int(rng.integers((films + 1) // 2, films))


def _earlier(rng: np.random.Generator, outline: Outline, when: int) -> list[int]:
    """Two films before `when` in their order, those with least to show; one twice if need be."""
    films = sorted(range(when), key=lambda f: (len(outline.scenes[f]), rng.random()))
    return sorted((films * 2)[:2])


def _both(rng: np.random.Generator, outline: Outline, when: int, one: Scene, two: Scene) -> None:
    """Both moments in one film, either first."""
    outline.scenes[when] += [one, two] if rng.random() < 0.5 else [two, one]


def _acts(
    rng: np.random.Generator, house: Household, n: int, used: set[Act]
) -> list[tuple[str, tuple[Act, ...]]] | None:
    """Twice a room and `n` different acts there that no thread has; None where there are none.

    As few things as possible are reserved for them.
    """
    found: list[tuple[str, tuple[Act, ...]]] = []
    taken: set[Act] = set()
    for _ in range(2):
        for at in rng.permutation(len(house.layout)):
            room = list(house.layout)[at]
            own = [i for i in house.here(room) if i not in house.collections]
            acts: list[Act] = []
            for i in rng.permutation(len(own)):
                item = own[i]
                if len(acts) < n:
                    acts += [Act(a, item) for a in CRAFTS if item.kind in ACTIONS[a]]
                    acts = [act for act in acts if act not in used | taken]
            if len(acts) >= n:
                chosen = tuple(acts[i] for i in rng.permutation(len(acts))[:n])
                found.append((room, chosen))
                taken |= set(chosen)
                break
        else:
            return None
    used |= taken
    house.reserved |= {act.item for act in taken if act.item}
    return found
