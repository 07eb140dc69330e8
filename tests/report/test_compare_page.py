"""09_compare: its tables by another route, its marks in every table and export, its gaps."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench_lib import paths
from bench_lib.compare import page, repeats, tables
from bench_lib.compare.job import Comparison, find_runs, labelled, read
from bench_lib.errors import BenchError
from bench_lib.params.readings import CompareParams
from bench_lib.readings import missing
from bench_lib.readings.material import Material
from bench_lib.report import exports
from bench_lib.report.tables import Cell, Row, Table, dash
from bench_lib.schema import SCORABLE
from bench_lib.score import published
from bench_lib.score.compare import differences
from bench_lib.tasks import APM_BENCH

Build = Callable[..., Material]
CHOICE = [task.code for task in APM_BENCH.tasks if not task.adaptive]


def two(build: Build, trajectories: int = 4, **params: Any) -> Comparison:
    first = build(trajectories, name="first")
    second = build(trajectories, name="second", seed=7, change=flipped)
    return Comparison(CompareParams(**params), labelled([first, second]))


def flipped(response: Any) -> Any:
    """Every third choice becomes right."""
    if response.passed is False and response.option and len(response.candidate) % 3:
        return response.model_copy(update={"option": "B", "passed": True})
    return response


def accuracy(material: Material, task: str) -> float:
    """Percent right of the scored, from the files."""
    counted = [
        bool(r["passed"])
        for r in material.run.read("responses")
        if r["task"] == task and r["status"] in SCORABLE
    ]
    return 100 * sum(counted) / len(counted)


def row(table: Table, name: str) -> Row:
    return next(r for r in table.rows if r.cells[0].text.rstrip("†") == name)


def test_task_scores_are_those_of_the_files(build: Build) -> None:
    job = two(build)
    table = tables.tasks(job)
    for label, material in job.materials.items():
        for code in CHOICE:
            shown = row(table, label).cells[table.columns.index(code)]
            assert shown.text == f"{accuracy(material, code):.2f}†"
            assert re.search(r"n \d+/\d+, G 4", shown.sub)


def test_published_rows_are_as_printed(build: Build) -> None:
    job = two(build, published=["fluxmem", "qwen3_8_27b/raw_video"])
    table = tables.main(job)
    assert row(table, "FluxMem").cells[-1].text == "28.40"
    assert row(table, "Qwen3.8-27B, raw video").cells[-1].text == "45.75"
    assert row(table, "FluxMem").cells[1].text == "as published"


def test_the_paired_difference_is_that_of_shared_probes(build: Build) -> None:
    job = two(build, groups=["ER"])
    keys = [
        {
            (r["candidate"]): bool(r["passed"])
            for r in m.run.read("responses")
            if r["task"] == "ER" and r["status"] in SCORABLE
        }
        for m in job.materials.values()
    ]
    both = set(keys[0]) & set(keys[1])
    wanted = 100 * sum(keys[1][k] - keys[0][k] for k in both) / len(both)
    shown = tables.differences(job).rows[0]
    assert shown.cells[2].text == f"{wanted:+.2f}"
    assert shown.cells[7].text == f"{len(both)}"


def test_holm_adjusts_within_the_declared_family(build: Build) -> None:
    groups = ["ER", "EST", "CT", "TR"]
    job = two(build, 24, groups=groups)
    rows = tables.differences(job).rows
    found = differences(job.runs, job.reference, groups)
    p, adjusted = list(found["p"]), list(found["p_holm"])
    assert [r.cells[4].text for r in rows] == ["—" if q != q else f"{q:.3f}" for q in p]
    assert [r.cells[5].text for r in rows] == ["—" if q != q else f"{q:.3f}" for q in adjusted]
    tested = [i for i in range(4) if rows[i].cells[10].text]
    assert len(tested) == 3, "one row has no test and does not count"
    running = 0.0
    for rank, at in enumerate(sorted(tested, key=lambda i: p[i])):
        running = max(running, min(1.0, p[at] * (3 - rank)))
        assert adjusted[at] == pytest.approx(running)


def test_marks_are_in_every_row_and_every_export(build: Build) -> None:
    job = two(build)
    assert "generated data" in job.marks("first")
    assert "toy model" not in "".join(job.marks("first")), "the made run names no tiny model"
    page.write(job)
    home = paths.outputs() / "09_compare-all"
    for name in ("capabilities-and-overall", "scores-by-task", "what-a-score-costs"):
        lines = list(csv.DictReader(io.StringIO((home / f"{name}.csv").read_text())))
        own = [line for line in lines if line["system"].startswith(("first", "second"))]
        assert len(own) == 2
        assert all("†" in line["system"] and "generated data" in line["comparable"] for line in own)
        latex = (home / f"{name}.tex").read_text()
        assert r"first$^\dagger$" in latex
        assert latex.count(r"\begin{tabular}") == 1
    long = list(csv.DictReader((home / "all-scores.csv").open()))
    assert all(line["not_comparable"] for line in long if line["origin"] == "run")
    assert not any(line["not_comparable"] for line in long if line["origin"] == "published")


def test_other_settings_are_marked_and_listed(build: Build, outputs: Path) -> None:
    plain = build(2, name="plain")
    odd = build(
        2, name="odd", tasks=("ER",), prompts="compact",
        facts={"input_class": "thinned", "model": "tiny@0", "method_args": {"clip_frames": 2}},
    )  # fmt: skip
    job = Comparison(CompareParams(), labelled([plain, odd]))
    told = "; ".join(job.marks("odd"))
    for mark in ("toy model", "thinned replay", "prompts compact", "a part of the data",
                 "scaled: clip_frames 2 (8)"):  # fmt: skip
        assert mark in told
    assert set(job.settings.loc["prompts"]) == {"", "compact"}
    assert "method" not in job.settings.index, "what is the same is not listed"


def test_mixed_code_is_flagged(build: Build) -> None:
    job = two(build)
    material = job.materials["second"]
    path = material.run.folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["processes"][0]["revision"] = "abc1234"
    path.write_text(json.dumps(manifest))
    fresh = Comparison(job.params, labelled([job.materials["first"], again(material)]))
    assert any("2 versions of the code" in c.text and c.grave for c in page.caveats(fresh))
    assert not any("revisions" in c.text for c in page.caveats(Comparison(
        job.params, labelled([job.materials["first"]]))))  # fmt: skip


def again(material: Material) -> Material:
    return Material(
        material.run, material.params, material.bench, material.trajectories, material.asks
    )


def test_nothing_shared_is_n_0_with_a_reason(build: Build) -> None:
    first = build(2, name="first", tasks=("ER",))
    second = build(2, name="second", tasks=("CT",), seed=1)
    job = Comparison(CompareParams(groups=["ER", "Overall"]), labelled([first, second]))
    for line in tables.differences(job).rows:
        assert line.cells[2].text == "—"
        assert line.cells[2].why
        assert line.cells[7].text == "0"
    assert page.of(job).html


def test_no_runs_at_all_still_says_what_is_missing(outputs: Path) -> None:
    job = Comparison.open(CompareParams())
    assert "no run to compare" in page.main(job)._repr_html_()
    assert "papermill" in page.commands(job)._repr_html_()
    assert "Nothing" in page.write(job).absent
    assert not list(outputs.rglob("*.html"))


def test_runs_are_found_by_name_prefix_latest_and_pattern(build: Build) -> None:
    names = []
    for at, name in enumerate(("ant", "bee", "bear")):
        folder = build(1, name=name, seed=at).run.folder
        target = folder.with_name(f"03_eval-{name}-{at}")
        folder.rename(target)
        for file in target.iterdir():
            os.utime(file, (1000 + at, 1000 + at))
        names.append(target.name)
    assert [p.name for p in find_runs(["*-be*"])[0]] == names[1:]
    assert [p.name for p in find_runs(["latest", "03_eval-ant", "03_eval-a*"])[0]] == [
        names[2], names[0],
    ]  # fmt: skip
    assert find_runs(["nothing-*"]) == ([], [])
    with pytest.raises(BenchError, match="begins 2 runs"):
        find_runs(["03_eval-be"])
    with pytest.raises(BenchError, match="unknown run"):
        find_runs(["03_eval-wasp"])


def test_a_run_that_cannot_be_read_is_left_out_and_named(build: Build) -> None:
    folder = build(1).run.folder
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["processes"][-1]["params"]["no_such"] = 1
    (folder / "manifest.json").write_text(json.dumps(manifest))
    found, left = read([folder])
    assert found == []
    assert folder.name in left[0]


def test_labels_tell_runs_apart(build: Build) -> None:
    runs = [build(1), build(1, seed=1), build(1, condition="oracle")]
    labels = list(labelled(runs))
    assert len(set(labels)) == 3
    assert labels[2] == "null, oracle"


def test_every_row_of_the_paper_is_a_command_or_a_reason() -> None:
    rows = missing.wanted({})
    assert len(rows) == len(published.table("table_4_tasks"))
    assert all(bool(one.command) != bool(one.cannot) for one in rows)
    assert not any(one.run for one in rows)


def test_latex_and_csv_hold_what_the_table_holds() -> None:
    made = Table(
        "100 % of a_b & c", ("x", "y [%]"),
        (Row((Cell("h"),), "group"), Row((Cell("a_1"), Cell("5.00†", "n 3"))),
         Row((Cell('q"u,o'), dash("no #1")))),
    )  # fmt: skip
    latex = exports.to_latex(made)
    assert r"a\_1 & 5.00$^\dagger$ {\scriptsize n 3} \\" in latex
    assert r"100 \% of a\_b \& c" in latex
    assert r"no \#1" in latex
    lines = list(csv.reader(io.StringIO(exports.to_csv(made))))
    assert lines[0] == ["group", "x", "y [%]", "y [%], detail", "y [%], why missing"]
    assert lines[1] == ["h", "a_1", "5.00†", "n 3", ""]
    assert lines[2] == ["h", 'q"u,o', "—", "", "no #1"]


def test_seeds_part_sampling_from_items(build: Build) -> None:
    """By hand: half of the questions waver between two runs, the others never do."""

    def steady(response: Any) -> Any:
        right = response.task == "ER"
        return response.model_copy(
            update={"status": "ok", "error": "", "passed": right, "option": "B" if right else "A"}
        )

    def wavering(response: Any) -> Any:
        found = steady(response)
        if response.task == "EST":
            found = found.model_copy(update={"passed": True, "option": "B"})
        return found

    tasks = ("ER", "EST")
    first = build(3, tasks=tasks, temperature=0.7, seed=1, change=steady)
    second = build(3, tasks=tasks, temperature=0.7, seed=2, change=wavering)
    other = build(3, tasks=tasks, temperature=0.2, seed=3, change=steady)
    job = Comparison(CompareParams(), labelled([first, second, other]))
    table = repeats.repeats(job)
    (line,) = table.rows
    texts = [cell.text.rstrip("†") for cell in line.cells]
    assert texts[1:3] == ["questions", "2"]
    assert texts[3] == "75.00"
    assert texts[4] == "50.0 to 100.0"
    # Within-item variance: 0 for the 6 of ER, 0.5 for the 6 of EST.
    assert float(texts[6]) == pytest.approx(100 * 0.25**0.5, abs=0.1)
    assert texts[7] == "50.0"
    assert texts[9] == "12"
    alone = Comparison(CompareParams(), labelled([first, other]))
    assert "none" in repeats.repeats(alone).absent
