"""Which caption file is read beside a video, and how it lies on the session's clock."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from barcode import seen, write
from folder_home import SECONDS, fill, load, told
from recordings import strays
from test_video_audio import beeps, joined, onsets
from test_video_audio import heard as hears

from bench_lib.errors import BenchError
from bench_lib.schema import Dataset
from bench_lib.sources.folder import listing


def srt(*cues: tuple[str, str, str]) -> str:
    return "\n".join(f"{n}\n{a} --> {b}\n{said}\n" for n, (a, b, said) in enumerate(cues, 1))


def said(text: str) -> str:
    return srt(("00:00:00,500", "00:00:01,000", text))


def heard(data: Dataset) -> list[tuple[float, float, str]]:
    session = data.trajectories[0].sessions[0]
    return [(c.start_s, c.end_s, c.text) for c in session.captions]


@pytest.mark.parametrize(
    "name",
    [
        "a.srt",
        "a.SRT",
        "A.srt",
        "a.vtt",
        "a.en.srt",
        "a.zh-Hans.vtt",
        "a.mp4.srt",
        "a.en.forced.srt",
    ],
)  # fmt: skip
def test_every_usual_name_is_found_and_named(home: Path, film: Path, name: str) -> None:
    fill(home, film, "a.mp4", f"{name}={said('hi')}")
    data = load(home)
    assert heard(data) == [(0.5, 1.0, "hi")]
    assert told(data, "captions of a") == [(f"{name}, 1 cue", "utf-8")]
    assert not told(data, "not used")
    assert not data.problems


def test_of_several_one_is_taken_by_rule_and_the_rest_named(home: Path, film: Path) -> None:
    ranked = ["a.srt", "a.vtt", "a.en.srt", "a.zh.srt", "a.de.vtt", "a.en.forced.srt"]
    fill(home, film, "a.mp4", *(f"{name}={said(name)}" for name in ranked))
    while ranked:
        data = load(home)
        assert heard(data)[0][2] == ranked[0]
        rest = ", ".join(ranked[1:])
        assert told(data, "not used") == [(rest, f"{ranked[0]} is taken")] * bool(rest)
        (home / ranked.pop(0)).unlink()
    assert told(load(home), "captions") == [("none", "no .srt or .vtt file")]


def test_a_file_belongs_to_the_longest_name_that_it_begins_with(home: Path, film: Path) -> None:
    fill(home, film, "a.mp4", "a.1.mp4", "b.mp4", f"a.1.srt={said('second')}", f"c.srt={said('x')}")
    data = load(home)
    by_id = {s.id: [c.text for c in s.captions] for s in data.trajectories[0].sessions}
    assert by_id == {"a": [], "a.1": ["second"], "b": []}
    assert told(data, "captions of b") == [("none", "none with its name")]
    assert told(data, "not used") == [("c.srt", listing.UNOWNED)]


def test_a_file_that_says_nothing_is_passed_by(home: Path, film: Path) -> None:
    fill(home, film, "a.mp4", "a.srt=<html>HTTP 429</html>", f"a.en.srt={said('hi')}")
    (home / "a.vtt").write_bytes(bytes(range(256)) * 9)
    data = load(home)
    assert heard(data) == [(0.5, 1.0, "hi")]
    assert {Path(p.file).name for p in data.problems} == {"a.srt", "a.vtt"}


def test_a_guess_is_told_and_can_be_overridden(home: Path, film: Path) -> None:
    fill(home, film, "a.mp4")
    (home / "a.srt").write_bytes(said("钥匙在桌子上").encode("gbk"))
    data = load(home)
    assert heard(data)[0][2] == "钥匙在桌子上"
    assert told(data, "captions of a") == [("a.srt, 1 cue", "gb18030 (GBK), guessed")]
    data = load(home, "?encoding=cp1251")
    assert heard(data)[0][2] == "钥匙在桌子上".encode("gbk").decode("cp1251")
    assert told(data, "captions of a") == [("a.srt, 1 cue", "cp1251, as given")]
    listed = {"sessions": [{"video": "a.mp4", "encoding": "gbk"}]}
    (home / "trajectory.json").write_text(json.dumps(listed))
    assert heard(load(home, "?encoding=cp1251"))[0][2] == "钥匙在桌子上"
    with pytest.raises(BenchError, match="'klingon' is not known"):
        load(home, "?encoding=klingon")


def test_damaged_characters_are_a_problem(home: Path, film: Path) -> None:
    fill(home, film, "a.mp4")
    (home / "a.srt").write_bytes(said("钥匙在桌子上").encode()[:-3] + b"\n")
    (problem,) = load(home).problems
    assert problem.reason == "damaged characters: 1"


def test_a_chosen_file_is_taken_whatever_its_name(home: Path, film: Path) -> None:
    fill(home, film, "a.mp4", "b.mp4", f"a.srt={said('a')}", f"other.srt={said('chosen')}")
    sessions = [{"video": ["a.mp4", "b.mp4"], "captions": "other.srt"}]
    (home / "trajectory.json").write_text(json.dumps({"sessions": sessions}))
    data = load(home)
    assert heard(data) == [(0.5, 1.0, "chosen")]
    assert told(data, "captions of a") == [("other.srt, 1 cue", "utf-8")]
    sessions[0]["captions"] = "gone.srt"
    (home / "trajectory.json").write_text(json.dumps({"sessions": sessions}))
    (problem,) = load(home).problems
    assert "cannot be read" in problem.reason


def test_captions_of_files_recorded_in_one_go_follow_each_other(home: Path, film: Path) -> None:
    fill(home, film, "a.mp4", "b.mp4", f"a.srt={said('a')}", f"b.srt={said('b')}")
    (home / "trajectory.json").write_text('{"sessions": [{"video": ["a.mp4", "b.mp4"]}]}')
    assert heard(load(home)) == [(0.5, 1.0, "a"), (SECONDS + 0.5, SECONDS + 1.0, "b")]


CLOCK = srt(("11:09:30,500", "11:09:31,000", "hello"), ("11:09:31,200", "11:09:39,000", "keys"))
ON_CLOCK = [(0.5, 1.0, "hello"), (1.2, SECONDS, "keys")]


def test_times_of_day_are_counted_from_the_wall_clock(home: Path, film: Path) -> None:
    fill(home, film, "a.mp4", f"a.srt={CLOCK}")
    about = {"sessions": [{"video": "a.mp4", "wall_start": "DAY2 11:09:30"}]}
    (home / "trajectory.json").write_text(json.dumps(about))
    data = load(home)
    assert heard(data) == ON_CLOCK
    assert told(data, "captions of a") == [
        ("a.srt, 2 cues", "utf-8, times of day from 11:09:30 on")
    ]
    assert not data.problems


def test_a_name_tells_the_wall_clock_and_that_is_told(home: Path, film: Path) -> None:
    name = "DAY1_A1_JAKE_11093000"
    fill(home, film, f"{name}.mp4", f"{name}.srt={CLOCK}")
    data = load(home)
    assert heard(data) == ON_CLOCK
    (problem,) = data.problems
    assert "times of day" in problem.reason
    assert data.trajectories[0].sessions[0].wall_start_s == 40_170.0


def test_times_of_day_go_on_after_midnight(home: Path, film: Path) -> None:
    text = srt(("23:59:59,500", "00:00:00,200", "late"), ("00:00:00,500", "00:00:01,000", "early"))
    fill(home, film, "20240131_235959.mp4", f"20240131_235959.srt={text}")
    assert heard(load(home)) == [(0.5, 1.2, "late"), (1.5, 2.0, "early")]


def test_times_of_day_without_a_clock_are_a_problem(home: Path, film: Path) -> None:
    fill(home, film, "a.mp4", f"a.srt={CLOCK}")
    data = load(home)
    assert heard(data) == []
    (problem,) = data.problems
    assert problem.record == "2 cues"
    assert problem.value == "11:09:30 to 11:09:39"
    assert "give wall_start in trajectory.json" in problem.reason


def test_cues_beyond_the_video_are_a_problem_and_those_inside_stay(home: Path, film: Path) -> None:
    text = srt(
        ("00:00:00,500", "00:00:09,000", "to the end"),
        ("00:00:01,000", "00:00:01,500", "inside"),
        ("00:00:02,000", "00:00:03,000", "beyond"),
    )
    fill(home, film, "a.mp4", f"a.srt={text}")
    data = load(home)
    assert heard(data) == [(1.0, 1.5, "inside"), (0.5, SECONDS, "to the end")]
    (problem,) = data.problems
    assert (problem.record, problem.value) == ("1 cues", "00:00:02 to 00:00:03")
    assert "outside the 2.0 s" in problem.reason


def test_captions_of_a_video_that_cannot_be_read_stay(home: Path, film: Path) -> None:
    fill(home, film, "a.mp4=broken", f"a.srt={CLOCK}", "b.mp4")
    assert [line[2] for line in heard(load(home))] == ["hello", "keys"]


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.ts"])
def test_cues_pictures_and_sound_have_one_zero(home: Path, name: str) -> None:
    """Pictures begin 2 s after the sound: a cue at 5 s of the file is one at 3 s of the session."""
    home.mkdir(parents=True)
    sound = beeps(5.5, length_s=10)
    write(home / name, range(2000, 10_000, 100), sound=sound)
    (home / "a.srt").write_text(srt(("00:00:05,500", "00:00:06,000", "picture 35 and a beep")))
    data = load(home)
    session = data.trajectories[0].sessions[0]
    (cue,) = session.captions
    assert (cue.start_s, cue.end_s) == pytest.approx((3.5, 4.0), abs=0.03)
    assert seen(session, 10, [(3.5, 3.6)]) == {35: 35}
    assert onsets(*joined(hears(session, 2), 2)) == pytest.approx([cue.start_s], abs=0.03)
    assert not data.problems
    # What was said before the first picture is in no session.
    (home / "a.srt").write_text(srt(("00:00:00,500", "00:00:01,000", "early")))
    assert not load(home).trajectories[0].sessions[0].captions


def test_a_second_file_of_a_session_has_a_zero_of_its_own(home: Path) -> None:
    home.mkdir(parents=True)
    for name, start_ms in (("a.mp4", 0), ("b.mp4", 1000)):
        sound = beeps(1, length_s=4)
        write(home / name, range(start_ms, 4000, 100), sound=sound)
        at = srt(("00:00:02,000", "00:00:02,500", name))
        (home / name).with_suffix(".srt").write_text(at)
    about = {"sessions": [{"video": ["a.mp4", "b.mp4"]}]}
    (home / "trajectory.json").write_text(json.dumps(about))
    assert [(start_s, said) for start_s, _, said in heard(load(home))] == [
        (pytest.approx(2.0, abs=0.01), "a.mp4"),
        (pytest.approx(4.0 + 2.0 - 1.0, abs=0.05), "b.mp4"),
    ]


def test_times_that_were_put_right_are_a_problem(home: Path) -> None:
    home.mkdir(parents=True)
    write(home / "a.mkv", range(0, 9000, 100), stamped=strays({50: 1_800_000}))
    (problem,) = load(home).problems
    assert (problem.file.rsplit("/")[-1], problem.record) == ("a.mkv", "session a")
    assert "stray timestamp" in problem.reason
