"""Flash-VStream as a method: streams in, answers out, on the tiny models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

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
from bench_lib.memories.parts import kmeans
from bench_lib.methods import flash_vstream as fv
from bench_lib.opening import backbones
from bench_lib.video.stream import ArrayFrame, Clip

NAME = "flash_vstream"
SMALL = {"temporal_length": 12, "spatial_length": 6, "bank_frames": 24}


@pytest.fixture(scope="module", params=["tiny-untrained", "tiny-qwen3"])
def backbone(request: pytest.FixtureRequest) -> Backbone:
    return backbones.load(request.param, device="cpu")


@pytest.fixture(scope="module")
def tiny() -> Backbone:
    return backbones.load("tiny-untrained", device="cpu")


def test_a_branch_leaves_no_trace(backbone: Backbone) -> None:
    laws.branches_leave_no_trace(lambda: begun(backbone, NAME, **SMALL))


def test_the_past_is_seen(backbone: Backbone) -> None:
    laws.the_past_is_seen(lambda: begun(backbone, NAME, **SMALL))


@pytest.mark.parametrize("form", ["incremental", "thinned"])
def test_hardly_anything_seen_is_answered(tiny: Backbone, form: str) -> None:
    laws.hardly_anything_is_answered(lambda: begun(tiny, NAME, form=form, **SMALL))


def test_a_loaded_state_goes_on(tiny: Backbone, tmp_path: Path) -> None:
    laws.a_loaded_state_goes_on(lambda: begun(tiny, NAME, **SMALL), NAME, tmp_path, **SMALL)


def test_a_ceiling_holds(tiny: Backbone) -> None:
    laws.a_ceiling_holds(lambda: begun(tiny, NAME, **SMALL))


def test_without_a_ceiling_the_bank_keeps_all(tiny: Backbone) -> None:
    method = begun(tiny, NAME, **{**SMALL, "bank_frames": 0})
    session(method, 0, film(60))
    assert not method.bounded
    assert [view.number for view in method.state.memory.bank] == list(range(30))


@pytest.mark.parametrize("form", ["incremental", "thinned"])
def test_the_future_never_matters(tiny: Backbone, tmp_path: Path, form: str) -> None:
    args = {**SMALL, "form": form, "clip_frames": 4}
    laws.the_future_never_matters(household(tmp_path), tmp_path, NAME, tiny, **args)


def test_few_grids_are_kept_as_they_are(backbone: Backbone) -> None:
    """Up to the limits context is every pooled grid and detail every full one, in order."""
    method = begun(backbone, NAME, temporal_length=40, spatial_length=40)
    frames = film(40)
    session(method, 0, frames)
    memory = method.state.memory
    size = method.frame_size((laws.SIDE, laws.SIDE))
    full = backbone.vision([f.pixels(size) for f in frames])
    pooled = backbone.vision([fv.halved(f.pixels(size)) for f in frames])
    torch.testing.assert_close(memory.context.features, pooled, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(memory.detail.features, full, atol=1e-5, rtol=1e-4)
    assert memory.draws == 0
    assert memory.context.weights.tolist() == [1.0] * 20
    assert memory.context.at_s.tolist() == [2.0 * i for i in range(20)]


def test_weights_sum_to_the_grids_seen(backbone: Backbone) -> None:
    method = begun(backbone, NAME, **SMALL)
    for index in range(3):
        session(method, index, film(31, seed=index))
    assert float(method.state.memory.context.weights.sum()) == 3 * 16
    assert len(method.state.memory.context.weights) == 6
    assert method.state.memory.draws > 0


def test_seeds_come_from_the_run(tiny: Backbone) -> None:
    first, again, other = (begun(tiny, NAME, seed=s, **SMALL) for s in (1, 1, 2))
    for method in (first, again, other):
        session(method, 0, film(80, noise=40))
    assert np.array_equal(logits(first), logits(again))
    assert not np.array_equal(logits(first), logits(other))


def test_times_are_seconds_of_footage_over_sessions(tiny: Backbone) -> None:
    method = begun(tiny, NAME, time_mode="weighted")
    session(method, 0, film(7))
    session(method, 1, film(4, seed=1))
    assert [view.at_s for view in method.state.memory.bank] == [0.0, 2, 4, 6, 8, 10]


def test_time_modes_place_the_same_memory_differently(tiny: Backbone) -> None:
    positions = {}
    for mode in ("official", "weighted"):
        method = begun(tiny, NAME, time_mode=mode, **SMALL)
        session(method, 0, film(80))
        positions[mode] = method.prompt(method.state, QUERY).positions
        assert torch.equal(
            method.state.memory.merged,
            begun_again(tiny, mode).state.memory.merged,
        )
    seen = len(method.state.memory.merged)
    start = int((positions["official"] != positions["weighted"]).any(0).nonzero()[0])
    context = positions["official"][:, start : start + 24]
    assert seen == 3 * 16 + 6 * 4
    # Official: places in the buffer, at most a buffer's length; text comes right after the plan.
    assert int(context[0].max() - context[1].min()) <= 6 + 4
    # Weighted: seconds of footage, counted in grids; text comes after the largest.
    placed = positions["weighted"][0, start : start + 24]
    assert int(placed.max() - positions["weighted"][1, start : start + 24].min()) > 20
    assert int(positions["weighted"][0, -1]) > int(placed.max())


def begun_again(tiny: Backbone, mode: str):
    method = begun(tiny, NAME, time_mode=mode, **SMALL)
    session(method, 0, film(80))
    return method


def test_identical_grids_are_one_cluster_each(tiny: Backbone) -> None:
    """A still picture: one centre with all the weight; the release pads with it and forgets it."""
    still = [replace(film(1)[0], t_s=float(t)) for t in range(40)]
    for parity, expected in ((False, [20.0]), (True, [1.0] * 6)):
        method = begun(tiny, NAME, parity=parity, clip_frames=40, **SMALL)
        session(method, 0, still)
        assert method.state.memory.context.weights.tolist() == expected
        assert np.isfinite(logits(method)).all()


def test_work(tiny: Backbone) -> None:
    """Incremental: each frame once and once more pooled. Thinned: the limit, at each question."""
    for form, frames in (("incremental", 0), ("thinned", 16)):
        method = begun(tiny, NAME, form=form, **{**SMALL, "max_frames": 16})
        with counting() as counts:
            session(method, 0, film(41))
        once = 41 if form == "incremental" else 0
        assert counts["frames_encoded"] == counts["frames_pooled"] == once
        assert (counts["grids_merged"] > 0) == (form == "incremental")
        assert counts["tokens_prefilled"] == 0
        for _ in range(2):
            with counting() as counts:
                method.branch().respond(QUERY, SHORT)
            assert counts["frames_encoded"] == frames
            assert counts["model_calls"] == 1
        assert method.input_class == form


def test_thinned_is_one_clustering_of_evenly_spaced_frames(backbone: Backbone) -> None:
    args = {"temporal_length": 12, "spatial_length": 6}
    frames = film(96)
    thinned = begun(backbone, NAME, form="thinned", max_frames=32, **args)
    session(thinned, 0, frames, end=False)
    even = [frames[i] for i in np.linspace(0, 95, 32).round().astype(int)]
    once = begun(backbone, NAME, clip_frames=32, **args)
    session(once, 0, even, end=False)
    np.testing.assert_allclose(logits(thinned), logits(once), atol=2e-4)


def test_a_trunk_may_be_cut_anywhere_between_clips(tiny: Backbone) -> None:
    """An odd frame at a question is doubled for it alone."""
    frames = film(24)
    asked, spared = begun(tiny, NAME, **SMALL), begun(tiny, NAME, **SMALL)
    for method in (asked, spared):
        session(method, 0, frames[:16], end=False)
    branch = asked.branch()
    branch.observe(Clip(0, tuple(frames[16:19])))
    with counting() as counts:
        branch.respond(QUERY, SHORT)
    assert counts["frames_encoded"] == 1
    for method in (asked, spared):
        method.observe(Clip(0, tuple(frames[16:])))
    assert np.array_equal(logits(asked), logits(spared))


def test_sessions_are_named_before_the_memory(backbone: Backbone) -> None:
    method = begun(backbone, NAME, **SMALL)
    for index in range(2):
        session(method, index, film(10, seed=index))
    text = backbone.tokenizer.decode(method.prompt(method.state, QUERY).text_ids.tolist())
    parts = ["You see.", "Session 1, from DAY1 10:00:00:", "Session 2, from DAY1 11:00:00:"]
    places = [text.index(part) for part in [*parts, "<|vision_start|>", QUERY.text]]
    assert places == sorted(places)
    plain = begun(backbone, NAME, session_marker=False, **SMALL)
    session(plain, 0, film(10))
    assert "Session" not in backbone.tokenizer.decode(
        plain.prompt(plain.state, QUERY).text_ids.tolist()
    )


def test_bytes_at_the_papers_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """APM-Bench, table 10: 566.25 MiB; the bank of 240 frames of 448 px and all made from it."""
    # Shapes alone: what would look at values is given an answer.
    monkeypatch.setattr(
        kmeans, "clustered", lambda points, weights, k, *_: torch.arange(len(points)) % k
    )
    monkeypatch.setattr(kmeans, "nearest", lambda points, _: torch.arange(len(points)))

    def sized(buffer: fv.Context, labels: torch.Tensor) -> fv.Context:
        kept = int(labels.max()) + 1
        return fv.Context(*(value[:kept].clone() for value in vars(buffer).values()))

    monkeypatch.setattr(fv, "centred", sized)
    served = backbones.load("rehearse:qwen2.5-vl-7b?layers=1&vision=1", device="meta")
    method = begun(served, NAME)
    size = method.frame_size((448, 448))
    assert size == (448, 448)
    blank = ArrayFrame(0.0, np.zeros((*size, 3), np.uint8))
    method.begin_session(SimpleNamespace(index=0, wall_start_s=None, frame_size=size))
    for start in range(0, 240, 64):
        method.observe(Clip(0, (blank,) * min(64, 240 - start)))
    found = method.state_bytes()
    bank, pooled, context, detail = (
        grids * patches * 1_280 * 2
        for grids, patches in ((120, 1_024), (120, 256), (60, 256), (30, 1_024))
    )
    assert found["features"] == bank + pooled + context + detail
    assert found["embeddings"] == 11_520 * 7_168
    assert found["features"] + found["embeddings"] == 566.25 * 2**20
    # Numbers: three of a view, two of a chosen grid, three numbers of a centre, and a few more.
    assert found["index"] == 8 * (3 * 120 + 2 * 30) + (4 + 8 + 8) * 60 + 8 * (3 + 3 + 5)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"form": "batch"}, "form is 'batch'"),
        ({"time_mode": "weigthed"}, "did you mean 'weighted'"),
        ({"temporal_length": 7}, "temporal_length is 7"),
        ({"bank_frames": -2}, "bank_frames is -2"),
        ({"weights": "tune"}, "did you mean 'tuned'"),
        ({"temporal_lenght": 7}, "did you mean 'temporal_length'"),
    ],
)
def test_wrong_settings_are_refused(args: dict, says: str) -> None:
    with pytest.raises(BenchError, match=says):
        methods.load(NAME, **args)


def test_weights(tiny: Backbone) -> None:
    """Its own checkpoint, a stock model when asked, or a model made here; each says so."""
    stock = SimpleNamespace(id="Qwen/Qwen2-VL-7B-Instruct@main", one_size=False)
    with pytest.raises(BenchError, match="give backbone zhang9302002/Flash-VStream-Qwen-7b"):
        methods.load(NAME).attach(stock)
    assert "was not trained for it" in methods.load(NAME, weights="stock").attach(stock).caveat
    assert "was not trained for it" in methods.load(NAME).attach(tiny).caveat
    own = SimpleNamespace(id="Flash-VStream@main", tuned_for=NAME, one_size=False)
    assert methods.load(NAME).attach(own).caveat == ""
    assert methods.load(NAME).needs_weights
