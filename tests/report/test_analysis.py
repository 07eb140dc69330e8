"""Strata, baselines, kinship and the judge's part of metrics.json."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_judge_page import Dice, judged

from bench_lib import paths
from bench_lib.compare.job import marks
from bench_lib.evaluate import page as render
from bench_lib.judge import page
from bench_lib.readings.material import Material
from bench_lib.report import analysis, analysis_tables, moment_tables
from bench_lib.report.caveats import caveats
from bench_lib.score.strata import BINS, STRATA

Build = Callable[..., Material]


def again(material: Material) -> Material:
    """The same run, read anew."""
    own = {n: getattr(material, n) for n in ("run", "params", "bench", "trajectories", "asks")}
    return Material(**own)


def metrics(material: Material) -> dict[str, Any]:
    return json.loads((material.run.folder / "metrics.json").read_text())


def test_strata_add_up_to_the_whole_and_keep_their_empty_cells(build: Build) -> None:
    material = build(4)
    table = analysis_tables.splits(material)
    groups: dict[str, list] = {}
    for row in table.rows:
        if row.kind == "group":
            groups[row.cells[0].text] = []
        else:
            groups[list(groups)[-1]].append(row.cells)
    assert list(groups) == [analysis_tables.STRATUM[name] for name in STRATA]
    assert [cells[0].text for cells in groups["Pieces of evidence"]] == list(
        BINS["evidence_items"][1]
    )
    rows = material.scored.rows
    wanted = int(
        (rows["scored"] & ~rows["adaptive"] & (rows["task"].isin(["ER", "EST", "TR"]))).sum()
    )
    for cells in groups.values():
        counts = [cell[1].sub.split("n ")[1].split("/")[0] for cell in cells if "n " in cell[1].sub]
        assert sum(map(int, counts)) == wanted
        assert all(cell[1].why for cell in cells if cell[1].text == "—")


def test_a_stratum_is_the_mean_of_its_own_items(build: Build) -> None:
    material = build(4)
    frame = analysis_tables.long(material)
    rows = material.scored.choice
    for day in ("same day", "other day"):
        for task in ("ER", "ACR"):
            own = rows[(rows["task"] == task) & (rows["day"] == day)]["correct"].dropna()
            found = frame[
                (frame["by"] == "day") & (frame["stratum"] == day) & (frame["group"] == task)
            ]
            value = found.iloc[0]["value"]
            assert int(found.iloc[0]["n"]) == len(own)
            assert value == pytest.approx(100 * own.mean()) if len(own) else value != value


def test_baselines_stand_beside_the_run_on_the_same_asks(build: Build) -> None:
    material = build(3, tasks=("ER", "ERA", "MPA"))
    table = analysis_tables.baselines(material)
    assert table.columns == ("", "ER", "ERA", "MPA", "decisions")
    cells = {row.cells[0].text: row.cells for row in table.rows}
    asked = material.scored.rows["task"].value_counts()
    # The key is always B, the letter that the other trajectories teach.
    assert (cells["letter prior"][1].text, cells["letter prior"][1].sub) == (
        "100.00",
        f"n {asked['ER']}",
    )
    assert cells["always SILENT"][2].text == cells["always INTERVENE"][3].text == "50.00"
    assert cells["always SILENT"][1].why


def test_unreadable_replies_by_history_are_counted(build: Build) -> None:
    material = build(4)
    found = analysis_tables.unreadable(material.scored)
    rows = material.scored.rows
    assert found["n"].sum() == rows["scored"].sum()
    share = (found["rate"] * found["n"]).sum() / 100
    assert share == pytest.approx((rows["status"] == "unparsed").sum())
    figure = analysis.format_failures(material)
    assert str(int(found["n"].max())) in figure.alt


def test_without_data_each_analysis_says_why(build: Build) -> None:
    whole = build(1)
    material = Material(whole.run, whole.params, whole.bench, unread="the disk is gone")
    assert all(t.absent for t in (*analysis.of(material)[:3], analysis_tables.baselines(material)))
    assert analysis.format_failures(material).absent
    empty = build(1, answered=0.0, seed=5)
    assert analysis_tables.splits(empty).rows
    assert not moment_tables.placements(empty).rows
    assert render.of(empty).html


def test_the_judges_part_survives_a_new_report(build: Build) -> None:
    job = judged(build(4))
    page.write(job)
    before = metrics(job.material)
    assert before["quality"]
    assert before["judge"] == "dice"
    assert before["stale_verdicts"] == 0
    render.save(again(job.material))
    assert metrics(job.material) == before


def test_a_reply_that_has_changed_is_stale_and_not_counted(build: Build) -> None:
    job = judged(build(4))
    page.write(job)
    scored = job.of(job.judge)
    one = next(r for r in job.material.responses if r.key == scored[0].key)
    job.material.run.append("responses", one.model_copy(update={"reason": "another one"}))
    job.material.run.close()
    fresh = again(job.material)
    render.save(fresh)
    assert metrics(fresh)["stale_verdicts"] == 1
    assert "1 verdicts are on earlier replies" in fresh.judged.note
    assert len(fresh.judged.verdicts) == len(scored) - 1
    page.write(judged(again(job.material)))
    assert metrics(fresh)["stale_verdicts"] == 0


def test_the_judge_that_was_reported_stays_the_one_that_counts(build: Build) -> None:
    first = judged(build(3))
    other = Dice()
    other.id = "other"
    judged(again(first.material), other)
    assert again(first.material).judged.judge == "other"
    page.write(judged(again(first.material)))
    render.save(again(first.material))
    assert metrics(first.material)["judge"] == "dice"


def test_a_judge_of_the_same_family_is_flagged_everywhere(build: Build) -> None:
    chat = Dice()
    chat.id = "Qwen/Qwen3-235B@host/v1"
    job = judged(build(3, facts={"model": "Qwen/Qwen3-VL-8B-Instruct@node/v1"}), chat)
    assert any("one family, Qwen" in c.text and c.grave for c in caveats(job.material))
    assert "judge akin to the model (Qwen)" in marks(job.material)
    assert "expect self-preference" in page.run(job)._repr_html_()
    stranger = judged(build(3, seed=3, facts={"model": "gemini-3.6-flash@g"}), chat)
    assert not any("family" in c.text for c in caveats(stranger.material))
    assert "none known" in page.run(stranger)._repr_html_()


def test_every_table_of_04_is_exported(build: Build) -> None:
    job = judged(build(3))
    page.write(job)
    home = page.path(job).with_suffix("")
    tables = [made for part in page.of(job).sections for made in part.tables]
    assert len(tables) > 10
    names = {path.name for path in Path(home).iterdir()}
    assert len([n for n in names if n.endswith(".tex")]) == len(tables)
    assert {"scores-eq-1-.csv", "scores-by-stratum.csv", "scores_by_stratum.csv"} & names
    with (home / "scores_by_stratum.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert {line["by"] for line in lines} == set(STRATA)
    assert paths.outputs() in home.parents
