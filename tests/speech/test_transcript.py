"""Whole recordings are transcribed by the stream's own windows, once, and cut like captions."""

from __future__ import annotations

import json
import sys
import wave
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread
from types import ModuleType, SimpleNamespace

import av
import numpy as np
import pytest
from arena_folder import ROW, load, rows

from bench_lib import sources, speech
from bench_lib.dollhouse.world import sound
from bench_lib.errors import BenchError
from bench_lib.measure import counting
from bench_lib.schema import Session, Span
from bench_lib.speech import endpoint
from bench_lib.speech.repeats import flagged
from bench_lib.speech.transcript import transcribe, transcript
from bench_lib.speech.windows import Ear
from bench_lib.video.clips import clips
from bench_lib.video.session import VideoError, open_session
from bench_lib.video.stream import SAMPLE_RATE

MEDIA = Path(__file__).parents[1] / "media"
SPEECH = MEDIA / "friday_speech.mp4"
SPANS = ((str(SPEECH), 0.0, 6.2),)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def level(samples: np.ndarray) -> str:
    """A recogniser that says how loud its window is, and how long."""
    return f"{np.abs(samples).mean():.5f} in {len(samples)}"


def known(name: str = "level") -> speech.Recogniser:
    return speech.Recogniser(name, level)


def test_the_file_is_heard_as_the_stream_is() -> None:
    window_s = 1.0
    (file, start_s, end_s) = SPANS[0]
    found = transcribe(SPANS, level, window_s, 0.005)
    session = Session(
        id="S",
        index=0,
        spans=(Span(file=file, start_s=start_s, end_s=end_s),),
        duration_s=end_s,
    )
    ear = Ear(window_s, 0.005, 300, level)
    with open_session(session, 2.0, ((0.0, end_s),), audio=True) as stream:
        for clip in clips(stream, (), ((0.0, end_s),), 0, 8):
            assert clip.audio is not None
            before = max(0, round(-clip.audio_start_s * SAMPLE_RATE))
            ear.sound(clip.audio[before:], max(0.0, clip.audio_start_s))
    streamed = [(h.start_s, h.end_s, h.text) for h in ear.heard]
    assert streamed
    assert [(c.start_s, c.end_s, c.text) for c in found][: len(streamed)] == streamed
    # The stream's last window never ends; the file's does, with the file.
    assert len(found) == len(streamed) + 1
    assert found[-1].end_s == pytest.approx(end_s)


def test_quiet_windows_reach_no_recogniser(tmp_path: Path) -> None:
    path = _sounding(tmp_path / "a.mp4", [0.0, 0.2, 0.003, 0.2])
    with counting() as counts:
        found = transcribe(((str(path), 0.0, 20.0),), level, 5.0, 0.005)
    assert [(c.start_s, c.end_s) for c in found] == [(5.0, 10.0), (15.0, 20.0)]
    assert (counts["windows_transcribed"], counts["quiet_windows"]) == (2, 2)


def _sounding(path: Path, loud: list[float], rate: int = SAMPLE_RATE) -> Path:
    """A film with sound, five seconds of each loudness."""
    wave_ = np.sin(np.arange(5 * rate) * 2 * np.pi * 440 / rate) * np.sqrt(2)
    samples = np.concatenate([wave_ * amount for amount in loud])
    return _film(path, (samples * 32_767).astype(np.int16), rate)


def _film(path: Path, samples: np.ndarray, rate: int) -> Path:
    with av.open(str(path), "w") as out:
        pictures = out.add_stream("libx264", rate=2)
        pictures.width = pictures.height = 32
        pictures.pix_fmt = "yuv420p"
        track = out.add_stream("aac", rate=rate, layout="mono")
        for _ in range(len(samples) * 2 // rate):
            picture = av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), "rgb24")
            out.mux(pictures.encode(picture))
        out.mux(pictures.encode())
        part = av.AudioFrame.from_ndarray(samples[None], format="s16", layout="mono")
        part.sample_rate, part.pts = rate, 0
        out.mux(track.encode(part))
        out.mux(track.encode())
    return path


def test_written_once_for_a_file_and_a_recogniser(tmp_path: Path, cache: Path) -> None:
    with counting() as first:
        found = transcript(SPANS, known)
    assert first["windows_transcribed"] == 2
    moved = tmp_path / "moved.mp4"
    moved.write_bytes(SPEECH.read_bytes())
    with counting() as second:
        assert transcript(((str(moved), 0.0, 6.2),), known) == found
    assert "windows_transcribed" not in second
    (kept,) = (cache / "transcripts").iterdir()
    assert kept.read_text().startswith("WEBVTT\n\nNOTE level; windows of 5.0 s from 0.005 on")
    for changed in (
        lambda: transcript(SPANS, lambda: known("other")),
        lambda: transcript(SPANS, known, min_rms=0.006),
        lambda: transcript(SPANS, known, window_s=4.0),
        lambda: transcript(((str(SPEECH), 0.0, 6.0),), known),
    ):
        with counting() as counts:
            changed()
        assert counts["windows_transcribed"] == 2
    assert len(list((cache / "transcripts").iterdir())) == 5


def test_a_failure_keeps_nothing(cache: Path) -> None:
    def fails(samples: np.ndarray) -> str:
        raise BenchError("the server is gone")

    with pytest.raises(BenchError, match="is gone"):
        transcript(SPANS, lambda: speech.Recogniser("fails", fails))
    assert not (cache / "transcripts").exists()
    with pytest.raises(VideoError):
        transcribe((("nowhere.mp4", 0.0, 1.0),), level, 5.0, 0.0)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("bench_lib.speech.level")
    module.load = lambda where, home: known(f"level {where} {home.name}")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "bench_lib.speech.level", module)
    monkeypatch.setattr(speech, "available", lambda: ("level",))


def test_a_video_without_captions_is_transcribed_when_prepared(
    tmp_path: Path, cache: Path, registered: None
) -> None:
    root = rows(tmp_path / "data", ROW, video=SPEECH)
    data = load(root, asr="level:models/x")
    assert "1 transcribed by level:models/x" in data.note
    (trajectory,) = data.trajectories
    assert not trajectory.sessions[0].captions
    ready = sources.prepare(trajectory)
    said = ready.sessions[0].captions
    assert said[0].end_s == 5.0
    assert ready.candidates == trajectory.candidates
    (kept,) = (cache / "transcripts").iterdir()
    assert "NOTE level models/x data;" in kept.read_text()
    assert not sources.prepare(load(root).trajectories[0]).sessions[0].captions
    (root / "captions").mkdir()
    own = "WEBVTT\n\n00:01.000 --> 00:02.000\nown\n"
    (root / "captions" / "v.en.vtt").write_text(own)
    (session,) = sources.prepare(load(root, asr="level").trajectories[0]).sessions
    assert [c.text for c in session.captions] == ["own"]


def test_a_recogniser_that_cannot_be_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {"endpoint", "faster_whisper"} == set(speech.available())
    with pytest.raises(BenchError, match="did you mean 'faster_whisper'"):
        speech.recogniser("fast_whisper")
    with pytest.raises(BenchError, match=r"lacks model.bin, config.json.*CTranslate2"):
        speech.recogniser("faster_whisper:nowhere", tmp_path)
    (tmp_path / "model.bin").write_bytes(b"")
    (tmp_path / "config.json").write_bytes(b"{}")
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    with pytest.raises(BenchError, match=r"bench-lib\[asr\]"):
        speech.recogniser("faster_whisper:.", tmp_path)
    with pytest.raises(BenchError, match="MODEL@http"):
        speech.recogniser("endpoint:localhost:8000")


def test_whisper_is_asked_for_one_window_without_chance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its library is not there in every environment: what is sent to it is looked at."""
    asked: list[dict] = []

    class Model:
        def __init__(self, folder: str, **how: object) -> None:
            asked.append({"folder": folder, **how})

        def transcribe(self, samples: np.ndarray, **how: object) -> tuple:
            asked.append(how)
            parts = [(" Hello", 0.1), (" noise", 0.9), (" there.", 0.2)]
            found = [SimpleNamespace(text=t, no_speech_prob=p) for t, p in parts]
            return iter(found), None

    module = ModuleType("faster_whisper")
    module.WhisperModel, module.__version__ = Model, "1"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "faster_whisper", module)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.bin").write_bytes(b"one")
    first = speech.recogniser("faster_whisper:.", tmp_path)
    assert first.listen(np.zeros(100, np.float32)) == "Hello there."
    assert asked[0]["local_files_only"]
    assert asked[1]["temperature"] == 0.0
    assert not asked[1]["condition_on_previous_text"]
    (tmp_path / "model.bin").write_bytes(b"two")
    assert speech.recogniser("faster_whisper:.", tmp_path).id != first.id


def test_a_server_gets_the_window_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[tuple[str, str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            got.append((self.path, self.headers.get("authorization", ""), body))
            status = 503 if len(got) == 1 else 200
            reply = json.dumps({"text": "number seven"} if len(got) < 3 else {"words": []}).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv(endpoint.KEY, "sk-test-0123456789")
    try:
        one = speech.recogniser(f"endpoint:some/model@http://127.0.0.1:{server.server_port}/v1")
        assert one.id == "endpoint some/model"
        samples = np.linspace(-1, 0.9, 1600, dtype=np.float32)
        assert one.listen(samples) == "number seven"
        with pytest.raises(BenchError, match="holds no text"):
            one.listen(samples)
    finally:
        server.shutdown()
        server.server_close()
    path, key, body = got[1]
    assert (path, key) == ("/v1/audio/transcriptions", "Bearer sk-test-0123456789")
    assert b"some/model" in body
    assert endpoint.wav(samples) in body
    with wave.open(BytesIO(endpoint.wav(samples))) as file:
        assert (file.getframerate(), file.getnchannels(), file.getnframes()) == (16_000, 1, 1600)
        held = np.frombuffer(file.readframes(1600), "<i2") / 32_768
    assert np.abs(held - samples).max() <= 0.5 / 32_768


GRAMMAR = """#JSGF V1.0;
grammar numbers;
public <number> = number <n>;
<n> = <digit> | <teen> | <tens> [<digit>];
<digit> = one | two | three | four | five | six | seven | eight | nine;
<teen> = ten | eleven | twelve | thirteen | fourteen | fifteen | sixteen | seventeen | eighteen;
<tens> = twenty | thirty | forty | fifty | sixty | seventy | eighty | ninety;
"""


@pytest.mark.skipif(not sound.available(), reason="needs espeak-ng")
def test_a_real_recogniser_hears_spoken_numbers(tmp_path: Path) -> None:
    sphinx = pytest.importorskip("pocketsphinx")
    grammar = tmp_path / "numbers.gram"
    grammar.write_text(GRAMMAR)
    decoder = sphinx.Decoder(samprate=SAMPLE_RATE, lm=None, jsgf=str(grammar), loglevel="FATAL")

    def listen(samples: np.ndarray) -> str:
        decoder.start_utt()
        pcm = np.round(samples * 32_768).clip(-32_768, 32_767).astype("<i2")
        decoder.process_raw(pcm.tobytes(), no_search=False, full_utt=True)
        decoder.end_utt()
        return decoder.hyp().hypstr if decoder.hyp() else ""

    parts = []
    for number in (42, 13):
        part = np.zeros(5 * sound.RATE, np.int16)
        line = sound._spoken("boy", f"number {number}")
        part[sound.RATE : sound.RATE + len(line)] = line
        parts.append(part)
    path = _film(tmp_path / "a.mp4", np.concatenate(parts), sound.RATE)
    found = transcript(((str(path), 0.0, 10.0),), lambda: speech.Recogniser("pocketsphinx", listen))
    assert [(c.end_s, c.text) for c in found] == [
        (5.0, "number forty two"),
        (10.0, "number thirteen"),
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("you " * 200, "200 times: you]"),
        ("I think so. " + "okay, " * 30, "30 times: okay]"),
        ("Thank you for watching. " * 4, "4 times: Thank you for watching]"),
        ("谢谢观看" * 10, "10 times: 谢谢观看]"),
        ("ご視聴ありがとうございました。" * 5, "ご視聴ありがとうございました]"),
        ("спасибо " * 9, "9 times: спасибо]"),
        ("ठीक है " * 8, "8 times: ठीक है]"),
        ("haaaaaaaaaaaaaaaaaaaaaa", "a]"),
        (" ".join(f"and then he said that {n}" for n in (1, 2, 1, 3, 1, 2, 1) * 4), "and then"),
    ],
)
def test_recognition_that_repeats_itself_is_marked(text: str, shown: str) -> None:
    found = transcribe(SPANS, lambda samples: text, 5.0, 0.005)
    assert found
    for caption in found:
        assert caption.text.startswith("[recognition repeats itself")
        assert shown in caption.text
        assert len(caption.text) < 100


@pytest.mark.parametrize(
    "text",
    [
        "no no no",
        "very, very, very good",
        "好的好的",
        "哈哈哈哈",
        "it is 1000000000000 or zero zero zero one",
        "He said that that was it. He said so. He said so twice.",
        "Row, row, row your boat, gently down the stream. Merrily, merrily, merrily, merrily.",
    ],
)
def test_what_people_say_is_not_marked(text: str) -> None:
    assert flagged(text) == text


def test_one_text_in_window_after_window_is_marked_from_the_fourth_on(tmp_path: Path) -> None:
    path = _sounding(tmp_path / "a.mp4", [0.2, 0.2, 0.2, 0.2, 0.2, 0.0, 0.2])
    found = transcribe(((str(path), 0.0, 35.0),), lambda s: "Thanks.", 5.0, 0.005)
    assert [c.text for c in found] == [
        "Thanks.",
        "Thanks.",
        "Thanks.",
        "[recognition repeats itself in 4 windows: Thanks.]",
        "[recognition repeats itself in 5 windows: Thanks.]",
        "Thanks.",
    ]


def test_the_streams_recogniser_marks_repetitions_too(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = ModuleType("bench_lib.speech.endpoint")
    loaded.load = lambda where, home: speech.Recogniser("fake", lambda s: "you " * 50)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "bench_lib.speech.endpoint", loaded)
    heard = speech.recogniser("endpoint:x").listen(np.zeros(10, np.float32))
    assert heard == "[recognition repeats itself 50 times: you]"


def test_the_default_track_is_transcribed(tmp_path: Path) -> None:
    """Of two tracks the second is the default, and the only one with sound."""
    quiet, loud = (_sounding(tmp_path / f"{n}.mp4", [v, v]) for n, v in enumerate((0.0, 0.2)))
    path = tmp_path / "both.mp4"
    with av.open(str(quiet)) as one, av.open(str(loud)) as two, av.open(str(path), "w") as out:
        chosen = [one.streams.video[0], one.streams.audio[0], two.streams.audio[0]]
        made = [out.add_stream_from_template(stream) for stream in chosen]
        made[1].disposition, made[2].disposition = 0, 1
        for stream, target in zip(chosen, made, strict=True):
            for packet in stream.container.demux(stream):
                if packet.size:
                    packet.stream = target
                    out.mux(packet)
            stream.container.seek(0)
    assert transcribe(((str(path), 0.0, 10.0),), lambda s: "heard", 5.0, 0.005)
