"""A folder as released goes through 03_eval: archives opened, all answered right."""

from __future__ import annotations

from pathlib import Path

import pytest
from arena_folder import NAME, export

from bench_lib.dollhouse.ideal.grading import agrees
from bench_lib.evaluate.job import Evaluation
from bench_lib.params.evaluate import EvalParams


@pytest.mark.slow
def test_the_agent_answers_what_the_folder_asks(tmp_path: Path, outputs: Path) -> None:
    root = export(tmp_path / "arena", faults=True)
    params = EvalParams(
        method="streammind",
        method_args={"search": f"corpus:{root}/facts.jsonl"},
        backbone="ideal",
        source=NAME,
        data_root=str(root),
        trajectories=["film-003"],
    )
    evaluation = Evaluation.open(params)
    evaluation.execute()
    assert len(evaluation.run.manifest()["facts"]["quarantined"]) == 10
    (trajectory,) = evaluation.trajectories
    found = {r.candidate: r for r in evaluation.run.responses().values()}
    assert set(found) == {c.id for c in trajectory.candidates}
    for candidate in trajectory.candidates:
        response = found[candidate.id]
        assert response.status == "ok", response.error
        assert agrees(response.raw_text, candidate.references["answer"]), candidate.id
