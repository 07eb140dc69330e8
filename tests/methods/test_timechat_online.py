"""TimeChat-Online: the filter against loops and the released code, and as a method."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import token_laws as laws
import torch
from synthetic import household
from token_laws import QUERY, SHORT, begun, film, logits, session

from bench_lib import methods
from bench_lib.backbones.base import Backbone
from bench_lib.errors import BenchError
from bench_lib.measure import counting
from bench_lib.methods.timechat_online import differs
from bench_lib.opening import backbones

NAME = "timechat_online"
HARD = {"threshold": 0.98}
"""The random tiny model's embeddings are far more alike than a trained one's."""
OFFICIAL = json.loads((Path(__file__).parent / "vectors" / "timechat_online.json").read_text())


@pytest.fixture(scope="module", params=["tiny-untrained", "tiny-qwen3"])
def backbone(request: pytest.FixtureRequest) -> Backbone:
    return backbones.load(request.param, device="cpu")


@pytest.fixture(scope="module")
def tiny() -> Backbone:
    return backbones.load("tiny-untrained", device="cpu")


def drifting() -> np.ndarray:
    """The seeded tokens `[grids, cells, d]` that the released code was run on."""
    random = np.random.default_rng(11)
    x = random.normal(size=(12, 6))
    video = []
    for _ in range(7):
        x = x + random.normal(size=x.shape) * random.choice([0.05, 1.5], size=(12, 1))
        video.append(x)
    return np.round(np.stack(video), 3)


@pytest.mark.parametrize("threshold", [0.5, 0.8])
def test_the_release_and_loops_agree(threshold: float) -> None:
    video = drifting()
    kept, by_loops = list(range(12)), list(range(12))
    for g in range(1, len(video)):
        before, now = (torch.from_numpy(video[i]).float() for i in (g - 1, g))
        kept += [12 * g + int(c) for c in differs(before, now, threshold).nonzero()[:, 0]]
        for cell in range(12):
            a, b = video[g - 1][cell], video[g][cell]
            if a @ b / (np.linalg.norm(a) * np.linalg.norm(b)) <= threshold:
                by_loops.append(12 * g + cell)
    assert kept == by_loops == OFFICIAL["kept"][str(threshold)]


def test_a_branch_leaves_no_trace(backbone: Backbone) -> None:
    laws.branches_leave_no_trace(lambda: begun(backbone, NAME, **HARD))


def test_the_past_is_seen(backbone: Backbone) -> None:
    laws.the_past_is_seen(lambda: begun(backbone, NAME, **HARD))


@pytest.mark.parametrize("form", ["incremental", "thinned"])
def test_hardly_anything_seen_is_answered(tiny: Backbone, form: str) -> None:
    laws.hardly_anything_is_answered(lambda: begun(tiny, NAME, form=form, **HARD))


def test_a_loaded_state_goes_on(tiny: Backbone, tmp_path: Path) -> None:
    laws.a_loaded_state_goes_on(lambda: begun(tiny, NAME, **HARD), NAME, tmp_path, **HARD)


def test_a_ceiling_holds(tiny: Backbone) -> None:
    args = {**HARD, "max_tokens": 100}
    sizes = laws.a_ceiling_holds(lambda: begun(tiny, NAME, **args))
    assert sizes[-1]["embeddings"] <= (100 + 16) * tiny.width * 4
    assert not methods.load(NAME).bounded


@pytest.mark.parametrize("form", ["incremental", "thinned"])
def test_the_future_never_matters(tiny: Backbone, tmp_path: Path, form: str) -> None:
    args = {**HARD, "form": form, "clip_frames": 4}
    laws.the_future_never_matters(household(tmp_path), tmp_path, NAME, tiny, **args)


@pytest.mark.parametrize("clip", [1, 3, 16])
def test_memory_does_not_depend_on_clips(backbone: Backbone, clip: int) -> None:
    as_given, cut = (begun(backbone, NAME, **HARD) for _ in range(2))
    for index, seconds in enumerate((31, 22)):
        session(as_given, index, film(seconds, seed=index))
        session(cut, index, film(seconds, seed=index), clip=clip)
    assert cut.tokens() == as_given.tokens()
    np.testing.assert_allclose(logits(cut), logits(as_given), atol=2e-4)


def test_what_never_changes_is_kept_once(tiny: Backbone) -> None:
    still = [replace(film(1)[0], t_s=float(t)) for t in range(60)]
    method = begun(tiny, NAME)
    with counting() as counts:
        for index in range(2):
            session(method, index, still)
    assert method.tokens() == (2 * 16, 60 * 16)  # each session's first grid
    assert counts["tokens_dropped"] == 58 * 16
    assert np.isfinite(logits(method)).all()


def test_a_threshold_of_one_keeps_all(backbone: Backbone) -> None:
    method = begun(backbone, NAME, threshold=1.0)
    session(method, 0, film(40))
    assert method.tokens() == (20 * 16, 20 * 16)


def test_survivors_keep_their_positions(tiny: Backbone) -> None:
    """The prompt's positions are those of the whole video, less what went."""
    frames = film(40)
    whole = begun(tiny, NAME, threshold=1.0)
    some = begun(tiny, NAME, **HARD)
    for method in (whole, some):
        session(method, 0, frames)
    all_of_it, left = (m.prompt(m.state, QUERY) for m in (whole, some))
    assert left.visual_tokens < all_of_it.visual_tokens

    def places(built) -> list[tuple[int, ...]]:
        return [tuple(p) for p in built.positions.T.tolist()]

    assert set(places(left)) < set(places(all_of_it))
    assert places(left)[-1] == places(all_of_it)[-1]


def test_work(tiny: Backbone) -> None:
    for form, frames in (("incremental", 0), ("thinned", 16)):
        method = begun(tiny, NAME, form=form, max_frames=16)
        with counting() as counts:
            session(method, 0, film(41))
        assert counts["frames_encoded"] == (41 if form == "incremental" else 0)
        with counting() as counts:
            method.branch().respond(QUERY, SHORT)
        assert counts["frames_encoded"] == frames
        assert method.input_class == form


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"form": "window"}, "form is 'window'"),
        ({"threshold": 1.5}, "threshold is 1.5"),
        ({"max_tokens": -1}, "max_tokens is -1"),
        ({"treshold": 0.4}, "did you mean 'threshold'"),
    ],
)
def test_wrong_settings_are_refused(args: dict, says: str) -> None:
    with pytest.raises(BenchError, match=says):
        methods.load(NAME, **args)
