"""StreamArena's reports: a run of 03 by itself, runs side by side in 08, an agent's work."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from devtools import Browser

from bench_lib.ablate import page as ablation_page
from bench_lib.ablate import single
from bench_lib.ablate.job import Ablation
from bench_lib.arena import explorer
from bench_lib.arena import page as arena_page
from bench_lib.arena.job import Arena
from bench_lib.benches.arena import acts, story_page, tables
from bench_lib.compare.job import Comparison
from bench_lib.dollhouse.world import library
from bench_lib.errors import BenchError
from bench_lib.evaluate import page as evaluation_page
from bench_lib.evaluate import page as render
from bench_lib.evaluate import reading
from bench_lib.evaluate.job import Evaluation
from bench_lib.judge import page as judge_page
from bench_lib.judge.job import Judging
from bench_lib.params.evaluate import EvalParams
from bench_lib.params.readings import AblationParams, ArenaParams, CompareParams, JudgeParams
from bench_lib.readings.material import Material
from bench_lib.report.tables import Table
from bench_lib.streammind import trace

SOURCE = "dollhouse-tiny"
SYSTEMS = {
    "streammind": {"method": "streammind", "method_args": {"search": "corpus:dollhouse"}},
    "offline_mllm": {"method": "offline_mllm", "method_args": {"max_frames": 8}},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """Two systems on one film of two minutes, run and judged as 08 does it."""
    arena = library.find("arena-small")
    counts = {"RTP": 2, "HR": 3, "Tool": 2, "Pro": 3}
    small = library.with_knobs(arena, seeds=(3,), film_s=(120, 120), counts=counts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(library.SETS, "tiny", small)
        patch.setenv("BENCH_OUTPUTS", str(tmp_path_factory.mktemp("arena")))
        job = Arena.open(ArenaParams(source=SOURCE, systems=SYSTEMS))
        before = {label: m.found.capabilities for label, m in job.materials.items()}
        assert all(frame["value"].isna().all() for frame in before.values())
        job.execute(progress=False)
        yield job


def cells(table: Table, row: str) -> dict[str, str]:
    own = next(r for r in table.rows if r.cells[0].text == row)
    return {name: c.text for name, c in zip(table.columns, own.cells, strict=True)}


def test_one_command_gives_numbers(made: Arena) -> None:
    assert list(made.materials) == ["streammind", "offline_mllm"]
    table = tables.systems(made.materials)
    mind, offline = (cells(table, label) for label in made.materials)
    assert [mind[c] for c in ("RTP", "HR", "Tool", "Pro")] == ["100.00"] * 4
    assert offline["Pro"] == "N/A"
    for label, shown in (("streammind", mind), ("offline_mllm", offline)):
        rows = made.materials[label].scored.rows
        for task in ("RTP", "HR", "Tool"):
            own = rows[rows["task"] == task]["value"]
            assert float(shown[task]) == pytest.approx(100 * own.mean(), abs=0.005)


def test_the_same_command_does_nothing_twice(made: Arena) -> None:
    def sizes() -> dict[str, int]:
        folder = next(iter(made.materials.values())).run.folder.parent
        return {str(p): p.stat().st_size for p in folder.glob("*/[rcmv]*.jsonl")}

    first = sizes()
    Arena.open(made.params).execute(progress=False)
    assert sizes() == first


def test_what_a_method_cannot_do_is_not_a_zero(made: Arena) -> None:
    offline = made.materials["offline_mllm"]
    assert offline.unsupported == ("Pro",)
    one = offline.found.headline("Pro")
    assert math.isnan(one["value"])
    assert "not support" in one["note"]
    found = cells(tables.outcomes(offline), "Pro")
    assert (found["refused"], found["wrong"], found["not in time"]) == ("3", "0", "0")
    table = acts.tools(made.materials)
    assert cells(table, "streammind")["questions with a search"] == "100"
    own = cells(table, "offline_mllm")
    assert own["loop"] == acts.NO_LOOP
    assert own["questions with a search"] == "N/A"
    assert own["accuracy"] != "N/A"


def test_each_question_has_one_outcome(made: Arena) -> None:
    for material in made.materials.values():
        for row in tables.outcomes(material).rows:
            asked, *counts = (int(c.text) for c in row.cells[1:])
            assert sum(counts) == asked


def test_an_unjudged_run_has_bounds_and_a_command(made: Arena, outputs: Path) -> None:
    job = Evaluation.open(EvalParams(method="offline_mllm", backbone="ideal", source=SOURCE))
    job.execute(progress=False)
    page = evaluation_page.write(job).read_text()
    found = json.loads((job.run.folder / "metrics.json").read_text())["capabilities"]
    rtp = next(row for row in found if row["group"] == "RTP")
    assert (rtp["value"], rtp["bound_low"], rtp["bound_high"]) == (None, 0.0, 100.0)
    assert f"-p run {job.run.folder.name}" in page
    assert "gate" not in re.sub(r"<style>.*?</style>", "", page, flags=re.S).lower()
    judging = Judging.open(JudgeParams(run=job.run.folder.name))
    assert "judge_arena" in str(judge_page.run(judging)._repr_html_())
    for section in (judge_page.gate, judge_page.distribution, judge_page.decisions):
        assert section(judging).pieces
    with pytest.raises(BenchError):
        Judging.open(JudgeParams(run=job.run.folder.name, variants=["padded"]))
    judging.execute(progress=False)
    judge_page.write(judging)
    whole = judge_page.path(judging).read_text()
    assert "Gated" not in whole
    assert "Verdicts by capability" in whole
    assert not reading.reread(job.run.folder).scored.rows["unjudged"].any()


def test_the_stamp_that_counts_can_be_chosen(made: Arena) -> None:
    """Every delivery a second later: what was seen in the last second of the window is late."""
    material = made.materials["streammind"]
    late = [
        r.model_copy(update={"timings": {**r.timings, "delivered_s": r.timings["alert_s"] + 1.5}})
        if "alert_s" in r.timings
        else r
        for r in material.responses
    ]
    shown = {}
    for stamp in ("observed", "delivered"):
        own = Material(
            material.run, material.params, material.bench, material.trajectories, material.asks,
            stamp=stamp,
        )  # fmt: skip
        own.__dict__["responses"] = tuple(late)
        rows = own.scored.rows
        lag = rows["delivered_s"] - rows["due_s"]
        shown[stamp] = (rows["timing"] == "on time").sum()
        wanted = (lag - (1.5 if stamp == "observed" else 0)).dropna().between(-0.5, 2.0).sum()
        assert shown[stamp] == wanted
        assert f"by the {stamp} stamp" in acts.timings({"x": own}).note
    assert shown["delivered"] < shown["observed"]


@pytest.fixture(scope="module")
def page(made: Arena) -> str:
    return arena_page.of(made).html


def test_the_page_of_08_in_a_browser(page: str, browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(page)
    for width in (390, 1200):
        browser.open(path, width)
        assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.requests == []
    assert browser.value("document.scripts.length") == 0
    figures = browser.drawn()
    assert len(figures) == 4  # accuracy, one timeline, events, graph
    assert all(f["drawn"] and len(f["label"]) > 30 for f in figures)
    assert browser.value("document.images.length") > 20
    assert browser.value("[...document.images].every(i => i.alt && i.naturalWidth > 0)")


def test_the_report_of_03_is_about_streamarena(made: Arena, browser: Browser, tmp_path: Path):
    for material in made.materials.values():
        whole = render.of(material).html
        for word in ("Gated judge", "INTERVENE", "Multiple choice", "polarity"):
            assert word not in whole
        (tmp_path / "one.html").write_text(whole)
        browser.open(tmp_path / "one.html")
        assert browser.requests == []
        assert browser.value("document.querySelectorAll('article.card').length") >= 3


def test_a_mission_is_all_calls_of_its_question(made: Arena) -> None:
    story = made.story
    [tool] = [c for c in story.candidates if c.task == "Tool"][:1]
    calls = story.of_question(tool)
    assert calls[0]["worker"] == "front"
    assert {"router", "search"} <= {c["worker"] for c in calls}
    assert all(c["t_s"] == tool.probes[0].t_s for c in calls)
    for call, shown in zip(calls, story.exchanges(calls), strict=True):
        assert shown.asked == call["text"]
        assert len(shown.shown) == min(8, len(call["shown"]))
        assert all(p.source for p in shown.shown)
    watch = next(c for c in story.candidates if c.task == "Pro")
    assert [c["worker"] for c in story.of_question(watch)] == ["front"]


def test_what_is_kept_is_what_was_asked(made: Arena) -> None:
    """Calls on record and the counters of the responses are of one run."""
    material = made.materials["streammind"]
    story = made.story
    for response in material.responses:
        if response.task == "Pro":
            continue
        own = story.of_question(next(c for c in story.candidates if c.id == response.candidate))
        for worker in ("router", "recall", "search"):
            counted = response.counters.get(f"{worker}_calls", 0)
            assert sum(c["worker"] == worker for c in own) == counted
    entries, left_out = trace.memory(material.run, material.responses[0].trajectory)
    assert {"fragment", "entity", "monitor", "alert"} <= {e.kind for e in entries}
    assert left_out == {}


def test_background_calls_stop_at_their_room_and_are_counted(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from bench_lib.streammind.log import Log
    from bench_lib.streammind.models import Call

    monkeypatch.setattr(trace, "BACKGROUND", 4000)
    kept: list[tuple[str, dict]] = []
    own = trace.Trace(lambda kind, record: kept.append((kind, record)), "v")
    for at in range(40):
        own.call(Call("monitor", "m", "x", float(at), f"w1@{at}/0", (), "t" * 100))
    own.call(Call("router", "m", "x", 1.0, "ask@1:q/0", (), "t" * 20_000, "r"))
    own.end(Log())
    calls = [record for kind, record in kept if kind == "calls"]
    monitors = [c for c in calls if c["worker"] == "monitor"]
    assert 0 < len(monitors) < 40
    assert kept[-1][1]["left_out"] == {"monitor": 40 - len(monitors)}
    assert calls[-1]["worker"] == "router"
    assert calls[-1]["cut"] == 20_000 - trace.TEXT
    assert len(calls[-1]["text"]) < trace.TEXT + 100


def test_the_explorer_steps_through_the_calls(made: Arena) -> None:
    widgets = pytest.importorskip("ipywidgets")
    box = explorer.show(made)
    assert isinstance(box, widgets.VBox)
    chosen, place, view = box.children
    story = made.story
    known = explorer.choices(story)
    chosen.value = next(name for name in known if ", Tool:" in name)
    place.value = 2
    assert known[chosen.value][1]["reply"][:20] in view.value.replace("&#34;", '"')
    assert place.max == len(known[chosen.value])


def test_a_run_without_calls_says_so(made: Arena) -> None:
    job = Arena(made.params, materials={"offline_mllm": made.materials["offline_mllm"]})
    assert story_page.sections(job.story) == []
    assert "kept" in arena_page.memory(job).absent


def test_unknown_names_are_refused(made: Arena) -> None:
    for name, value in (("explore", "nobody"), ("trajectory", "x"), ("question", "HR-99")):
        params = ArenaParams(source=SOURCE, systems=SYSTEMS, **{name: value})
        job = Arena(params, materials=made.materials)
        with pytest.raises(BenchError):
            arena_page.mission(job)
    with pytest.raises(BenchError):
        ArenaParams(stamp="seen")


def test_06_shows_scores_and_misses_of_streamarena(made: Arena) -> None:
    systems = {**SYSTEMS, "no_search": {"method": "streammind"}}
    params = AblationParams(
        systems={k: systems[k] for k in ("offline_mllm", "streammind", "no_search")},
        conditions=["standard"], source=SOURCE, availability="",
    )  # fmt: skip
    job = Ablation.open(params)
    assert len(job.missing) == 1
    assert "no_search" in job.missing[0]
    table = single.table(job)
    assert cells(table, "streammind")["HR"] == "100.00"
    rows = made.materials["offline_mllm"].scored.rows
    missed = single.misses(job)
    assert len(missed.rows) == int((rows["value"] == 0).sum())
    assert all("streammind" in row.cells[3].text for row in missed.rows)
    assert "no run yet" in ablation_page.of(job).html
    assert "No counter" in single.limits(job).absent
    response = job.found["streammind", "standard"].responses[0]
    gone = response.model_copy(update={"counters": {"frames_gone": 7}})
    job.found["streammind", "standard"].__dict__["responses"] = (gone,)
    table = single.limits(job)
    assert cells(table, "streammind")[single.LIMITS["frames_gone"]] == "7"
    assert cells(table, "offline_mllm")[single.LIMITS["frames_gone"]] == "0"


def test_09_leaves_streamarena_to_08(made: Arena) -> None:
    job = Comparison.open(CompareParams(runs=["03_eval-*"]))
    assert not job.materials
    assert all("08_streamarena" in text for text in job.left_out)


Build = Callable[..., Material]


def test_08_leaves_other_runs_out(build: Build, made: Arena) -> None:
    build(1)
    job = Arena.open(ArenaParams(runs=["03_eval-null*"]))
    assert job.absent
    assert "StreamArena" in arena_page.runs(job).absent
