"""What happens in a film: visits to rooms, strung together from threads and from chance.

A thread is planned for a whole trajectory (a recipe that is shown, broken off and taken up again; a
habit; a search) and gives each film the scenes it needs. The rest is filled with random visits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bench_lib.dollhouse.world.camera import Camera, Film
from bench_lib.dollhouse.world.grammar import Act
from bench_lib.dollhouse.world.household import Household
from bench_lib.dollhouse.world.sentences import Heard
from bench_lib.dollhouse.world.words import NOTICES, NUMBERS, PEOPLE
from bench_lib.schema import Caption

Scene = Callable[["Director"], None]


@dataclass(frozen=True)
class Pace:
    """How long shots last in seconds, and how often someone, or a sign, is in a room.

    `repeats` lets random acts occur again within a film.
    """

    look_s: tuple[int, int] = (3, 5)
    act_s: tuple[int, int] = (4, 6)
    company: float = 0.6
    signs: float = 0.5
    repeats: bool = False


@dataclass
class Director:
    """Stages scenes of one film. `notices` are the signs that hang in rooms during this film.

    Chance does not lead into the `closed` rooms.
    """

    rng: np.random.Generator
    house: Household
    film: Film
    pace: Pace
    notices: dict[str, str] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    camera: Camera = field(init=False)
    done: set[Act] = field(default_factory=set)
    last: Act | None = None

    def __post_init__(self) -> None:
        self.camera = Camera(self.house, self.film)

    def seconds(self, span: tuple[int, int]) -> int:
        """A random length of a shot."""
        return int(self.rng.integers(span[0], span[1] + 1))

    def enter(self, room: str, sign: str | None = None) -> None:
        """Go to a room, with or without company; `sign` None is whatever hangs there today."""
        person = str(self.rng.choice(PEOPLE)) if self.rng.random() < self.pace.company else ""
        if sign is None:
            sign = self.notices.get(room, "")
        self.camera.enter(room, int(self.rng.integers(2)), person, sign)

    def elsewhere(self, room: str = "") -> str:
        """A random open room other than the current one and `room`."""
        rooms = [r for r in self.open() if r not in (self.camera.room, room)]
        return str(self.rng.choice(rooms))

    def open(self) -> list[str]:
        """The rooms that chance may lead to."""
        return [r for r in self.house.layout if r not in self.closed]

    def look(self) -> None:
        """A shot of the room."""
        self.camera.look(self.seconds(self.pace.look_s))
        picture = self.film.shots[-1].picture
        if picture.person and not any(
            c.end_s > self.film.duration_s - 8 for c in self.film.captions
        ):
            self._speak()

    def act(self, act: Act) -> None:
        """A shot of an act."""
        self.camera.do(act, self.seconds(self.pace.act_s))
        self.done.add(act)
        self.last = act

    def _speak(self) -> None:
        shot = self.film.shots[-1]
        wall_s = self.film.wall_start_s + shot.start_s
        said = Heard(wall_s, int(self.rng.choice(NUMBERS)))
        self.film.captions.append(
            Caption(start_s=shot.start_s + 0.25, end_s=shot.start_s + 2.5, text=said.say())
        )


def visit(director: Director) -> None:
    """A room, one or two acts there."""
    d = director
    d.enter(d.elsewhere())
    d.look()
    for _ in range(int(d.rng.integers(1, 3))):
        acts = d.house.switches(d.camera.room) if d.rng.random() < 0.45 else []
        barred = d.done if not d.pace.repeats else {d.last}
        acts = acts or [a for a in d.house.crafts(d.camera.room) if a not in barred]
        if acts:
            d.act(acts[int(d.rng.integers(len(acts)))])
    d.look()


def carry(director: Director) -> None:
    """Take a thing and put it in another room."""
    d = director
    movable = [i for i in d.house.singles if i not in d.house.reserved]
    rooms = [r for r in d.open() if r != d.camera.room]
    things = [i for i in movable if (s := d.house.spots[i]) and s.room in rooms]
    if not things:
        return visit(d)
    # Things that stayed until now: what is moved at all has then been seen longer where it was.
    things = [i for i in things if i not in d.house.moved] or things
    item = things[int(d.rng.integers(len(things)))]
    spot = d.house.spots[item]
    assert spot is not None
    goals = [s for r in d.open() if r != spot.room for s in d.house.free(r)]
    if not goals:
        return visit(d)
    goal = goals[int(d.rng.integers(len(goals)))]
    d.enter(spot.room)
    d.look()
    d.act(Act("take", item))
    d.enter(goal.room)
    d.camera.put(Act("put", item), goal, d.seconds(d.pace.act_s))
    return None


def notices(rng: np.random.Generator, rooms: list[str], share: float) -> dict[str, str]:
    """Signs for some of the rooms, all different."""
    texts = [f"{w} {n}" for w in NOTICES for n in NUMBERS]
    chosen = rng.choice(len(texts), len(rooms), replace=False)
    return {r: texts[int(i)] for r, i in zip(rooms, chosen, strict=True) if rng.random() < share}
