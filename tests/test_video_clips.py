"""What a clip holds, what is fed, and what names a file: small laws, by number."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from engine_runs import asks_of, walk
from synthetic import household

from bench_lib import methods
from bench_lib.content import ends
from bench_lib.engine.conditions import _merged
from bench_lib.schema import Caption
from bench_lib.video.clips import clips
from bench_lib.video.session import Sample
from bench_lib.video.stream import ArrayFrame

BLACK = np.zeros((2, 2, 3), np.uint8)


def cut(
    *said: tuple[float, float], stretch: tuple[float, float] = (0.0, 6.0)
) -> list[tuple[list[float], list[tuple[float, float]]]]:
    """Clips of two frames at one a second: instants, and the captions that came with them."""
    instants = np.arange(*stretch)
    samples = [Sample(float(t), ArrayFrame(float(t), BLACK)) for t in instants]
    lines = [Caption(start_s=a, end_s=b, text="x") for a, b in said]
    return [
        ([f.t_s for f in clip.frames], [(c.start_s, c.end_s) for c in clip.captions])
        for clip in clips(samples, lines, [stretch], 0, 2)
    ]


def test_a_caption_comes_with_the_clip_in_which_it_ends() -> None:
    assert cut((0.5, 2.5), (0.1, 0.9), (2.0, 3.0)) == [
        ([0, 1], [(0.1, 0.9)]),
        ([2, 3], [(0.5, 2.5), (2.0, 3.0)]),
        ([4, 5], []),
    ]
    # What begins first ends last: the end alone decides, for order too.
    assert [lines for _, lines in cut((0.0, 4.5), (1.0, 1.5), (0.5, 3.5))] == [
        [],
        [(1.0, 1.5)],
        [(0.5, 3.5), (0.0, 4.5)],
    ]


def test_a_caption_unfinished_at_the_end_of_what_is_fed_never_comes() -> None:
    assert [lines for _, lines in cut((4.0, 6.5), (1.0, 5.9))] == [[], [], [], [(1.0, 5.9)]]
    assert [lines for _, lines in cut((1.0, 2.5), (0.0, 1.5), stretch=(2.0, 4.0))] == [[(1.0, 2.5)]]


def test_nested_evidence_shortens_nothing() -> None:
    assert _merged([(0, 10), (2, 4)], 20) == ((0, 10),)
    assert _merged([(2, 4), (0, 3), (6, 30)], 20) == ((0, 4), (6, 20))


def test_a_file_rewritten_at_its_size_has_another_digest(tmp_path: Path) -> None:
    file = tmp_path / "a.mp4"
    file.write_bytes(b"one")
    was = ends(str(file))
    status = file.stat()
    file.write_bytes(b"two")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert ends(str(file)) != was


@pytest.mark.parametrize("late_s", [0.0, 0.01])
def test_a_note_at_the_instant_of_a_frame_is_heard_with_it(tmp_path: Path, late_s: float) -> None:
    log: list[float | str] = []

    class Listening(methods.find("hashing")):  # type: ignore[misc]
        def observe(self, clip):
            if self is trunk:
                log.extend(frame.t_s for frame in clip.frames)
            super().observe(clip)

        def note(self, note):
            log.append("note")  # a branch hears it, taken from the trunk there
            super().note(note)

    home = household(tmp_path, sessions=1)
    (told,) = (c for c in home.candidates if c.id == "told")
    one = told.model_copy(
        update={
            "probes": (told.probes[1].model_copy(update={"session": "S001"}),),
            "registration": told.registration.model_copy(update={"t_s": 2.2}),  # type: ignore[union-attr]
        }
    )
    first = home.model_copy(update={"candidates": (one,)})
    trunk = Listening()
    walk(first, tmp_path, trunk, asks_of(first), delivery="stream")
    # The last frame of the clip before the note: a note said at it comes at the same place.
    at = log.index("note")
    instant = log[at - 1]
    assert isinstance(instant, float)
    said = one.registration.model_copy(update={"t_s": instant + late_s})  # type: ignore[union-attr]
    log.clear()
    moved = home.model_copy(update={"candidates": (one.model_copy(update={"registration": said}),)})
    trunk = Listening()
    walk(moved, tmp_path, trunk, asks_of(moved), delivery="stream")
    before = log[log.index("note") - 1]
    assert before == instant if late_s == 0 else before > instant
