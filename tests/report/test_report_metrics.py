"""metrics.json is strict JSON and says the same as the score table."""

from __future__ import annotations

import json
from pathlib import Path

from bench_lib.evaluate import page as evaluation_page
from bench_lib.evaluate.job import Evaluation
from bench_lib.params.evaluate import EvalParams
from bench_lib.score import adaptive


def test_the_scores_of_a_run_lie_beside_its_records(outputs: Path) -> None:
    job = Evaluation.open(EvalParams(method="null", source="dollhouse-small"))
    job.execute(progress=False)
    evaluation_page.write(job)

    def strict(name: str) -> float:
        raise AssertionError(f"{name} is not JSON")

    text = (job.run.folder / "metrics.json").read_text()
    metrics = json.loads(text, parse_constant=strict)
    decisions = {(r["group"], r["measure"]): r for r in metrics["decisions"]}
    pooled = decisions[adaptive.POOLED, "balanced accuracy"]
    assert pooled["value"] == 50.0, "null is always silent"
    assert pooled["n"] == sum(1 for r in job.responses() if r.polarity)
    by_task = {r["group"]: r for r in metrics["tasks"]}
    assert by_task["ER"]["value"] == 0.0
    assert by_task["ERA"]["value"] is None, "no judge, no Gated Judge score"
    assert by_task["ERA"]["note"]
