"""Driving the engine in tests: one trajectory, one method, records in a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench_lib import methods, prompts
from bench_lib.asks.ask import Ask
from bench_lib.engine.answer import Setting
from bench_lib.engine.conditions import episodes
from bench_lib.engine.kept import States
from bench_lib.engine.walk import Walk
from bench_lib.exchange import Generation
from bench_lib.memories.method import Method
from bench_lib.schema import Key, Response, Trajectory
from bench_lib.tasks import APM_BENCH

SETTING = Setting(APM_BENCH, prompts.load("apm"), Generation(keep_logits=True))


def asks_of(trajectory: Trajectory) -> list[Ask]:
    return [Ask(trajectory.id, c, p) for c in trajectory.candidates for p in c.probes]


def walk(
    trajectory: Trajectory,
    folder: Path,
    method: Method | str = "hashing",
    asks: Sequence[Ask] | None = None,
    condition: str = "standard",
    replay: bool = False,
    keep: str = "none",
    recent: int = 2,
    **setting: Any,
) -> tuple[dict[Key, Response], list[dict[str, Any]]]:
    """Responses by key and session records of walking all episodes."""
    records: list[tuple[str, Any]] = []
    chosen = asks_of(trajectory) if asks is None else list(asks)
    for episode in episodes(APM_BENCH, trajectory, chosen, condition, recent, replay):
        own = methods.load(method) if isinstance(method, str) else method
        Walk(
            own,
            episode,
            replace(SETTING, **setting),
            States(folder / "states", keep),  # type: ignore[arg-type]
            lambda kind, record: records.append((kind, record)),
        ).run()
    responses = [r for kind, r in records if kind == "responses"]
    found = {r.key: r for r in responses}
    assert len(found) == len(responses), "an ask was answered twice"
    assert not [
        r for r in responses if r.error and r.status == "error" and not r.missing_sessions
    ], [r.error for r in responses]
    return found, [r for kind, r in records if kind == "sessions"]


def answers(found: dict[Key, Response]) -> dict[Key, str]:
    """The raw replies: the hashing method's depend on everything it was shown."""
    return {key: response.raw_text for key, response in found.items()}
