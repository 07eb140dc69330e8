"""null: looks at every clip, keeps a count, always answers the same. It measures the engine."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from bench_lib.exchange import Generation, Query, Reply
from bench_lib.measure import count
from bench_lib.memories.method import Method
from bench_lib.video.stream import Clip


@dataclass(frozen=True)
class State:
    """How many frames have gone by."""

    frames: int = 0


@dataclass(kw_only=True)
class Null(Method):
    """No memory and no model: what remains is the cost of the engine itself."""

    bounded = True
    sees = False

    def reset(self, trajectory_id: str, seed: int) -> None:
        """Forget the count."""
        self.state = State()

    def observe(self, clip: Clip) -> None:
        """Count the frames."""
        self.state = replace(self.state, frames=self.state.frames + len(clip.frames))

    def respond(self, query: Query, generation: Generation) -> Reply:
        """Stay silent, or decline to choose: there is nothing to choose from."""
        now = time.perf_counter()
        count("model_calls", 0)
        silent = '{"decision": "SILENT", "reason": "no memory"}'
        text = silent if query.contract.startswith("adaptive") else "no answer"
        return Reply(text=text, ready_at=now, first_token_at=now, done_at=now)
