"""Times as the paper defines them, and as a stream meets them, stand in columns of their own."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from bench_lib.readings import times
from bench_lib.readings.material import Material
from bench_lib.report import caveats, tables, time_tables
from bench_lib.report.text import DASH, duration

MEMORY = ("observe_s", "session_start_s", "session_end_s", "notes_s")


@pytest.mark.parametrize("kind", ["incremental", "window", "thinned"])
def test_the_papers_first_token_depends_on_how_input_comes(full: Material, kind: str) -> None:
    facts: Any = {**full.facts, "input_class": kind}
    frame = times.derived(_with(full, facts))
    memory = sum(frame[name] for name in MEMORY)
    begins = 0.0 if kind == "incremental" else memory
    assert (frame["ttft_paper_s"] - frame["ttft_prep_s"] - begins).abs().max() < 1e-9
    assert (frame["rtf_stream"] * frame["prefix_s"] - memory).abs().max() < 1e-6
    assert (frame["rtf"] * frame["prefix_s"] - memory - frame["ttft_prep_s"]).abs().max() < 1e-6
    assert (frame["full_paper_s"] == frame["generation_s"]).all()
    for name in MEMORY:
        assert frame[name].max() > 0, "else nothing tells them apart"


def test_ends_of_sessions_are_in_the_real_time_factor(build) -> None:
    """Three seconds at each end of a session of ten minutes."""

    def quick(record):
        none = dict.fromkeys(MEMORY, 0.0)
        return record.model_copy(update={"timings": {**record.timings, **none, **memory}})

    memory: dict[str, float] = {}
    before = times.derived(build(2, change=quick))["rtf_stream"].max()
    memory["session_end_s"] = 3.0
    after = times.derived(build(2, change=quick, seed=7))
    assert before == 0
    assert after["rtf_stream"].tolist() == pytest.approx((3 / after["prefix_s"]).tolist())


def test_answers_made_before_all_work_was_timed_are_told_and_left_out(build) -> None:
    """They keep the times that are whole, and are in none that would lack something."""

    def old(record):
        new = ("session_start_s", "session_end_s", "notes_s", "preparation_s", "generation_s")
        kept = {k: v for k, v in record.timings.items() if k not in new}
        return record.model_copy(update={"timings": kept} if record.trajectory != "T1" else {})

    material = build(3, change=old)
    frame = times.derived(material)
    mine = frame["trajectory"] == "T1"
    assert frame["ttft_prep_s"].notna().all()
    for name in ("rtf", "rtf_stream", "full_paper_s"):
        assert (frame[name].notna() == mine).all(), name
    rows = {row.cells[0].text: row.cells for row in time_tables.times(material).rows}
    assert rows["Real-time factor"][-1].text == f"{mine.sum()}"
    (said,) = [c.text for c in caveats.caveats(material) if "before all work" in c.text]
    assert said.startswith(f"{(~mine).sum()} answers were made before")
    none = build(3, change=lambda r: old(r.model_copy(update={"trajectory": "T"})), seed=9)
    whole = {row.cells[0].text: row.cells for row in time_tables.times(none).rows}
    assert whole["Real-time factor"][1].why == time_tables.BEFORE
    assert not [c for c in caveats.caveats(build(2, seed=8)) if "before all work" in c.text]


def test_where_the_time_went_is_the_sum_of_the_records(full: Material) -> None:
    def records(kind):
        files = sorted(full.run.folder.glob(f"{kind}.*.jsonl"))
        return [json.loads(line) for f in files for line in f.read_text().splitlines()]

    sessions, told = records("sessions"), [r["timings"] for r in records("responses")]
    hours = sum(r["duration_s"] for r in sessions) / 3600
    table = time_tables.spent(full)
    rows = {row.cells[0].text: [c.text for c in row.cells[1:]] for row in table.rows}
    for name, kind in (("Observing", "observe"), ("Ends of sessions", "session_end")):
        stream = sum(r["work_s"][kind] for r in sessions)
        branches = sum(r["told_work_s"][kind] for r in sessions)
        assert rows[name] == [duration(stream), duration(stream / hours), duration(branches)]
    generated = sum(t["generation_s"] for t in told if t)
    assert rows["Generation"] == ["0 s", "0 s", duration(generated)]
    assert len(rows) == 6


def test_sessions_recorded_before_say_so(build) -> None:
    material = build(2)
    record = json.loads(next(material.run.folder.glob("sessions.*")).read_text().split("\n")[0])
    old = {k: v for k, v in record.items() if k not in ("work_s", "told_work_s")}
    material.run.append("sessions", {**old, "duration_s": 700.0})
    fresh = replace(material)
    rows = {row.cells[0].text: row.cells for row in time_tables.spent(fresh).rows}
    assert [c.text for c in rows["Observing"][1:]] == [DASH] * 3
    assert rows["Observing"][1].why == time_tables.BEFORE
    assert rows["Preparation"][3].text != DASH


def test_times_of_a_shared_device_are_told(full: Material) -> None:
    facts: Any = {**full.facts, "replies_at_once": 16}
    said = [c.text for c in caveats.shared_times(_with(full, facts))]
    assert any("their waits overlap" in text for text in said)


def _with(material: Material, facts: Any) -> Material:
    other = replace(material)
    other.__dict__["manifest"] = {**material.manifest, "facts": facts}
    return other


def test_bytes_on_disk_stand_beside_those_in_memory(build) -> None:
    material = build()
    assert "on disk" not in tables.state(material).note
    save = {"form": "int8", "exact": 4_096, "on_disk": 1_024, "written": 512}
    for _ in range(2):
        material.run.append("saves", save)
    note = tables.state(material).note
    assert "Saved (int8), the largest takes 1.0 KiB on disk for 4.0 KiB in memory" in note
    assert "1.0 KiB were written in 2 saves" in note
