"""The one walk over a state: what is shared stays shared, and no number hides."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bench_lib.errors import BenchError
from bench_lib.state import walk as states
from bench_lib.state.walk import part
from bench_lib.video.stream import ArrayFrame, EncodedFrame, StoredFrame

IDENTITY = {"method": "x"}


@dataclass(frozen=True)
class Kept:
    keys: tuple[Any, ...] = part("kv", default=())
    frames: tuple[Any, ...] = ()
    more: dict[str, Any] = field(default_factory=dict)
    text: str = ""


def round_trip(state: Kept, folder: Path) -> Kept:
    states.save(state, folder, IDENTITY)
    loaded: Kept = states.load(folder, IDENTITY, Kept)
    return loaded


def test_what_occurs_twice_is_held_written_and_read_once(tmp_path: Path) -> None:
    tensor, array = torch.arange(100.0), np.arange(50)
    picture = np.zeros((4, 4, 3), np.uint8)
    frames = (ArrayFrame(0.0, picture), ArrayFrame(1.0, picture))
    state = Kept((tensor, tensor), frames, {"a": array, "b": array})
    loaded = round_trip(state, tmp_path)
    expected = {"kv": 400, "frames": 48, "index": 400}
    assert states.nbytes(state) == states.nbytes(loaded) == expected
    assert loaded.keys[0] is loaded.keys[1]
    assert loaded.more["a"] is loaded.more["b"]
    assert [f.t_s for f in loaded.frames] == [0.0, 1.0]
    packs = list(tmp_path.glob("*.safetensors"))
    assert sum(path.stat().st_size for path in packs) < 2 * 400 + 2 * 400
    record = json.loads((tmp_path / "state.json").read_text())
    assert sum(pack["bytes"] for pack in record["packs"].values()) == 400 + 48 + 400


def test_what_is_equal_but_not_the_same_is_counted_twice(tmp_path: Path) -> None:
    """The control."""
    state = Kept((torch.zeros(10), torch.zeros(10)), more={"a": np.ones(3), "b": np.ones(3)})
    loaded = round_trip(state, tmp_path)
    assert states.nbytes(state) == states.nbytes(loaded) == {"kv": 80, "index": 48}


def test_every_kind_of_value_comes_back(tmp_path: Path) -> None:
    values = {
        "none": None, "yes": True, "n": 3, "x": 0.1, "text": "牛奶", "bytes": b"\x00\xff",
        "nested": {"t": (1, (2.5, "a"))}, "half": torch.ones(2, dtype=torch.bfloat16),
        "stored": StoredFrame(2.0, str(tmp_path / "f.bin"), 3, 40),
    }  # fmt: skip
    (tmp_path / "f.bin").write_bytes(bytes(range(43)))
    state = Kept(more=values, text="x")
    loaded = round_trip(state, tmp_path)
    values["stored"] = EncodedFrame(2.0, bytes(range(3, 43)))  # it outlives the store
    half, again = values.pop("half"), loaded.more.pop("half")
    assert loaded.more == values
    assert again.dtype == torch.bfloat16
    assert torch.equal(half, again)
    assert states.nbytes(loaded)["frames"] == 40


def test_a_view_that_hides_a_bank_is_refused() -> None:
    with pytest.raises(AssertionError, match="view"):
        states.nbytes(Kept((torch.zeros(1000)[:10],)))


@pytest.mark.parametrize("damage", ["missing", "changed", "of another"])
def test_a_memory_that_is_not_whole_is_not_loaded(tmp_path: Path, damage: str) -> None:
    states.save(Kept((torch.ones(4),)), tmp_path, IDENTITY)
    identity = IDENTITY
    if damage == "missing":
        (tmp_path / "state.json").unlink()
    elif damage == "changed":
        [path] = tmp_path.glob("*.safetensors")
        path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    else:
        identity = {"method": "y"}
    said = {"missing": "missing", "changed": "damaged", "of another": "saved by"}[damage]
    with pytest.raises(BenchError, match=said):
        states.load(tmp_path, identity, Kept)
