"""What no parameter may be: a number without end, nonsense, a name that is no file's name."""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_lib.errors import BenchError
from bench_lib.params.binding import bind
from bench_lib.params.checks import LONGEST_NAME, file_name
from bench_lib.params.evaluate import EvalParams
from bench_lib.params.readings import AblationParams, ArenaParams, CompareParams, JudgeParams
from bench_lib.runs.find import find_run
from bench_lib.runs.folder import Run

RECORDS = (EvalParams, JudgeParams, AblationParams, ArenaParams, CompareParams)
PLACES = [
    (record, f.name, str(f.type))
    for record in RECORDS
    for f in fields(record)
    if f.type in ("float", "dict")
]
NAMED = (EvalParams, AblationParams, ArenaParams, CompareParams)


@pytest.mark.parametrize(("record", "name", "kind"), PLACES)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_every_number_is_finite_wherever_it_stands(
    record: type, name: str, kind: str, value: float
) -> None:
    deep = {"x": {"method": "null", "deep": [1, {"y": value}]}}
    with pytest.raises(BenchError, match=rf"parameter {name}.* must be a finite number, not"):
        bind(record, {name: value if kind == "float" else deep})


@pytest.mark.parametrize(
    ("record", "given", "said"),
    [
        (EvalParams, {"seed": -1}, r"seed must lie in \[0, 2147483648\), not -1"),
        (EvalParams, {"seed": 2**31}, "seed must lie in"),
        (JudgeParams, {"seed": -1}, "seed must lie in"),
        (EvalParams, {"fps": 10**400}, "fps must be a finite number"),
        (EvalParams, {"fps": -0.5}, "fps must not be negative"),
        (EvalParams, {"store_gib": -1}, "store_gib must not be negative"),
        (EvalParams, {"repetition_penalty": 0}, "repetition_penalty must be above 0"),
        (EvalParams, {"repeat": -1}, "repeat must not be negative"),
        (EvalParams, {"max_new_tokens": {"choice": 0}}, "max_new_tokens.choice must be above 0"),
        (EvalParams, {"max_new_tokens": {"choice": 9.5}}, "max_new_tokens.choice must be above"),
        (EvalParams, {"max_new_tokens": {"choice": True}}, "max_new_tokens.choice must be above"),
        (EvalParams, {"trajectories": [3]}, "trajectories must hold texts, not 3"),
        (EvalParams, {"method_args": {3: 1}}, "method_args: names in it must be texts, not 3"),
        (JudgeParams, {"temperature": -0.1}, "temperature must not be negative"),
        (JudgeParams, {"max_new_tokens": 0}, "max_new_tokens must be at least 1"),
        (AblationParams, {"recent": -1}, "recent must not be negative"),
    ],
)
def test_numbers_that_cannot_be_meant(record: type, given: dict[str, Any], said: str) -> None:
    with pytest.raises(BenchError, match=said):
        bind(record, given)


@pytest.mark.parametrize("record", NAMED)
@pytest.mark.parametrize(
    "name",
    [
        "../../x", "a/b", "a\\b", "..", ".", ".hidden", "a\nb", "a\tb", "a\0b", "a\x7fb", "a\x85b",
        "a\u2028b", "a\u200bb", "\u202egnp", "a:b", "a*", "a?", "a[1]", "a|b", '"a"', "<a>", "~a",
        "-p", " a", "a ", "a.", "x" * (LONGEST_NAME + 1), "é" * LONGEST_NAME, "\ud800", "$HOME",
    ],
)  # fmt: skip
def test_a_name_that_is_no_file_name_is_one_line(record: type, name: str) -> None:
    with pytest.raises(BenchError, match="parameter name becomes part of file names") as caught:
        bind(record, {"name": name})
    assert len(str(caught.value).splitlines()) == 1
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "name", ["fluxmem", "two seeds", "k=3, fast (b)", "v1.2", "café", "日本語", "हिन्दी", "a-b_c+d"]
)
def test_names_of_people_are_kept(name: str, outputs: Path) -> None:
    params = EvalParams(method="null", name=name)
    run = Run.open("03_eval", params.name, params.as_dict())
    run.begin()
    assert run.folder.parent == outputs / "runs"
    assert find_run(run.folder.name) == run.folder


def test_one_name_in_two_unicode_forms_is_one_name() -> None:
    assert file_name("cafe\u0301") == "caf\u00e9" == EvalParams(name="cafe\u0301").name


@given(st.text(max_size=100))
def test_every_name_is_refused_or_safe(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    try:
        kept = file_name(name)
    except BenchError:
        return
    home = tmp_path_factory.getbasetemp()
    path = home / f"03_eval-{kept}-0123abcd.html"
    path.write_text("")
    assert path in set(home.iterdir()), "what was written is what is found"
    path.unlink()
