"""The sampling law: what an instant shows, and that nothing of the future is in it."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from barcode import expected, seen, session, write
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_lib.video.decode.files import opened
from bench_lib.video.decode.pictures import AvReader
from bench_lib.video.decode.protocol import instants
from bench_lib.video.decode.upright import Picture
from bench_lib.video.session import open_session

VARIABLE = [300, *range(340, 1000, 33), *range(1500, 3200, 170), 4100, *range(4500, 6000, 20)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two clips of 6 s at an uneven rate; numbers of the second start at 1000."""
    folder = tmp_path_factory.mktemp("grid")
    options = {"g": "12", "bf": "2"}
    first = write(folder / "a.mkv", VARIABLE, options=options)
    numbers = [1000 + i for i in range(len(VARIABLE))]
    return first, write(folder / "b.mp4", VARIABLE, options=options, numbers=numbers)


milliseconds = st.integers(0, 5900)
rates = st.one_of(
    st.sampled_from([0.2, 0.5, 1.0, 2.0, 3.0, 10.0, 24.0, 30_000 / 1001]), st.floats(0.1, 30)
)


def naive(fps: float, spans: list[tuple[int, int, int]], stretches: list[tuple[int, int]]) -> dict:
    """The law, word for word, in exact milliseconds; spans are (first number, start, end)."""
    shown = {}
    for k in range(round(12 * fps) + 2):
        at = Fraction(k * 1000) / Fraction(fps)
        if not any(start <= at < end for start, end in stretches):
            continue
        for first, start, end in spans:
            if at < end - start:
                past = [i for i, t in enumerate(VARIABLE) if t <= start + at]
                if past:
                    shown[k] = first + past[-1]
                break
            at -= end - start
    return shown


@settings(max_examples=60, deadline=None)
@given(
    fps=rates,
    cut=st.lists(milliseconds, min_size=4, max_size=4, unique=True).map(sorted),
    swap=st.booleans(),
    edges=st.lists(st.integers(0, 11_000), min_size=2, max_size=6, unique=True).map(sorted),
)
def test_an_instant_shows_the_newest_picture_that_is_not_later(
    files: tuple[Path, Path], fps: float, cut: list[int], swap: bool, edges: list[int]
) -> None:
    spans = [(1000, cut[0], cut[1]), (0, cut[2], cut[3])]
    if swap:
        spans.reverse()
    stretches = list(zip(edges[::2], edges[1::2], strict=False))
    # A hair off every exact edge: there, binary and decimal fractions may disagree.
    if any(
        abs(k * 1000 / fps - t) < 0.01
        for k in range(round(12 * fps) + 2)
        for t in _edges(spans, stretches)
    ):
        spans = [(first, start, end) for first, start, end in spans]
        fps *= 1.000123
    recorded = session(*((files[n >= 1000], s / 1000, e / 1000) for n, s, e in spans))
    parts = [(start / 1000, end / 1000) for start, end in stretches]
    assert seen(recorded, fps, parts) == naive(fps, spans, stretches)


def _edges(spans: list[tuple[int, int, int]], stretches: list[tuple[int, int]]) -> list[float]:
    length = spans[0][2] - spans[0][1]
    starts = [(spans[0][1], 0), (spans[1][1], length)]
    pictures = [t - start + at for start, at in starts for t in VARIABLE]
    return [*pictures, length, *(t for part in stretches for t in part)]


def test_an_exact_edge_belongs_to_what_begins_there(tmp_path: Path) -> None:
    """Ten pictures a second from 0 on, read at ten a second: no instant may fall one short."""
    times = range(0, 5000, 100)
    file = write(tmp_path / "a.mp4", times)
    assert seen(session((file, 0, 5)), 10) == expected(times, 10, 0, 5000)
    # Half-open: 1.0 is in, 2.0 is not; stretches that touch repeat nothing.
    assert list(seen(session((file, 0, 5)), 2, [(1.0, 2.0), (2.0, 2.5)])) == [2, 3, 4]
    # 29.97 a second: the nearest picture may be 3 ms ahead, and is not shown.
    ntsc = [round(1000 * i * 1001 / 30_000) for i in range(150)]
    file = write(tmp_path / "b.mkv", ntsc)
    assert seen(session((file, 0, 4.9)), 1) == expected(ntsc, 1, 0, 4900)


@given(rates, st.lists(st.floats(0, 50), min_size=2, max_size=8, unique=True).map(sorted))
def test_instants_are_those_inside_the_stretches(fps: float, edges: list[float]) -> None:
    stretches = list(zip(edges[::2], edges[1::2], strict=False))
    found = list(instants(fps, stretches))
    assert found == sorted(set(found))
    inside = {
        k
        for k in range(round(51 * fps) + 1)
        if any(start - 1e-6 <= k / fps < end - 1e-6 for start, end in stretches)
    }
    assert set(found) == inside


def test_what_comes_later_changes_no_pixel_of_what_came_before(tmp_path: Path) -> None:
    """Lossless, so that the encoder cannot carry the change backwards."""
    options = {"qp": "0", "g": "10", "bf": "2"}
    times = range(0, 4000, 100)
    usual = write(tmp_path / "usual.mkv", times, options=options, grain=40)
    numbers = [i if i < 20 else 500 + i for i in range(40)]
    future = write(tmp_path / "future.mkv", times, options=options, grain=40, numbers=numbers)
    numbers = [i if i != 13 else 500 for i in range(40)]
    past = write(tmp_path / "past.mkv", times, options=options, grain=40, numbers=numbers)

    def prefix(file: Path, end_s: float) -> list[str]:
        with open_session(session((file, 0, 4)), 10, [(0, end_s)]) as stream:
            return [hashlib.sha256(s.frame.pixels().tobytes()).hexdigest() for s in stream]

    assert prefix(future, 2.0) == prefix(usual, 2.0)
    assert prefix(future, 2.1) != prefix(usual, 2.1)
    assert prefix(past, 2.0) != prefix(usual, 2.0)


EXACT = [
    ("closed.mp4", "libx264", {"g": "10", "bf": "3"}),
    ("open.mp4", "libx264", {"g": "10", "bf": "3", "x264-params": "open-gop=1:b-pyramid=normal"}),
    ("long.mkv", "libx264", {"g": "250", "bf": "3"}),
    ("refresh.mkv", "libx264", {"g": "30", "bf": "0", "x264-params": "intra-refresh=1"}),
    ("hevc.mp4", "libx265", {"x265-params": "log-level=0:keyint=12:open-gop=1"}),
    ("vp9.webm", "libvpx-vp9", {"g": "12", "deadline": "realtime", "cpu-used": "8"}),
    ("vp8.webm", "libvpx", {"g": "12", "deadline": "realtime"}),
    ("mpeg4.mp4", "mpeg4", {"g": "12", "bf": "2"}),
    ("stream.ts", "libx264", {"g": "12", "bf": "2"}),
]


@pytest.mark.parametrize(("name", "codec", "options"), EXACT)
@pytest.mark.parametrize("step_s", [0.04, 0.31, 1.07, 6.3, 30.0])
def test_what_is_left_undecoded_changes_no_pixel(
    name: str, codec: str, options: dict[str, str], step_s: float, exact: dict
) -> None:
    file, truth = exact[name]
    first_s, last_s = min(truth), max(truth)
    times = list(np.arange(first_s + 0.01, last_s, step_s))
    reader = AvReader(str(file))
    shown = [(p.t_s, _digest(p)) for p in reader.pictures(times) if p]
    reader.close()
    assert shown == [
        (t, truth[t]) for t in (max(u for u in truth if u <= at + 1e-6) for at in times)
    ]
    if name != "refresh.mkv":  # read again from the start where a jump proves unclean
        assert reader.decoded <= len(truth)
    if step_s > 6 and name not in ("refresh.mkv", "long.mkv"):
        assert reader.decoded < len(truth) / 2


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, dict[float, str]]]:
    """Each file with the digest of every picture, decoded one after the other by PyAV."""
    folder = tmp_path_factory.mktemp("exact")
    made = {}
    for name, codec, options in EXACT:
        times = range(0, 32_000, 200)
        file = write(folder / name, times, codec, options, grain=60, size=(64, 80))
        with opened(str(file)) as container:
            from av.video.reformatter import VideoReformatter

            track = container.streams.video[0]
            one = VideoReformatter()
            made[name] = (
                file,
                {
                    f.pts * track.time_base.numerator / track.time_base.denominator: _digest(
                        Picture(0, f, one)
                    )
                    for f in container.decode(track)
                },
            )
        assert len(made[name][1]) == len(times)
    return made


def _digest(picture: Picture) -> str:
    return hashlib.sha256(picture.pixels().tobytes()).hexdigest()


def test_each_source_frame_is_decoded_at_most_once_and_none_beyond_the_end(tmp_path: Path) -> None:
    times = range(0, 60_000, 100)
    file = write(tmp_path / "a.mp4", times, options={"g": "20", "bf": "0", "sc_threshold": "0"})
    recorded = session((file, 0, 60))

    def decoded(fps: float, stretches: list[tuple[float, float]]) -> int:
        with open_session(recorded, fps, stretches) as stream:
            assert sum(1 for _ in stream) > 0
            return stream.decoded_frames

    assert decoded(10, [(0, 60)]) == 600
    assert decoded(30, [(0, 60)]) == 600
    assert decoded(10, [(0, 1)]) == 10
    # A jump goes to the key frame before: 40.0 and not 0.0.
    assert decoded(10, [(0, 1), (41, 41.5)]) <= 10 + 16
    assert decoded(0.5, [(0, 60)]) == 30  # every key frame, and nothing else
    many = [(t + 0.05, t + 0.15) for t in np.arange(0, 59, 0.2)]
    assert decoded(10, many) <= 600
