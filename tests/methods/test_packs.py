"""States of one stream share what they hold: written once, never lost, at most half of it dead."""

from __future__ import annotations

import os
import random
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_lib.engine.kept import States
from bench_lib.errors import BenchError
from bench_lib.evaluate.checks.trial import Mirror, Trial, Viewing, fingerprint_of, goes_on
from bench_lib.measure import counting
from bench_lib.state import packs
from bench_lib.state import walk as states
from bench_lib.state.packs import Shelf
from bench_lib.state.walk import part
from bench_lib.video.stream import EncodedFrame

IDENTITY = {"method": "x"}
EPISODE: Any = SimpleNamespace(trajectory=SimpleNamespace(id="T"), id="E", asks=())


@dataclass(frozen=True)
class Memory:
    keys: torch.Tensor = part("kv")
    blocks: tuple[torch.Tensor, ...] = part("embeddings", default=())
    frames: tuple[EncodedFrame, ...] = ()
    texts: tuple[str, ...] = ()
    places: torch.Tensor = part("index", default=None)


def begun() -> Memory:
    return Memory(torch.zeros(2, 0, 4), places=torch.zeros(0, dtype=torch.int32))


def assert_same_state(one: Memory, other: Memory) -> None:
    for name in ("frames", "texts"):
        assert getattr(one, name) == getattr(other, name)
    pairs = [(one.keys, other.keys), (one.places, other.places)]
    for a, b in [*pairs, *zip(one.blocks, other.blocks, strict=True)]:
        assert a.dtype == b.dtype
        assert torch.equal(a, b)


def drawn(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def changed(memory: Memory, what: str, seed: int) -> Memory:
    """One step in the life of a memory."""
    keys, blocks, places = memory.keys, memory.blocks, memory.places
    if what == "grow":
        return Memory(
            torch.cat((keys, drawn(2, 3, 4, seed=seed)), dim=1),
            (*blocks, drawn(5, 4, seed=seed), drawn(1, 4, seed=seed + 1)),
            (*memory.frames, EncodedFrame(float(seed), random.Random(seed).randbytes(300))),
            (*memory.texts, f"{seed} " * 700),
            torch.cat((places, torch.full((3,), seed, dtype=torch.int32))),
        )
    if what == "evict":
        return replace(
            memory, keys=keys[:, 1:].clone(), blocks=blocks[1:], frames=memory.frames[1:]
        )
    if what == "replace":
        return replace(memory, keys=keys + 1, blocks=tuple(b * 2 for b in blocks), texts=())
    if what == "double":
        return replace(memory, blocks=(*blocks, *blocks), frames=(*memory.frames, *memory.frames))
    return memory


@dataclass
class Keeper:
    """A run that keeps states as `States` does, one a session."""

    root: Path
    keep: str = "last"
    form: str = "exact"
    position: int = 0

    def __post_init__(self) -> None:
        self.states = States(self.root, self.keep, form=self.form)  # type: ignore[arg-type]

    def save(self, memory: Memory) -> tuple[Memory, dict[str, Any]]:
        """What the stream goes on with, and the bytes."""
        self.position += 1
        holder = Holder(memory)
        record = self.states.keep(EPISODE, {"position": self.position, "size": None}, holder)
        return holder.state, record

    @property
    def home(self) -> Path:
        return self.states._home(EPISODE, self.root)

    def load(self, position: int) -> Memory:
        return states.load(self.home / f"{position:04d}", IDENTITY, Memory)

    def on_disk(self) -> int:
        return sum(p.stat().st_size for p in (self.home / "packs").iterdir())


class Holder:
    """The part of a method that is saved."""

    def __init__(self, state: Memory) -> None:
        self.state = state

    def state_bytes(self) -> dict[str, int]:
        return states.nbytes(self.state)

    def save(self, folder: Path, shelf: Shelf | None = None) -> None:
        states.save(self.state, folder, IDENTITY, shelf)

    def load(self, folder: Path) -> None:
        self.state = states.load(folder, IDENTITY, Memory)


STEPS = st.lists(
    st.sampled_from(["grow", "grow", "evict", "replace", "double", "stay"]), min_size=1, max_size=7
)


@settings(max_examples=40, deadline=None)
@given(steps=STEPS, keep=st.sampled_from(["last", "all"]))
def test_every_kept_state_comes_back_whole(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], keep: str
) -> None:
    keeper = Keeper(tmp_path_factory.mktemp("run"), keep)
    memory, lived = begun(), []
    for seed, step in enumerate(steps, 1):
        memory = changed(memory, step, seed)
        lived.append(memory)
        keeper.save(memory)
    for position, then in enumerate(lived, 1):
        if keep == "all" or position == len(lived):
            assert_same_state(keeper.load(position), then)
            assert states.nbytes(keeper.load(position)) == states.nbytes(then)
    kept = [p.name for p in keeper.home.iterdir()]
    assert len(kept) == 1 + (len(lived) if keep == "all" else 1)
    if keep == "last":
        record = packs.read(keeper.home / f"{len(lived):04d}")
        held = sum(packs.Piece(*values).nbytes for values in record["pieces"].values())
        assert sum(pack["bytes"] for pack in record["packs"].values()) <= 2 * held
        named = {p.name for p in (keeper.home / "packs").iterdir()}
        assert named == set(record["packs"]), "a pack that nobody needs is left, or one is missing"


@pytest.mark.parametrize("form", ["exact", "int8", "fp8"])
def test_what_only_grows_is_written_once(tmp_path: Path, form: str) -> None:
    keeper, memory, written = Keeper(tmp_path, form=form), begun(), []
    for seed in range(1, 9):
        memory, record = keeper.save(changed(memory, "grow", seed))
        written.append(record["written"])
        described = (keeper.home / f"{seed:04d}" / "state.json").stat().st_size
        # A step adds 96 + 96 bytes of numbers at full size, a picture, a text and 12 of places.
        assert record["written"] - described < 1_400 + 300 + 700 * 2 + 250 + 500
    exact = sum(states.nbytes(memory).values())
    assert record["on_disk"] > exact / 2
    assert_same_state(keeper.load(8), memory)


def test_without_a_shelf_everything_is_written_each_time(tmp_path: Path) -> None:
    """The control."""
    memory, written = begun(), []
    for seed in range(1, 9):
        memory = changed(memory, "grow", seed)
        with counting() as counts:
            states.save(memory, tmp_path / str(seed), IDENTITY)
        written.append(counts["state_bytes_written"])
    assert written[7] > 5 * written[0]


def test_a_stream_that_goes_on_from_what_was_saved_is_not_quantised_again(tmp_path: Path) -> None:
    """Else a resumed run would differ from one that was not, ever more with each session."""
    keeper = Keeper(tmp_path, form="int8")
    first, _ = keeper.save(changed(begun(), "grow", 1))
    memory = first
    for seed in range(2, 6):
        memory, _ = keeper.save(changed(memory, "grow", seed))
    assert torch.equal(memory.keys[:, :3], first.keys)
    assert torch.equal(memory.blocks[0], first.blocks[0])
    assert not torch.equal(first.blocks[0], drawn(5, 4, seed=1)), "int8 changes something"


def test_a_save_that_was_cut_short_spoils_nothing(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path, "all")
    memory = changed(begun(), "grow", 1)
    keeper.save(memory)
    # A process dies with its pack half written and its folder not yet in place.
    (keeper.home / "packs" / "0123456789abcdef.part").write_bytes(b"half")
    torn = keeper.home / ".0002.1"
    shutil.copytree(keeper.home / "0001", torn)
    orphan = keeper.home / "packs" / "fedcba9876543210.safetensors"
    orphan.write_bytes(b"nobody names it")
    assert_same_state(keeper.load(1), memory)
    later = changed(memory, "grow", 2)
    keeper.save(later)
    assert_same_state(keeper.load(1), memory)
    assert_same_state(keeper.load(2), later)
    assert not orphan.exists()


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_a_pack_that_is_not_whole_is_noticed(tmp_path: Path, damage: str) -> None:
    keeper = Keeper(tmp_path)
    memory, _ = keeper.save(changed(begun(), "grow", 1))
    keeper.save(changed(memory, "grow", 2))
    oldest = min((keeper.home / "packs").iterdir(), key=os.path.getmtime)
    if damage == "missing":
        oldest.unlink()
    else:
        oldest.write_bytes(oldest.read_bytes()[:-1] + b"\x07")
    with pytest.raises(BenchError, match=damage if damage == "missing" else "damaged"):
        keeper.load(2)


class Longwinded(Mirror):
    """A model whose texts are as long as a summary of 2,048 tokens."""

    def _send(self, messages, contract, generation):
        reply = super()._send(messages, contract, generation)
        # Digests are the free text of its replies, structured or not.
        return replace(reply, text=re.sub("[0-9a-f]{24,}", lambda m: m[0] * 340, reply.text))


GROWING = {
    # Frames a session, and arguments that keep a window from sliding.
    "rekv": (12, {"n_local": 4_096}),
    "raw_video": (12, {}),
    "text_summary": (4, {}),
    "streammind": (120, {}),
    "streamforest": (12, {"mode": "batch"}),
}


@pytest.mark.parametrize("name", GROWING)
def test_a_method_that_only_appends_writes_what_is_new(tmp_path: Path, name: str) -> None:
    frames, args = GROWING[name]
    trial = Trial.scaled(name)
    trial = replace(trial, args={**trial.args, **args})
    view = Viewing.of(trial)
    if view.method.model == "chat":
        view.method.attach(Longwinded())
        view.method.reset("T001", 42)
    run, written, whole = States(tmp_path / "run"), [], []
    for position in range(1, 9):
        view.session(frames)
        view.end()
        at = {"position": position, "size": None}
        written.append(run.keep(EPISODE, at, view.method)["written"])
        with counting() as counts:
            view.method.save(tmp_path / f"alone{position}")
        whole.append(counts["state_bytes_written"])
    told = f"{name}: {written} written, {whole} without sharing"
    assert whole[-1] > 4 * whole[0], f"the control: {told}"
    assert max(written) < 2 * written[0], told
    assert sum(written) < 0.4 * sum(whole), told
    again = trial()
    [home] = (tmp_path / "run").iterdir()
    if again.model == "chat":
        again.attach(Longwinded())
    again.load(home / "0008")
    assert dict(again.state_bytes()) == dict(view.method.state_bytes())
    loaded = replace(view, method=again)
    assert fingerprint_of(goes_on(loaded)) == fingerprint_of(goes_on(view))
