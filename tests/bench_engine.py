"""The engine's own cost: a null run against decoding the same frames.

Run it by hand: `python tests/bench_engine.py`. Paired: each round measures both, in alternating
order, in CPU seconds of this process and its decoder; the median ratio counts. Target: 1.15.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

from engine_runs import SETTING
from synthetic import movie, session

from bench_lib import methods
from bench_lib.asks.ask import Ask
from bench_lib.engine.conditions import Episode, Feed
from bench_lib.engine.kept import States
from bench_lib.engine.walk import Walk
from bench_lib.schema import Candidate, Probe, Trajectory
from bench_lib.video.session import open_session

ROUNDS, SECONDS, PROBES = 9, 240.0, 24


def spent(work) -> float:  # type: ignore[no-untyped-def]
    """CPU seconds of this process and the decoder that serves it."""
    begun = time.process_time()
    return work() + time.process_time() - begun


def decode(trajectory: Trajectory) -> float:
    total = 0.0
    for own in trajectory.sessions:
        with open_session(own, 1.0, ((0.0, own.duration_s),), reader=SETTING.reader) as stream:
            for _ in stream:
                pass
            total += stream.decode_s
    return total


def evaluate(trajectory: Trajectory, folder: Path) -> float:
    asks = tuple(Ask(trajectory.id, c, p) for c in trajectory.candidates for p in c.probes)
    feeds = tuple(Feed(i, s, ((0.0, s.duration_s),)) for i, s in enumerate(trajectory.sessions))
    walk = Walk(
        methods.load("null"),
        Episode("standard", trajectory, feeds, asks),
        SETTING,
        States(folder, "last"),
        lambda kind, record: None,
    )
    walk.run()
    return walk.trunk.decode_s


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sessions = tuple(
            session(movie(folder / f"{i}.mp4", SECONDS, i, size=(448, 448)), i, SECONDS)
            for i in range(2)
        )
        probes = tuple(
            Probe(id=f"q{k}", session=s.id, t_s=(k + 0.5) * SECONDS / PROBES)
            for s in sessions
            for k in range(PROBES)
        )
        probes = tuple(p.model_copy(update={"id": f"q{i}"}) for i, p in enumerate(probes))
        candidate = Candidate(id="c", task="FREE", question="?", probes=probes)
        trajectory = Trajectory(id="T", source="x", sessions=sessions, candidates=(candidate,))
        decode(trajectory)
        ratios = []
        for turn in range(ROUNDS):
            jobs = [lambda: decode(trajectory), lambda: evaluate(trajectory, folder / "states")]
            taken = [0.0, 0.0]
            for which in (0, 1) if turn % 2 else (1, 0):
                taken[which] = spent(jobs[which])
            ratios.append(taken[1] / taken[0])
            print(f"decode {taken[0]:.3f} s, null run {taken[1]:.3f} s, ratio {ratios[-1]:.3f}")
        median = statistics.median(ratios)
        print(f"median ratio {median:.3f} of {ROUNDS}, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
