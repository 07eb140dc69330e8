"""The frame store under a run: the next method decodes nothing, and a kept memory outlives it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench_lib import paths
from bench_lib.evaluate.job import Evaluation
from bench_lib.params.evaluate import EvalParams


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames in a folder of the test's own; the rendered household is shared."""
    shared = paths.cache() / "dollhouse"
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    paths.cache().mkdir()
    shared.mkdir(parents=True, exist_ok=True)
    (paths.cache() / "dollhouse").symlink_to(shared)


def run(method: str, **given) -> Evaluation:
    given = {"source": "dollhouse-small", "tasks": ["ER", "OCR"], "max_pixels": 12_544, **given}
    job = Evaluation.open(EvalParams(method=method, **given))
    job.execute(progress=False)
    assert not [r.error for r in job.responses() if r.status == "error"]
    return job


def decoded(job: Evaluation) -> int:
    return sum(s["counters"]["source_frames_decoded"] for s in job.run.read("sessions"))


@pytest.mark.parametrize("form", ["lossless", "jpeg"])
def test_the_next_method_decodes_nothing(outputs: Path, form: str) -> None:
    first = run("simplestream", store=form)
    second = run("raw_video", store=form)
    assert decoded(first) > 0
    assert decoded(second) == 0
    assert {s["served"] for s in second.run.read("sessions")} == {"store"}
    plain = run("simplestream")
    same = {r.candidate: r.raw_text for r in plain.responses()} == {
        r.candidate: r.raw_text for r in first.responses()
    }
    assert same or form == "jpeg", "lossless frames gave other answers"


def test_a_kept_memory_outlives_the_store(outputs: Path) -> None:
    kept = run("raw_video", store="jpeg", states="all")
    shutil.rmtree(paths.cache() / "frames")
    name = kept.run.folder.name
    again = run("raw_video", store="jpeg", states_from=name)
    assert [r.raw_text for r in again.responses()] == [r.raw_text for r in kept.responses()]
