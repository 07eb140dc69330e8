"""CPU seconds of the dollhouse: `python tests/bench_dollhouse.py`.

Prints what it costs to compose, render and read; asserts nothing.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from bench_lib.dollhouse.ideal.observer import respond
from bench_lib.dollhouse.world import library, render, strip
from bench_lib.dollhouse.world.render import Look


def main() -> None:
    """Measure and print."""
    begun = time.process_time()
    chosen = library.find("default")
    composed = [library.compose(chosen, "dollhouse", seed) for seed in chosen.seeds]
    print(f"compose the default set     {time.process_time() - begun:7.2f} s")
    frames = 0
    begun = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        for number, (world, _) in enumerate(composed):
            for film in (*world.films, *world.between):
                path = Path(folder) / f"{number}-{film.wall_start_s}.mp4"
                render.write(film, chosen.look, path)
                frames += film.duration_s * chosen.look.fps
        size = sum(p.stat().st_size for p in Path(folder).iterdir()) / 2**20
    spent = time.process_time() - begun
    print(f"render the default set      {spent:7.2f} s, {frames} frames, {size:.0f} MiB")
    print(f"  a frame                   {spent / frames * 1e3:7.2f} ms")
    film = composed[0][0].films[0]
    pixels = render.image(film, 5, Look())
    begun = time.process_time()
    for _ in range(300):
        strip.decode(pixels)
    print(f"read a code strip           {(time.process_time() - begun) / 300 * 1e3:7.2f} ms")
    pictures = [film.picture(t) for t in range(film.duration_s)] * 10
    begun = time.process_time()
    respond([*pictures, "Where was the red key last seen?"], "free", 64)
    print(f"answer from {len(pictures)} frames     {time.process_time() - begun:7.2f} s")
    begun = time.process_time()
    large = library.find("large")
    for seed in large.seeds:
        library.compose(large, "large", seed)
    print(f"compose the large set       {time.process_time() - begun:7.2f} s")


if __name__ == "__main__":
    main()
