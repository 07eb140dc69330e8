"""Memories in one byte a number: what they weigh, and how far answers move."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_lib import methods
from bench_lib.errors import BenchError
from bench_lib.evaluate.checks import forms as effects
from bench_lib.evaluate.checks.trial import Trial
from bench_lib.params.evaluate import EvalParams
from bench_lib.state import forms

LOCAL = [name for name in methods.available() if methods.find(name).model == "backbone"]
BOUND = {"int8": 0.05, "fp8": 0.3}
"""Of the distance of logits, relative to their spread, right after one save."""
LOOSER = {"video_salmonn_s": {"int8": 0.15, "fp8": 0.3}}
"""Selection by nearest neighbours turns on small differences of tokens."""


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 20),
    scale=st.sampled_from([1e-6, 1.0, 1e4]),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
    seed=st.integers(0, 99),
)
def test_numbers_come_back_within_half_a_step(
    rows: int, scale: float, dtype: torch.dtype, seed: int
) -> None:
    random = torch.Generator().manual_seed(seed)
    tensor = (torch.randn(3, rows, 8, generator=random) * scale).to(dtype)
    tensor[0, :, 0] = 0.0
    name = str(dtype).removeprefix("torch.")
    for form in ("int8", "fp8"):
        parts = forms.written(tensor, form)
        back = forms.restored(parts, name)
        assert back.dtype == dtype
        assert back.shape == tensor.shape
        assert sum(t.numel() * t.element_size() for t in parts.values()) <= (
            tensor.numel() * tensor.element_size()
        )
        gone = (back.float() - tensor.float()).abs()
        largest = tensor.float().abs().amax(-2, keepdim=True)
        step = largest / 254 if form == "int8" else tensor.float().abs() / 16 + largest.max() / 1e5
        limits = torch.finfo(dtype)
        least = largest.max() * limits.eps + limits.tiny * limits.eps
        assert bool((gone <= step * 1.02 + least).all())
        assert not back[0, :, 0].any()


def test_what_is_no_number_of_a_token_stays_exact() -> None:
    floats, whole = torch.randn(40, 8), torch.arange(40)
    for kind in ("index", "weights", "frames"):
        assert forms.form_of(floats, kind, "int8") == "exact"
    assert forms.form_of(whole, "kv", "int8") == "exact"
    assert forms.form_of(floats, "kv", "int8") == "int8"
    assert forms.written(floats, "exact")[""] is floats
    few = torch.randn(1, 8, dtype=torch.float16)
    assert forms.written(few, "int8")[""] is few, "four bytes of scale for two of number"


def shift(name: str, form: str) -> effects.Effect:
    return list(effects.effects(Trial.scaled(name), ("exact", form)))[1]


@pytest.mark.parametrize("form", ["int8", "fp8"])
@pytest.mark.parametrize("name", LOCAL)
def test_answers_move_little(name: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects, "SESSIONS", (17,))
    exact, changed = effects.effects(Trial.scaled(name), ("exact", form))
    print(f"{name} {form}: {changed.distance:.4f} {changed.same:.0%}")
    assert exact.distance == 0.0
    assert exact.same == 1.0
    assert 0.0 < changed.distance < LOOSER.get(name, BOUND)[form]
    assert changed.disk_bytes < 0.75 * exact.disk_bytes


@pytest.mark.parametrize("name", ["rekv", "fluxmem"])
def test_fewer_levels_move_them_more(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: with seven levels in place of 255 the bound is broken."""
    monkeypatch.setattr(effects, "SESSIONS", (17,))
    monkeypatch.setattr(forms, "INT8_LARGEST", 3.0)
    assert shift(name, "int8").distance > BOUND["int8"]


def test_a_form_needs_saved_memories() -> None:
    assert EvalParams(state_form="int8").state_form == "int8"
    for refused in ({"states": "none"}, {"mode": "replay"}):
        with pytest.raises(BenchError, match="it needs mode: stream and states"):
            EvalParams(state_form="fp8", **refused)  # type: ignore[arg-type]
    with pytest.raises(BenchError, match="did you mean 'int8'"):
        EvalParams(state_form="int9")
