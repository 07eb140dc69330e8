"""The parameter files of the token memories."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from token_laws import QUERY, SHORT, begun, film, session

from bench_lib import methods, paths
from bench_lib.measure import counting
from bench_lib.opening import backbones
from bench_lib.params.evaluate import EvalParams

WORK = {
    "flash_vstream": ("grids_merged", "grids_dropped"),
    "streamforest": ("tokens_merged", "events_merged"),
    "video_salmonn_s": ("tokens_dropped", "gradient_steps"),
    "timechat_online": ("tokens_dropped", "grids_dropped"),
}
"""Counters that a memory at work moves."""


def preset(kind: str, name: str) -> EvalParams:
    file = Path(paths.root()) / "params" / f"03_eval.{kind}-{name}.yaml"
    return EvalParams(**yaml.safe_load(file.read_text()))


@pytest.mark.parametrize(
    ("name", "differ"),
    [
        ("flash_vstream", {"form", "parity", "session_marker"}),
        ("streamforest", {"session_marker"}),
        ("video_salmonn_s", {"parity", "session_marker"}),
    ],
)
def test_published_settings_are_the_defaults(name: str, differ: set[str]) -> None:
    params = preset("apm", name)
    method = methods.load(params.method, **params.method_args)
    usual = methods.load(name)
    known = methods.parameters(type(method))
    assert {f for f in known if getattr(method, f) != getattr(usual, f)} == differ
    assert params.backbone.split("/")[1] in method.checkpoint
    assert not method.bounded


@pytest.mark.parametrize("name", WORK)
def test_the_scaled_preset_sets_the_memory_to_work(name: str) -> None:
    """On as many frames as the small household has."""
    params = preset("scaled", name)
    assert params.source == "dollhouse-small"
    method = begun(backbones.load("tiny-untrained", device="cpu"), name, **params.method_args)
    with counting() as counts:
        for index in range(3):
            session(method, index, film(33, seed=index, noise=0.0))
        method.branch().respond(QUERY, SHORT)
    for counter in WORK[name]:
        assert counts[counter] > 0, counter
    kept, seen = method.tokens()
    assert 0 < kept < seen
    assert method.bounded
