"""What lies in a folder is a session, belongs to one, or is named with a reason."""

from __future__ import annotations

import json
import os
import unicodedata
from pathlib import Path

import pytest
from folder_home import SECONDS, fill, ids, load, told
from synthetic import question

from bench_lib import sources
from bench_lib.errors import BenchError
from bench_lib.schema import Dataset
from bench_lib.sources.folder import listing

DROPPINGS = (
    "._monday.mp4", ".DS_Store", ".hidden.mp4", ".monday.mp4.icloud", "Thumbs.db", "ehthumbs.db",
    "desktop.ini", "Desktop.ini", "Icon\r", "~$monday.mp4", ".~lock.monday.mp4#",
    "monday.sync-conflict-20240131-174503-ABCDEFG.mp4", "monday (conflicted copy 2024-01-31).mp4",
)  # fmt: skip
UNFINISHED = (
    "tuesday.mp4.part", "tuesday.mp4.crdownload", "tuesday.mp4.download", "tuesday.temp.mp4",
    "tuesday.mp4.tmp", "~tuesday.mp4", "tuesday.mp4~", "tuesday.mp4.part-Frag12.part",
    "Unconfirmed 1234.crdownload", "tuesday.mp4.!ut",
)  # fmt: skip
SMALL = ("GL010034.LRV", "DJI_0001.LRF", "GX010034.THM", "LRV_20240131_174503_01_001.insv")
OTHERS = ("notes.txt", "monday.jpg", "monday.wav", "candidates.json", "monday.ass", "README")


def unused(data: Dataset) -> dict[str, str]:
    """Names by the reason why they are not used."""
    return {how: value for value, how in told(data, "not used")}


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (DROPPINGS, listing.DROPPING),
        (UNFINISHED, listing.UNFINISHED),
        (SMALL, listing.SMALL),
        (OTHERS, listing.OTHER),
    ],
)
def test_what_is_no_recording_is_no_session_and_is_named(
    home: Path, film: Path, names: tuple[str, ...], why: str
) -> None:
    fill(home, film, "monday.mp4", *names)
    data = load(home)
    assert ids(data) == ["monday"]
    assert not data.problems
    (reason,) = unused(data)
    assert reason == why
    shown = unused(data)[why].split(", ")
    assert sorted(shown) == sorted(name.replace("\r", "\\r") for name in names)


def test_folders_of_systems_are_no_trajectories(home: Path, film: Path) -> None:
    fill(home, film, "monday.mp4")
    places = ("__MACOSX", "@eaDir", "$RECYCLE.BIN", ".Trash-1000", "lost+found", "#recycle")
    for name in places:
        fill(home.parent / name / "t", film, "x.mp4")
        fill(home / name, film, "x.mp4")
    data = load(home)
    assert [t.id for t in data.trajectories] == ["t"]
    assert ids(data) == ["monday"]
    assert len(unused(data)[listing.DROPPING].split(", ")) == len(places)
    assert len(told(data, "not used")) == 2


@pytest.mark.parametrize(
    "suffix",
    [
        "mp4", "MP4", "mov", "MKV", "webm", "avi", "mts", "M2TS", "ts", "mpg", "vob", "3gp", "wmv",
        "flv", "m4v", "ogv", "insv", "360", "mxf", "mod",
    ],
)  # fmt: skip
def test_every_container_is_a_session(home: Path, film: Path, suffix: str) -> None:
    fill(home, film, f"b.{suffix}", "a.mp4")
    data = load(home)
    assert ids(data) == ["a", "b"]
    assert not data.problems


def test_files_that_differ_in_their_kind_alone_keep_it(home: Path, film: Path) -> None:
    fill(home, film, "a.mp4", "A.mov", "b.mp4")
    assert ids(load(home)) == ["A.mov", "a.mp4", "b"]


def test_folders_below_are_named_and_can_be_listed(home: Path, film: Path) -> None:
    fill(home, film, "a.mp4", "DAY1/b.mp4", "DAY1/b.srt=1\n00:00:00,100 --> 00:00:01,000\nhi\n",
         "empty.mp4/x.txt=")  # fmt: skip
    data = load(home)
    assert ids(data) == ["a"]
    assert unused(data) == {listing.NESTED: "DAY1, empty.mp4"}
    listed = {"sessions": [{"video": "DAY1/b.mp4"}, {"video": "a.mp4"}]}
    (home / "trajectory.json").write_text(json.dumps(listed))
    data = load(home)
    assert ids(data) == ["b", "a"]
    assert [c.text for c in data.trajectories[0].sessions[0].captions] == ["hi"]
    assert unused(data) == {listing.NESTED: "empty.mp4"}


def test_empty_folders_and_loose_files_are_named(home: Path, film: Path) -> None:
    fill(home, film, "a.mp4")
    fill(home.parent / "none", film)
    fill(home.parent, film, "loose.mp4", "readme.txt=")
    data = load(home)
    assert [t.id for t in data.trajectories] == ["t"]
    (problem,) = data.problems
    assert problem.file.endswith("/none")
    assert problem.reason == "holds no video"
    assert unused(data) == {listing.LOOSE: "loose.mp4", listing.OTHER: "readme.txt"}


def test_a_folder_of_videos_is_no_root(home: Path, film: Path) -> None:
    fill(home.parent, film, "a.mp4")
    with pytest.raises(BenchError, match="holds videos itself; give the folder above"):
        load(home)
    with pytest.raises(BenchError, match="is no folder"):
        sources.load("folder", str(home.parent / "a.mp4"))


def test_links_are_followed_and_broken_ones_missed(home: Path, film: Path) -> None:
    fill(home, film)
    (home / "a.mp4").symlink_to(film)
    (home / "b.mp4").symlink_to(home / "gone.mp4")
    (home / "c").symlink_to(home)
    (home.parent / "linked").symlink_to(home)
    (home.parent / "loop").symlink_to(home.parent / "loop")
    os.mkfifo(home / "pipe.mp4")
    data = load(home)
    assert [t.id for t in data.trajectories] == ["linked", "t"]
    assert ids(data) == ["a", "b"]
    session = data.trajectories[0].sessions[0]
    assert session.spans[0].file == str(film.resolve())
    assert {p.value for p in data.problems} == {"missing"}
    assert "pipe.mp4" in unused(data)[listing.NO_FILE]


def test_names_that_no_record_can_hold_are_named(home: Path, film: Path) -> None:
    fill(home, film, "a.mp4", os.fsdecode("桌.mp4".encode("gbk")), "b\n.mp4")
    data = load(home)
    assert ids(data) == ["a"]
    assert unused(data) == {listing.ODD: "b\\n.mp4, \\udcd7\\udcc0.mp4"}


def test_what_cannot_be_decoded_stays_and_is_a_problem(home: Path, film: Path) -> None:
    fill(home, film, "a.mp4", "b.mp4=no video at all", "c.mp4=")
    data = load(home)
    assert ids(data) == ["a", "b", "c"]
    assert [(p.record, p.value) for p in data.problems] == [
        ("session b", "corrupt"),
        ("session c", "empty"),
    ]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("other", ["NFC", "NFD"])
def test_names_match_in_every_unicode_form(home: Path, film: Path, form: str, other: str) -> None:
    name, said = (unicodedata.normalize(f, "Küche é") for f in (form, other))
    fill(home.parent / name, film, f"{name}.mp4")
    cue = "1\n00:00:00,100 --> 00:00:01,000\nhi\n"
    (home.parent / name / f"{said}.srt").write_text(cue)
    asked = question("q1", said, 1.0).model_dump_json()
    (home.parent / name / "candidates.jsonl").write_text(asked, encoding="utf-8")
    for listed in (False, True):
        if listed:
            sessions = {"sessions": [{"video": f"{said}.MP4"}]}
            (home.parent / name / "trajectory.json").write_text(json.dumps(sessions))
        data = load(home)
        assert not data.problems
        (trajectory,) = data.trajectories
        assert trajectory.id == "Küche é"
        assert ids(data) == ["Küche é"]
        assert [c.text for c in trajectory.sessions[0].captions] == ["hi"]
        assert [c.probes[0].session for c in trajectory.candidates] == ["Küche é"]
        assert not told(data, "not used")


@pytest.mark.parametrize(
    ("one", "other"), [("Kitchen", "kitchen"), ("K\u00fcche", "Ku\u0308che"), ("Straße", "STRASSE")]
)
def test_folders_of_one_name_never_mix(home: Path, film: Path, one: str, other: str) -> None:
    for name in (one, other):
        fill(home.parent / name, film, "a.mp4")
        (home.parent / name / "candidates.jsonl").write_text(
            question("q1", "a", 1.0).model_dump_json()
        )
    data = load(home)
    assert len(data.trajectories) == 1
    (problem,) = data.problems
    assert "occurs twice" in problem.reason


def test_sessions_of_one_name_cost_their_trajectory(home: Path, film: Path) -> None:
    fill(home, film, "e\u0301.mp4", "\u00e9.mp4")
    fill(home.parent / "u", film, "a.mp4")
    data = load(home)
    assert [t.id for t in data.trajectories] == ["u"]
    assert {p.field for p in data.problems} == {"sessions.id"}


@pytest.mark.parametrize(
    ("about", "field"),
    [
        ([], "JSON"),
        ({"sesions": []}, "sesions"),
        ({"sessions": []}, "videos"),
        ({"sessions": ["a.mp4"]}, "sessions.0"),
        ({"sessions": [{"video": 1.5, "id": "x", "start": 3}]}, "sessions.0.start"),
        ({"sessions": [{"id": "x"}]}, "sessions.0.video"),
        ({"sessions": [{"video": []}]}, "video"),
        ({"sessions": [{"video": "a\0.mp4"}]}, "video"),
        ({"sessions": [{"video": "a.mp4", "wall_start": "DAY0 10:03:12"}]}, "wall_start"),
        ({"sessions": [{"video": "a.mp4", "wall_start": "DAY1 25:03:12"}]}, "wall_start"),
        ({"sessions": [{"video": "a.mp4", "encoding": "klingon"}]}, "encoding"),
    ],
)
def test_a_faulty_description_is_one_problem(
    home: Path, film: Path, about: object, field: str
) -> None:
    fill(home, film, "a.mp4")
    fill(home.parent / "u", film, "a.mp4")
    (home / "trajectory.json").write_text(json.dumps(about))
    data = load(home)
    assert [t.id for t in data.trajectories] == ["u"]
    (problem,) = data.problems
    assert problem.file.endswith("trajectory.json")
    assert field in problem.field


def test_a_description_may_leave_out_and_number(home: Path, film: Path) -> None:
    fill(home, film, "a.mp4", "b.mp4")
    about = {"title": 2024, "sessions": [{"video": ["a.mp4", "b.mp4"], "id": 7}]}
    (home / "Trajectory.JSON").write_text(json.dumps(about))
    data = load(home)
    (trajectory,) = data.trajectories
    assert trajectory.title == "2024"
    assert ids(data) == ["7"]
    assert trajectory.sessions[0].duration_s == pytest.approx(2 * SECONDS)
