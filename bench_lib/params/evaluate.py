"""Notebook parameters: the plain values of a parameters cell, bound to a frozen, checked record.

papermill warns about unknown parameters and goes on, and guesses types; here both are errors, in
the first second and in one line.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from bench_lib.errors import BenchError
from bench_lib.params.checks import at_least, choice, file_name, plain, seed, texts


@dataclass(frozen=True)
class EvalParams:
    """Parameters of 03_eval; the notebook's comments say what each is for."""

    method: str = "fluxmem"
    method_args: dict = field(default_factory=dict)
    source: str = "dollhouse"
    data_root: str = ""
    backbone: str = "tiny"
    backbone_args: dict = field(default_factory=dict)
    condition: str = "standard"
    recent: int = 2
    memory: str = "own"
    states_from: str = ""
    trajectories: list = field(default_factory=list)
    tasks: list = field(default_factory=list)
    limit: int = 0
    fps: float = 0.0
    mode: str = "stream"
    cutoff: str = "protocol"
    registration_delivery: str = "stream"
    prompts: str = ""
    max_new_tokens: dict = field(default_factory=dict)
    temperature: float = 0.0
    repetition_penalty: float = 1.0
    max_pixels: int = 0
    dtype: str = "auto"
    attention: str = "sdpa"
    seed: int = 42
    question: str = ""
    at: str = ""
    probe_every_s: float = 0.0
    repeat: int = 0
    reader: str = "pyav"
    store: str = "none"
    store_gib: float = 20.0
    states: str = "last"
    state_form: str = "exact"
    device: str = "auto"
    shard: str = "1/1"
    workers: int = 1
    name: str = ""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant, before anything is imported or opened."""
        from bench_lib.exchange import FORMS
        from bench_lib.tasks import CONDITIONS, MAX_NEW_TOKENS, task_of

        plain(self)
        choice("condition", self.condition, CONDITIONS)
        choice("memory", self.memory, ("own", "empty", "other"))
        if (self.memory != "own" or self.states_from) and self.condition != "standard":
            raise BenchError("memory and states_from belong to the standard condition")
        if self.memory != "own" and self.states_from:
            raise BenchError(f"memory {self.memory!r} cannot come from the states of a run")
        choice("mode", self.mode, ("stream", "replay"))
        choice("cutoff", self.cutoff, ("protocol", "inclusive", "exclusive"))
        choice("registration_delivery", self.registration_delivery, ("stream", "log"))
        choice("reader", self.reader, ("pyav", "decord"))
        choice("store", self.store, ("none", "lossless", "jpeg"))
        choice("states", self.states, ("last", "all", "none"))
        choice("state_form", self.state_form, FORMS)
        if self.state_form != "exact" and (self.states == "none" or self.mode == "replay"):
            raise BenchError(
                f"state_form {self.state_form!r} is that of saved memories: it needs mode: stream "
                "and states: last or all"
            )
        choice("dtype", self.dtype, ("auto", "float32", "bfloat16", "float16"))
        for kind, limit in self.max_new_tokens.items():
            choice("max_new_tokens", kind, tuple(MAX_NEW_TOKENS))
            if type(limit) is not int or limit < 1:
                raise BenchError(f"parameter max_new_tokens.{kind} must be above 0, not {limit!r}")
        texts(self, "tasks", "trajectories")
        for code in self.tasks:
            task_of(code)
        at_least(self, 0, "limit", "recent", "max_pixels", "fps", "temperature", "probe_every_s")
        at_least(self, 0, "repeat", "store_gib")
        at_least(self, 1, "workers")
        if self.repetition_penalty <= 0:
            raise BenchError(
                f"parameter repetition_penalty must be above 0, not {self.repetition_penalty}"
            )
        seed(self.seed)
        if self.name:
            object.__setattr__(self, "name", file_name(self.name))
        self.shard_of()

    def shard_of(self) -> tuple[int, int]:
        """`3/8` as (3, 8)."""
        part, _, whole = self.shard.partition("/")
        if part.isdecimal() and whole.isdecimal() and 1 <= int(part) <= int(whole):
            return int(part), int(whole)
        raise BenchError(f"parameter shard must be k/n with 1 <= k <= n, not {self.shard!r}")

    def as_dict(self) -> dict[str, Any]:
        """All parameters, for the run's manifest."""
        return asdict(self)

    def changed(self) -> dict[str, Any]:
        """The parameters that differ from their defaults, to be shown: without the home folder."""
        default = asdict(EvalParams())
        own = {key: value for key, value in asdict(self).items() if value != default[key]}
        return shown(own)


def shown(values: dict[str, Any]) -> dict[str, Any]:
    """Plain values with `~` for the home folder."""
    import json

    from bench_lib import paths

    return json.loads(paths.homeless(json.dumps(values)))
