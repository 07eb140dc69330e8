"""What a memory is worth to the trained tiny model, on worlds that it has never seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench_lib.dollhouse.training import tiny
from bench_lib.evaluate.tiny_check import PAIRS, answers, estimate_of, gain, unseen


@pytest.mark.slow
def test_memory_helps_and_emptying_it_takes_that_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paired by ask, intervals by trajectory; which run must be better was fixed beforehand."""
    monkeypatch.setenv("BENCH_OUTPUTS", str(tmp_path))
    assert tiny.trained("tiny")
    source = unseen(40)
    runs = {name: answers("tiny", source, name, 0) for pair in PAIRS for name in pair}
    for better, worse in PAIRS:
        assert gain(runs[better], runs[worse]).low > 0, (better, worse)
    assert estimate_of(runs["oracle"]).value > 60
    assert estimate_of(runs["no memory"]).low < 30
