"""One walk over a method's state: its bytes, its save, its load.

A state is a frozen dataclass of None, bool, int, float, str, bytes, tuples, dicts with string keys,
frame handles, numpy arrays and torch tensors. Arrays, tensors and long texts go to safetensors
(see `packs`), everything else to JSON; nothing is pickled. A dataclass field says what its tensors
are with `part("embeddings")`; inside it the kind is inherited.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench_lib.errors import BenchError
from bench_lib.measure import count
from bench_lib.state.names import class_of, name_of
from bench_lib.state.packs import RECORD, Reader, Shelf, Writer, read, sweep
from bench_lib.video.stream import ArrayFrame, EncodedFrame, StoredFrame

VERSION = 2
LONG_TEXT = 1_024
"""Characters above which a text is a piece of its own, which later states refer to."""
KINDS = ("kv", "embeddings", "features", "frames", "text", "index", "weights")


def part(kind: str, **options: Any) -> Any:
    """A dataclass field whose tensors are counted as `kind`."""
    assert kind in KINDS, kind
    return dataclasses.field(metadata={"kind": kind}, **options)


def is_tensor(value: Any) -> bool:
    """Whether a value is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def leaves(value: Any, kind: str = "index") -> Iterator[tuple[str, Any]]:
    """Every leaf of a state with its kind."""
    if isinstance(value, ArrayFrame | EncodedFrame | StoredFrame):
        yield "frames", value
    elif dataclasses.is_dataclass(value):
        for f in dataclasses.fields(value):
            yield from leaves(getattr(value, f.name), f.metadata.get("kind", kind))
    elif isinstance(value, tuple):
        for item in value:
            yield from leaves(item, kind)
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item, kind)
    else:
        yield kind, value


def nbytes(state: Any) -> dict[str, int]:
    """Logical bytes by kind; a tensor or picture that appears twice is counted once.

    Raises AssertionError when a tensor is a view that keeps a larger storage alive: its real cost
    would be hidden (a 10-row slice can hold a whole bank).
    """
    total: Counter[str] = Counter()
    seen: set[tuple[Any, ...]] = set()
    for kind, leaf in leaves(state):
        if isinstance(leaf, ArrayFrame | EncodedFrame | StoredFrame):
            if isinstance(leaf, ArrayFrame):
                where: tuple[Any, ...] = (id(leaf.array),)
                size = int(leaf.array.nbytes)
            elif isinstance(leaf, EncodedFrame):
                where, size = (id(leaf.data),), len(leaf.data)
            else:
                where, size = (leaf.path, leaf.offset), leaf.nbytes
            if where not in seen:
                seen.add(where)
                total["frames"] += size
        elif is_tensor(leaf):
            storage = leaf.untyped_storage()
            size = leaf.numel() * leaf.element_size()
            assert storage.nbytes() <= max(size, 64), (
                f"a state tensor of {size} bytes is a view of {storage.nbytes()}: clone it"
            )
            key = (storage.data_ptr() or id(leaf), size)
            if key not in seen:
                seen.add(key)
                total[kind] += size
        elif isinstance(leaf, np.ndarray):
            if (id(leaf),) not in seen:
                seen.add((id(leaf),))
                total[kind] += leaf.nbytes
        elif isinstance(leaf, str):
            total["text"] += len(leaf.encode())
        elif isinstance(leaf, bytes):
            total[kind] += len(leaf)
        elif leaf is not None:
            total["index"] += 8
    return {kind: total[kind] for kind in KINDS if total[kind]}


def save(state: Any, folder: Path, identity: dict[str, Any], shelf: Shelf | None = None) -> None:
    """Write `state` to `folder`. `identity` says what made it and is checked by `load`.

    Without a `shelf` the folder stands by itself and everything is exact. Counts
    `state_bytes_written`, and `state_bytes_on_disk`: what the state takes with all it refers to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    writer = Writer(shelf or Shelf(folder))
    tree = _pack(state, "", "index", writer)
    record = {"version": VERSION, "identity": identity, **writer.finish(folder), "state": tree}
    text = json.dumps(record, allow_nan=False)
    (folder / RECORD).write_text(text)
    if shelf is None:
        sweep(folder, [folder])
    count("state_bytes_written", len(text.encode()))
    held = sum(piece.nbytes for piece in writer.pieces.values())
    count("state_bytes_on_disk", len(text.encode()) + held)


def load(folder: Path, identity: dict[str, Any], owner: type, device: str = "cpu") -> Any:
    """Read what `save` wrote; `owner` is the method's class, whose module's dataclasses may occur.

    Raises BenchError when a file is missing or damaged, or another method or model made it.
    """
    record = read(folder)
    if not record:
        raise BenchError(f"no saved state in {folder}: {RECORD} is missing")
    if record["version"] != VERSION:
        raise BenchError(f"{folder} was saved in an older form: delete it, and it is made again")
    if record["identity"] != identity:
        raise BenchError(f"{folder} was saved by {record['identity']}, not by {identity}")
    return _unpack(record["state"], Reader(folder, record, device), owner)


def _pack(value: Any, path: str, kind: str, writer: Writer) -> Any:
    if isinstance(value, str) and len(value) > LONG_TEXT:
        data = np.frombuffer(value.encode(), np.uint8)
        return {"leaf": writer.put(value, lambda: writer.array("text", data))}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, StoredFrame):
        # The frame store may drop its session; a saved memory stands by itself.
        value = value.encoded()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        cls = type(value)
        packed = {
            f.name: _pack(
                getattr(value, f.name), f"{path}.{f.name}", f.metadata.get("kind", kind), writer
            )
            for f in dataclasses.fields(value)
        }
        return {"class": name_of(cls), "fields": packed}
    if isinstance(value, tuple):
        return {"tuple": [_pack(v, f"{path}.{i}", kind, writer) for i, v in enumerate(value)]}
    if isinstance(value, dict):
        return {"dict": {k: _pack(v, f"{path}.{k}", kind, writer) for k, v in value.items()}}
    if isinstance(value, bytes):
        data = np.frombuffer(value, np.uint8)
        return {"leaf": writer.put(value, lambda: writer.array("bytes", data))}
    if isinstance(value, np.ndarray):
        return {"leaf": writer.put(value, lambda: writer.array("array", value))}
    if is_tensor(value):
        return {"leaf": writer.put(value, lambda: writer.tensor(path, value, kind))}
    raise TypeError(f"a state may not hold a {type(value).__name__}")


def _unpack(tree: Any, reader: Reader, owner: type) -> Any:
    if not isinstance(tree, dict):
        return tree
    tag, body = next(iter(tree.items()))
    if tag == "leaf":
        return reader.value(body)
    if tag == "class":
        fields = {key: _unpack(item, reader, owner) for key, item in tree["fields"].items()}
        return class_of(body, owner)(**fields)
    if tag == "tuple":
        return tuple(_unpack(item, reader, owner) for item in body)
    return {key: _unpack(item, reader, owner) for key, item in body.items()}
