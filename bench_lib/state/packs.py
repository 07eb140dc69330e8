"""The files behind saved states: what one state has written, a later one refers to.

A state's tensors, arrays, pictures and long texts are cut into pieces, each named by a digest of
its content. Pieces that an earlier state of the same stream has written already are referred to;
the rest goes into one new pack (a safetensors file, one more where there are arrays beside
tensors). So a memory that only grows writes what is new: a tuple's old members are known by their
digests, and a tensor that begins with what an earlier one held is that one's pieces and a new one.
What is written each time is the record: some hundred bytes a member, to say where its pieces are.

A pack stays in use while at least half of its bytes are; else what is left of it moves into the new
one. So the packs of a state weigh at most twice what they hold, however its memory changes.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench_lib.errors import BenchError
from bench_lib.measure import count
from bench_lib.state import forms

RECORD = "state.json"
PACKS = "packs"
"""Folder of the packs that the states of an episode share."""
FILES = (".safetensors", ".sqlite", ".jsonl", ".part")
ENOUGH = 0.5
"""Share of a pack's bytes that must be in use for the pack to stay."""


@dataclass(frozen=True)
class Shelf:
    """Where the states of one stream share what they hold.

    Attributes:
        packs: Folder of the packs, beside the states' folders.
        before: Folder of an earlier state, whose packs may be referred to.
        form: See `forms`.
    """

    packs: Path
    before: Path | None = None
    form: str = "exact"


@dataclass(frozen=True)
class Piece:
    """A piece as `state.json` describes it; `again` is its digest as it is loaded."""

    pack: str
    nbytes: int
    shape: tuple[int, ...]
    dtype: str = ""
    again: str = ""


@dataclass(frozen=True)
class Leaf:
    """A value of a state: its pieces in sequence along `axis`. `path` is kept for tensors."""

    kind: str
    pieces: tuple[str, ...]
    axis: int = 0
    path: str = ""


class Writer:
    """Takes the values of one state, and writes what is new of them."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.leaves: list[Leaf] = []
        self.pieces: dict[str, Piece] = {}
        self._numbers: dict[int, tuple[int, Any]] = {}
        self._new: dict[str, dict[str, Any]] = {}  # by piece, what its pack will hold
        before = read(shelf.before) if shelf.before else {}
        self._packs: dict[str, dict[str, Any]] = {
            name: pack
            for name, pack in before.get("packs", {}).items()
            if (shelf.packs / name).exists()
        }
        described = {k: Piece(*v) for k, v in before.get("pieces", {}).items()}
        self._known = {k: piece for k, piece in described.items() if piece.pack in self._packs}
        self._again = {piece.again: k for k, piece in self._known.items() if piece.again}
        leaves = (Leaf(*values) for values in before.get("leaves", ()))
        self._before = {leaf.path: leaf for leaf in leaves if leaf.path}

    def put(self, value: Any, make: Callable[[], Leaf]) -> int:
        """The number of a value; one that occurs twice is written, and read, once."""
        if id(value) not in self._numbers:
            # The value is held too: its id would else go to another object.
            self._numbers[id(value)] = len(self.leaves), value
            self.leaves.append(make())
        return self._numbers[id(value)][0]

    def array(self, kind: str, value: np.ndarray) -> Leaf:
        """A leaf of a numpy array, or of bytes or text as one."""
        value = np.ascontiguousarray(value)
        name = _digest("exact", value.dtype.name, value.shape, value.data)
        if not self._taken(name):
            self._new[name] = {"": value}
            self.pieces[name] = Piece("", value.nbytes, value.shape)
        return Leaf(kind, (name,))

    def tensor(self, path: str, value: Any, kind: str) -> Leaf:
        """A leaf of a tensor of the state at `path`, whose `kind` says which form it takes."""
        value = value.detach()
        form = forms.form_of(value, kind, self.shelf.form)
        name = _of_tensor(value, form)
        whole = name if self._taken(name) else self._again.get(name, "")
        if self._taken(whole):
            return Leaf("tensor", (whole,), 0, path)
        axis, found, done = self._begun(path, value, form)
        left = value.narrow(axis, done, value.shape[axis] - done) if found else value
        if not found or left.shape[axis]:
            found = (*found, self._added(left, form))
        return Leaf("tensor", found, axis, path)

    def _taken(self, name: str) -> bool:
        """Whether a piece needs no writing; it is used from now on."""
        if name in self._known:
            self.pieces[name] = self._known[name]
        return name in self.pieces

    def _begun(self, path: str, value: Any, form: str) -> tuple[int, tuple[str, ...], int]:
        """The axis along which the leaf before has grown, its pieces that stay, and their rows."""
        leaf = self._before.get(path)
        pieces = [self._known.get(name) for name in leaf.pieces] if leaf else []
        if leaf is None or not pieces or pieces[0] is None:
            return 0, (), 0
        old, new = pieces[0].shape, tuple(value.shape)
        if len(old) != len(new):
            return 0, (), 0
        axes = [i for i in range(len(old)) if old[i] != new[i]]
        axis = leaf.axis if len(pieces) > 1 else next(iter(axes), 0)
        if any(i != axis for i in axes):
            return 0, (), 0
        done = 0
        found: list[str] = []
        for name, piece in zip(leaf.pieces, pieces, strict=True):
            rows = piece.shape[axis] if piece and new else 1 + sum(new)
            if not new or done + rows > new[axis]:
                break
            here = _of_tensor(value.narrow(axis, done, rows), form)
            if name not in (here, self._again.get(here)) or not self._taken(name):
                break
            done += rows
            found.append(name)
        return axis, tuple(found), done

    def _added(self, value: Any, form: str) -> str:
        name = _of_tensor(value, form)
        if not self._taken(name):
            value = value.cpu().clone().contiguous()
            parts = forms.written(value, form)
            dtype = str(value.dtype).removeprefix("torch.")
            lossy = forms.SCALE in parts
            again = _of_tensor(forms.restored(parts, dtype), form) if lossy else ""
            size = sum(t.numel() * t.element_size() for t in parts.values())
            self._new[name] = parts
            self.pieces[name] = Piece("", size, tuple(value.shape), dtype, again)
        return name

    def finish(self, folder: Path) -> dict[str, Any]:
        """Write the new packs; what `state.json` in `folder` says of them, for `Reader`."""
        used: Counter[str] = Counter()
        for piece in self.pieces.values():
            used[piece.pack] += piece.nbytes
        stay = {name: p for name, p in self._packs.items() if used[name] >= p["bytes"] * ENOUGH}
        stay = {name: pack for name, pack in stay.items() if used[name]}
        moved: dict[str, list[str]] = {}
        for name, piece in self.pieces.items():
            if piece.pack and piece.pack not in stay:
                moved.setdefault(piece.pack, []).append(name)
        for pack, names in moved.items():
            held = _opened(self.shelf.packs / pack, self._packs[pack])
            for name in names:
                self._new[name] = {
                    end: held[name + end] for end in ("", forms.SCALE) if name + end in held
                }
        self.shelf.packs.mkdir(parents=True, exist_ok=True)
        for of_tensors in (False, True):
            new = {n: p for n, p in self._new.items() if bool(self.pieces[n].dtype) == of_tensors}
            if new:
                pack, about = self._write(new, of_tensors)
                stay[pack] = about
                for name in new:
                    self.pieces[name] = Piece(pack, *vars_of(self.pieces[name])[1:])
        return {
            "shelf": _from(folder, self.shelf.packs),
            "form": self.shelf.form,
            "packs": stay,
            "pieces": {name: vars_of(piece) for name, piece in self.pieces.items()},
            "leaves": [vars_of(leaf) for leaf in self.leaves],
        }

    def _write(self, new: dict[str, dict[str, Any]], of_tensors: bool) -> tuple[str, dict]:
        flat = {name + end: part for name, parts in new.items() for end, part in parts.items()}
        if of_tensors:
            from safetensors.torch import save

            data = save({name: tensor.clone() for name, tensor in flat.items()})
        else:
            from safetensors.numpy import save as save_arrays

            data = save_arrays(flat)
        digest = hashlib.sha256(data).hexdigest()
        path = self.shelf.packs / f"{digest[:16]}.safetensors"
        part = path.with_suffix(".part")
        part.write_bytes(data)
        part.replace(path)
        count("state_bytes_written", len(data))
        held = sum(self.pieces[name].nbytes for name in new)
        return path.name, {"sha256": digest, "bytes": held, "tensors": of_tensors}


class Reader:
    """Gives the values of a saved state back. Raises BenchError for a missing or damaged pack."""

    def __init__(self, folder: Path, record: dict[str, Any], device: str) -> None:
        home = folder / record["shelf"]
        self.device = device
        self.pieces = {name: Piece(*values) for name, values in record["pieces"].items()}
        self.leaves = [Leaf(*values) for values in record["leaves"]]
        self.held = {name: _opened(home / name, pack) for name, pack in record["packs"].items()}
        self._values: dict[int, Any] = {}

    def value(self, number: int) -> Any:
        """The value of a leaf, the same object each time."""
        if number not in self._values:
            self._values[number] = self._value(self.leaves[number])
        return self._values[number]

    def _value(self, leaf: Leaf) -> Any:
        parts = [self._piece(name) for name in leaf.pieces]
        if leaf.kind == "bytes":
            return parts[0].tobytes()
        if leaf.kind == "text":
            return parts[0].tobytes().decode()
        if leaf.kind == "array":
            return parts[0].copy()
        import torch

        # A storage of its own for each tensor, never shared with the pack's.
        whole = torch.cat(parts, leaf.axis) if len(parts) > 1 else parts[0].clone()
        return whole.to(self.device)

    def _piece(self, name: str) -> Any:
        piece = self.pieces[name]
        held = self.held[piece.pack]
        if not piece.dtype:
            return held[name]
        ends = [end for end in ("", forms.SCALE) if name + end in held]
        return forms.restored({end: held[name + end] for end in ends}, piece.dtype)


def read(folder: Path) -> dict[str, Any]:
    """The record of a state's folder; empty where there is none of this kind."""
    path = folder / RECORD
    return json.loads(path.read_text()) if path.exists() else {}


def sweep(packs: Path, folders: Iterable[Path]) -> None:
    """Delete the packs that none of these states refers to."""
    used = {name for folder in folders for name in read(folder).get("packs", {})}
    for path in packs.glob("*"):
        if path.suffix in FILES and path.name not in used:
            path.unlink()


def vars_of(record: Any) -> list[Any]:
    """The fields of a flat record, as JSON takes them."""
    return list(vars(record).values())


def _opened(path: Path, pack: dict[str, Any]) -> dict[str, Any]:
    if not path.exists():
        raise BenchError(f"{path} is missing, which a saved state needs: delete the state's folder")
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != pack["sha256"]:
        raise BenchError(f"{path} is damaged: its digest differs; delete the state's folder")
    if pack["tensors"]:
        from safetensors.torch import load

        return load(data)
    from safetensors.numpy import load as load_arrays

    return load_arrays(data)


def _of_tensor(value: Any, form: str) -> str:
    import torch

    flat = value.cpu().contiguous().reshape(-1).view(torch.uint8)
    return _digest(form, str(value.dtype), tuple(value.shape), flat.numpy().data)


def _digest(form: str, dtype: str, shape: tuple[int, ...], data: Any) -> str:
    found = hashlib.sha256(f"{form} {dtype} {shape} ".encode())
    found.update(data)
    return found.hexdigest()[:32]


def _from(folder: Path, packs: Path) -> str:
    """The way from a state's folder to its packs; both lie in one place or are the same."""
    return "." if packs == folder else f"../{packs.name}"
