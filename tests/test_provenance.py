"""What a run says of the code, the packages and the devices that its answers and times are of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_identity import QUESTION, evaluate, write

from bench_lib.compare import tables as compare_tables
from bench_lib.compare.job import Comparison, find_runs, labelled, read
from bench_lib.evaluate.job import Evaluation
from bench_lib.evaluate.reading import gather
from bench_lib.params.evaluate import EvalParams
from bench_lib.params.readings import CompareParams
from bench_lib.readings import origins
from bench_lib.report import header
from bench_lib.report.caveats import caveats
from bench_lib.runs import provenance

MORE = QUESTION.model_copy(update={"id": "q2", "question": "What fell?"})


def opened(root: Path, **given: Any) -> Evaluation:
    params = {"method": "hashing", "source": "folder", "data_root": str(root), **given}
    return Evaluation.open(EvalParams(**params))


def changed(job: Evaluation, **entry: Any) -> None:
    """The first process of a run as if it had been another one."""
    path = job.run.folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["processes"][0] |= entry
    path.write_text(json.dumps(manifest))


def test_a_process_says_what_can_change_a_number(outputs: Path, tmp_path: Path) -> None:
    job = evaluate(write(tmp_path / "root"))
    (entry,) = job.run.manifest()["processes"]
    assert set(provenance.PACKAGES) < set(entry["versions"])
    assert entry["versions"]["numpy"]
    assert entry["versions"]["flash-attn"] is None, "what is absent is said to be"
    assert entry["ffmpeg"]["libavcodec"].count(".") == 2
    assert entry["code"] == provenance.code()
    assert entry["device"] == provenance.device_of("cpu") != ""
    assert {"driver", "cuda", "cudnn", "accelerators", "threads", "cpu", "revision"} <= set(entry)
    assert entry["stamp"] in next(job.run.folder.glob("responses.*")).name


def test_accelerators_are_named_with_their_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = "NVIDIA H200, 570.86.15\nNVIDIA H200, 570.86.15"
    monkeypatch.setattr(provenance, "_told", lambda *words: printed)
    found = provenance.accelerators.__wrapped__()
    assert found == (("NVIDIA H200", "NVIDIA H200"), "570.86.15")
    monkeypatch.setattr(provenance, "_told", lambda *words: "")
    assert provenance.accelerators.__wrapped__()[1] is None


def test_the_codes_digest_is_of_what_gives_answers(tmp_path: Path) -> None:
    def of(**files: str) -> str:
        home = tmp_path / str(len(list(tmp_path.iterdir())))
        for name, text in {"engine/walk.py": "1", **files}.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text)
        return provenance.code(home)

    plain = of()
    assert of() == plain
    assert of(**{"report/page.py": "x", "score/stats.py": "x"}) == plain, "they give no answers"
    for name in ("engine/walk.py", "prompts/apm/system.txt", "replies/parse.py", "new/room.py"):
        assert of(**{name: "2"}) != plain, name


def test_answers_of_other_code_are_told_in_plan_and_report(outputs: Path, tmp_path: Path) -> None:
    root = write(tmp_path / "root")
    first = evaluate(root)
    assert "answers on record" not in opened(write(tmp_path / "more", name="U")).plan().index
    assert opened(root).plan().loc["answers on record", "note"] == "they stand"
    changed(first, code="0123456789ab", revision="abc1234")
    write(root, questions=[QUESTION, MORE])
    again = opened(root)
    note = again.plan().loc["answers on record", "note"]
    assert "not all by the code of now: 1 by abc1234 (0123456789ab)" in note
    assert f"to ask anew, move {first.run.folder.name} away" in note
    again.execute(progress=False)
    material = gather(again)
    assert origins.codes(material)["abc1234 (0123456789ab)"] == 1
    (told,) = [c for c in caveats(material) if "different code" in c.text]
    assert told.grave
    assert "1 by abc1234 (0123456789ab)" in told.text


def test_the_plan_says_why_a_run_begins_anew(outputs: Path, tmp_path: Path) -> None:
    first = evaluate(write(tmp_path / "root"))
    moved = opened(write(tmp_path / "root", seed=2))
    reasons = moved.plan().loc[["begun anew"], "note"].tolist()
    assert reasons == [
        f"{first.run.folder.name} was asked about other data: "
        "trajectory 'T': session day1: videos differs"
    ]


def test_times_of_several_devices_in_one_run_are_told(outputs: Path, tmp_path: Path) -> None:
    root = write(tmp_path / "root")
    first = evaluate(root)
    changed(first, device="NVIDIA H200")
    write(root, questions=[QUESTION, MORE])
    material = gather(evaluate(root))
    (told,) = [c.text for c in caveats(material) if "different devices" in c.text]
    assert "1 on NVIDIA H200" in told
    facts = dict(next(rows for title, rows in header.header(material).facts if title == "On what"))
    assert facts["device"] == f"NVIDIA H200, {provenance.device_of('cpu')}"


def test_times_of_different_devices_are_marked_where_they_stand_together(
    outputs: Path, tmp_path: Path
) -> None:
    root = write(tmp_path / "root")
    evaluate(root)
    other = evaluate(root, seed=1, name="other")

    def costs() -> tuple[str, list[str]]:
        found, _ = read(find_runs(["03_eval-*"])[0])
        job = Comparison(CompareParams(published=[]), labelled(found))
        table = compare_tables.costs(job)
        return table.note, [row.cells[3].text for row in table.rows]

    note, times = costs()
    assert origins.APART not in note + "".join(times)
    changed(other, device="NVIDIA H200")
    note, times = costs()
    assert all(text.endswith(origins.APART) for text in times)
    assert "NVIDIA H200: other" in note
