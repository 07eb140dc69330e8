"""Video files: real, cached, whole or absent, and as difficult as the knobs say."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest

from bench_lib.dollhouse.world import library, render, sound, strip
from bench_lib.dollhouse.world.render import Look
from bench_lib.dollhouse.world.world import SMALL, World, build

_LOAD = """
from bench_lib.sources import dollhouse
data = dollhouse.load(variant="small", seeds=(10,), films=(2, 2), film_s=(6, 8), fps=1)
print(data.trajectories[0].sessions[0].spans[0].file)
"""


def _frame(t_s: float = 1.0, **look: object) -> np.ndarray:
    film = build(12, SMALL).films[0]
    return render.image(film, t_s, replace(Look(), **look)).astype(int)  # type: ignore[arg-type]


def test_two_processes_render_the_same_files_at_once(tmp_path: Path) -> None:
    env = {**os.environ, "BENCH_CACHE": str(tmp_path / "shared")}
    both = [
        subprocess.Popen([sys.executable, "-c", _LOAD], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    names = {process.communicate(timeout=120)[0] for process in both}
    assert all(process.returncode == 0 for process in both)
    assert len(names) == 1
    first = Path(names.pop().strip())
    files = {p.name: p.read_bytes() for p in first.parent.iterdir()}
    assert sorted(files) == ["B002.mp4", "S001.mp4", "S002.mp4"]
    env["BENCH_CACHE"] = str(tmp_path / "other")
    other = subprocess.run(
        [sys.executable, "-c", _LOAD], env=env, capture_output=True, check=True, text=True
    )
    again = Path(other.stdout.strip()).parent
    assert {p.name: p.read_bytes() for p in again.iterdir()} == files


def test_what_lies_in_the_cache_is_not_rendered_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    chosen = library.with_knobs(library.find("small"), films=(2, 2), film_s=(6, 8), fps=1)
    world, trajectory = library.compose(chosen, "x", 12)
    library.film(world, trajectory, chosen.look)
    monkeypatch.setattr(render, "frames", lambda *_: pytest.fail("rendered again"))
    library.film(world, trajectory, chosen.look)


def test_a_failed_rendering_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object):  # type: ignore[no-untyped-def]
        raise OSError("disk full")
        yield

    monkeypatch.setattr(render, "frames", broken)
    with pytest.raises(OSError, match="disk full"):
        render.write(build(12, SMALL).films[0], Look(), tmp_path / "film.mp4")
    assert list(tmp_path.iterdir()) == []


def test_other_looks_and_worlds_have_other_folders() -> None:
    world = build(12, SMALL)
    homes = {library.folder(world, look) for look in (Look(), Look(noise=3), Look(strip=False))}
    homes.add(library.folder(build(13, SMALL), Look()))
    assert len(homes) == 4


def test_the_file_is_h264_with_the_stated_rate_size_and_length(tmp_path: Path) -> None:
    film = build(12, SMALL).films[1]
    render.write(film, Look(fps=2, size=224), tmp_path / "film.mp4")
    with av.open(str(tmp_path / "film.mp4")) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.width, stream.height) == ("h264", 224, 224)
        times = [float(frame.time or 0) for frame in container.decode(stream)]
    assert times == [i / 2 for i in range(film.duration_s * 2)]


@pytest.mark.skipif(not sound.available(), reason="espeak-ng is not installed")
def test_spoken_lines_are_heard_where_the_captions_stand(tmp_path: Path) -> None:
    film = next(f for seed in range(9) for f in build(seed, SMALL).films if f.captions)
    render.write(film, Look(fps=1), tmp_path / "film.mp4")
    with av.open(str(tmp_path / "film.mp4")) as container:
        heard = np.concatenate(
            [f.to_ndarray().ravel() for f in container.decode(container.streams.audio[0])]
        )
    caption = film.captions[0]
    start, end = (int(t * sound.RATE) for t in (caption.start_s, caption.end_s))
    assert np.abs(heard[start:end]).max() > 0.05
    quiet = np.ones(len(heard), bool)
    for c in film.captions:
        quiet[int(c.start_s * sound.RATE) - 3000 : int(c.start_s * sound.RATE) + 60_000] = False
    assert quiet.any()
    assert np.abs(heard[quiet]).max() < 0.02
    render.write(film, Look(fps=1, sound=False), tmp_path / "mute.mp4")
    with av.open(str(tmp_path / "mute.mp4")) as container:
        assert not container.streams.audio


def test_the_strip_can_be_left_out_and_nothing_else_changes() -> None:
    plain, coded = _frame(strip=False), _frame()
    assert (plain[:-22] == coded[:-22]).all()
    assert strip.decode(coded.astype(np.uint8)) is not None
    assert strip.decode(plain.astype(np.uint8)) is None


def test_knobs_change_what_they_name() -> None:
    still = {"noise": 0.0, "motion": 0, "light": 0.0}
    calm = _frame(**still)
    noisy = _frame(**(still | {"noise": 6.0}))
    assert 3 < np.abs(noisy - calm)[30:400].mean() < 9
    moved = [_frame(t, **(still | {"motion": 12})) for t in (0.25, 1.75)]
    fixed = [_frame(t, **still) for t in (0.25, 1.75)]
    assert np.abs(fixed[0] - fixed[1])[30:400].mean() < 1
    assert np.abs(moved[0] - moved[1])[30:400].mean() > 3
    lights = {round(float(_frame(t, **(still | {"light": 0.3}))[60].mean())) for t in (1, 3, 6, 9)}
    assert len(lights) > 1
    assert _frame(size=112).shape == (112, 112, 3)


def test_the_clock_is_drawn_and_changes_each_second() -> None:
    world: World = build(12, SMALL)
    corners = [
        render.image(world.films[0], t, Look(noise=0, motion=0))[4:28, 4:170].tobytes()
        for t in (1.0, 1.5, 2.0)
    ]
    assert corners[0] == corners[1] != corners[2]


def test_the_atlas_comes_with_its_licence() -> None:
    home = Path(render.__file__).parent
    text = (home / "ATLAS_LICENSE.txt").read_text()
    assert "SIL OPEN FONT LICENSE Version 1.1" in text
    assert "Noto" in text
    assert "Liberation" in text
    assert (home / "atlas.png").stat().st_size < 700_000
