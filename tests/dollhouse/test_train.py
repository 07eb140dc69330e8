"""Training on toy sizes: losses fall, a stopped stage goes on as if never stopped."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bench_lib.backbones import hf_compat
from bench_lib.dollhouse.training import publish, tiny, train, vision
from bench_lib.dollhouse.training.layout import Clerk
from bench_lib.dollhouse.training.loop import Stage, fit
from bench_lib.dollhouse.training.scenes import scenes
from bench_lib.dollhouse.training.stories import Library
from bench_lib.dollhouse.training.text import Bank
from bench_lib.dollhouse.training.words import FIELDS, cells, tokens_of
from bench_lib.dollhouse.world.world import SMALL, build


def _marks(folder: Path, stage: str) -> list[dict[str, Any]]:
    lines = (folder / "log.jsonl").read_text().splitlines()
    return [m for m in map(json.loads, lines) if m["stage"] == stage]


def test_the_letter_stage_lowers_its_loss(tmp_path: Path) -> None:
    model, tokenizer = train.blank(1)
    text = model.model.language_model
    step = train.letters(model, Clerk(tokenizer), 1, 3)
    before = float(step(0)[0])
    fit(Stage("letters", 10, 2e-3), tmp_path, text, text.parameters(), step)
    assert float(step(0)[0]) < 0.6 * before
    assert 0 <= _marks(tmp_path, "letters")[-1]["letter"] <= 1


def test_the_story_stage_lowers_its_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "SPOKEN_WORLDS", 2)
    model, tokenizer = train.blank(1)
    text = model.model.language_model
    step = train.stories(model, Clerk(tokenizer), 1, 600, "stories")
    before = float(step(0)[0])
    fit(Stage("stories", 8, 2e-3), tmp_path, text, text.parameters(), step)
    assert float(step(0)[0]) < 0.8 * before


def test_the_tower_learns_to_say_what_is_there(tmp_path: Path) -> None:
    model, tokenizer = train.blank(1)
    readout = vision.Readout(tokenizer, model.get_input_embeddings().weight)
    tower = model.model.visual
    step = vision.steps(vision.opened(model, tokenizer), readout, 1, 6)
    before = float(step(999)[0])
    fit(Stage("vision", 24, 2e-3), tmp_path, tower, tower.parameters(), step)
    assert float(step(999)[0]) < 0.9 * before


def test_scenes_are_drawn_once_and_kept(tmp_path: Path) -> None:
    world = build(1_234_567, SMALL)
    first = scenes(world, 1, tmp_path)
    assert first.shape[1:] == (2, 112, 112, 3)
    assert np.array_equal(first, scenes(world, 1, tmp_path))
    assert not np.array_equal(first, scenes(world, 2, tmp_path))


def test_embeddings_are_the_code_and_stay(tmp_path: Path) -> None:
    """Tower and decoder are trained apart: what they share must not move."""
    model, tokenizer = train.blank(1)
    table = model.get_input_embeddings().weight.clone()
    text = model.model.language_model
    fit(
        Stage("letters", 2, 2e-3),
        tmp_path,
        text,
        text.parameters(),
        train.letters(model, Clerk(tokenizer), 1, 1),
    )
    assert torch.equal(table, model.get_input_embeddings().weight)
    assert torch.equal(table, model.lm_head.weight)


def test_a_stopped_stage_goes_on_as_if_never_stopped(tmp_path: Path) -> None:
    ends = []
    for name, pauses in (("whole", ()), ("stopped", (0.0, 0.0))):
        model, tokenizer = train.blank(1)
        text = model.model.language_model
        step = train.letters(model, Clerk(tokenizer), 1, 1)
        folder = tmp_path / name
        folder.mkdir()
        stage = Stage("letters", 4, 2e-3)
        for pause in pauses:
            assert not fit(stage, folder, text, text.parameters(), step, pause)
        if pauses:  # as a new process: nothing but the file is left
            model, tokenizer = train.blank(1)
            text = model.model.language_model
            step = train.letters(model, Clerk(tokenizer), 1, 1)
        assert fit(stage, folder, text, text.parameters(), step)
        ends.append(text.layers[0].mlp.down_proj.weight.detach().clone())
    assert torch.equal(*ends)


def test_every_word_of_the_tower_is_a_token() -> None:
    tokenizer = hf_compat.tokenizer(tiny.checkpoint("tiny-untrained"))
    known = tokenizer.get_vocab()
    lacking = [t for f, ws in FIELDS.items() for w in ws for t in tokens_of(f, w) if t not in known]
    assert not lacking


def test_a_picture_is_said_in_full() -> None:
    """Every thing that stands in a room is said at its place, with all its properties."""
    tokenizer = hf_compat.tokenizer(tiny.checkpoint("tiny-untrained"))
    library = Library(Bank(tokenizer), 1)
    world, _ = library.world(0)
    for film in world.films:
        for shot in film.shots:
            words = cells(shot)
            for group in shot.picture.placed():
                here = [w for w in words if w.get("place") == f" {group.place}" and "kind" in w]
                assert any(
                    w["kind"] == f" {group.item.kind}" and w["colour"] == f" {group.item.colour}"
                    for w in here
                )
            assert all(w["room"] == f" {shot.picture.room}" for w in words)


def test_the_command_runs_all_stages_and_then_has_nothing_left_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = {name: replace(stage, steps=2) for name, stage in train.STAGES.items()}
    monkeypatch.setattr(train, "STAGES", short)
    monkeypatch.setattr(train, "SPOKEN_WORLDS", 2)
    monkeypatch.setattr(train, "SEEN_WORLDS", 1)
    monkeypatch.setattr(train, "TOKENS", 400)
    monkeypatch.setattr("sys.argv", ["train", "--folder", str(tmp_path), "--device", "cpu"])
    for _ in range(2):
        train.main()
        lines = (tmp_path / "log.jsonl").read_text().splitlines()
        assert [json.loads(line)["stage"] for line in lines] == list(train.STAGES)
    seen = publish.assembled(tmp_path, 42).model.language_model.state_dict()
    kept = torch.load(tmp_path / "seen.pt", weights_only=True)["model"]
    assert all(torch.equal(seen[name], weights) for name, weights in kept.items())


def test_published_weights_are_small_and_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench_lib.opening import backbones

    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    target = tmp_path / "model.safetensors"
    size = publish.publish(tmp_path / "nothing trained", target, 42)
    assert 4e6 < size <= 10e6
    monkeypatch.setattr(tiny, "WEIGHTS", target)
    loaded = backbones.load("tiny", device="cpu")
    assert loaded.noise == ""
    table = loaded.model.get_input_embeddings().weight
    assert float(table.std()) == pytest.approx(1.0, abs=0.01)
    assert "noise" in backbones.load("tiny-untrained", device="cpu").noise
    assert np.isfinite(loaded.model.lm_head.weight.numpy()).all()
