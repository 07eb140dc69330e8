"""What a question becomes inside the agent: a mission, its rounds, and what came back."""

from __future__ import annotations

from dataclasses import dataclass, field

from bench_lib.messages.fence import fenced
from bench_lib.streammind.contracts import Task


@dataclass(frozen=True)
class Return:
    """What a task brought back; `failed` where its worker could not do it."""

    task: Task
    report: str
    frames: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    failed: bool = False


@dataclass
class Mission:
    """A delegated request and all that was returned for it so far."""

    request: str
    goal: str = ""
    constraints: str = ""
    returns: list[Return] = field(default_factory=list)

    @property
    def frames(self) -> list[str]:
        """Ids of the recalled frames, the newest return first."""
        return list(dict.fromkeys(f for r in reversed(self.returns) for f in r.frames))

    def told(self) -> list[str]:
        """The returns as data, one fence each."""
        out = []
        for at, r in enumerate(self.returns, 1):
            extra = f"\nframes: {', '.join(r.frames)}" if r.frames else ""
            extra += f"\nsources: {', '.join(r.sources)}" if r.sources else ""
            out.append(f"Task {at} ({r.task.kind}): {r.task.instruction}")
            out.append(fenced(f"{r.task.kind} worker", r.report + extra))
        return out
