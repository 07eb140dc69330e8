"""What is heard: windows from the session's start, above a level, readable once they are over."""

from __future__ import annotations

import numpy as np
from by_contract import ByContract, agent, begin, frame

from bench_lib.measure import counting
from bench_lib.speech.windows import Ear
from bench_lib.video.stream import SAMPLE_RATE, Clip


def numbered(seconds: float, first_s: float = 0.0) -> np.ndarray:
    """Sound whose every sample tells when it is: its second, over 100."""
    at = first_s + np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    return (np.floor(at) / 100).astype(np.float32)


def ends(samples: np.ndarray) -> str:
    """From which second to which a window goes."""
    return f"{samples[0] * 100:.0f} to {samples[-1] * 100:.0f}"


def feed(method, session: int, seconds: int) -> None:
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
    feed(method, 0, 12)
    heard = method.stream.ear.heard
    assert [(h.start_s, h.end_s, h.text) for h in heard] == [
        (0.0, 5.0, "0 to 4"),
        (5.0, 10.0, "5 to 9"),
    ]
    offset_s = method.stream.offset_s
    method.end_session(0)
    begin(method, 1)
    feed(method, 1, 6)
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
