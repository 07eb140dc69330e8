"""Caption files as they are: rolling lines, markup, overlaps, cues without an end."""

from __future__ import annotations

from pathlib import Path

import pytest
from arena_folder import ROW, load, rows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from synthetic import movie

from bench_lib.dollhouse.world.export_stream_arena import rolling
from bench_lib.schema import Caption
from bench_lib.video import captions
from bench_lib.video.stream import Clip

YOUTUBE = """WEBVTT
Kind: captions
Language: en

00:00:00.160 --> 00:00:02.470 align:start position:0%
~
welcome<00:00:00.480><c> to</c><00:00:00.640><c> the</c><00:00:00.800><c> stream</c>

00:00:02.470 --> 00:00:02.480 align:start position:0%
welcome to the stream
~

00:00:02.480 --> 00:00:05.000 align:start position:0%
welcome to the stream
today<00:00:02.800><c> we</c><00:00:03.000><c> cook</c>

00:00:05.000 --> 00:00:05.010 align:start position:0%
today we cook
~

00:00:09.000 --> 00:00:11.000 align:start position:0%
~
today<00:00:09.800><c> we</c><00:00:10.000><c> cook</c>
""".replace("~", " ")


def read(folder: Path, text: str, until_s: float | None = None, name: str = "a.vtt") -> list[tuple]:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return [(c.start_s, c.end_s, c.text) for c in captions.read(path, until_s)]


def test_a_rolling_line_is_said_once(tmp_path: Path) -> None:
    assert read(tmp_path, YOUTUBE) == [
        (0.16, 2.47, "welcome to the stream"),
        (2.48, 5.0, "today we cook"),
        (9.0, 11.0, "today we cook"),  # after a pause it is said again
    ]


def test_rolling_lines_that_became_srt(tmp_path: Path) -> None:
    blocks = [
        ("00:00:00,160 --> 00:00:02,470", " \nwelcome"),
        ("00:00:02,470 --> 00:00:02,480", "welcome\n "),
        ("00:00:02,480 --> 00:00:05,000", "welcome\ntoday"),
        ("00:00:05,000 --> 00:00:05,010", "today\n "),
    ]
    text = "\n\n".join(f"{n}\n{times}\n{said}" for n, (times, said) in enumerate(blocks, 1))
    assert [line[2] for line in read(tmp_path, text, name="a.srt")] == ["welcome", "today"]


def test_what_people_wrote_twice_stays_twice(tmp_path: Path) -> None:
    text = "WEBVTT\n\n00:01.000 --> 00:02.000\nNo.\n\n00:02.000 --> 00:03.000\nNo.\n"
    assert [line[2] for line in read(tmp_path, text)] == ["No.", "No."]


@pytest.mark.parametrize(
    ("cue", "said"),
    [
        ("<v Host><i>Hi</i> &amp; hello</v>", "Hi & hello"),
        ('<font color="#fff">Hi</font> <b>you</b>', "Hi you"),
        ("I <3 you > all", "I <3 you > all"),
        ("one\u2028two\x85three", "one two three"),
        ("a &lt; b and c &gt; d", "a < b and c > d"),
        ("{\\an8}up there", "up there"),
        ("\u200bzero\u200e width&nbsp;too", "zero width too"),
        ("你好<00:00:01.500><c>世界</c>", "你好世界"),
        ("two\nrows", "two rows"),
        (" \nbelow a row of blanks", "below a row of blanks"),
        ("2024", "2024"),
    ],
)
def test_markup_is_taken_out_and_words_stay(tmp_path: Path, cue: str, said: str) -> None:
    text = (
        f"WEBVTT\r\n\r\nNOTE\nnot said\n\nSTYLE\n::cue {{}}\n\nid 1\n00:01.000 --> 00:02.000\n{cue}"
    )
    assert read(tmp_path, text) == [(1.0, 2.0, said)]


def test_blank_rows_may_part_cues(tmp_path: Path) -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\none\n \n2\n00:00:03,000 --> 00:00:04,000\n2 of them\n"
    assert [line[2] for line in read(tmp_path, text, name="a.srt")] == ["one", "2 of them"]


def test_overlapping_cues_keep_their_own_ends(tmp_path: Path) -> None:
    text = "WEBVTT\n\n00:01.000 --> 00:09.000\nlong\n\n00:02.000 --> 00:03.000\nshort\n"
    assert read(tmp_path, text) == [(2.0, 3.0, "short"), (1.0, 9.0, "long")]


def test_a_cue_without_an_end_lasts_until_the_next(tmp_path: Path) -> None:
    text = "WEBVTT\n\n00:01.000 -->\none\n\n00:04.000 --> \ntwo\n"
    assert read(tmp_path, text, until_s=10.0) == [(1.0, 4.0, "one"), (4.0, 10.0, "two")]
    assert read(tmp_path, text) == [(1.0, 4.0, "one")]


def test_an_error_page_is_no_caption_file(tmp_path: Path) -> None:
    assert read(tmp_path, "<!DOCTYPE html><html>HTTP 429 00:01</html>") == []


ONE_TWO = [(1.0, 2.0, "hi"), (3.0, 4.0, "ho")]


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("1\n{a}\nhi\n2\n{b}\nho\n", ONE_TWO),  # no empty rows between
        ("1\n{a}\nhi\n7\n{b}\nho\n", ONE_TWO),  # numbers with a gap
        ("1\n{a}\nhi\n\n\n\n2\n\n{b}\nho\n\n3\n", ONE_TWO),  # the last number without its cue
        ("{a}\nhi\n{b}\nho", ONE_TWO),  # neither numbers nor empty rows
        ("{a}\nhi\n2\n{b}\nho", ONE_TWO),  # the first number is missing
        ("1\n{b}\nho\n\n2\n{a}\nhi\n", ONE_TWO),  # out of order
        ("1 {a}\nhi\n2. {b}\nho\n", ONE_TWO),  # numbers beside the times
        ("1\n{a}\nhi\n\nand more\n\n2\n{b}\nho", [(1.0, 2.0, "hi and more"), ONE_TWO[1]]),
        ("1\n{a}\n2024\n\n2\n{b}\n2", [(1.0, 2.0, "2024"), (3.0, 4.0, "2")]),
        ("{a}\nin\n2024\n\n{b}\n5", [(1.0, 2.0, "in 2024"), (3.0, 4.0, "5")]),
        ("1\n{a}\n\n2\n{b}\nho", ONE_TWO[1:]),
    ],
)
def test_cues_that_stand_as_they_like(tmp_path: Path, text: str, heard: list[tuple]) -> None:
    a, b = "00:00:01,000 --> 00:00:02,000", "00:00:03,000 --> 00:00:04,000"
    assert read(tmp_path, text.format(a=a, b=b), name="a.srt") == heard
    assert read(tmp_path, text.format(a=a, b=b).replace("\n", "\r\n"), name="a.srt") == heard


@pytest.mark.parametrize(
    "times",
    [
        "00:00:01,5 --> 00:00:02,25",
        "00:00:01.500000 --> 00:00:02.250000",
        "0:00:01:500 --> 0:00:02:250",
        "00:01.500 --> 00:02.250 align:start line:80%",
        "00 : 00 : 01 , 500 -> 00:00:02,250 X1:10 X2:90",
        "00:00:01,500 \u2192 00:00:02,250",
        "00:00:01,500 --&gt; 00:00:02,250",
    ],
)
def test_times_as_programs_write_them(tmp_path: Path, times: str) -> None:
    assert read(tmp_path, f"1\n{times}\nhi\n", name="a.srt") == [(1.5, 2.25, "hi")]


def test_times_without_fraction_or_with_many_hours(tmp_path: Path) -> None:
    text = "1\n00:00:01 --> 100:00:02\nhi\n"
    assert read(tmp_path, text, name="a.srt") == [(1.0, 360_002.0, "hi")]


@pytest.mark.parametrize(
    ("text", "heard", "odd"),
    [
        ("00:00:02,000 --> 00:00:01,000\nhi\n\n{b}\nho", [(2.0, 3.0, "hi"), ONE_TWO[1]],
         "cues that end before they start"),
        ("00:00:01,000 --> 00:00:01,000\nhi\n\n{b}\nho", [(1.0, 1.0, "hi"), ONE_TWO[1]], ""),
        ("-00:00:05,000 --> -00:00:01,000\nhi\n\n{b}\nho", ONE_TWO[1:],
         "cues before the recording"),
        ("-00:00:05,000 --> 00:00:01,000\nhi\n\n{b}\nho", [(0.0, 1.0, "hi"), ONE_TWO[1]], ""),
        ("{a}\nhi\n\n2\n00:00:0x,000 --> 00:00:09,000\nlost\n\n{b}\nho", ONE_TWO,
         "cues without a readable time"),
        ("{a}\nhi\n\n{b}\nho\n\n00:00:05,000 -->\nlost", ONE_TWO, "cues without an end"),
    ],
)  # fmt: skip
def test_what_is_odd_is_told(tmp_path: Path, text: str, heard: list[tuple], odd: str) -> None:
    a, b = "00:00:01,000 --> 00:00:02,000", "00:00:03,000 --> 00:00:04,000"
    path = tmp_path / "a.srt"
    path.write_text(text.format(a=a, b=b))
    track = captions.track(path)
    assert [(c.start_s, c.end_s, c.text) for c in track.cues] == heard
    assert len(track.oddities) == bool(odd)
    assert all(one.startswith(odd) for one in track.oddities)


def test_a_long_file_is_read_in_linear_time(tmp_path: Path) -> None:
    rows = "".join(f"{n}\n00:00:01,000 --> 00:00:02,000\nhi\n\n" for n in range(20_000))
    assert len(read(tmp_path, rows, name="a.srt")) == 20_000


lines = st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1))
said = st.lists(
    st.tuples(st.integers(0, 10) | st.integers(40, 300), st.integers(60, 9000), lines.filter(bool)),
    min_size=1,
)


def spoken(parts: list[tuple[int, int, list[str]]]) -> list[Caption]:
    found, at = [], 0
    for gap, length, words in parts:
        start, at = at + gap, at + gap + length
        found.append(Caption(start_s=start / 1000, end_s=at / 1000, text=" ".join(words)))
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said)
def test_lines_survive_rolling_and_writing(
    tmp_path: Path, parts: list[tuple[int, int, list[str]]]
) -> None:
    made = spoken(parts)
    path = tmp_path / "a.vtt"
    captions.write(path, made, note="a\nnote")
    assert list(captions.read(path)) == made
    path.write_text(rolling(made), encoding="utf-8")
    assert list(captions.read(path)) == made


def test_the_first_track_of_the_list_that_says_something(tmp_path: Path) -> None:
    film = movie(tmp_path / "film.mp4", 6.0)
    root = rows(tmp_path / "data", ROW, video=film)
    tracks = root / "captions"
    tracks.mkdir()

    def track(language: str, text: str, suffix: str = "vtt") -> None:
        cue = f"WEBVTT\n\n00:00:01.000 --> 00:00:02.000\n{text}\n" if text else "too many requests"
        (tracks / f"v.{language}.{suffix}").write_text(cue)

    def chosen() -> list[str]:
        data = load(root)
        return [c.text for c in data.trajectories[0].sessions[0].captions] + [
            data.note.partition("captions: ")[2]
        ]

    assert chosen() == ["1 without"]
    track("fr", "French")
    assert chosen() == ["1 without"]
    for language in ("zh-Hant", "en", "zh-Hans", "zh-CN"):
        track(language, language)
        assert chosen() == [language, f"1 {language}"]
    track("zh-CN", "")
    assert chosen() == ["zh-Hans", "1 zh-Hans"]
    track("zh-CN", "as srt", "srt")
    assert chosen() == ["as srt", "1 zh-CN"]


def test_a_line_is_cut_at_the_query_by_its_end() -> None:
    straddles = Caption(start_s=1.0, end_s=5.0, text="x")
    clip = Clip(0, (), (straddles,))
    assert not clip.until(4.999, True).captions
    assert clip.until(5.0, True).captions == (straddles,)
