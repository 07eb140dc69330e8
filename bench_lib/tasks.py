"""The tasks of each benchmark, in the one order that every table and figure uses.

Source: APM-Bench, sections 2 and 5 of its protocol. A `Bench` is what asks questions: its tasks,
its prompt set, and whether turns share one dialogue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

from bench_lib.errors import BenchError, nearest

ReplyKind = Literal["choice", "adaptive_choice", "adaptive_text", "free"]


@dataclass(frozen=True)
class Task:
    """A task.

    `evidence` says which sessions its evidence lies in; `interval` that a probe is the end of an
    announced half-open window; `registers` that a user instruction precedes the probes; `watches`
    that the probe is such an instruction, and what counts is when the method speaks up.
    """

    code: str
    name: str
    capability: str
    reply: ReplyKind
    evidence: Literal["earlier", "current"]
    interval: bool = False
    registers: bool = False
    watches: bool = False

    @property
    def adaptive(self) -> bool:
        """Whether a probe asks for a decision, INTERVENE or SILENT."""
        return self.reply.startswith("adaptive")


CSU, RTP, AR = "Cross-session Understanding", "Real-time Perception", "Adaptive Response"

APM_TASKS = (
    Task("ER", "Episodic Recall", CSU, "choice", "earlier"),
    Task("EST", "Entity State Tracking", CSU, "choice", "earlier"),
    Task("TR", "Temporal Reasoning", CSU, "choice", "earlier"),
    Task("ACR", "Action Recognition", RTP, "choice", "current"),
    Task("CT", "Counting", RTP, "choice", "current"),
    Task("OCR", "Optical Character Recognition", RTP, "choice", "current"),
    Task("STU", "Spatial Understanding", RTP, "choice", "current"),
    Task("ERA", "Evidence-Ready Answering", AR, "adaptive_choice", "current"),
    Task("RCR", "Registered-Condition Response", AR, "adaptive_text", "current", registers=True),
    Task("MPA", "Memory-Grounded Proactive Assistance", AR, "adaptive_text", "earlier", True),
    Task("PRM", "Proactive Reminder", AR, "adaptive_text", "earlier", True, registers=True),
    Task("TPG", "Task Progress Guidance", AR, "adaptive_text", "earlier", True),
)

FREE = Task("FREE", "Free question", "Free question", "free", "earlier")
"""A question without a key, asked of one's own video; it is answered and never scored."""


_KNOWN: dict[str, Bench] = {}


@dataclass(frozen=True)
class Bench:
    """A benchmark: its tasks, its prompt set (a folder in `prompts/`), its kind of dialogue.

    Making one makes its tasks known to `bench_of` and `task_of`.
    """

    name: str
    tasks: tuple[Task, ...]
    prompts: str
    dialogue: Literal["isolated", "shared"] = "isolated"

    def __post_init__(self) -> None:
        for task in self.tasks:
            other = _KNOWN.setdefault(task.code, self)
            if other.name != self.name:
                raise BenchError(f"task {task.code!r} of {self.name} is one of {other.name} too")

    @classmethod
    def of(cls, bench: Bench) -> Self:
        """The same benchmark with what this class adds to it."""
        return cls(bench.name, bench.tasks, bench.prompts, bench.dialogue)

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Capability names in table order."""
        return tuple(dict.fromkeys(task.capability for task in self.tasks))

    def task(self, code: str) -> Task:
        """The task of that code; raises BenchError with the nearest known one."""
        for task in (*self.tasks, FREE):
            if task.code == code:
                return task
        raise BenchError(f"unknown task {code!r}; {nearest(code, [t.code for t in self.tasks])}")


APM_BENCH = Bench("apm", APM_TASKS, "apm")

ARENA_TASKS = (
    Task("RTP", "Real-time Perception", "RTP", "free", "current"),
    Task("HR", "Historical Retrospection", "HR", "free", "current"),
    Task("Tool", "Multimodal Tool Utilization", "Tool", "free", "current"),
    Task("Pro", "Proactive Interaction", "Pro", "free", "current", registers=True, watches=True),
)
STREAM_ARENA = Bench("arena", ARENA_TASKS, "arena", "shared")


def bench_of(code: str) -> Bench:
    """The benchmark that has a task of that code, APM-Bench where none has."""
    return _KNOWN.get(code, APM_BENCH)


def task_of(code: str) -> Task:
    """The task of that code in any benchmark; BenchError with the nearest known one."""
    if code not in (*_KNOWN, FREE.code):
        raise BenchError(f"unknown task {code!r}; {nearest(code, [*_KNOWN, FREE.code])}")
    return bench_of(code).task(code)


MAX_NEW_TOKENS = {"choice": 64, "adaptive_choice": 512, "adaptive_text": 512, "free": 512}
"""By reply kind (protocol 16.18)."""


CONDITIONS = ("standard", "oracle", "raw_lifelong", "recent_sessions")


STAMPS = {"observed": "alert_s", "delivered": "delivered_s"}


OBSERVED = "observed"


REACTIVE = "Reactive, pooled"


@dataclass(frozen=True)
class Window:
    """How far before and after its due time an alert may come (both ends included), in seconds."""

    early_s: float = 0.5
    late_s: float = 2.0


WINDOW = Window()
