"""The parameters cells of the notebooks that read runs are the records that check them."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import nbformat
import pytest
import yaml

from bench_lib.ablate.job import SYSTEMS, Ablation
from bench_lib.errors import BenchError
from bench_lib.params.binding import bind
from bench_lib.params.readings import (
    AblationParams,
    ArenaParams,
    CompareParams,
    JudgeParams,
    changed,
)

ROOT = Path(__file__).parent.parent
RECORDS = {
    "04_judge": JudgeParams,
    "06_ablations": AblationParams,
    "08_streamarena": ArenaParams,
    "09_compare": CompareParams,
}


@pytest.mark.parametrize("name", RECORDS)
def test_the_parameters_cell_is_the_record(name: str) -> None:
    book = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", 4)
    namespace: dict[str, Any] = {}
    exec(book.cells[1].source, namespace)
    given = {k: v for k, v in namespace.items() if not k.startswith("__")}
    record = RECORDS[name]
    assert given == asdict(record())
    assert list(given) == [f.name for f in fields(record)]
    assert changed(bind(record, given)) == {}


@pytest.mark.parametrize(
    ("record", "values", "said"),
    [
        (JudgeParams, {"variants": ["paded"]}, "padded"),
        (JudgeParams, {"repeats": 0}, "repeats must be at least 1"),
        (JudgeParams, {"temperature": -1.0}, "temperature"),
        (JudgeParams, {"jugde": "x"}, "did you mean 'judge'"),
        (CompareParams, {"runs": []}, "runs is empty"),
        (CompareParams, {"runs": [3]}, "must hold texts"),
        (CompareParams, {"name": "../up"}, "file names"),
        (AblationParams, {"systems": {"x": {}}}, "with a method"),
        (AblationParams, {"conditions": []}, "conditions is empty"),
    ],
)
def test_a_mistake_is_one_clear_line(record: type, values: dict[str, Any], said: str) -> None:
    with pytest.raises(BenchError, match=said):
        bind(record, values)


def test_presets_of_the_ablations_name_runs_that_can_be_made(outputs: Path) -> None:
    for path in (ROOT / "params").glob("06_ablations.*.yaml"):
        job = Ablation.open(AblationParams(**yaml.safe_load(path.read_text())))
        assert len(job.missing) == len(job.wanted)
    assert set(SYSTEMS) == {"raw_video", "text_summary", "simplestream"}
