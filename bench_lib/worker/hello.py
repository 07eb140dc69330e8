"""How a worker introduces itself, and that it stays what it said it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, get_args

from bench_lib.errors import BenchError, nearest
from bench_lib.exchange import InputClass
from bench_lib.worker.process import Process
from bench_lib.worker.values import NAME, shown, text_of

PROTOCOL = 1
PROVENANCE = 2**16
"""Most characters of what a worker says about its weights and packages."""


@dataclass(frozen=True)
class Capabilities:
    """What a worker says of itself in `can`; the meanings are those of `Method`.

    `reactive`: it answers questions. `proactive`: it can watch (`watches`). `audio`, `captions`:
    it is sent them. `notes`: instructions change its memory (`notes_touch_state`). `forks`: it has
    `branch`. `saves`: it has `save` and `load`.
    """

    reactive: bool = True
    proactive: bool = False
    tools: bool = False
    audio: bool = False
    captions: bool = False
    notes: bool = False
    forks: bool = False
    saves: bool = False
    persistent: bool = False
    bounded: bool = False
    sees: bool = True
    causal: bool = False
    input_class: InputClass = "incremental"


@dataclass(frozen=True)
class Introduction:
    """What a worker says of itself."""

    name: str
    can: Capabilities
    provenance: Mapping[str, Any]


def introduced(process: Process, settings: Mapping[str, Any], start_s: float) -> Introduction:
    """Say hello to a process that was just started.

    Raises:
        WorkerError: it does not answer.
        BenchError: it speaks another protocol, or says something that is not known.
    """
    said = process.ask("hello", {"protocol": PROTOCOL, "settings": settings}, start_s)
    spoken = said.get("protocol")
    if type(spoken) is not int or spoken != PROTOCOL:
        raise BenchError(
            f"worker {process.command[0]} speaks protocol {shown(spoken)}, not {PROTOCOL}"
        )
    name = text_of(said, "reply to hello", "name", NAME)
    provenance = {} if said.get("provenance") is None else said["provenance"]
    if not isinstance(provenance, dict) or len(json.dumps(provenance)) > PROVENANCE:
        raise BenchError(
            f"worker {name}: provenance must be an object of at most {PROVENANCE:,} characters, "
            f"not {shown(provenance)}"
        )
    return Introduction(name, capabilities(name, said.get("can")), provenance)


def capabilities(worker: str, said: Any) -> Capabilities:
    """What a worker can; BenchError names what is said wrongly."""
    known = {f.name: f for f in fields(Capabilities)}
    if not isinstance(said, dict):
        raise BenchError(f"worker {worker}: can must be an object, not {shown(said)}")
    for name, value in said.items():
        if name not in known:
            raise BenchError(f"worker {worker}: can has {name!r}; {nearest(name, known)}")
        allowed = get_args(InputClass) if name == "input_class" else (True, False)
        if value not in allowed or type(value) is not type(allowed[0]):
            raise BenchError(f"worker {worker}: can.{name} is {shown(value)}, not one of {allowed}")
    return Capabilities(**said)
