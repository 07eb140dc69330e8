"""What one frame shows: the renderer's draw list, and the facts that can be read off it."""

from __future__ import annotations

from dataclasses import dataclass

from bench_lib.dollhouse.world.grammar import Act, Item
from bench_lib.dollhouse.world.sentences import Did, Fact, Here, Met, PutAt, Seen, Sign
from bench_lib.dollhouse.world.words import CUES, RECIPES

HAND, THOUGHT = 6, 7
"""Slots beside the six of a room: in the wearer's hand, and in the bubble of what is sought."""
MOST_GROUPS = 6
"""How many groups of things a picture can hold, the hand's included."""


@dataclass(frozen=True, order=True)
class Group:
    """One or more equal things at one slot; `place` is the furniture there (empty in the hand)."""

    item: Item
    state: str
    place: str
    slot: int


@dataclass(frozen=True)
class Picture:
    """A draw list. `acting` is the index of the group that the act is done with."""

    wall_s: int
    room: str
    groups: tuple[Group, ...] = ()
    action: str = ""
    acting: int | None = None
    person: str = ""
    sign: str = ""

    @property
    def act(self) -> Act | None:
        """The act that is shown."""
        if not self.action:
            return None
        return Act(self.action, None if self.acting is None else self.groups[self.acting].item)

    def placed(self) -> tuple[Group, ...]:
        """The groups that stand in the room."""
        return tuple(g for g in self.groups if g.slot < HAND)

    def glance(self) -> dict[str, str]:
        """What stands out without telling things, people or words apart: for baselines."""
        sign = "recipe" if self.sign in RECIPES else "notice" if self.sign else "none"
        hands = {"": "empty", "take": "move", "put": "move"}.get(self.action, "work")
        return {
            "hands": self.action if self.action in CUES else hands,
            "company": "someone" if self.person else "nobody",
            "sign": sign,
        }

    def facts(self) -> tuple[Fact, ...]:
        """All that can be said of it."""
        at = (self.wall_s, self.room)
        found: list[Fact] = [Here(*at)]
        found += [Seen(*at, g.item, g.state, g.place, g.slot) for g in self.placed()]
        if self.person:
            found.append(Met(*at, self.person))
        if self.sign:
            found.append(Sign(*at, self.sign))
        act = self.act
        if act:
            group = None if self.acting is None else self.groups[self.acting]
            state = group.state if group else ""
            if group and group.slot < HAND:
                found.append(PutAt(*at, act.action, group.item, state, group.place))
            else:
                found.append(Did(*at, act, state))
        return tuple(found)
