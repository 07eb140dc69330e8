"""Pictures as they are meant: upright in all eight orientations, in the file's own colours."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from barcode import number, seen, session, write
from numpy.typing import NDArray
from recordings import turned

from bench_lib.video.decode import second
from bench_lib.video.decode.second import DecordReader, agreeing
from bench_lib.video.decode.upright import Turn, turn
from bench_lib.video.session import VideoError, inspect, open_session

TIMES = range(0, 1000, 100)
EIGHT = [(a, 0, 0, d) for a in (1, -1) for d in (1, -1)] + [
    (0, b, c, 0) for b in (1, -1) for c in (1, -1)
]


def stored(matrix: tuple[int, ...], seen_: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The picture which a display matrix turns into `seen_`: (p, q) to (a p + c q, b p + d q)."""
    a, b, c, d = matrix
    height, width = seen_.shape[:2]
    rows, cols = (height, width) if a else (width, height)
    q, p = np.mgrid[:rows, :cols]
    x, y = a * p + c * q, b * p + d * q
    return seen_[y - y.min(), x - x.min()]


@pytest.mark.parametrize("matrix", EIGHT)
def test_all_eight_orientations_are_upright(tmp_path: Path, matrix: tuple[int, ...]) -> None:
    file = write(tmp_path / "a.mp4", TIMES, stored=lambda pixels: stored(matrix, pixels))
    turned(file, *matrix)
    info = inspect(file)
    assert info.size == (48, 64)
    # `number` fails on a picture that is turned; a mirrored one has other bits.
    for reader in ("pyav", "decord"):
        assert seen(session((file, 0, 1)), 10, reader=reader) == {k: k for k in range(10)}


def test_the_inspection_says_how_a_picture_is_turned(tmp_path: Path) -> None:
    found = {}
    for name, matrix in {
        "left": (-1, 0, 0, 1),
        "half": (-1, 0, 0, -1),
        "up": (1, 0, 0, -1),
    }.items():
        info = inspect(turned(write(tmp_path / f"{name}.mp4", TIMES), *matrix))
        found[name] = info.rotation_deg, info.mirrored
    assert found == {"left": (0, True), "half": (180, False), "up": (180, True)}


@pytest.mark.parametrize("matrix", [(0.9, 0.43, -0.43, 0.9), (1, 0.5, 0, 1), (1, 0, 1, 0)])
def test_a_turn_that_leaves_the_grid_is_refused(tmp_path: Path, matrix: Any) -> None:
    file = turned(write(tmp_path / "film.mp4", TIMES), *matrix)
    with pytest.raises(VideoError, match=r"film.*display matrix.*re-encode") as error:
        inspect(file)
    assert error.value.kind == "corrupt"
    with pytest.raises(VideoError, match=r"film.*display matrix"):
        seen(session((file, 0, 1)), 10)


def test_a_matrix_that_is_nearly_upright_or_scales_turns_nothing() -> None:
    def of(*numbers: float) -> Turn:
        a, b, c, d = (round(n * 65_536) for n in numbers)
        return turn((a, b, 0, c, d, 0, 0, 0, 1 << 30))

    assert of(0.99995, 0.0087, -0.0087, 0.99995) == Turn()
    assert of(2, 0, 0, 0.5) == Turn()
    assert of(0, 1.5, -1.5, 0) == Turn(3)
    assert of(0, 0, 0, 0) == Turn()


# Colours.


def coloured(path: Path, flat: int = 0, **tags: Any) -> Path:
    """Twenty pictures of moving colours, one each half second; the first `flat` are grey."""
    y, x = np.mgrid[:48, :64]
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(tags.pop("codec", "libx264"), rate=2)
        stream.height, stream.width = 48, 64
        stream.pix_fmt = tags.pop("pix_fmt", "yuv420p")
        context = stream.codec_context
        context.thread_count = 1
        for name, value in tags.items():
            setattr(context, name, value)
        for i in range(20):
            waves = [x / 9 + i / 3, y / 7 + i / 5, (x + y) / 11 - i / 4]
            pixels = np.stack([128 + 100 * np.sin(wave) for wave in waves], -1).astype(np.uint8)
            if i < flat:
                pixels[:] = 90
            frame = av.VideoFrame.from_ndarray(pixels, "rgb24").reformat(format=stream.pix_fmt)
            frame.pts, frame.time_base = i, Fraction(1, 2)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def first(file: Path) -> NDArray[np.uint8]:
    with open_session(session((file, 0, 1)), 1, [(0, 1)]) as stream:
        return next(iter(stream)).frame.pixels()


@pytest.mark.parametrize(
    ("trc", "name", "words"),
    [(16, "smpte2084", "PQ"), (18, "arib-std-b67", "HLG"), (1, "bt709", "")],
)
def test_depth_and_transfer_are_recorded_and_how_they_were_mapped(
    tmp_path: Path, trc: int, name: str, words: str
) -> None:
    tags = {"pix_fmt": "yuv420p10le", "color_primaries": 9, "colorspace": 9, "color_range": 1}
    file = coloured(tmp_path / "a.mp4", color_trc=trc, **tags)
    info = inspect(file)
    assert (info.bits, info.transfer) == (10, name)
    assert "matrix bt2020nc" in info.mapping
    assert "10 bits reduced to 8" in info.mapping
    assert ("not mapped to SDR" in info.mapping) == bool(words)
    assert words in info.mapping
    # Code values are kept: the same pixels as without the tag.
    plain = coloured(tmp_path / "b.mp4", color_trc=2, **tags)
    assert np.array_equal(first(file), first(plain))


def test_ordinary_pictures_say_so(tmp_path: Path) -> None:
    info = inspect(coloured(tmp_path / "a.mp4"))
    assert (info.bits, info.transfer) == (8, "unknown")
    assert "bt601, as the file states none" in info.mapping
    full = inspect(coloured(tmp_path / "b.mp4", colorspace=1, color_range=2))
    assert full.mapping == "RGB by matrix bt709, full range, 8 bits, transfer unknown"


def test_colours_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    file = coloured(tmp_path / "film.mp4", pix_fmt="yuv444p", colorspace=8)
    with pytest.raises(VideoError, match=r"film.*ycgco"):
        inspect(file)
    with pytest.raises(VideoError, match=r"film.*colours"):
        seen(session((file, 0, 1)), 1)


# The second reader.


class Wrong(DecordReader):
    """Red and blue are swapped, as by a wrong pixel format."""

    def _at(self, at: int) -> Any:
        picture = super()._at(at)
        picture.array = np.ascontiguousarray(picture.array[..., ::-1])
        return picture


def test_a_second_reader_is_held_against_the_first_on_pictures_that_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = coloured(tmp_path / "late.mp4", flat=12)
    reader = agreeing(str(late), lambda: None)
    assert reader is not None
    assert [p.t_s for p in reader.pictures([0.0, 9.5])] == [0.0, 9.5]
    reader.close()
    monkeypatch.setattr(second, "DecordReader", Wrong)
    assert agreeing(str(late), lambda: None) is None
    assert agreeing(str(coloured(tmp_path / "grey.mp4", flat=20)), lambda: None) is not None


def test_a_second_reader_is_not_used_where_it_is_known_to_differ(tmp_path: Path) -> None:
    """Ten bits whose first pictures are flat: there even wrong colours agree."""
    file = coloured(tmp_path / "a.mp4", flat=12, pix_fmt="yuv420p10le")
    with open_session(session((file, 0, 9)), 1, [(0, 9)], reader="decord") as stream:
        list(stream)
        assert stream.served == f"av {av.__version__}"


def test_comparing_stops_when_enough_was_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[float] = []
    usual = DecordReader._at

    def at(self: DecordReader, place: int) -> Any:
        looked.append(place)
        return usual(self, place)

    monkeypatch.setattr(DecordReader, "_at", at)
    times = range(0, 60_000, 500)
    assert agreeing(str(write(tmp_path / "grey.mp4", times)), lambda: None)
    assert max(looked) == 119  # never a colour: all of it is looked at
    looked.clear()
    assert agreeing(str(coloured(tmp_path / "a.mp4")), lambda: None)
    assert max(looked) < 10


def test_a_picture_number_is_not_its_own_mirror_image() -> None:
    """What the tests above rest on."""
    from barcode import picture

    assert number(picture(5)) == 5
    with pytest.raises(AssertionError, match="upright"):
        number(picture(5)[:, ::-1])
