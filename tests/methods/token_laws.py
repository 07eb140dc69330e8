"""Streams for token memories by hand, and the laws that all of them must keep."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from engine_runs import walk
from synthetic import movie

from bench_lib import methods
from bench_lib.backbones.base import Backbone
from bench_lib.exchange import Generation, Query
from bench_lib.memories.method import Method
from bench_lib.schema import Candidate, Probe, Span, Trajectory
from bench_lib.tasks import MAX_NEW_TOKENS
from bench_lib.video.stream import ArrayFrame, Clip, SessionInfo

SIDE = 112
WALL_S = 10 * 3600.0
SHORT = Generation(max_new_tokens=3, keep_logits=True)
QUERY = Query("Where is the red cup?", session=0, cutoff_s=60.0, system="You see.")
Make = Callable[[], Method]
"""Gives a fresh trunk, attached and reset."""


def film(seconds: int, seed: int = 0, noise: float = 3.0) -> list[ArrayFrame]:
    """A picture that changes in part every five seconds, and a little always."""
    random = np.random.default_rng(seed)
    picture = random.integers(0, 256, (SIDE, SIDE, 3)).astype(float)
    frames = []
    for t in range(seconds):
        if t % 5 == 0:
            row, col = random.integers(0, 3, 2) * 28
            picture[row : row + 56, col : col + 56] = random.integers(0, 256, (56, 56, 3))
        noisy = picture + random.normal(0, noise, picture.shape)
        frames.append(ArrayFrame(float(t), np.clip(noisy, 0, 255).astype(np.uint8)))
    return frames


def begun(backbone: Backbone, name: str, seed: int = 42, **args: Any) -> Method:
    method = methods.load(name, **args).attach(backbone)
    method.reset("T001", seed)
    return method


def session(
    method: Method,
    index: int,
    frames: Sequence[ArrayFrame],
    clip: int | None = None,
    end: bool = True,
) -> None:
    size = method.frame_size((SIDE, SIDE))
    step = clip or method.clip_frames
    method.begin_session(SessionInfo(f"S{index + 1:03d}", index, WALL_S + 3600 * index, size))
    for start in range(0, len(frames), step):
        method.observe(Clip(index, tuple(frames[start : start + step])))
    if end:
        method.end_session(1_000)


def logits(method: Method, query: Query = QUERY) -> np.ndarray:
    answer = method.branch().respond(query, SHORT).logits
    assert answer is not None
    return answer


def branches_leave_no_trace(make: Make) -> None:
    """Branches observe and answer, at several moments; the trunk goes on as if there were none."""
    trunk, alone = make(), make()
    session(trunk, 0, film(24), end=False)
    session(alone, 0, film(24), end=False)
    before, kept = logits(trunk), dict(trunk.state_bytes())
    branches = [trunk.branch() for _ in range(2)]
    for i, branch in enumerate(branches):
        branch.observe(Clip(0, tuple(film(33 + 8 * i, seed=i)[24:])))
        branch.respond(QUERY, SHORT)
    assert np.array_equal(logits(trunk), before)
    assert trunk.state_bytes() == kept
    assert not np.array_equal(logits(branches[0]), logits(branches[1]))
    for method in (trunk, alone):
        method.end_session(0)
        session(method, 1, film(24, seed=1))
    assert np.array_equal(logits(trunk), logits(alone))


def the_past_is_seen(make: Make) -> None:
    """A changed frame long ago changes the logits, and so does an empty memory."""
    frames = film(40)
    usual, changed, empty = make(), make(), make()
    session(usual, 0, frames)
    past = [*frames[:3], replace(frames[3], array=255 - frames[3].array), *frames[4:]]
    session(changed, 0, past)
    assert not np.array_equal(logits(usual), logits(changed))
    assert not np.array_equal(logits(usual), logits(empty))


def hardly_anything_is_answered(make: Make) -> None:
    """No frame, one frame, an empty session before and after others."""
    for seconds in (0, 1, 2):
        method = make()
        session(method, 0, film(seconds), end=False)
        assert method.branch().respond(QUERY, SHORT).stop in ("end", "length")
        method.end_session(0)
        session(method, 1, film(0))
        session(method, 2, film(9), end=False)
        assert np.isfinite(logits(method)).all()


def a_loaded_state_goes_on(make: Make, name: str, folder: Path, **args: Any) -> None:
    """Saved between sessions, loaded into a fresh method: the rest of the stream ends the same."""
    straight = make()
    session(straight, 0, film(37))
    straight.save(folder)
    resumed = methods.load(name, **args).attach(straight.served)
    resumed.load(folder)
    assert resumed.state_bytes() == straight.state_bytes()
    for method in (straight, resumed):
        session(method, 1, film(27, seed=1))
    assert np.array_equal(logits(straight), logits(resumed))


_LOAD = """
import json, sys, numpy as np
from pathlib import Path
from bench_lib import methods
from bench_lib.opening import backbones
from bench_lib.exchange import Generation, Query
query = Query("Where is the red cup?", session=0, cutoff_s=60.0, system="You see.")
for folder, name, spec, args in json.load(sys.stdin):
    method = methods.load(name, **args).attach(backbones.load(spec, device="cpu"))
    method.load(Path(folder))
    reply = method.respond(query, Generation(max_new_tokens=3, keep_logits=True))
    np.save(Path(folder, "logits.npy"), reply.logits)
    print(json.dumps({"text": reply.text, "bytes": dict(method.state_bytes())}))
"""


def a_new_process_answers_alike(saved: Sequence[tuple[Method, Path, str, dict]]) -> None:
    """Each method is saved to its folder; another process loads, responds, and agrees."""
    here = []
    for method, folder, _, _ in saved:
        method.save(folder)
        here.append((method.respond(QUERY, SHORT), dict(method.state_bytes())))
    given = json.dumps([[str(f), m.name, spec, args] for m, f, spec, args in saved])
    call = [sys.executable, "-c", _LOAD]
    done = subprocess.run(call, input=given, capture_output=True, text=True, check=True)
    for (_, folder, _, _), (reply, size), line in zip(
        saved, here, done.stdout.splitlines(), strict=True
    ):
        assert json.loads(line) == {"text": reply.text, "bytes": size}
        assert np.array_equal(np.load(folder / "logits.npy"), reply.logits)


def a_ceiling_holds(make: Make, seconds: int = 40, times: int = 5) -> list[dict[str, int]]:
    """State bytes after each of several sessions; once full, it takes no more."""
    method = make()
    assert method.bounded
    sizes = []
    for index in range(times):
        session(method, index, film(seconds, seed=index))
        sizes.append(dict(method.state_bytes()))
    for kind in sizes[1]:
        assert sizes[-1][kind] <= 1.1 * sizes[1][kind] + 512, kind
    return sizes


def the_future_never_matters(
    home: Trajectory, folder: Path, name: str, backbone: Backbone, **args: Any
) -> None:
    """Through the engine: logits at a cutoff inside a clip know the past and nothing later."""
    probe = Probe(id="q", session="S002", t_s=7.0)
    candidate = Candidate(id="x", task="FREE", question="?", probes=(probe,))
    usual = home.model_copy(update={"candidates": (candidate,)})

    def seen(trajectory: Trajectory) -> np.ndarray:
        said: list[np.ndarray] = []

        class Listening(methods.find(name)):  # type: ignore[misc]
            def respond(self, query, generation):
                reply = super().respond(query, generation)
                said.append(reply.logits)
                return reply

        Listening.name = name
        method = Listening(**args).attach(backbone)
        limits = dict.fromkeys(MAX_NEW_TOKENS, 3)
        walk(trajectory, folder, method, max_new_tokens=limits)
        (only,) = said
        return only

    def with_video(index: int, path: Path) -> Trajectory:
        old = usual.sessions[index]
        new = old.model_copy(
            update={"spans": (Span(file=str(path), start_s=0.0, end_s=old.duration_s),)}
        )
        sessions = tuple(new if s is old else s for s in usual.sessions)
        return usual.model_copy(update={"sessions": sessions})

    before = seen(usual)
    assert np.array_equal(seen(with_video(1, movie(folder / "f.mp4", 10, 1, 7.1))), before)
    assert np.array_equal(seen(with_video(2, movie(folder / "g.mp4", 10, 77))), before)
    assert not np.array_equal(seen(with_video(1, movie(folder / "p.mp4", 10, 1, 6.5))), before)
    assert not np.array_equal(seen(with_video(0, movie(folder / "e.mp4", 10, 0, 8.0))), before)
