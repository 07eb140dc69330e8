"""Names of the records in saved memories: they stay when a class moves.

A record of a method's own file is named `METHOD:CLASS`, a shared one by the table. Memories saved
before there was one name modules; `MOVED` says where those are now.
"""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

from bench_lib.errors import BenchError

SHARED = {
    "cache": "bench_lib.backbones.cache:Cache",
    "cache state": "bench_lib.memories.cache_memory:CacheState",
    "event": "bench_lib.memories.event_memory:Event",
    "event state": "bench_lib.memories.event_memory:EventState",
    "event written": "bench_lib.memories.event_memory:Written",
    "event forest": "bench_lib.memories.event_forest:Forest",
    "event node": "bench_lib.memories.event_forest:Node",
    "event place": "bench_lib.memories.event_forest:At",
    "keyframe": "bench_lib.memories.event_forest:Keyframe",
    "frame": "bench_lib.video.stream:ArrayFrame",
    "encoded frame": "bench_lib.video.stream:EncodedFrame",
    "held frames": "bench_lib.memories.frame_window:Held",
    "window state": "bench_lib.memories.frame_window:State",
    "speech said": "bench_lib.memories.parts.speech:Said",
    "speech sounding": "bench_lib.memories.parts.speech:Sounding",
    "watch": "bench_lib.memories.watching:Watch",
    "watch state": "bench_lib.memories.watching:WatchState",
    "token group": "bench_lib.memories.token_memory:Group",
    "tokens seen": "bench_lib.memories.token_memory:Seen",
    "token state": "bench_lib.memories.token_memory:TokenState",
    "forest": "bench_lib.memories.parts.forest:Forest",
    "forest event": "bench_lib.memories.parts.forest:Event",
    "forest look": "bench_lib.memories.parts.forest:Look",
    "fast weights": "bench_lib.memories.parts.ttt:Fast",
    "session": "bench_lib.video.stream:SessionInfo",
    "note": "bench_lib.exchange:Note",
    "alert": "bench_lib.exchange:Alert",
}
"""Where the class of each shared name is; a name never changes, its place may."""
MOVED = {
    "bench_lib.memories.method": "bench_lib.exchange",
    "bench_lib.memories.parts": "bench_lib.memories.parts",
    "bench_lib.video.stream": "bench_lib.video.stream",
    **{
        f"bench_lib.methods.{name}": f"bench_lib.memories.{name}"
        for name in (
            "cache_memory", "event_forest", "event_memory", "frame_window", "token_memory",
            "watching",
        )
    },
}  # fmt: skip
"""Modules that saved memories name, by where they were."""
METHODS = "bench_lib.methods."
_NAMES = {place: name for name, place in SHARED.items()}


def name_of(cls: type) -> str:
    """The name of a record's class; a class of the package that has none is refused."""
    place = f"{cls.__module__}:{cls.__qualname__}"
    if place in _NAMES:
        return _NAMES[place]
    if place.startswith(METHODS):
        return place.removeprefix(METHODS)
    if place.startswith("bench_lib."):
        raise TypeError(f"{place} is saved in a memory and has no name in {__name__}")
    return place


def class_of(name: str, owner: type) -> type:
    """The class of a record by its name; `owner` is the method's, whose module may have its own.

    Raises:
        BenchError: no such class, or one that is no record of a memory.
    """
    place = SHARED.get(name, name)
    module, _, qualname = place.partition(":")
    parent, _, leaf = module.rpartition(".")
    module = MOVED.get(module) or (f"{MOVED[parent]}.{leaf}" if parent in MOVED else module)
    if "." not in module and module != owner.__module__:
        module = METHODS + module
    if not (module.startswith("bench_lib.") or module == owner.__module__):
        raise BenchError(f"a saved memory may not name the class {name}")
    try:
        value: Any = importlib.import_module(module)
        for attribute in qualname.split("."):
            value = value if attribute == "<locals>" else getattr(value, attribute)
    except (ImportError, AttributeError, ValueError):
        raise BenchError(
            f"a saved memory names {name!r}, which is no longer there: delete it, and it is made "
            "again"
        ) from None
    if not dataclasses.is_dataclass(value):
        raise BenchError(f"a saved memory names {name}, which is not a record")
    return value  # type: ignore[return-value]
