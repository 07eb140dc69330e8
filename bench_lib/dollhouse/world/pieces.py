"""Pieces of films: what an export cuts them into."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bench_lib.dollhouse.world.camera import Film
from bench_lib.schema import Caption


def piece(film: Film, start_s: int, end_s: int) -> Film:
    """The stretch `[start_s, end_s)` of a film as a film of its own, on the same wall clock."""
    shots = [
        replace(
            shot,
            start_s=max(shot.start_s, start_s) - start_s,
            end_s=min(shot.end_s, end_s) - start_s,
        )
        for shot in film.shots
        if shot.start_s < end_s and shot.end_s > start_s
    ]
    captions = [
        Caption(start_s=c.start_s - start_s, end_s=c.end_s - start_s, text=c.text)
        for c in film.captions
        if start_s <= c.start_s and c.end_s <= end_s
    ]
    return Film(film.index, film.wall_start_s + start_s, shots, [], captions)


def on_grid(film: Film, step_s: int) -> Iterator[Film]:
    """A film cut at the wall clock's multiples of `step_s`: its first piece is mostly shorter."""
    at = 0
    while at < film.duration_s:
        end = min(film.duration_s, at + step_s - (film.wall_start_s + at) % step_s)
        yield piece(film, at, end)
        at = end
