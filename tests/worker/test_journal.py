"""What a trunk was sent: kept by what is new, and whole or refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted import SIZE, ask, clip

from bench_lib import methods
from bench_lib.errors import BenchError
from bench_lib.measure import counting
from bench_lib.state.packs import PACKS, Shelf, sweep
from bench_lib.video.stream import SessionInfo

KEPT_BY_US = {"settings": {"can": {"saves": False}}}


def walked(home: Path, sessions: int, **args) -> tuple[object, list[int]]:
    """A memory that is saved after each session, and the bytes each of them wrote."""
    method = methods.load("worker", **args)
    method.reset("T", 42)
    written = []
    for index in range(sessions):
        method.begin_session(SessionInfo(f"S{index}", index, None, SIZE))
        for start in range(0, 20, 2):
            method.observe(clip(start, said=f"{index}"))
        method.end_session(0)
        before = home / str(index - 1) if index else None
        with counting() as counts:
            method.save(home / str(index), Shelf(home / PACKS, before))
        written.append(counts["state_bytes_written"])
    return method, written


@pytest.mark.parametrize("args", [KEPT_BY_US, {}])
def test_each_session_writes_what_is_new(tmp_path: Path, args: dict) -> None:
    method, written = walked(tmp_path, 4, **args)
    assert max(written) < 1.2 * min(written)
    sweep(tmp_path / PACKS, [tmp_path / "3"])
    again = methods.load("worker", **args)
    again.load(tmp_path / "3")
    for each in (method, again):
        each.begin_session(SessionInfo("S4", 4, None, SIZE))
        each.observe(clip(0))
    assert ask(again) == ask(method)
    assert ask(again).startswith("82 frames")


def test_one_that_goes_on_from_a_saved_state_writes_what_is_new_too(tmp_path: Path) -> None:
    walked(tmp_path, 2, **KEPT_BY_US)
    again = methods.load("worker", **KEPT_BY_US)
    again.load(tmp_path / "1")
    again.begin_session(SessionInfo("S2", 2, None, SIZE))
    again.observe(clip(0))
    again.end_session(0)
    with counting() as counts:
        again.save(tmp_path / "2", Shelf(tmp_path / PACKS, tmp_path / "1"))
    assert counts["state_bytes_written"] < 0.2 * counts["state_bytes_on_disk"]


def test_a_worker_that_saves_is_followed_by_one_that_loads_though_the_state_is_gone(
    tmp_path: Path,
) -> None:
    method, _ = walked(tmp_path, 1)
    again = methods.load("worker")
    again.load(tmp_path / "0")
    (tmp_path / "0" / "worker" / "memory.json").unlink()
    again.trunk._process[0].kill()
    assert ask(again) == ask(method)
    assert again.trunk.started == 2


@pytest.mark.parametrize("damage", ["missing", "flipped", "cut", "no record", "stranger"])
def test_what_is_damaged_is_refused_by_name(tmp_path: Path, damage: str) -> None:
    walked(tmp_path, 2, **KEPT_BY_US)
    part = sorted((tmp_path / PACKS).glob("*.jsonl"))[0]
    whole = bytearray(part.read_bytes())
    if damage == "missing":
        part.unlink()
    elif damage == "flipped":
        whole[len(whole) // 2] ^= 1
        part.write_bytes(whole)
    elif damage == "cut":
        part.write_bytes(whole[: len(whole) // 2])
    elif damage == "no record":
        (tmp_path / "1" / "state.json").unlink()
    else:  # the state before is of another stream: it is not taken for a beginning
        method = methods.load("worker", **KEPT_BY_US)
        method.reset("U", 1)
        method.save(tmp_path / "2", Shelf(tmp_path / PACKS, tmp_path / "1"))
        other = methods.load("worker", **KEPT_BY_US)
        other.load(tmp_path / "2")
        assert [op for op, _ in other.trunk.journal] == ["reset"]
        return
    with pytest.raises(BenchError, match=r"delete the state's folder"):
        methods.load("worker", **KEPT_BY_US).load(tmp_path / "1")


def test_a_request_is_noted_before_it_is_sent_and_a_full_disk_says_what_to_do(
    scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = []

    def doing(program, request, reply):
        noted.append([op for op, _ in method.trunk.journal])
        return reply

    method = scripted({("observe", 1): doing})
    method.observe(clip(0))
    assert noted == [["reset", "begin_session", "observe"]]
    whole = ask(method)

    def full(*how):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        with pytest.raises(BenchError, match=r"No space left.*set TMPDIR"):
            method.observe(clip(2))
    with pytest.raises(BenchError, match=r"No space left.*set TMPDIR"):
        ask(method)  # no answer without the clip
    assert whole.startswith("2 frames")
