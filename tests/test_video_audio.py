"""Sound comes with the sample that ends it, at its own time, and is silent where there is none."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from barcode import RATE, session, write
from numpy.typing import NDArray

from bench_lib.schema import Session
from bench_lib.video.session import inspect, open_session
from bench_lib.video.stream import SAMPLE_RATE

TIMES = range(0, 4000, 100)


def beeps(*starts_s: float, length_s: float = 4.0) -> NDArray[np.float32]:
    """Tones of 0.1 s in silence, 48 kHz."""
    t = np.arange(int(length_s * RATE)) / RATE
    tone = 0.5 * np.sin(2 * np.pi * 1000 * t)
    return sum(tone * ((t >= s) & (t < s + 0.1)) for s in starts_s).astype(np.float32)


def heard(recorded: Session, fps: float, stretches: Any = None) -> dict[int, NDArray[np.float32]]:
    """The sound of each instant."""
    stretches = stretches or [(0, recorded.duration_s)]
    sound = {}
    with open_session(recorded, fps, stretches, audio=True) as stream:
        for sample in stream:
            assert sample.audio is not None
            assert sample.audio.dtype == np.float32
            sound[round(sample.t_s * fps)] = sample.audio
    return sound


def joined(sound: dict[int, NDArray[np.float32]], fps: float) -> tuple[float, NDArray[np.float32]]:
    """Consecutive instants as one signal, and the second it starts at."""
    return (min(sound) - 1) / fps, np.concatenate([sound[k] for k in sorted(sound)])


def onsets(start_s: float, signal: NDArray[np.float32]) -> list[float]:
    """When the signal becomes loud after 20 ms of quiet."""
    loud = np.flatnonzero(np.abs(signal) > 0.1)
    first = loud[np.diff(loud, prepend=-SAMPLE_RATE) > SAMPLE_RATE // 50]
    return [start_s + i / SAMPLE_RATE for i in first]


@pytest.mark.parametrize("fps", [1, 3, 7.3])
@pytest.mark.parametrize(
    ("name", "codec", "exact_s"),
    [("a.mkv", "flac", 0.001), ("a.mp4", "aac", 0.01), ("a.webm", "libopus", 0.01)],
)
def test_a_beep_is_heard_at_its_time(
    tmp_path: Path, name: str, codec: str, exact_s: float, fps: float
) -> None:
    video = {"codec": "libvpx", "options": {"deadline": "realtime"}} if "webm" in name else {}
    file = write(tmp_path / name, TIMES, sound=beeps(1.25, 2.5), sound_codec=codec, **video)
    sound = heard(session((file, 0, 4)), fps)
    start_s, signal = joined(sound, fps)
    assert onsets(start_s, signal) == pytest.approx([1.25, 2.5], abs=exact_s)
    assert np.abs(signal).max() == pytest.approx(0.5, abs=0.1)
    # Samples join without gap or overlap, whatever the rate.
    last = max(sound)
    assert len(signal) == round(last / fps * SAMPLE_RATE) - round(-SAMPLE_RATE / fps)
    # Nothing is heard before its time.
    before = np.concatenate([v for k, v in sound.items() if k / fps <= 2.5 - exact_s])
    assert len(onsets(0, before)) == 1


def test_sound_follows_the_sessions_clock(tmp_path: Path) -> None:
    first = write(tmp_path / "a.mkv", TIMES, sound=beeps(0.5, 1.5), sound_codec="flac")
    second = write(tmp_path / "b.mkv", TIMES, sound=beeps(2.2), sound_codec="flac")
    mute = write(tmp_path / "c.mp4", TIMES)
    # 1.0 to 2.25 of the first, a second without a track, 2.0 to 3.0 of the second.
    recorded = session((first, 1.0, 2.25), (mute, 0, 1), (second, 2.0, 3.0))
    found = onsets(*joined(heard(recorded, 4), 4))
    assert found == pytest.approx([0.5, 1.25 + 1 + 0.2], abs=0.001)


def test_a_track_that_starts_late_is_heard_late(tmp_path: Path) -> None:
    file = write(
        tmp_path / "a.mkv",
        TIMES,
        sound=beeps(0.5, length_s=2),
        sound_codec="flac",
        sound_start_ms=1000,
    )
    start_s, signal = joined(heard(session((file, 0, 4)), 2), 2)
    assert onsets(start_s, signal) == pytest.approx([1.5], abs=0.001)


def test_what_is_not_fed_is_not_heard(tmp_path: Path) -> None:
    file = write(tmp_path / "a.mkv", TIMES, sound=beeps(0.7, 1.5, 2.8), sound_codec="flac")
    whole = heard(session((file, 0, 4)), 1)
    part = heard(session((file, 0, 4)), 1, [(1.0, 2.5)])
    assert list(part) == [1, 2]
    assert onsets(0, whole[1]) == pytest.approx([0.7], abs=0.001)
    assert not part[1].any()  # of [0, 1), which was not fed
    assert np.array_equal(part[2], whole[2])
    assert onsets(1, part[2]) == pytest.approx([1.5], abs=0.001)


def test_long_jumps_keep_the_time(tmp_path: Path) -> None:
    times = range(0, 60_000, 500)
    sound = beeps(2.5, 31.5, 55.5, length_s=60)
    file = write(tmp_path / "a.mp4", times, sound=sound)
    parts = [(2.0, 3.1), (31.0, 32.1), (55.0, 56.1)]
    heard_parts = heard(session((file, 0, 60)), 2, parts)
    found = [t for k, v in heard_parts.items() for t in onsets((k - 1) / 2, v)]
    assert found == pytest.approx([2.5, 31.5, 55.5], abs=0.01)


def test_no_track_is_silence_and_unasked_sound_is_none(tmp_path: Path) -> None:
    file = write(tmp_path / "a.mp4", TIMES)
    sound = heard(session((file, 0, 4)), 2)
    assert [len(s) for s in sound.values()] == [8000] * 8
    assert not np.concatenate(list(sound.values())).any()
    with open_session(session((file, 0, 4)), 2, [(0, 4)]) as stream:
        assert {sample.audio for sample in stream} == {None}


@pytest.mark.parametrize(
    ("dispositions", "heard_s"),
    [
        ([0, 1], 2.5),
        ([1, 0], 1.25),
        ([0, 0], 1.25),
        ([1, 1], 1.25),
        ([1 | 1 << 8, 1], 2.5),  # for people who cannot see, and the plain one
        ([1 << 3, 0], 2.5),  # a commentary
    ],
)
def test_the_default_track_is_heard(
    tmp_path: Path, dispositions: list[int], heard_s: float
) -> None:
    file = tracks(tmp_path / "a.mkv", dispositions, beeps(1.25), beeps(2.5))
    assert inspect(file).has_audio
    found = onsets(*joined(heard(session((file, 0, 4)), 2), 2))
    assert found == pytest.approx([heard_s], abs=0.001)


def tracks(path: Path, dispositions: list[int], *sounds: NDArray[np.float32]) -> Path:
    """A video with a sound track for each disposition."""
    parts = [
        write(path.with_name(f"{n}.mkv"), TIMES, sound=sound, sound_codec="flac")
        for n, sound in enumerate(sounds)
    ]
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(av.open(str(path), "w"))
        sources = [stack.enter_context(av.open(str(part))) for part in parts]
        chosen = [sources[0].streams.video[0], *(s.streams.audio[0] for s in sources)]
        made = [out.add_stream_from_template(stream) for stream in chosen]
        for stream, disposition in zip(made[1:], dispositions, strict=True):
            stream.disposition = disposition
        for one, stream in zip(chosen, made, strict=True):
            for packet in one.container.demux(one):
                if packet.size:
                    packet.stream = stream
                    out.mux(packet)
            one.container.seek(0)
    return path
