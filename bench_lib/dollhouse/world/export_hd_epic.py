"""A dollhouse world as a tree shaped like HD-EPIC, for the tests of organizers.

    ROOT/Videos/P01/P01-20240202-110250.mp4        one file a session, no clock in the picture
    ROOT/Videos/P01/durations.txt
    ROOT/annotations/high-level/complete_recipes.json
    ROOT/annotations/high-level/activities/P01_recipe_timestamps.csv
    ROOT/annotations/youtube-links/HD_EPIC_YouTube_URLs.csv
    ROOT/annotations/narrations-and-action-segments/HD_EPIC_{verb,noun}_classes.csv

It has the real annotations' traps: videos of a capture are not in time order; numbers are mixed
with "N/A"; a step may span several videos or have no time; the activities hold the word `end`, an
end before its start, a list of recipes in one cell, a mistyped id, and recipe ids without the
participant; class files have a lower-case header. The narrations, a pickle in the original, are
left out: nothing here writes or reads pickles.
"""

from __future__ import annotations

import csv
import datetime
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench_lib.dollhouse.world import render
from bench_lib.dollhouse.world.camera import Event, Film
from bench_lib.dollhouse.world.grammar import value
from bench_lib.dollhouse.world.render import Look
from bench_lib.dollhouse.world.words import ACTIONS, KINDS, RECIPES
from bench_lib.dollhouse.world.world import DAY_S, World

FIRST_DAY = datetime.date(2024, 2, 2)


def video_id(film: Film, person: str) -> str:
    """Participant and local start of the recording."""
    day, second = divmod(film.wall_start_s, DAY_S)
    date = FIRST_DAY + datetime.timedelta(days=day)
    clock = f"{second // 3600:02d}{second // 60 % 60:02d}{second % 60:02d}"
    return f"{person}-{date:%Y%m%d}-{clock}"


def export(world: World, root: Path, person: str = "P01", look: Look | None = None) -> list[Path]:
    """Write the tree; returns the videos in time order. Videos that exist are kept."""
    look = look or Look(fps=2, clock=False)
    videos = []
    for film in world.films:
        path = root / "Videos" / person / f"{video_id(film, person)}.mp4"
        if not path.exists():
            render.write(film, look, path)
        videos.append(path)
    lines = [f"{p.stem} {f.duration_s:.3f}" for p, f in zip(videos, world.films, strict=True)]
    (root / "Videos" / person / "durations.txt").write_text("\n".join(lines) + "\n")
    notes = root / "annotations"
    steps = _steps(world)
    _recipes(world, person, steps, notes / "high-level" / "complete_recipes.json")
    activities = notes / "high-level" / "activities" / f"{person}_recipe_timestamps.csv"
    _activities(world, person, steps, activities)
    _links(world, person, notes / "youtube-links" / "HD_EPIC_YouTube_URLs.csv")
    folder = notes / "narrations-and-action-segments"
    _classes(folder / "HD_EPIC_verb_classes.csv", list(ACTIONS))
    _classes(folder / "HD_EPIC_noun_classes.csv", list(KINDS))
    return videos


def _steps(world: World) -> dict[str, list[Event]]:
    """The events of each recipe's steps."""
    found: defaultdict[str, list[Event]] = defaultdict(list)
    for event in world.events:
        if event.sign in RECIPES and event.act and event.act.item:
            found[event.sign].append(event)
    return dict(found)


def _recipes(world: World, person: str, steps: dict[str, list[Event]], path: Path) -> None:
    records: dict[str, Any] = {}
    for number, (name, events) in enumerate(steps.items(), 1):
        recipe = f"{person}_R{number:02d}"
        texts = list(dict.fromkeys(value("act", e.act) for e in events))
        ids = {text: f"{recipe}_S{n:02d}" for n, text in enumerate(texts, 1)}
        times: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for event in events:
            times[ids[value("act", event.act)]].append(
                {
                    "video": video_id(world.films[event.film], person),
                    "start": float(event.start_s),
                    "end": float(event.end_s),
                }
            )
        prep = {step: times.pop(step) for step in list(times)[:1]}
        films = {e.film for e in events}
        # Newest first: a capture's videos are not in time order. The last step has no time.
        videos = [video_id(world.films[i], person) for i in sorted(films, reverse=True)]
        records[recipe] = {
            "participant": person,
            "name": name.capitalize(),
            "type": "own",
            "source": "N/A",
            "steps": {**{ids[t]: t for t in texts}, f"{recipe}_S{len(texts) + 1:02d}": "rest"},
            "captures": [
                {
                    "videos": videos,
                    "ingredients": _ingredients(recipe, events),
                    "step_times": dict(times),
                    "prep_times": prep,
                }
            ],
        }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(records, indent=1), encoding="utf-8")


def _ingredients(recipe: str, events: list[Event]) -> dict[str, Any]:
    things = dict.fromkeys(e.act.item for e in events if e.act and e.act.item)
    return {
        f"{recipe}_I{n:02d}": {
            "name": f"{item.colour} {item.kind}",
            "amount": item.n if n % 2 else "N/A",
            "amount_unit": "piece" if n % 2 else "N/A",
            "calories": 10.0 * n if n % 3 else "N/A",
            "carbs": "N/A",
            "fat": "N/A",
            "protein": "N/A",
            "weigh": [],
            "add": [],
        }
        for n, item in enumerate(things, 1)
    }


def _activities(world: World, person: str, steps: dict[str, list[Event]], path: Path) -> None:
    rows: list[list[object]] = []
    for number, (name, events) in enumerate(steps.items(), 1):
        for index in sorted({e.film for e in events}):
            own = [e for e in events if e.film == index]
            film = world.films[index]
            rows.append(
                [
                    video_id(film, person),
                    f"R{number:02d}",
                    f"make {name.lower()}",
                    float(own[0].start_s),
                    float(own[-1].end_s),
                ]
            )
    if rows:
        film = world.films[0]
        name = video_id(film, person)
        rows[-1][4] = "end"
        rows.append([name, "R01, R02", "tidy up", float(film.duration_s - 4), "end"])
        rows.append([name, "R01", "walk about", 20.0, 12.0])
        mistyped = name.replace("2024", "202", 1)
        rows.append([mistyped, "R01", "walk about", 2.0, 6.0])
    header = ["video_id", "recipe_id", "high_level_activity_label", "start_time", "end_time"]
    _table(path, header, rows)


def _links(world: World, person: str, path: Path) -> None:
    rows = [
        [video_id(film, person), "https://example.org/none", float(film.duration_s)]
        for film in world.films
    ]
    _table(path, ["video_id", "youtube_url", "duration"], rows)


def _classes(path: Path, names: list[str]) -> None:
    rows = [[i, name, f"['{name}']", "all"] for i, name in enumerate(names)]
    _table(path, ["id", "key", "instances", "category"], rows)


def _table(path: Path, header: list[str], rows: list[list[Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
