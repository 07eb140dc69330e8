"""The state of a household: which rooms and things there are, where they are, what state they have.

`history` is the simulator's own record of every change; answer keys come from it and from the event
log, never from pictures.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from bench_lib.dollhouse.world.grammar import Act, Item, Spot
from bench_lib.dollhouse.world.picture import HAND, THOUGHT, Group
from bench_lib.dollhouse.world.words import (
    ACTIONS,
    CASES,
    COLOURS,
    CRAFTS,
    DEVICES,
    KINDS,
    MAKES,
    PLACES,
    STATES,
    VESSELS,
)

MOST_PLACED = 5
"""Things in a room at most: one group of a picture is kept free for what the hand brings in."""


@dataclass(frozen=True)
class Change:
    """Since `wall_s` a thing is at a spot (None: in the hand) in a state."""

    wall_s: int
    item: Item
    spot: Spot | None
    state: str


@dataclass
class Household:
    """Rooms with six places each, things that move, and collections of equal things that do not.

    `reserved` things belong to a thread and are left alone by chance. `lost` things are sought and
    have never been there: each could have stood where its twin does.
    """

    layout: dict[str, tuple[str, ...]]
    spots: dict[Item, Spot | None] = field(default_factory=dict)
    states: dict[Item, str] = field(default_factory=dict)
    collections: set[Item] = field(default_factory=set)
    reserved: set[Item] = field(default_factory=set)
    lost: dict[Item, Item] = field(default_factory=dict)
    moved: set[Item] = field(default_factory=set)
    history: list[Change] = field(default_factory=list)

    @property
    def singles(self) -> list[Item]:
        """The things that can be handled."""
        return [item for item in self.spots if item not in self.collections]

    def slot(self, spot: Spot, view: int) -> int:
        """Where a spot is in the picture; view 1 looks at the room from its other side."""
        slot = self.layout[spot.room].index(spot.place)
        return slot if view == 0 else 5 - slot

    def here(self, room: str) -> list[Item]:
        """The things in a room."""
        return [item for item, spot in self.spots.items() if spot and spot.room == room]

    def free(self, room: str) -> list[Spot]:
        """Empty places of a room, none when the room holds enough."""
        taken = {self.spots[item] for item in self.here(room)}
        if len(taken) >= MOST_PLACED:
            return []
        return [s for place in self.layout[room] if (s := Spot(place, room)) not in taken]

    def move(self, wall_s: int, item: Item, spot: Spot | None) -> None:
        """Put a thing somewhere; None is the wearer's hand."""
        if spot is None:
            self.moved.add(item)
        self.spots[item] = spot
        self.history.append(Change(wall_s, item, spot, self.states[item]))

    def lose(self, item: Item, twin: Item) -> None:
        """Take a thing away before anything is filmed; its twin stays."""
        del self.spots[item], self.states[item]
        self.history = [change for change in self.history if change.item != item]
        self.lost[item] = twin

    def change(self, wall_s: int, item: Item, state: str) -> None:
        """Give a thing a state."""
        self.states[item] = state
        self.history.append(Change(wall_s, item, self.spots[item], state))

    def groups(self, room: str, view: int, act: Act | None = None) -> tuple[Group, ...]:
        """What is drawn of a room during an act, the thing of the act last."""
        item = act.item if act else None
        found = [self._group(i, view) for i in self.here(room) if i != item]
        if act and item:
            if act.action in ("take", "put"):
                found.append(self._group(item, view))
            else:
                slot = THOUGHT if act.action == "seek" else HAND
                found.append(Group(item, "" if slot == THOUGHT else self.states[item], "", slot))
                if slot == THOUGHT and item in self.here(room):
                    found.insert(0, self._group(item, view))
        return tuple(found)

    def _group(self, item: Item, view: int) -> Group:
        spot = self.spots[item]
        if spot is None:
            raise ValueError(f"{item} is in the hand and at no place")
        return Group(item, self.states[item], spot.place, self.slot(spot, view))

    def crafts(self, room: str) -> list[Act]:
        """Acts that change nothing, with the things of a room."""
        return [Act(a, i) for i in self.idle(room) for a in CRAFTS if i.kind in ACTIONS[a]]

    def switches(self, room: str) -> list[Act]:
        """Acts that would change the state of a thing of a room."""
        return [
            Act(action, i)
            for i in self.idle(room)
            for action, state in MAKES.items()
            if i.kind in ACTIONS[action] and self.states[i] != state
        ]

    def idle(self, room: str) -> list[Item]:
        """The things of a room that belong to no thread and no collection."""
        busy = self.collections | self.reserved
        return [item for item in self.here(room) if item not in busy]


def furnish(
    rng: np.random.Generator, names: list[str], singles: int, without: Collection[Item] = ()
) -> Household:
    """A household with the named rooms and `singles` things, none of them among `without`.

    Five vessels, four devices and three cases come first, so that there are states to ask about.
    """
    house = Household({r: tuple(map(str, rng.choice(PLACES, 6, replace=False))) for r in names})
    pairs = [Item(str(c), str(k)) for k in KINDS for c in COLOURS]
    order = [pairs[i] for i in rng.permutation(len(pairs)) if pairs[i] not in without]
    wanted = [i for i in order if i.kind in VESSELS][:5] + [i for i in order if i.kind in DEVICES][
        :4
    ]
    wanted += [i for i in order if i.kind in CASES][:3]
    counted = [k for k in KINDS if k not in STATES]
    kinds = [str(k) for k in rng.choice(counted, min(3, len(names)), replace=False)]
    rest = [i for i in order if i not in wanted and i.kind not in kinds]
    wanted = (wanted + rest)[:singles]
    for room, kind in zip(names, kinds, strict=False):
        _collect(rng, house, room, kind)
    for i in rng.permutation(len(wanted)):
        place(rng, house, wanted[i])
    return house


def place(rng: np.random.Generator, house: Household, item: Item) -> None:
    """Put a new thing at a random free place; without one it is left out."""
    free = [spot for room in house.layout for spot in house.free(room)]
    if not free:
        return
    pair = STATES.get(item.kind)
    house.states[item] = str(rng.choice(pair)) if pair else ""
    house.move(0, item, free[int(rng.integers(len(free)))])


def _collect(rng: np.random.Generator, house: Household, room: str, kind: str) -> None:
    """Lay equal things into a room: a uniform total of 1 to 8, in one to three colours."""
    total = int(rng.integers(1, 9))
    least = -(-total // 4)
    parts = int(rng.integers(least, max(least, min(3, total)) + 1))
    numbers = [1] * parts
    for _ in range(total - parts):
        open_ = [i for i, n in enumerate(numbers) if n < 4]
        numbers[open_[int(rng.integers(len(open_)))]] += 1
    for colour, n in zip(rng.choice(COLOURS, parts, replace=False), numbers, strict=True):
        item = Item(str(colour), kind, n)
        house.states[item] = ""
        house.collections.add(item)
        spots = house.free(room)
        house.move(0, item, spots[int(rng.integers(len(spots)))])
