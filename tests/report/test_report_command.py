"""The command in a report gives papermill the same parameters, types included."""

from __future__ import annotations

import shlex
from dataclasses import asdict

import pytest
from click.testing import CliRunner
from papermill import cli

from bench_lib.params.evaluate import EvalParams
from bench_lib.report.command import command


def understood(words, monkeypatch):
    """What papermill would hand to the notebook."""
    seen = {}

    def spy(input_path, output_path, parameters, **rest):
        seen.update(parameters, input=input_path, output=output_path)

    monkeypatch.setattr(cli, "execute_notebook", spy)
    done = CliRunner().invoke(cli.papermill, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return seen


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"method": "null", "limit": 3, "temperature": 0.6},
        {"name": "007"},
        {"name": "1e5"},
        {"name": "True"},
        {"question": 'it\'s a "name" with $HOME; rm'},
        {"tasks": ["ER", "PRM"], "trajectories": ["T 1", "T2"]},
        {"method": "null", "method_args": {"fps": 2.0}, "max_new_tokens": {"choice": 16}},
        {"question": "Wo ist der Schlüssel?", "at": "monday 1:30"},
        {"data_root": "~/my videos"},
    ],
)
def test_papermill_understands_the_command(changed, monkeypatch):
    params = EvalParams(**changed)
    line = command("03_eval", params, "outputs/03_eval-x.ipynb").replace("\\\n", "")
    found = understood(shlex.split(line)[1:], monkeypatch)
    assert found.pop("input") == "notebooks/03_eval.ipynb"
    assert found.pop("output") == "outputs/03_eval-x.ipynb"
    assert {k: (type(v), v) for k, v in found.items()} == {
        k: (type(v), v) for k, v in params.changed().items()
    }
    assert asdict(EvalParams(**found)) == asdict(params)
