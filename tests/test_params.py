"""A misspelt, mistyped or impossible parameter is one clear line, in the first second."""

from __future__ import annotations

import pytest

from bench_lib.errors import BenchError
from bench_lib.params.binding import bind
from bench_lib.params.evaluate import EvalParams


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"metod": "fluxmem"}, "did you mean 'method'"),
        ({"limit": "abc"}, "limit must be int, not str 'abc'"),
        ({"limit": True}, "limit must be int, not bool True"),
        ({"tasks": "ER"}, "tasks must be list, not str 'ER'; with papermill use -y"),
        ({"method": 7}, "method must be str, not int 7; with papermill use -r"),
        ({"condition": "orcale"}, "did you mean 'oracle'"),
        ({"tasks": ["ERR"]}, "unknown task 'ERR'"),
        ({"shard": "3"}, "shard must be k/n"),
        ({"shard": "9/8"}, "shard must be k/n"),
        ({"limit": -1}, "limit must not be negative"),
        ({"workers": 0}, "workers must be at least 1"),
        ({"max_new_tokens": {"choise": 3}}, "did you mean 'choice'"),
    ],
)
def test_what_cannot_be_meant_is_refused(given: dict, said: str) -> None:
    with pytest.raises(BenchError, match=said.replace("(", r"\(")):
        bind(EvalParams, given)


def test_a_text_for_a_switch_is_refused() -> None:
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Switch:
        resume: bool = True

    with pytest.raises(BenchError, match=r"resume must be bool, not str 'false'; .*True or False"):
        bind(Switch, {"resume": "false"})


def test_modules_functions_and_private_names_are_no_parameters() -> None:
    namespace = {"_x": 1, "In": [], "bind": bind, "pytest": pytest, "fps": 2, "method": "null"}
    params = bind(EvalParams, namespace)
    assert params.fps == 2.0
    assert isinstance(params.fps, float)
    assert params.changed() == {"method": "null", "fps": 2.0}


def test_an_error_shows_as_one_line_in_a_notebook() -> None:
    error = BenchError("what to do")
    assert error._render_traceback_() == ["BenchError: what to do"]


def test_binding_loads_nothing_heavy() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from bench_lib.params.binding import bind;"
        "from bench_lib.params.evaluate import EvalParams; bind(EvalParams, {});"
        "import bench_lib.evaluate.job, bench_lib.replies.parse;"
        "bad = {'torch', 'transformers', 'jupyterlab', 'papermill'} & set(sys.modules);"
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
