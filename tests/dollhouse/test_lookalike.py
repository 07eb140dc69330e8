"""Reverse image search: crops of things are named, bare walls are not."""

from __future__ import annotations

from collections import Counter

from bench_lib.dollhouse.ideal import lookalike
from bench_lib.dollhouse.world import render, rooms
from bench_lib.dollhouse.world.grammar import Item
from bench_lib.dollhouse.world.render import Look
from bench_lib.dollhouse.world.world import Plan, build


def test_crops_of_things_are_named_and_bare_ones_are_not() -> None:
    film = build(1, Plan()).films[0]
    named: Counter[str] = Counter()
    for shot in film.shots[::6]:
        pixels = render.image(film, shot.start_s + 1, Look(motion=0))
        standing = {g.slot: g for g in shot.picture.placed()}
        for slot in range(6):
            x, y = rooms.position(slot)
            size = 66 if slot < 3 else 82
            crop = pixels[
                max(0, y - size - 8) : y + 8, max(0, x - size // 2 - 8) : x + size // 2 + 8
            ]
            group = standing.get(slot)
            if group is None:
                empty = pixels[y - size : y - 6, x - 30 : x + 30]
                named["bare, named"] += lookalike.find(empty) is not None
                named["bare"] += 1
            elif group.item.n == 1 and shot.picture.action not in ("take", "put"):
                found = lookalike.find(crop)
                kind = "right" if found == Item(group.item.colour, group.item.kind) else "wrong"
                named[kind if found else "none"] += 1
    assert named["right"] >= 8
    assert named["right"] >= 0.9 * (named["right"] + named["wrong"] + named["none"])
    assert named["wrong"] <= 1
    assert named["bare, named"] <= 0.1 * named["bare"]
