"""A method that is not bound to tuned weights runs on every family of backbones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import released
import yaml

from bench_lib import methods, paths
from bench_lib.backbones.base import Backbone
from bench_lib.errors import BenchError
from bench_lib.evaluate.checks import trial as trials
from bench_lib.evaluate.checks.trial import Trial, Viewing
from bench_lib.opening import backbones
from bench_lib.params.evaluate import EvalParams

FAMILIES = ("tiny-untrained", "tiny-qwen3", "qwen2_vl", "siglip_qwen2", "llava_onevision")
NAMES = [name for name in methods.available() if methods.find(name).model == "backbone"]
ARGS = {
    # What the towers' few tokens of a hundred pixels a side need beside the scaled windows.
    "streamforest": {"heads": 4, "weights": "stock"},
    "video_salmonn_s": {"weights": "stock"},
    "flash_vstream": {"weights": "stock"},
}


@pytest.fixture(scope="module", params=FAMILIES)
def backbone(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Backbone:
    if request.param.startswith("tiny"):
        return backbones.load(request.param, device="cpu")
    folder = tmp_path_factory.mktemp(request.param)
    write = {
        "qwen2_vl": released.flash_vstream,
        "siglip_qwen2": released.forest,
        "llava_onevision": released.llava,
    }[request.param]
    write(folder)
    return backbones.load(str(folder), device="cpu")


@pytest.mark.parametrize("name", NAMES)
def test_it_answers_from_two_sessions(
    backbone: Backbone, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(trials, "_backbone", lambda spec: backbone)
    trial = Trial.scaled(name)
    trial = replace(trial, args={**trial.args, **ARGS.get(name, {})})
    if name == "flash_vstream" and backbone.one_size:
        with pytest.raises(BenchError, match="at two sizes"):
            trial()
        return
    replies = []
    for seed in (0, 70):
        view = Viewing.of(trial)
        view.session(21, seed=seed)
        view.end()
        view.method.save(tmp_path / str(seed))
        view.session(3)
        reply = view.ask()
        assert reply.logits is not None
        assert np.isfinite(reply.logits).all()
        replies.append(reply.logits)
        kept, seen = view.method.tokens()
        assert 0 < kept <= seen
        again = trial()
        again.load(tmp_path / str(seed))
        loaded = replace(view, method=again, index=0)
        loaded.session(3)
        np.testing.assert_array_equal(loaded.ask().logits, reply.logits)
    assert np.abs(replies[0] - replies[1]).max() > 1e-4, "the control: the past is seen"


@pytest.mark.parametrize("name", ["simplestream", "raw_video"])
def test_message_methods_are_served_by_it(
    backbone: Backbone, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "_backbone", lambda spec: backbone)
    view = Viewing.of(Trial(name, {}, "served"))
    view.session(5)
    before = view.ask().logits
    view.show(5, 8, seed=70)
    after = view.ask().logits
    assert before is not None
    assert after is not None
    assert np.abs(after - before).max() > 1e-4


@pytest.mark.parametrize("name", ["apm-rekv", "llava-hermes"])
def test_the_settings_of_llava_onevision_run(name: str, tmp_path: Path) -> None:
    """The official variants, but for lengths that a few frames do not fill."""
    file = Path(paths.root()) / "params" / f"03_eval.{name}.yaml"
    params = EvalParams(**yaml.safe_load(file.read_text()))
    assert "llava-onevision-qwen2-7b" in params.backbone
    released.llava(tmp_path)
    small = {"kv_size": 80} if params.method == "hermes" else {"n_local": 128, "topk": 4}
    method = methods.load(params.method, **{**params.method_args, **small, "clip_frames": 4})
    method.attach(backbones.load(str(tmp_path), device="cpu")).reset("T001", 42)
    view = Viewing(method)
    view.session(21)
    assert np.isfinite(view.ask().logits).all()
    kept, seen = method.tokens()
    assert 0 < kept <= seen == 21 * 16  # frames one by one, 16 tokens each
