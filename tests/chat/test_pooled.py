"""What a record of a pooled message model holds does not depend on what is asked beside it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from engine_runs import SETTING, asks_of
from scripted_server import frame
from synthetic import household, question

from bench_lib import methods
from bench_lib.asks.ask import Ask
from bench_lib.dollhouse.ideal.observer import IdealChat
from bench_lib.engine.answer import Moment, answer
from bench_lib.engine.conditions import Feed, episodes
from bench_lib.engine.kept import States
from bench_lib.engine.walk import Walk
from bench_lib.measure import count
from bench_lib.methods.null import Null
from bench_lib.schema import Session
from bench_lib.tasks import APM_BENCH
from bench_lib.video.stream import Clip


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return household(tmp_path_factory.mktemp("home"))


def records(home, folder: Path, at_once: int, change=lambda asks: asks):
    """Responses by key of one run whose answers are given in so many threads."""
    asks = change(asks_of(home))
    found = []
    for episode in episodes(APM_BENCH, home, asks):
        method = methods.load("raw_video", max_frames=8).attach(IdealChat())
        with ThreadPoolExecutor(at_once) as pool:
            states = States(folder, "none")
            Walk(method, episode, SETTING, states, lambda *r: found.append(r), pool).run()
    return {r.key: r for kind, r in found if kind == "responses"}


def test_counts_of_work_are_equal_between_equal_runs(home, tmp_path):
    runs = [records(home, tmp_path, at_once) for at_once in (1, 16, 16)]
    counted = [{key: r.counters for key, r in run.items()} for run in runs]
    assert counted[0] == counted[1] == counted[2]
    last = asks_of(home)[-1:]
    [alone] = records(home, tmp_path, 1, lambda asks: last).values()
    assert alone.counters == counted[0][last[0].key], "nor do the asks before it change them"
    assert alone.counters["frames_encoded"] == alone.counters["frames_sent"] == 8


@pytest.mark.parametrize(("model", "frames"), [("chat", 2), ("backbone", 9)])
def test_what_a_message_model_looks_at_is_not_waited_for_as_decoding(model, frames):
    """It was decoded when the stream went by; a local model's prefix is worked on anew."""

    class Looking(Null):
        def respond(self, query, generation):
            count("frames_encoded", 9)
            return super().respond(query, generation)

    Looking.model = model
    session = Session(id="S1", index=0, spans=(), duration_s=60.0)
    asked = question("q", "S1", 10.0)
    tail = Clip(0, (frame(8.0, 1), frame(9.0, 2)))
    at = Moment((session,), Feed(0, session, ((0.0, 60.0),)), tail, frame_decode_s=100.0)
    method = Looking()
    method.reset("t", 42)
    times = answer(method, Ask("t", asked, asked.probes[0]), at, "t", SETTING).timings
    assert times["ttft_e2e_s"] - times["ttft_prep_s"] == pytest.approx(100.0 * frames)
