"""One walk over a method's state: its bytes, its save, its load.

A state is a frozen dataclass of None, bool, int, float, str, bytes, tuples, dicts with string keys,
frame handles, numpy arrays and torch tensors. Arrays and tensors go to one safetensors file,
everything else to JSON; nothing is pickled. A dataclass field says what its tensors are with
`part("embeddings")`; inside it the kind is inherited.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench_lib.errors import BenchError
from bench_lib.stream import ArrayFrame, EncodedFrame, StoredFrame

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


def save(state: Any, folder: Path, identity: dict[str, Any]) -> None:
    """Write `state` to `folder`. `identity` says what made it and is checked by `load`."""
    arrays, tensors = _Shelf(), _Shelf()
    tree = _pack(state, arrays, tensors)
    folder.mkdir(parents=True, exist_ok=True)
    digests = {}
    if arrays.held:
        from safetensors.numpy import save_file as save_arrays

        save_arrays(arrays.held, folder / "arrays.safetensors")
    if tensors.held:
        from safetensors.torch import save_file as save_tensors

        save_tensors(tensors.held, folder / "tensors.safetensors")
    for path in folder.glob("*.safetensors"):
        digests[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    record = {"version": 1, "identity": identity, "digests": digests, "state": tree}
    (folder / "state.json").write_text(json.dumps(record, allow_nan=False))


def load(folder: Path, identity: dict[str, Any], owner: type, device: str = "cpu") -> Any:
    """Read what `save` wrote; `owner` is the method's class, whose module's dataclasses may occur.

    Raises BenchError when a file is missing or damaged, or another method or model made it.
    """
    path = folder / "state.json"
    if not path.exists():
        raise BenchError(f"no saved state in {folder}: state.json is missing")
    record = json.loads(path.read_text())
    if record["identity"] != identity:
        raise BenchError(f"{folder} was saved by {record['identity']}, not by {identity}")
    for name, digest in record["digests"].items():
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
            raise BenchError(f"{folder / name} is damaged: its digest differs; delete the folder")
    arrays: dict[str, np.ndarray] = {}
    tensors: dict[str, Any] = {}
    if "arrays.safetensors" in record["digests"]:
        from safetensors.numpy import load_file as load_arrays

        arrays = load_arrays(folder / "arrays.safetensors")
    if "tensors.safetensors" in record["digests"]:
        from safetensors.torch import load_file as load_tensors

        # A clone of its own for each tensor: the mapped file is one storage under all of them.
        loaded = load_tensors(folder / "tensors.safetensors", device=device)
        tensors = {key: tensor.clone() for key, tensor in loaded.items()}
    return _unpack(record["state"], arrays, tensors, owner)


class _Shelf:
    """What one file takes; an object that occurs twice is written, and read, once."""

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}
        self._keys: dict[int, tuple[str, Any]] = {}

    def put(self, value: Any, written: Callable[[], Any]) -> str:
        """The key of `value`, which is held too: its id would else go to another object."""
        if id(value) not in self._keys:
            key = str(len(self.held))
            self._keys[id(value)] = key, value
            self.held[key] = written()
        return self._keys[id(value)][0]


def _pack(value: Any, arrays: _Shelf, tensors: _Shelf) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, StoredFrame):
        # The frame store may drop its session; a saved memory stands by itself.
        value = value.encoded()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        cls = type(value)
        packed = {
            f.name: _pack(getattr(value, f.name), arrays, tensors)
            for f in dataclasses.fields(value)
        }
        return {"class": f"{cls.__module__}:{cls.__qualname__}", "fields": packed}
    if isinstance(value, tuple):
        return {"tuple": [_pack(item, arrays, tensors) for item in value]}
    if isinstance(value, dict):
        return {"dict": {key: _pack(item, arrays, tensors) for key, item in value.items()}}
    if isinstance(value, bytes):
        return {"bytes": arrays.put(value, lambda: np.frombuffer(value, np.uint8))}
    if isinstance(value, np.ndarray):
        return {"array": arrays.put(value, lambda: np.ascontiguousarray(value))}
    if is_tensor(value):
        return {"tensor": tensors.put(value, lambda: value.detach().clone().contiguous())}
    raise TypeError(f"a state may not hold a {type(value).__name__}")


def _unpack(tree: Any, arrays: dict[str, Any], tensors: dict[str, Any], owner: type) -> Any:
    if not isinstance(tree, dict):
        return tree
    tag, body = next(iter(tree.items()))
    if tag == "class":
        fields = {
            key: _unpack(item, arrays, tensors, owner) for key, item in tree["fields"].items()
        }
        return _dataclass(body, owner)(**fields)
    if tag == "tuple":
        return tuple(_unpack(item, arrays, tensors, owner) for item in body)
    if tag == "dict":
        return {key: _unpack(item, arrays, tensors, owner) for key, item in body.items()}
    if tag == "bytes":
        return arrays[body].tobytes()
    return arrays[body] if tag == "array" else tensors[body]


def _dataclass(name: str, owner: type) -> type:
    module_name, _, qualname = name.partition(":")
    if not (module_name.startswith("bench_lib.") or module_name == owner.__module__):
        raise BenchError(f"a saved state may not name the class {name}")
    value: Any = importlib.import_module(module_name)
    for attribute in qualname.split("."):
        if attribute != "<locals>":
            value = getattr(value, attribute)
    if not dataclasses.is_dataclass(value):
        raise BenchError(f"a saved state names {name}, which is not a record")
    return value  # type: ignore[return-value]
