"""Parameters of the notebooks that read runs: 04, 06, 08 and 09."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from bench_lib.errors import BenchError, nearest
from bench_lib.params.checks import at_least, file_name, plain, seed, texts
from bench_lib.params.evaluate import shown


@dataclass(frozen=True)
class JudgeParams:
    """Parameters of 04_judge; the notebook's comments say what each is for."""

    run: str = "latest"
    judge: str = "ideal"
    judge_args: dict = field(default_factory=dict)
    prompts: str = ""
    repeats: int = 1
    variants: list = field(default_factory=list)
    labels: str = ""
    beside: str = ""
    temperature: float = 0.0
    max_new_tokens: int = 2048
    seed: int = 42
    workers: int = 8

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        plain(self)
        known = ("padded", "reversed")
        for name in self.variants:
            if name not in known:
                raise BenchError(f"variants has {name!r}; {nearest(str(name), known)}")
        at_least(self, 1, "repeats", "workers", "max_new_tokens")
        at_least(self, 0, "temperature")
        seed(self.seed)


@dataclass(frozen=True)
class CompareParams:
    """Parameters of 09_compare; the notebook's comments say what each is for."""

    runs: list = field(default_factory=lambda: ["03_eval-*"])
    published: list = field(default_factory=lambda: ["simplestream", "fluxmem", "hermes"])
    reference: str = ""
    groups: list = field(default_factory=list)
    judge: str = ""
    name: str = "all"

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        plain(self)
        texts(self, "runs", "published", "groups")
        if not self.runs:
            raise BenchError("parameter runs is empty; give names, unique prefixes or patterns")
        object.__setattr__(self, "name", file_name(self.name))


@dataclass(frozen=True)
class AblationParams:
    """Parameters of 06_ablations; the notebook's comments say what each is for."""

    systems: dict = field(default_factory=dict)
    conditions: list = field(
        default_factory=lambda: ["standard", "oracle", "raw_lifelong", "recent_sessions 2"]
    )
    source: str = "dollhouse-small"
    availability: str = "dollhouse-availability"
    original: str = "dollhouse-recall"
    backbone: str = "ideal"
    shared: dict = field(default_factory=dict)
    recent: int = 2
    judge: str = ""
    name: str = "conditions"

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        plain(self)
        texts(self, "conditions")
        at_least(self, 0, "recent")
        if not self.conditions:
            raise BenchError("parameter conditions is empty; standard is what others are held to")
        _systems(self.systems)
        object.__setattr__(self, "name", file_name(self.name))


@dataclass(frozen=True)
class ArenaParams:
    """Parameters of 08_streamarena; the notebook's comments say what each is for."""

    runs: list = field(default_factory=list)
    systems: dict = field(default_factory=dict)
    source: str = "dollhouse-arena-small"
    backbone: str = "ideal"
    shared: dict = field(default_factory=dict)
    stamp: str = "observed"
    judge: str = ""
    published: list = field(default_factory=list)
    explore: str = ""
    trajectory: str = ""
    question: str = ""
    name: str = "household"

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        from bench_lib.tasks import STAMPS

        plain(self)
        texts(self, "runs", "published")
        if self.stamp not in STAMPS:
            raise BenchError(f"parameter stamp is {self.stamp!r}; {nearest(self.stamp, STAMPS)}")
        if self.runs and self.systems:
            raise BenchError("give either runs, to show what is there, or systems, to make them")
        _systems(self.systems)
        object.__setattr__(self, "name", file_name(self.name))


def changed(params: Any) -> dict[str, Any]:
    """The parameters that differ from their defaults, to be shown: without the home folder."""
    default = asdict(type(params)())
    own = {key: value for key, value in asdict(params).items() if value != default[key]}
    return shown(own)


def _systems(systems: dict[str, Any]) -> None:
    for name, own in systems.items():
        if not isinstance(own, dict) or "method" not in own:
            raise BenchError(f"systems: {name!r} needs parameters of 03_eval with a method")
