"""Worlds: the same everywhere, possible, and showing only what is drawn."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import pytest

from bench_lib.dollhouse.world import render, words
from bench_lib.dollhouse.world.camera import Film
from bench_lib.dollhouse.world.picture import MOST_GROUPS
from bench_lib.dollhouse.world.render import Look
from bench_lib.dollhouse.world.world import SMALL, Plan, build

SEEDS = range(40)
_PRINT = """
import hashlib
from bench_lib.dollhouse.world import library
for name in ("default", "small"):
    for seed in (0, 7):
        world, trajectory = library.compose(library.find(name), name, seed)
        text = repr(world.films) + trajectory.model_dump_json()
        print(hashlib.sha256(text.encode()).hexdigest())
"""


def test_a_seed_gives_the_same_world_in_any_process() -> None:
    runs = [
        subprocess.run(
            [sys.executable, "-c", _PRINT],
            env={"PYTHONHASHSEED": seed, "PATH": "", "BENCH_CACHE": "/nowhere"},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert len(set(runs[0].split())) == 4


@pytest.mark.parametrize("plan", [Plan(), SMALL], ids=["default", "small"])
def test_films_follow_each_other_on_the_wall_clock(plan: Plan) -> None:
    for seed in SEEDS:
        world = build(seed, plan)
        films = (*world.films, *world.between)
        line = sorted((f.wall_start_s, f.wall_start_s + f.duration_s) for f in films)
        assert all(end + 60 < start for (_, end), (start, _) in pairwise(line))
        days = {start // 86_400 for start, _ in line}
        assert all((end - 1) // 86_400 == start // 86_400 for start, end in line)
        assert max(days) < 31
        assert [f.index for f in world.between] == list(range(1, len(world.films)))


def test_gaps_range_from_minutes_to_days() -> None:
    gaps: list[int] = []
    for seed in SEEDS:
        films = build(seed, Plan()).films
        gaps += [b.wall_start_s - a.wall_start_s for a, b in pairwise(films)]
    assert min(gaps) < 3600 < 4 * 3600 < max(gaps)
    assert max(gaps) > 86_400


def test_pictures_hold_what_a_strip_can_hold_and_things_are_in_one_place() -> None:
    for seed in SEEDS:
        for film in build(seed, Plan()).films:
            for shot in film.shots:
                picture = shot.picture
                assert len(picture.groups) <= MOST_GROUPS
                slots = [g.slot for g in picture.groups if g is not _acting(picture)]
                assert len(set(slots)) == len(slots)
                for group in picture.placed():
                    assert group.place == shot.layout[group.slot]


def _acting(picture: object) -> object:
    groups, at = picture.groups, picture.acting  # type: ignore[attr-defined]
    return None if at is None else groups[at]


def test_many_rooms_people_things_and_actions_occur() -> None:
    seen: dict[str, set[str]] = {"room": set(), "person": set(), "action": set(), "kind": set()}
    for seed in SEEDS:
        for film in build(seed, Plan()).films:
            for shot in film.shots:
                picture = shot.picture
                seen["room"].add(picture.room)
                seen["person"].add(picture.person)
                seen["action"].add(picture.action)
                seen["kind"] |= {g.item.kind for g in picture.groups}
    assert seen["room"] == set(words.ROOMS)
    assert seen["person"] == {"", *words.PEOPLE}
    assert seen["kind"] == set(words.KINDS)
    assert seen["action"] == {"", *words.ACTIONS} - {"leave"}


def test_what_is_not_drawn_leaves_no_trace_in_a_frame() -> None:
    """Another thing in another room, another event later: the same frames; drawn things differ."""
    film = build(3, SMALL).films[0]
    hidden = _changed(film, later=True)
    drawn = _changed(film, later=False)
    for t_s in (0.0, 0.75, 1.5):
        frame = render.image(film, t_s, Look()).tobytes()
        assert render.image(hidden, t_s, Look()).tobytes() == frame
        assert render.image(drawn, t_s, Look()).tobytes() != frame


def _changed(film: Film, later: bool) -> Film:
    """The film with another person in its first shot, or in all others."""
    shots = [
        replace(shot, picture=replace(shot.picture, person="clown", sign="GATE 97"))
        if (at > 0) == later
        else shot
        for at, shot in enumerate(film.shots)
    ]
    return Film(film.index, film.wall_start_s, shots, film.events, film.captions)


def test_digests_of_different_seeds_differ() -> None:
    texts = {hashlib.sha256(repr(build(s, SMALL).films).encode()).hexdigest() for s in range(10)}
    assert len(texts) == 10
