"""Sessions reach every method: their markers, their ends, and when memory is weighed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from engine_runs import walk
from synthetic import household

from bench_lib import methods
from bench_lib.evaluate.checks import trial as trials
from bench_lib.evaluate.checks.trial import Trial, Viewing
from bench_lib.exchange import Generation, Query, Reply
from bench_lib.measure import counting
from bench_lib.methods.streammind import StreamMind
from bench_lib.video.stream import SessionInfo

LOCAL = [name for name in methods.available() if methods.find(name).model == "backbone"]
MESSAGE = [name for name in methods.available() if methods.find(name).model == "chat"]


def scaled(name: str, **args: object) -> Trial:
    trial = Trial.scaled(name)
    return replace(trial, args={**trial.args, **args})


@pytest.mark.parametrize("name", LOCAL)
def test_a_session_marker_can_be_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With it the clock of an earlier session is read; without it nothing of it is."""
    found: dict[tuple[bool, float], np.ndarray] = {}
    for marked in (True, False):
        for wall_s in (36_000.0, 50_000.0):
            monkeypatch.setattr(trials, "WALL_S", wall_s)
            view = Viewing.of(scaled(name, session_marker=marked), 9)
            view.session(6)
            logits = view.ask().logits
            assert logits is not None
            found[marked, wall_s] = logits
    assert not np.array_equal(found[True, 36_000.0], found[True, 50_000.0])
    np.testing.assert_array_equal(found[False, 36_000.0], found[False, 50_000.0])


@pytest.mark.parametrize("name", LOCAL)
def test_what_waits_is_taken_in_at_the_end_of_its_session(name: str) -> None:
    view = Viewing.of(scaled(name))
    if view.method.input_class == "incremental":
        with counting() as counts:
            view.session(7)
            view.end()
        assert counts["frames_encoded"] == 7
    else:
        view.session(7)
        view.end()
    state = view.method.state
    if not getattr(view.method, "defers", False):
        assert not state.held, "an odd frame"
    assert not getattr(state.memory, "pending", ()), "an incomplete chunk"
    seen = view.method.tokens()[1]
    view.session(4)
    assert view.method.tokens()[1] > seen or getattr(view.method, "defers", False)


@pytest.mark.parametrize("name", MESSAGE)
def test_nothing_of_a_session_is_left_open_at_its_end(name: str) -> None:
    view = Viewing.of(scaled(name))
    view.session(7)
    view.end()
    method = view.method
    if isinstance(method, StreamMind):
        assert len(method.stream.ring) == 0
    elif name == "oasis":
        assert (method.state.now, method.state.buffer, method.state.pending) == ((), (), ())
    else:
        assert method.state.current is None
    if method.persistent:
        assert sum(method.state_bytes().values()) > 0, "what is kept was written then"


class Growing(methods.find("hashing")):  # type: ignore[misc]
    """Its memory grows at each call that a session begins and ends with."""

    def begin_session(self, info: SessionInfo) -> None:
        super().begin_session(info)
        self.state = replace(self.state, frames=self.state.frames + 1_000)

    def end_session(self, recorded_bytes: int) -> None:
        super().end_session(recorded_bytes)
        self.state = replace(self.state, frames=self.state.frames + 1_000_000)

    def state_bytes(self) -> dict[str, int]:
        return {"index": self.state.frames}

    def respond(self, query: Query, generation: Generation) -> Reply:
        return super().respond(query, generation)


def test_memory_is_weighed_after_a_session_ends_and_before_the_next_begins(tmp_path: Path) -> None:
    _, sessions = walk(household(tmp_path), tmp_path / "run", Growing(), delivery="log")
    weighed = [record["prior_bytes"]["index"] // 1_000 for record in sessions]
    assert weighed == [0, 1_001, 2_002]
