"""Sessions stand in the order of their recording, by a rule that is told."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from folder_home import fill, ids, load, stamped, told
from hypothesis import given
from hypothesis import strategies as st

from bench_lib.sources.folder.names import natural, stamp
from bench_lib.sources.folder.order import Clip, recorded
from bench_lib.video.session import inspect

NATURAL = "names in natural order"


def clips(*names: str, **created: str) -> list[Clip]:
    found = [Clip(Path(f"{name}.mp4"), 60.0, created.get(name, "")) for name in names]
    random.Random(1).shuffle(found)
    return found


def order(found: list[Clip]) -> list[str]:
    return [clip.file.stem for clip in recorded(found).clips]


@pytest.mark.parametrize(
    ("rule", "names"),
    [
        (NATURAL, ["day1", "day2", "day10"]),
        (NATURAL, ["IMG_0009", "IMG_0010", "IMG_0100"]),
        (NATURAL, ["1", "2", "10", "A", "b", "B2", "b10"]),
        (NATURAL, ["00001", "00002", "clip 3", "Clip 20"]),
        ("weekdays in the names", ["monday", "Tuesday", "wed", "Thursday 2", "fri", "Sunday"]),
        ("leading numbers in the names", ["1_scene", "02 kitchen", "10. water"]),
        ("numbers and chapters in the names", ["GX010034", "GX020034", "GX010035"]),
        ("numbers and chapters in the names", ["GOPR0034", "GP010034", "GP020034", "GOPR0035"]),
        ("dates in the names", ["VID_20231231_235959", "20240131_174503", "2024-01-31 17.45.04"]),
        ("dates in the names", ["PXL_20240131_174503123", "PXL_20240131_174503124.LS"]),
        ("dates in the names", ["video_2024-01-31_09-45-03", "video_2024-01-31_17-45-03"]),
        (
            "dates in the names",
            [f"Screen Recording 2024-01-31 at {time}M"
             for time in ("9.45.03\u202fA", "12.00.00\u202fP", "1.45.03\u202fP")],
        ),
        ("dates in the names", ["DJI_20240131174503_0002_D", "DJI_20240131174603_0001_D"]),
        ("dates in the names", ["2024_0131_174503_002", "2024_0131_174504_001"]),
        ("dates in the names", ["WIN_20240131_17_45_03_Pro", "WIN_20240131_17_46_00_Pro"]),
        ("dates in the names", ["RPReplay_Final1706723103", "RPReplay_Final1706723104"]),
        ("dates in the names", ["P01-20240202-110250", "P01-20240203-090000"]),
        ("dates in the names", ["talk 2024-01-31", "breakfast 2024-02-01"]),
        ("dates in the names", ["VID-20240131-WA0009", "VID-20240131-WA0010"]),
        (
            "days and times in the names",
            ["DAY1_A1_JAKE_11093000", "DAY1_A1_JAKE_11100019", "DAY2_A1_JAKE_10000000",
             "DAY10_A1_JAKE_09000000"],
        ),
        ("days and times in the names", ["A1_JAKE_DAY1_11000000", "A1_JAKE_DAY2_09000000"]),
    ],
)  # fmt: skip
def test_names_tell_the_order(rule: str, names: list[str]) -> None:
    found = recorded(clips(*names))
    assert [clip.file.stem for clip in found.clips] == names
    assert found.rule == rule


@pytest.mark.parametrize(
    "name",
    ["20241399_174503", "99999999", "20240131", "DAY1_A1_JAKE_99093000", "1080p", "S01E02", "moon"],
)
def test_numbers_that_are_no_times_are_not_taken_for_them(name: str) -> None:
    found = stamp(name)
    assert found is None or found.wall_s is None


def test_files_tell_the_order_where_names_do_not() -> None:
    found = clips(
        "zoo", "attic", "kitchen",
        zoo="2024-01-31T10:00:00.000000Z", attic="2024-01-31T12:00:00Z",
        kitchen="2024-02-01T09:00:00+0900",
    )  # fmt: skip
    assert order(found) == ["zoo", "attic", "kitchen"]
    assert recorded(found).rule == "times in the files"
    assert not recorded(found).doubts


def test_names_that_number_the_files_otherwise_are_told() -> None:
    found = recorded(
        clips("day1", "day2", day1="2024-02-02T00:00:00Z", day2="2024-01-01T00:00:00Z")
    )
    assert [clip.file.stem for clip in found.clips] == ["day2", "day1"]
    assert found.doubts == ("by the numbers in the names day1.mp4 comes before day2.mp4",)


@pytest.mark.parametrize(
    ("first", "then"), [("20240131_100000", "20240131_120000"), ("1_scene", "2_water")]
)
def test_sure_names_go_before_times_in_files_and_the_contradiction_is_told(
    first: str, then: str
) -> None:
    given = {first: "2024-03-02T00:00:00Z", then: "2024-03-01T00:00:00Z"}
    found = recorded(clips(*given, **given))
    assert [clip.file.stem for clip in found.clips] == [first, then]
    assert found.doubts == (f"by the times in the files {then}.mp4 comes before {first}.mp4",)


@pytest.mark.parametrize(
    ("found", "doubt"),
    [
        (clips("day1", "day2", day1="2024-01-01T00:00:00Z"), "day1.mp4 does, day2.mp4 does not"),
        (clips("20240131_100000", "b"), "20240131_100000.mp4 does, b.mp4 does not"),
        (clips("20240131_100000", "DAY1_A1_JAKE_11000000"), "in several ways"),
        (clips("a", "b", a="2024-01-01T00:00:00Z", b="2024-01-01T00:00:00Z"), "all the same"),
        (clips("day1", "day2", day1="2024-01-01T00:00:09Z", day2="2024-01-01T00:00:00Z"),
         "closer than the videos are long"),
    ],
)  # fmt: skip
def test_times_that_do_not_order_all_are_not_used_and_told(found: list[Clip], doubt: str) -> None:
    assert recorded(found).rule == NATURAL
    assert any(doubt in one for one in recorded(found).doubts)
    assert order(found) == sorted(order(found), key=natural)


def test_clocks_that_were_never_set_tell_nothing() -> None:
    assert not recorded(clips("a", "b", a="1904-01-01T00:00:00Z", b="1970-01-01T00:00:09Z")).doubts


def test_ties_are_told_and_go_by_name() -> None:
    found = recorded(clips("VID_20240131_174503_00_010", "VID_20240131_174503_00_002"))
    assert [c.file.stem[-3:] for c in found.clips] == ["002", "010"]
    assert "have one time" in found.doubts[0]
    start = "2024-01-01T00:00:00Z"
    late = "2024-01-01T01:00:00Z"
    chapters = clips(
        "GX020034", "GX010034", "GX010035", GX020034=start, GX010034=start, GX010035=late
    )
    assert order(chapters) == ["GX010034", "GX020034", "GX010035"]
    assert not recorded(chapters).doubts


@given(st.lists(st.text(max_size=8), unique=True, max_size=6), st.randoms())
def test_natural_order_is_an_order(names: list[str], chance: random.Random) -> None:
    mixed = chance.sample(names, len(names))
    assert sorted(mixed, key=natural) == sorted(names, key=natural)


def test_a_folder_is_ordered_and_says_how(home: Path, film: Path) -> None:
    fill(home, film, "day1.mp4", "day10.MP4", "day2.mp4")
    data = load(home)
    assert ids(data) == ["day1", "day2", "day10"]
    assert [s.index for s in data.trajectories[0].sessions] == [0, 1, 2]
    assert told(data, "order") == [("day1, day2, day10", NATURAL)]
    (home / "trajectory.json").write_text(json.dumps(
        {"sessions": [{"video": "day10.MP4"}, {"video": "day1.mp4", "id": "first"}]}
    ))  # fmt: skip
    data = load(home)
    assert ids(data) == ["day10", "first"]
    assert told(data, "order") == [("day10, first", "as listed in trajectory.json")]
    assert told(data, "not used") == [("day2.mp4", "not listed in trajectory.json")]


@pytest.mark.parametrize(
    ("suffix", "key"),
    [
        ("mp4", "creation_time"),
        ("mkv", "creation_time"),
        ("mov", "com.apple.quicktime.creationdate"),
    ],
)
def test_the_time_of_recording_is_read_from_the_file(
    home: Path, film: Path, suffix: str, key: str
) -> None:
    stamped(home / f"a.{suffix}", film, "2024-02-01T10:00:00Z", key)
    stamped(home / f"b.{suffix}", film, "2024-01-31T10:00:00Z", key)
    assert inspect(home / f"a.{suffix}").created.startswith("2024-02-01T10:00:00")
    data = load(home)
    assert ids(data) == ["b", "a"]
    assert told(data, "order") == [("b, a", "times in the files")]


def test_names_with_the_time_of_day_set_the_wall_clock(home: Path, film: Path) -> None:
    fill(home, film, "20240131_174503.mp4", "20240202_000000.mp4")
    first, second = load(home).trajectories[0].sessions
    assert (first.wall_start_s, second.wall_start_s) == (63_903.0, 2 * 86_400.0)
    fill(home, film, "20240131_174504.mp4")  # while the first still runs
    data = load(home)
    assert [s.wall_start_s for s in data.trajectories[0].sessions] == [None] * 3
    assert told(data, "wall clock") == [("none", "by the times in their names sessions overlap")]
    (home / "trajectory.json").write_text(json.dumps(
        {"sessions": [{"video": "20240131_174503.mp4", "wall_start": "DAY2 10:03:12"}]}
    ))  # fmt: skip
    assert load(home).trajectories[0].sessions[0].wall_start_s == 86_400 + 36_192
