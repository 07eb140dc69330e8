"""What is heard: windows from the session's start, above a level, readable once they are over."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from by_contract import ByContract, agent, ask, begin, entries, feed, frame

from bench_lib.measure import counting
from bench_lib.messages.chat import RequestRefused
from bench_lib.speech.windows import Ear
from bench_lib.streammind.models import UNFIT
from bench_lib.video.stream import SAMPLE_RATE, Clip


def numbered(seconds: float, first_s: float = 0.0) -> np.ndarray:
    """Sound whose every sample tells when it is: its second, over 100."""
    at = first_s + np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    return (np.floor(at) / 100).astype(np.float32)


def ends(samples: np.ndarray) -> str:
    """From which second to which a window goes."""
    return f"{samples[0] * 100:.0f} to {samples[-1] * 100:.0f}"


def feed_sound(method, session: int, seconds: int) -> None:
    """A session at 2 fps in clips of two seconds; a frame brings the half second before it."""
    for start in range(0, seconds, 2):
        times = [start + k / 2 for k in range(4)]
        sound = numbered(2.0, start - 0.5)
        if start == 0:
            sound[: SAMPLE_RATE // 2] = 0.0
        method.observe(Clip(session, tuple(frame(t) for t in times), (), sound, start - 0.5))


def test_windows_count_from_each_sessions_start():
    method = agent(ByContract()).hear(ends)
    method.reset("t", 42)
    begin(method)
    feed_sound(method, 0, 12)
    heard = method.stream.ear.heard
    assert [(h.start_s, h.end_s, h.text) for h in heard] == [
        (0.0, 5.0, "0 to 4"),
        (5.0, 10.0, "5 to 9"),
    ]
    offset_s = method.stream.offset_s
    method.end_session(0)
    begin(method, 1)
    feed_sound(method, 1, 6)
    [one] = method.stream.ear.heard
    assert one.text == "0 to 4"
    assert one.start_s == method.stream.offset_s > offset_s


def test_quiet_and_unfinished_windows_are_not_transcribed():
    ear = Ear(1.0, 0.005, 300, lambda samples: str(len(samples)))
    with counting() as counts:
        ear.sound(np.full(SAMPLE_RATE, 0.004, np.float32), 0.0)
        ear.sound(np.full(SAMPLE_RATE * 3 // 2, 0.006, np.float32), 1.0)
    assert (counts["quiet_windows"], counts["windows_transcribed"]) == (1, 1)
    assert [(h.start_s, h.end_s) for h in ear.heard] == [(1.0, 2.0)]
    assert not ear.until(1.99, 10.0)
    assert ear.until(2.0, 10.0) == ear.heard
    ear.rest()
    ear.rest()
    assert [(h.start_s, h.end_s, h.text) for h in ear.heard[1:]] == [(2.0, 2.5, "8000")]


def noise(seconds: float) -> np.ndarray:
    return np.full(round(seconds * SAMPLE_RATE), 0.1, np.float32)


def heard_by(listen, chunks: list[tuple[float, float]], **args):
    """A method that was given stretches of sound, each with the frames of its seconds."""
    method = agent(ByContract(), **args).hear(listen)
    method.reset("T", 42)
    begin(method)
    for start_s, end_s in chunks:
        times = [start_s + k / 2 for k in range(round(2 * (end_s - start_s)))]
        sound = noise(end_s - start_s)
        method.observe(Clip(0, tuple(frame(t) for t in times), (), sound, start_s))
    return method


def test_a_gap_in_the_sound_keeps_its_time() -> None:
    method = heard_by(lambda s: f"{len(s) / SAMPLE_RATE:g} s", [(0, 8), (60, 66)])
    found = [(h.start_s, h.end_s, h.text) for h in method.stream.ear.heard]
    assert found == [(0, 5, "5 s"), (5, 8, "3 s"), (60, 65, "5 s")]
    short = heard_by(lambda s: f"{np.count_nonzero(s) / SAMPLE_RATE:g} s", [(0, 4), (6, 12)])
    found = [(h.start_s, h.end_s, h.text) for h in short.stream.ear.heard]
    assert found == [(0, 5, "4 s"), (5, 10, "4 s")]  # silence lies between 4 and 6
    again = heard_by(lambda s: f"{len(s) / SAMPLE_RATE:g} s", [(0, 4), (4, 8)])
    again.stream.ear.windows(noise(8.0), 2.0)  # most of it was heard before
    assert again.stream.ear._held_from_s == 10.0


def test_recognition_is_off_the_loop_and_measured() -> None:
    where = []

    def listen(samples):
        where.append(threading.current_thread().name)
        time.sleep(0.02)
        return "words"

    kept = []
    method = agent(ByContract(), latency_s={"listen": 1.5}).hear(listen)
    method.on_call = kept.append
    method.reset("T", 42)
    begin(method)
    method.observe(Clip(0, tuple(frame(k / 2) for k in range(12)), (), noise(6.0), 0.0))
    assert where
    assert "streammind" not in where
    [call] = [c for c in kept if c.worker == "listen"]
    assert (call.reply, call.lasts_s, call.t_s) == ("words", 1.5, 5.0)
    assert call.took_s >= 0.02
    [heard] = method.stream.ear.heard
    assert heard.available_s == 6.5
    assert not method.stream.ear.until(6.4, 60.0)
    assert method.stream.ear.until(6.5, 60.0)


def test_in_real_time_recognition_takes_as_long_as_it_takes() -> None:
    go = threading.Event()
    speed = 50.0
    method = agent(ByContract(), clock="realtime", speed=speed).hear(lambda s: str(go.wait(20)))
    method.reset("T", 42)
    begin(method)
    method.observe(Clip(0, tuple(frame(k / 2) for k in range(12)), (), noise(6.0), 0.0))
    feed(method, 6, 20)  # the feed goes on
    assert not method.stream.ear.heard
    go.set()
    method.stream.ear.clear = lambda: None
    method.end_session(0)
    [heard] = method.stream.ear.heard
    assert heard.end_s == 5.0
    assert heard.available_s >= 19.0


def test_a_failed_recognition_costs_its_window() -> None:
    tries = []

    def listen(samples):
        tries.append(1)
        if len(tries) == 2:
            raise OSError("busy")
        return f"part {len(tries)}"

    with counting() as counts:
        method = heard_by(listen, [(0, 8), (8, 16)])
    assert [h.text for h in method.stream.ear.heard] == ["part 1", "part 3"]
    assert counts["windows_failed"] == 1
    [lost] = entries(method, "unheard")
    assert (lost.start_s, lost.end_s, lost.body["error"]) == (5, 10, "OSError: busy")
    assert ask(method, "q", 15.5).text == "noted"


@pytest.mark.parametrize(
    ("error", "windows"), [(RequestRefused("no such key"), 1), (OSError("no such file"), UNFIT)]
)
def test_an_ear_that_never_hears_ends_the_run(error: Exception, windows: int) -> None:
    tries = []

    def listen(samples):
        tries.append(1)
        raise error

    with pytest.raises(Exception, match="no such"):
        heard_by(listen, [(8 * k, 8 * k + 8) for k in range(12)])
    assert len(tries) == windows
