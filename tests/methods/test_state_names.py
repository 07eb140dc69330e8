"""Records of saved memories keep their names when their classes move."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench_lib.errors import BenchError
from bench_lib.state import walk
from bench_lib.state.names import MOVED, SHARED, class_of, name_of
from bench_lib.video.stream import SessionInfo

INFO = SessionInfo("S001", 0, 0.0, (112, 112))


@dataclass(frozen=True)
class Own:
    """A record beside its method, outside the package."""

    number: int


@pytest.mark.parametrize("name", SHARED)
def test_every_name_is_that_of_a_class(name: str) -> None:
    assert name_of(class_of(name, Own)) == name


def test_a_method_s_own_record_is_named_by_the_method() -> None:
    cls = class_of("fluxmem:Tiers", Own)
    assert cls.__module__ == "bench_lib.methods.fluxmem"
    assert name_of(cls) == "fluxmem:Tiers"
    assert class_of(name_of(Own), Own) is Own


def test_what_was_saved_before_the_move_is_read(tmp_path: Path) -> None:
    walk.save(INFO, tmp_path, {"method": "m"})
    record = json.loads((tmp_path / walk.RECORD).read_text())
    assert record["state"]["class"] == "session"
    record["state"]["class"] = "bench_lib.video.stream:SessionInfo"
    (tmp_path / walk.RECORD).write_text(json.dumps(record))
    assert walk.load(tmp_path, {"method": "m"}, Own) == INFO


@pytest.mark.parametrize("old", MOVED)
def test_every_old_module_has_a_new_one(old: str) -> None:
    import importlib

    assert importlib.import_module(MOVED[old])


@pytest.mark.parametrize("name", ["os:path", "gone:State", "fluxmem:Nothing", "bench_lib.gone:X"])
def test_a_name_that_nobody_has_is_one_line(name: str) -> None:
    with pytest.raises(BenchError, match="a saved memory"):
        class_of(name, Own)


def test_a_record_of_the_package_without_a_name_is_refused() -> None:
    from bench_lib.engine.walk import Trunk

    with pytest.raises(TypeError, match="has no name"):
        name_of(Trunk)
