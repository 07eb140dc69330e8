"""The wearer's camera: it films shots of a household and writes the event log as they happen."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from bench_lib.dollhouse.world.grammar import Act, Spot
from bench_lib.dollhouse.world.household import Household
from bench_lib.dollhouse.world.picture import Group, Picture
from bench_lib.dollhouse.world.words import MAKES
from bench_lib.schema import Caption


@dataclass(frozen=True)
class Shot:
    """A stretch `[start_s, end_s)` of a film, whole seconds, in which the draw list is constant.

    `layout` names the furniture of the six slots as seen; `view` is the side it is seen from.
    """

    start_s: int
    end_s: int
    picture: Picture
    layout: tuple[str, ...]
    view: int

    def at(self, wall_start_s: int, t_s: float) -> Picture:
        """The draw list of the frame at `t_s`."""
        return replace(self.picture, wall_s=wall_start_s + int(t_s))


@dataclass(frozen=True)
class Event:
    """One line of the event log: an act with all its circumstances, or a look (`act` None)."""

    film: int
    shot: int
    start_s: int
    end_s: int
    wall_s: int
    room: str
    act: Act | None
    place: str
    person: str
    sign: str


@dataclass
class Film:
    """One recording: a session of a trajectory or footage between two of them."""

    index: int
    wall_start_s: int
    shots: list[Shot] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    captions: list[Caption] = field(default_factory=list)

    @property
    def duration_s(self) -> int:
        """Seconds of the film."""
        return self.shots[-1].end_s if self.shots else 0

    def shot_at(self, t_s: float) -> Shot:
        """The shot whose frames are seen at `t_s`; the last one at the film's end."""
        return next((s for s in self.shots if s.start_s <= t_s < s.end_s), self.shots[-1])

    def picture(self, t_s: float) -> Picture:
        """The draw list of the frame at `t_s`."""
        return self.shot_at(t_s).at(self.wall_start_s, t_s)


@dataclass
class Camera:
    """Films a household. `person` and `sign` are what stands in the current room."""

    house: Household
    film: Film
    room: str = ""
    view: int = 0
    person: str = ""
    sign: str = ""

    def enter(self, room: str, view: int, person: str, sign: str) -> None:
        """Go to a room; whoever and whatever is there stays for the visit."""
        self.room, self.view, self.person, self.sign = room, view, person, sign

    def look(self, seconds: int) -> None:
        """Film the room without an act."""
        self._shoot(seconds, None, self.house.groups(self.room, self.view))

    def do(self, act: Act, seconds: int) -> None:
        """Film an act and let it have its effect."""
        item, wall_s = act.item, self.film.wall_start_s + self.film.duration_s
        if item and act.action in MAKES:
            self.house.change(wall_s, item, MAKES[act.action])
        groups = self.house.groups(self.room, self.view, act)
        place = ""
        if item and act.action == "take":
            place = groups[-1].place
            self.house.move(wall_s, item, None)
        self._shoot(seconds, act, groups, place)

    def put(self, act: Act, spot: Spot, seconds: int) -> None:
        """Film how the thing in the hand is put somewhere."""
        if act.item is None:
            raise ValueError("nothing to put")
        self.house.move(self.film.wall_start_s + self.film.duration_s, act.item, spot)
        groups = self.house.groups(self.room, self.view, act)
        self._shoot(seconds, act, groups, spot.place)

    def _shoot(
        self, seconds: int, act: Act | None, groups: tuple[Group, ...], place: str = ""
    ) -> None:
        film = self.film
        start = film.duration_s
        acting = len(groups) - 1 if act and act.item else None
        picture = Picture(
            film.wall_start_s + start,
            self.room,
            groups,
            act.action if act else "",
            acting,
            self.person,
            self.sign,
        )
        layout = self.house.layout[self.room]
        seen = layout if self.view == 0 else layout[::-1]
        film.events.append(
            Event(
                film.index,
                len(film.shots),
                start,
                start + seconds,
                film.wall_start_s + start,
                self.room,
                act,
                place,
                self.person,
                self.sign,
            )
        )
        film.shots.append(Shot(start, start + seconds, picture, seen, self.view))
