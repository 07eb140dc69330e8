"""What each visual token of a frame shall say, in words of the decoder's own vocabulary.

The tower has 16 tokens a frame, a lattice of four by four. Six of them stand roughly where the six
places of a room are and tell what is there; others tell the act, who is here, and the sign; all
tell the room, so that one look at a token answers most questions. A token's target is the sum of
the embeddings of its words.
"""

from __future__ import annotations

from bench_lib.dollhouse.world.camera import Shot
from bench_lib.dollhouse.world.picture import HAND, Group, Picture
from bench_lib.dollhouse.world.words import (
    ACTIONS,
    COLOURS,
    KINDS,
    NUMBERS,
    PEOPLE,
    PLACES,
    ROOMS,
    SIGN_WORDS,
    SLOTS,
    STATES,
)

CELLS = 16
SLOT_CELLS = (4, 5, 7, 8, 9, 11)
HAND_CELL, ACT_CELL, NOTICE_CELL, PERSON_CELL, SIGN_CELL = 10, 13, 15, 3, 1
FIELDS: dict[str, tuple[str, ...]] = {
    "room": tuple(f" {w}" for w in ROOMS),
    "place": tuple(f" {w}" for w in PLACES),
    "colour": tuple(f" {w}" for w in COLOURS),
    "kind": tuple(f" {w}" for w in KINDS),
    "n": tuple(f" {n}" for n in range(2, 10)),
    "state": tuple(f" {w}" for w in dict.fromkeys(s for p in STATES.values() for s in p)),
    "action": tuple(ACTIONS),
    "person": tuple(f" {w}" for w in PEOPLE),
    "sign": SIGN_WORDS,
    "number": tuple(f" {n}" for n in NUMBERS),
}
"""The words a field may take. `turn on` is two tokens; every other word is one."""

Says = dict[str, str]
"""Field to word; a field that is left out is not there."""


def cells(shot: Shot) -> list[Says]:
    """The fields of each of the 16 tokens of a frame of this shot."""
    picture = shot.picture
    said: list[Says] = [{"room": f" {picture.room}"} for _ in range(CELLS)]
    for slot, cell in enumerate(SLOT_CELLS):
        said[cell]["place"] = f" {shot.layout[slot]}"
    for group in picture.placed():
        said[SLOT_CELLS[group.slot]] |= _thing(group)
    person = {"person": f" {picture.person}"} if picture.person else {}
    sign = _sign(picture.sign)
    act = _act(picture)
    said[SIGN_CELL] |= sign
    said[PERSON_CELL] |= person
    said[HAND_CELL] |= {k: v for k, v in act.items() if k != "place"}
    said[ACT_CELL] |= act | person
    said[NOTICE_CELL] |= {k: v for k, v in act.items() if k != "place"} | sign
    return said


def fixed(cell: int) -> tuple[str, ...]:
    """Words that a token says whatever the picture: where its place is."""
    if cell not in SLOT_CELLS:
        return ()
    return tuple(f" {w}" for w in SLOTS[SLOT_CELLS.index(cell)].split())


def tokens_of(field: str, word: str) -> tuple[str, ...]:
    """The tokens that a word of a field is cut into."""
    first, _, second = word.strip().partition(" ")
    return (first, f" {second}") if second and field == "action" else (word,)


def _thing(group: Group) -> Says:
    found = {"colour": f" {group.item.colour}", "kind": f" {group.item.kind}"}
    if group.item.n > 1:
        found["n"] = f" {group.item.n}"
    if group.state:
        found["state"] = f" {group.state}"
    return found


def _act(picture: Picture) -> Says:
    if not picture.action:
        return {}
    found = {"action": picture.action}
    if picture.acting is not None:
        group = picture.groups[picture.acting]
        found |= {k: v for k, v in _thing(group).items() if k != "n"}
        if group.slot < HAND:
            found["place"] = f" {group.place}"
    return found


def _sign(sign: str) -> Says:
    if not sign:
        return {}
    word, _, number = sign.partition(" ")
    return {"sign": word} | ({"number": f" {number}"} if number else {})
