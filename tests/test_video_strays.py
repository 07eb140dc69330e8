"""Stray timestamps, clocks that start anew, pauses: all is shown and heard at its true time."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from barcode import RATE, number, seen, session, write
from recordings import edited, joined, strays
from test_video_audio import beeps, heard, onsets
from test_video_audio import joined as one_signal

from bench_lib.video.decode.inspect import inspect_file
from bench_lib.video.decode.pictures import AvReader
from bench_lib.video.decode.protocol import VideoInfo
from bench_lib.video.session import VideoError, inspect, open_session

TIMES = range(0, 10_000, 100)
PLAIN, REORDERED = {"g": "25", "bf": "0"}, {"g": "25", "bf": "3"}
WRAP_MS = 2**33 * 1000 // 90_000


def shown(file: Path) -> tuple[VideoInfo, dict[int, int | None]]:
    """The picture at every tenth of a second from the first one on, at most 40 s of them."""
    info = inspect_file(str(file))
    reader = AvReader(str(file))
    times = [info.first_s + k / 10 for k in range(min(400, round(info.duration_s * 10)))]
    found = [picture and number(picture.pixels()) for picture in reader.pictures(times)]
    reader.close()
    return info, dict(enumerate(found))


def recording(path: Path, start_ms: int = 0, first: int = 0, **how: Any) -> Path:
    """Ten seconds of pictures, numbered from `first` on."""
    times = [start_ms + t for t in TIMES]
    how = {"options": PLAIN} | how
    return write(path, times, numbers=range(first, first + 100), sound_start_ms=start_ms, **how)


@pytest.mark.parametrize("options", [PLAIN, REORDERED])
@pytest.mark.parametrize("suffix", ["mkv", "mp4", "ts"])
@pytest.mark.parametrize(
    "by",
    [
        {50: 1_800_000},
        {50: 30_000, 51: 30_000, 52: 30_000},
        {60: -4_000},
        {20: 7_000, 40: 1_800_000, 60: 5_000, 80: -2_000},
        {99: 1_800_000},
        dict.fromkeys(range(50, 75), 60000),
    ],
)
def test_a_picture_with_a_stray_timestamp_is_shown_between_its_neighbours(
    tmp_path: Path, suffix: str, options: dict[str, str], by: dict[int, int]
) -> None:
    file = write(tmp_path / f"a.{suffix}", TIMES, options=options, stamped=strays(by))
    info, pictures = shown(file)
    assert pictures == {k: k for k in range(100)}
    assert info.duration_s == pytest.approx(10, abs=0.01)
    assert not info.truncated


def test_what_was_put_right_is_said(tmp_path: Path) -> None:
    file = write(tmp_path / "a.mkv", TIMES, options=PLAIN, stamped=strays({50: 1_800_000}))
    (note,) = inspect(file).notes
    assert note == "1 packet has a stray timestamp, from 5.00 s on: put between its neighbours"
    assert not inspect(recording(tmp_path / "b.mkv")).notes
    # Each instant is asked for by itself: what is passed over on the way is judged, too.
    assert seen(session((file, 0, 10)), 10, [(6, 6.1), (9, 9.2)]) == {60: 60, 90: 90, 91: 91}


def test_the_first_picture_may_be_the_stray_one(tmp_path: Path) -> None:
    file = write(tmp_path / "a.mkv", TIMES, options=PLAIN, stamped=strays({0: 1_800_000}))
    info, pictures = shown(file)
    assert info.first_s == 0.0
    assert pictures == {k: k for k in range(100)}


def test_a_stray_inside_a_long_file_is_found_when_it_is_met(tmp_path: Path) -> None:
    """Neither end of the file tells of it."""
    times = range(0, 60_000, 100)
    file = write(tmp_path / "a.mp4", times, options=PLAIN, stamped=strays({250: 9_000}))
    assert not inspect(file).notes
    parts = [(24.8, 25.3), (33.9, 34.2)]
    want = {k: k for k in (*range(248, 253), *range(339, 342))}
    assert seen(session((file, 0, 60)), 10, parts) == want


def test_stray_key_frames_mislead_no_jump(tmp_path: Path) -> None:
    """The index of the file holds a key frame of 80 s at 20 s."""
    times = range(0, 100_000, 200)
    by = strays({400: -60_000})

    def stamped(n: int, packet: Any) -> None:
        by(n, packet)
        packet.dts -= 60_000

    options = {"g": "50", "bf": "0", "sc_threshold": "0"}
    file = write(tmp_path / "a.mkv", times, options=options, stamped=stamped)
    first_s = inspect(file).first_s
    found = seen(session((file, first_s, first_s + 100)), 5, [(21, 21.5), (80, 80.4)])
    assert found == {k: k for k in (105, 106, 107, 400, 401)}


@pytest.mark.parametrize(("suffix", "codec"), [("mkv", "flac"), ("ts", "aac")])
@pytest.mark.parametrize("by", [{100: 1800}, {0: 1800}, {120: -3}, dict.fromkeys((90, 91), 0.5)])
def test_sound_with_a_stray_timestamp_is_heard_in_its_place(
    tmp_path: Path, suffix: str, codec: str, by: dict[int, float]
) -> None:
    def stamped(n: int, packet: Any) -> None:
        packet.dts -= 5 * RATE
        packet.pts += round(by.get(n, 0) * RATE)

    sound = beeps(1, 3, 5, 7, 9, length_s=10)
    how = {"sound": sound, "sound_codec": codec, "sound_stamped": stamped, "stamped": strays({})}
    file = write(tmp_path / f"a.{suffix}", TIMES, options=PLAIN, **how)
    first_s = inspect(file).first_s
    found = onsets(*one_signal(heard(session((file, first_s, first_s + 10)), 2), 2))
    assert found == pytest.approx([1, 3, 5, 7, 9], abs=0.03)


def test_strays_of_several_clocks_keep_their_order(tmp_path: Path) -> None:
    by = {40: 1_800_000, 41: 5_000, 42: -3000, 43: 60_000}
    file = write(tmp_path / "a.mkv", TIMES, options=PLAIN, stamped=strays(by))
    assert shown(file)[1] == {k: k for k in range(100)}


def test_two_clocks_that_alternate_are_an_error(tmp_path: Path) -> None:
    by = dict.fromkeys(range(1, 100, 2), 1800000)
    file = write(tmp_path / "film.mkv", TIMES, options=PLAIN, stamped=strays(by))
    with pytest.raises(VideoError, match=r"film.*contradict") as error:
        inspect(file)
    assert error.value.kind == "corrupt"


# Joined recordings.


@pytest.mark.parametrize("starts", [(0, 0), (0, 1_000_000), (1_000_000, 0), (1400, 1400, 1400)])
def test_joined_transport_streams_are_read_to_their_end(
    tmp_path: Path, starts: tuple[int, ...]
) -> None:
    parts = [
        recording(tmp_path / f"{n}.ts", start, 100 * n, sound=beeps(2, 6, length_s=10))
        for n, start in enumerate(starts)
    ]
    file = joined(tmp_path / "all.ts", *parts)
    info = inspect(file)
    assert info.duration_s == pytest.approx(10 * len(parts), abs=0.1)
    assert not info.truncated
    assert f"joined from {len(parts)} recordings" in info.notes[0]
    recorded = session((file, info.first_s, info.first_s + info.duration_s))
    for reader in ("pyav", "decord"):
        assert seen(recorded, 10, reader=reader) == {k: k for k in range(100 * len(parts))}
    last = (len(parts) - 1) * 10
    assert seen(recorded, 10, [(last + 5, last + 5.2)]) == {
        k: k for k in (last * 10 + 50, last * 10 + 51)
    }
    found = onsets(*one_signal(heard(recorded, 2), 2))
    want = [10 * n + at for n in range(len(parts)) for at in (2, 6)]
    assert found == pytest.approx(want, abs=0.05)


def test_a_joined_matroska_file_is_read_to_its_end(tmp_path: Path) -> None:
    parts = [recording(tmp_path / f"{n}.mkv", first=100 * n) for n in range(2)]
    info, pictures = shown(joined(tmp_path / "all.mkv", *parts))
    assert info.duration_s == pytest.approx(20, abs=0.01)
    assert pictures == {k: k for k in range(200)}


@pytest.mark.parametrize("before_ms", [5000, 70_000])
@pytest.mark.parametrize("options", [PLAIN, REORDERED])
def test_a_clock_that_comes_round_goes_on(
    tmp_path: Path, before_ms: int, options: dict[str, str]
) -> None:
    """33 bits of 90 kHz last 26.5 hours."""
    times = [WRAP_MS - before_ms + t for t in range(0, 2 * before_ms, before_ms // 50)]
    file = write(tmp_path / "a.ts", times, options=options)
    info = inspect(file)
    assert info.duration_s == pytest.approx(2 * before_ms / 1000, abs=0.2)
    step_s = before_ms / 50_000
    recorded = session((file, info.first_s, info.first_s + info.duration_s))
    assert seen(recorded, 1 / step_s) == {k: k for k in range(100)}
    late = 0.9 * recorded.duration_s
    assert set(seen(recorded, 1 / step_s, [(late, late + 2 * step_s)]).values()) == {90, 91}


def test_what_starts_before_zero_is_not_lost(tmp_path: Path) -> None:
    times = [t - 3000 for t in TIMES]
    file = write(tmp_path / "a.ts", times, options=PLAIN, flags={"avoid_negative_ts": "disabled"})
    info, pictures = shown(file)
    assert (info.first_s, info.duration_s) == pytest.approx((0, 10))
    assert pictures == {k: k for k in range(100)}
    assert "3.00 s before zero" in info.notes[0]


def test_a_break_with_little_lost_is_named(tmp_path: Path) -> None:
    parts = [recording(tmp_path / "a.ts"), recording(tmp_path / "b.ts", 14_000, 100)]
    info, pictures = shown(joined(tmp_path / "all.ts", *parts))
    assert pictures == {k: k if k < 100 else max(99, k - 40) for k in range(240)}
    assert info.notes == ("broken at 14.00 s: the 4.10 s before are missing",)


# Pauses and ends.


@pytest.mark.parametrize("options", [PLAIN, REORDERED])
@pytest.mark.parametrize("suffix", ["mkv", "mp4", "ts"])
def test_a_pause_holds_the_picture_and_lengthens_nothing(
    tmp_path: Path, suffix: str, options: dict[str, str]
) -> None:
    times = [*range(0, 5000, 100), *range(3_605_000, 3_610_000, 100)]
    file = write(tmp_path / f"a.{suffix}", times, options=options)
    info = inspect(file)
    assert info.duration_s == pytest.approx(3610, abs=0.01)
    assert (info.notes, info.truncated) == ((), False)
    recorded = session((file, info.first_s, info.first_s + 3610))
    parts = [(4.8, 5.2), (1800, 1800.2), (3604.8, 3605.3)]
    want = {48: 48, 49: 49, 50: 49, 51: 49, 18_000: 49, 18_001: 49}
    want |= {36_048: 49, 36_049: 49, 36_050: 50, 36_051: 51, 36_052: 52}
    assert seen(recorded, 10, parts) == want


def test_the_last_picture_lasts_as_long_as_itself(tmp_path: Path) -> None:
    """Not as long as the others do on average: 3.4 s."""
    file = write(tmp_path / "a.mp4", [0, 5000, 10_000, 10_100], options=PLAIN)
    assert inspect(file).duration_s == pytest.approx(10.2, abs=0.01)


def test_a_truncated_file_with_a_stray_is_truncated_where_it_ends(tmp_path: Path) -> None:
    by = strays({30: -2000})
    file = write(tmp_path / "a.mkv", TIMES, options=PLAIN, stamped=by, grain=40)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    info = inspect(file)
    assert info.truncated
    assert 3 < info.last_s - info.first_s < 7
    whole = round((info.last_s - info.first_s) * 10) - 1
    assert seen(session((file, info.first_s, info.first_s + whole / 10)), 10) == {
        k: k for k in range(whole)
    }


# Edit lists.


@pytest.mark.parametrize(
    ("edits", "want", "starts"),
    [
        ([(3, 0), (2, 6.5)], [*range(30), *range(65, 85)], 0),
        ([(2, 6.5), (3, 0.3)], [*range(65, 85), *range(3, 33)], 0),
        ([(2, -1), (3, 0.3)], [*range(3, 33)], 2),
    ],
)
def test_an_edit_list_says_what_is_shown_when(
    tmp_path: Path, edits: Any, want: list[int], starts: float
) -> None:
    file = edited(write(tmp_path / "a.mp4", TIMES, options=PLAIN), *edits)
    info, pictures = shown(file)
    assert info.first_s == starts
    assert list(pictures.values()) == want
    assert (info.truncated, info.zero_s) == (False, 0)


def test_reading_goes_on_in_order_whatever_the_edits(tmp_path: Path) -> None:
    file = edited(write(tmp_path / "a.mp4", TIMES, options=REORDERED), (3, 0.2), (3, 6.2))
    with open_session(session((file, 0, 6)), 10, [(0, 6)]) as stream:
        found = [number(sample.frame.pixels()) for sample in stream]
    assert all(later >= one for one, later in pairwise(found))
    assert {0, 10, 20, 62, 70, 80} <= set(found)


def test_formats_with_clocks_of_their_own_start_where_they_start(tmp_path: Path) -> None:
    """The zero of captions: a transport stream's start, a file's own zero elsewhere."""
    late = [t + 1400 for t in TIMES]
    sound = np.zeros(10 * RATE, np.float32)
    stream = inspect(write(tmp_path / "a.ts", late, options=PLAIN))
    assert (stream.zero_s, stream.first_s) == pytest.approx((1.4, 1.4))
    spoken = inspect(write(tmp_path / "b.ts", late, sound=sound, options=PLAIN))
    assert spoken.first_s - spoken.zero_s == pytest.approx(1.4, abs=0.03)
    for name in ("c.mp4", "c.mkv"):
        info = inspect(write(tmp_path / name, late, sound=sound, options=PLAIN))
        assert (info.zero_s, info.first_s) == pytest.approx((0, 1.4), abs=0.03)
