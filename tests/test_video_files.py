"""Every kind of file shows the right source frame at each instant, or says what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from barcode import RATE, expected, number, seen, session, write
from decoders import decoders

from bench_lib.errors import BenchError
from bench_lib.schema import Session
from bench_lib.video import session as video
from bench_lib.video.decode import client
from bench_lib.video.session import VideoError, inspect, open_session, session_bytes

MEDIA = Path(__file__).parent / "media"
EVEN = range(0, 3000, 100)
VARIABLE = [*range(0, 600, 40), *range(600, 2600, 200), *range(2600, 3000, 70)]
PYAV = f"av {av.__version__}"
GROUPS = {"g": "10", "bf": "3"}


def served(file: Path, reader: str) -> str:
    info = inspect(file)
    with open_session(
        session((file, info.first_s, info.last_s)), 5, [(0, 1)], reader=reader
    ) as stream:
        list(stream)
        return stream.served


@pytest.mark.parametrize("reader", ["pyav", "decord"])
@pytest.mark.parametrize("fps", [10, 3.3, 25])
@pytest.mark.parametrize(
    ("name", "times", "how"),
    [
        ("b_frames.mp4", EVEN, {"options": GROUPS}),
        ("open_groups.mkv", EVEN, {"options": GROUPS | {"x264-params": "open-gop=1"}}),
        ("variable.mp4", VARIABLE, {"options": GROUPS}),
        ("variable.mkv", VARIABLE, {"options": GROUPS}),
        ("late.mkv", [700 + t for t in EVEN], {}),
        ("ten_bits.mp4", EVEN, {"pix_fmt": "yuv420p10le"}),
        (
            "odd_size.webm",
            EVEN,
            {"codec": "libvpx-vp9", "size": (49, 67), "options": {"cpu-used": "8"}},
        ),
        ("vp8.webm", EVEN, {"codec": "libvpx", "options": {"deadline": "realtime"}}),
        ("mpeg4.avi", EVEN, {"codec": "mpeg4"}),
    ],
)
def test_the_newest_picture_is_shown(
    tmp_path: Path, name: str, times: Any, how: dict[str, Any], fps: float, reader: str
) -> None:
    file = write(tmp_path / name, times, **how)
    recorded = session((file, 0.0, 3.0))
    assert seen(recorded, fps, reader=reader) == expected(times, fps, 0, 3000)


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_pictures_are_upright(degrees: int) -> None:
    file = MEDIA / f"rotated_{degrees}.mp4"
    assert inspect(file).size == (64, 48)
    assert inspect(file).rotation_deg == degrees
    # `number` fails on a picture that is not upright.
    assert seen(session((file, 0, 1)), 10) == {k: k for k in range(10)}
    assert served(file, "decord") == PYAV


def test_pictures_before_a_cut_are_not_shown() -> None:
    file = MEDIA / "cut_edit_list.mp4"
    with av.open(str(file)) as container:
        early = [p for p in container.demux(video=0) if p.pts is not None and p.pts < 0]
    assert len(early) == 5
    assert seen(session((file, 0, 2.5)), 10) == {k: 15 + k for k in range(25)}
    assert served(file, "decord") == PYAV


def test_a_span_is_presentation_time_and_decords_dropped_offset_comes_back(tmp_path: Path) -> None:
    times = [5000 + t for t in EVEN]
    file = write(tmp_path / "offset.mkv", times)
    info = inspect(file)
    assert (info.first_s, info.last_s) == (5.0, 7.9)
    assert info.duration_s == pytest.approx(3.0, abs=0.05)
    want = expected(times, 4, 6200, 7500)
    for reader in ("pyav", "decord"):
        assert seen(session((file, 6.2, 7.5)), 4, reader=reader) == want
    assert served(file, "decord").startswith("decord")


def test_spans_follow_each_other_on_the_sessions_clock(tmp_path: Path) -> None:
    first = write(tmp_path / "a.mp4", EVEN)
    second = write(tmp_path / "b.webm", EVEN, "libvpx", numbers=range(100, 130))
    recorded = session((first, 2.05, 2.95), (second, 0.0, 0.7), (first, 0.5, 1.0))
    whole = seen(recorded, 10)
    # 0.9 s of the first, 0.7 s of the second, then back in the first.
    assert whole == {
        **{k: 20 + k for k in range(9)},
        **{9 + k: 100 + k for k in range(7)},
        **{16 + k: 5 + k for k in range(5)},
    }
    parts = [(0.3, 0.5), (0.85, 1.0), (1.95, 9.0)]
    assert seen(recorded, 10, parts) == {k: whole[k] for k in (3, 4, 9, 20)}


def test_tracks_that_are_no_pictures_are_passed_over(tmp_path: Path) -> None:
    file = write(tmp_path / "sound.mp4", EVEN, sound=np.zeros(3 * RATE, np.float32))
    assert inspect(file).has_audio
    assert not inspect(write(tmp_path / "mute.mp4", EVEN)).has_audio
    assert seen(session((file, 0, 3)), 10) == expected(EVEN, 10, 0, 3000)


def test_frames_come_at_the_size_asked_for(tmp_path: Path) -> None:
    file = write(tmp_path / "a.mp4", EVEN)
    with open_session(session((file, 0, 3)), 1, [(0, 3)], size=(30, 41)) as stream:
        shapes = [(s.frame.pixels().shape, s.frame.pixels((8, 9)).shape) for s in stream]
    assert shapes == [((30, 41, 3), (8, 9, 3))] * 3


@pytest.mark.parametrize(
    ("reader", "name", "how"),
    [
        ("decord", "plain.mp4", {}),
        (PYAV, "ten_bits.mp4", {"codec": "libx265", "pix_fmt": "yuv420p10le", "grain": 40}),
    ],
)
def test_who_served_is_recorded(tmp_path: Path, reader: str, name: str, how: dict) -> None:
    file = write(tmp_path / name, EVEN, **how)
    assert served(file, "decord").startswith(reader)
    assert served(file, "pyav") == PYAV


def test_a_cut_file_counts_its_share_of_bytes(tmp_path: Path) -> None:
    file = write(tmp_path / "a.mp4", EVEN)
    nbytes = file.stat().st_size
    assert session_bytes(session((file, 0, 3))) == nbytes
    assert session_bytes(session((file, 1, 2))) == pytest.approx(nbytes / 3, abs=1)


def test_decord_leaves_long_jumps_to_pyav(tmp_path: Path) -> None:
    times = range(0, 40_000, 100)
    recorded = session((write(tmp_path / "a.mp4", times), 0, 40))
    parts = [(0, 1), (35, 36)]
    want = {k: k for k in (*range(10), *range(350, 360))}
    assert seen(recorded, 10, parts, reader="decord") == want
    with open_session(recorded, 10, parts, reader="decord") as stream:
        list(stream)
        assert stream.served.startswith("decord")
        assert stream.served.endswith(PYAV)
        assert stream.decoded_frames < 300


def test_a_file_is_inspected_once_per_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    ask = video.ask_once
    monkeypatch.setattr(video, "ask_once", lambda *args: asked.append(args) or ask(*args))
    file = write(tmp_path / "a.mp4", EVEN)
    assert inspect(file) == inspect(str(file))
    assert len(asked) == 1
    write(file, range(0, 1000, 100))
    assert inspect(file).last_s == pytest.approx(0.9)
    assert len(asked) == 2


@pytest.mark.parametrize("name", ["large.mp4", "large.mkv"])
def test_neither_looking_at_a_file_nor_jumping_into_it_reads_it_whole(
    tmp_path: Path, name: str
) -> None:
    times, large = range(0, 100_000, 1000), (160, 224)
    file = write(tmp_path / name, times, "ffv1", {"g": "1"}, "yuv420p", large, grain=65)
    size = file.stat().st_size
    assert size > 2_000_000
    client.end_idle()
    inspect(tmp_path / name)
    (worker,) = decoders()
    looked = worker.io_counters().read_chars
    assert seen(session((file, 0, 100)), 1, [(90, 92)]) == {90: 90, 91: 91}
    jumped = worker.io_counters().read_chars
    seen(session((file, 0, 100)), 1)
    assert jumped - looked < size / 3
    assert worker.io_counters().read_chars - jumped > size  # the control: read whole, it shows


def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    recorded = session((tmp_path / "a.mp4", 0, 3))
    with pytest.raises(BenchError, match="fps must be positive"):
        open_session(recorded, 0, [(0, 3)])
    with pytest.raises(BenchError, match="did you mean 'decord'"):
        open_session(recorded, 1, [(0, 3)], reader="decrod")
    with pytest.raises(BenchError, match="no recorded file"):
        open_session(session(), 1, [(0, 3)])


# What cannot be used.


def sound_only(path: Path) -> Path:
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("aac", rate=RATE, layout="mono")
        for i in range(20):
            frame: Any = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
            frame.sample_rate, frame.pts = RATE, i * 1024
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def cut_short(path: Path, part: float) -> Path:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    return path


@pytest.mark.parametrize("kind", ["missing", "empty", "corrupt", "no_video"])
@pytest.mark.parametrize("reader", ["pyav", "decord"])
def test_unusable_files_name_themselves_and_the_way_out(
    tmp_path: Path, kind: str, reader: str
) -> None:
    file = tmp_path / "film.mp4"
    if kind == "empty":
        file.touch()
    elif kind == "corrupt":
        file.write_bytes(np.random.default_rng(0).bytes(5000))
    elif kind == "no_video":
        sound_only(file)
    with pytest.raises(VideoError, match="film") as first:
        inspect(file)
    with pytest.raises(VideoError, match="film") as second:
        seen(session((file, 0, 3)), 1, reader=reader)
    assert first.value.kind == second.value.kind == kind
    assert "; " in str(first.value)


def test_half_an_mp4_is_corrupt(tmp_path: Path) -> None:
    file = cut_short(write(tmp_path / "film.mp4", EVEN), 0.5)
    with pytest.raises(VideoError) as error:
        inspect(file)
    assert error.value.kind == "corrupt"


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    import os

    pipe = tmp_path / "pipe.mp4"
    os.mkfifo(pipe)
    for place in (pipe, tmp_path):
        with pytest.raises(VideoError, match="not a regular file") as error:
            inspect(place)
        assert error.value.kind == "missing"


@pytest.mark.parametrize("reader", ["pyav", "decord"])
@pytest.mark.parametrize("name", ["film.mkv", "film.mp4"])
@pytest.mark.parametrize("share", [0.53, 0.6, 0.67])
def test_a_truncated_file_gives_its_good_pictures_first(
    tmp_path: Path, name: str, reader: str, share: float
) -> None:
    file = write(tmp_path / name, range(0, 10_000, 100), options={"g": "10"}, grain=40)
    if name.endswith("mp4"):  # with its index in front; else the half of it cannot be opened
        remuxed(file, tmp_path / "front.mp4", {"movflags": "faststart"})
        file = tmp_path / "front.mp4"
    cut_short(file, share)
    info = inspect(file)
    assert info.truncated
    assert info.first_s + info.duration_s == pytest.approx(10, abs=0.1)
    assert 4 < info.last_s < 8
    got, error = until_error(session((file, 0, 10)), 10, reader=reader)
    assert error.kind == "truncated"
    assert file.name in str(error)
    last = round(info.last_s * 10)
    assert max(got) <= last + 1
    # Up to three pictures are coded after the one that follows them: of the last four some may lie
    # behind the cut, or half before it. Then the newest whole one before them is shown, never a
    # later one.
    wrong = {k: n for k, n in got.items() if k <= last and n != k}
    assert all(k >= last - 3 and last - 4 <= n < k for k, n in wrong.items()), (wrong, last)
    assert set(got) >= set(range(last + 1))
    # What ends before the damage is whole.
    assert seen(session((file, 0, 4)), 10, reader=reader) == {k: k for k in range(40)}


def until_error(recorded: Session, fps: float, **options: Any) -> tuple[dict, VideoError]:
    got: dict[int, int] = {}
    with open_session(recorded, fps, [(0, recorded.duration_s)], **options) as stream:
        try:
            for sample in stream:
                got[round(sample.t_s * fps)] = number(sample.frame.pixels())
        except VideoError as error:
            return got, error
    raise AssertionError("the stream ended without an error")


def remuxed(source: Path, target: Path, flags: dict[str, str]) -> None:
    with av.open(str(source)) as old, av.open(str(target), "w", options=flags) as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        for packet in old.demux(video=0):
            if packet.size:
                packet.stream = stream
                new.mux(packet)


def test_damage_inside_a_file_is_an_error_at_its_place(tmp_path: Path) -> None:
    file = write(tmp_path / "film.mkv", range(0, 10_000, 100), options={"g": "10"}, grain=40)
    data = bytearray(file.read_bytes())
    at = len(data) // 2
    data[at : at + 6000] = bytes(6000)
    file.write_bytes(data)
    got, error = until_error(session((file, 0, 10)), 10)
    assert error.kind == "corrupt"
    assert "film.mkv" in str(error)
    last = max(got.values())
    assert 30 < last < 70
    # A lost picture is bridged by the one before it, for a second at most.
    assert got == {k: min(k, last) for k in range(len(got))}
    assert len(got) <= last + 11


def test_a_file_that_could_not_be_read_costs_what_follows_it(tmp_path: Path) -> None:
    good = write(tmp_path / "good.mp4", EVEN)
    recorded = session((good, 0, 3), (tmp_path / "gone.mp4", 0, 0), (good, 0, 3))
    got, error = until_error(recorded, 5)
    assert error.kind == "missing"
    assert list(got) == list(range(15))


def test_a_span_longer_than_its_file_is_an_error(tmp_path: Path) -> None:
    file = write(tmp_path / "film.mp4", EVEN)
    assert len(seen(session((file, 0, 3.5)), 10)) == 35  # rounded ends are met by the last picture
    with pytest.raises(VideoError) as error:
        seen(session((file, 0, 9)), 10)
    assert error.value.kind == "truncated"
