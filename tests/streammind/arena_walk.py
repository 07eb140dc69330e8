"""A film of the dollhouse as bare code strips, and a walk over it as the engine would do it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from bench_lib import methods
from bench_lib.dollhouse.ideal.grading import agrees
from bench_lib.dollhouse.ideal.observer import IdealChat
from bench_lib.dollhouse.world import library, strip
from bench_lib.dollhouse.world.camera import Film
from bench_lib.dollhouse.world.picture import Picture
from bench_lib.dollhouse.world.world import World
from bench_lib.exchange import Generation, Note, Query
from bench_lib.memories.method import Method
from bench_lib.schema import Candidate, Trajectory
from bench_lib.video.stream import ArrayFrame, Clip, SessionInfo

SIZE = (192, 192)
GENERATION = Generation()


@lru_cache(maxsize=8)
def arena(film_s: int = 420, seed: int = 3) -> tuple[World, Trajectory]:
    """A short film with StreamArena's items."""
    counts = {"RTP": 6, "HR": 8, "Tool": 6, "Pro": 8}
    chosen = library.with_knobs(library.find("arena"), film_s=(film_s, film_s), counts=counts)
    return library.compose(chosen, "short-arena", seed)


@lru_cache(maxsize=4096)
def drawn(picture: Picture) -> np.ndarray:
    """A grey frame whose lower edge holds the code strip."""
    pixels = np.full((*SIZE, 3), 128, np.uint8)
    cells = strip.encode(picture, picture.wall_s)
    side = SIZE[1] // strip.CELLS
    block = np.kron(cells, np.ones((side, side), np.uint8)) * 255
    pixels[-block.shape[0] :] = block[..., None]
    return pixels


def clips(film: Film, frames: int = 8, until_s: float = 1e9, fps: float = 2.0) -> Iterator[Clip]:
    """Clips of a film at 2 fps, with what is said."""
    n = int(min(film.duration_s, until_s + 1 / fps) * fps)
    said = sorted(film.captions, key=lambda c: c.end_s)
    for start in range(0, n, frames):
        times = [i / fps for i in range(start, min(start + frames, n))]
        own = tuple(c for c in said if start / fps - 1 / fps < c.end_s <= times[-1] + 1e-9)
        first = (start - 1) / fps
        own = tuple(c for c in said if first < c.end_s <= times[-1])
        yield Clip(0, tuple(ArrayFrame(t, drawn(film.picture(t))) for t in times), own)


def agent(chat: Any = None, **args: Any) -> Method:
    """A fresh trunk."""
    method = methods.load("streammind", **args).attach(chat or IdealChat())
    method.reset("t", 42)
    return method


def info(film: Film, index: int = 0) -> SessionInfo:
    """What a method learns of the film."""
    return SessionInfo(f"S{index}", index, film.wall_start_s, SIZE)


def answers(
    method: Any, world: World, candidates: Iterable[Candidate]
) -> tuple[dict[str, str], Any]:
    """Walk the film: reactive questions on branches, watches on the trunk."""
    film = world.films[0]
    due = sorted(candidates, key=lambda c: (c.probes[0].t_s, c.id))
    found: dict[str, str] = {}
    method.begin_session(info(film))
    for clip in clips(film):
        while due and due[0].probes[0].t_s < clip.frames[-1].t_s:
            candidate = due.pop(0)
            t_s = candidate.probes[0].t_s
            if candidate.task == "Pro":
                # A watch is told between clips: as soon as the trunk has reached its instant.
                method.observe(clip.until(t_s, True))
                method.watch(Note(0, t_s, candidate.question), candidate.id)
                rest = tuple(f for f in clip.frames if f.t_s > t_s)
                clip = replace(clip, frames=rest, captions=())
                continue
            branch = method.branch()
            branch.observe(clip.until(t_s, True))
            query = Query(candidate.question, 0, t_s)
            reply = branch.respond(query, GENERATION)
            found[candidate.id] = reply.text
        method.observe(clip)
    return found, method


def right(candidate: Candidate, text: str) -> bool:
    """Whether an answer agrees with the reference."""
    return agrees(text, candidate.references["answer"])
