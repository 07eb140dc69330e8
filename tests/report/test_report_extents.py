"""A report at any moment of a run, whatever went wrong in it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from bench_lib.evaluate import page as render
from bench_lib.report import caveats, figures, header, score_table
from bench_lib.report.figures import memory_figures, time_figures
from bench_lib.report.text import DASH
from bench_lib.runs.folder import Run
from bench_lib.schema import Response


def said(material):
    return [c.text for c in caveats.caveats(material)]


def score_cells(material):
    return [row.cells for row in score_table.scores(material).rows if row.kind != "group"]


def failed(record: Response) -> Response:
    kept = {k: getattr(record, k) for k in ("trajectory", "session", "candidate", "probe", "task")}
    where = {k: getattr(record, k) for k in ("polarity", "cutoff_s", "closed")}
    return Response(**kept, **where, status="error", error="RuntimeError: no memory")


def test_half_of_a_run(build):
    material = build(answered=0.5)
    lost = sum(r.status == "error" for r in material.responses)
    assert f"{66 - lost} asks of 132 answered, not complete" in render.of(material).html
    assert any("66 of 132 asks not asked yet" in text for text in said(material))
    assert all(len(c) == len(score_table.COLUMNS) for c in score_cells(material))


def test_nothing_answered_gives_dashes_with_reasons_and_no_zero(build):
    material = build(answered=0.0)
    page = render.of(material).html
    for cells in score_cells(material):
        assert cells[2].text == DASH
        assert cells[2].why
        assert cells[4].text == "0"
    for tile in header.tiles(material)[1:]:
        assert tile.value == DASH
        assert tile.below
    assert not re.search(r">\s*nan\b", page, flags=re.IGNORECASE)
    assert page.count('role="img"') == 1  # the outcomes: all of them not run


def test_a_run_in_which_everything_failed(build):
    material = build(change=failed)
    assert all(cells[2].text == DASH for cells in score_cells(material))
    graver = [c for c in caveats.caveats(material) if c.grave]
    assert any("132 of 132 asks ended in an error" in c.text for c in graver)
    assert any("132 x RuntimeError: no memory" in c.details for c in graver)
    assert render.of(material).html.count("An error") == 1


def test_one_task_only(build):
    material = build(tasks=("PRM",))
    asked = [c for c in score_cells(material) if c[0].text == "PRM"]
    assert asked[0][4].sub == "/ 18"
    assert [c[0].text for c in score_cells(material) if c[4].sub != "/ 0"] == ["PRM", "pooled"]
    assert any(
        "Only a part of the source was chosen (tasks: PRM)" in text for text in said(material)
    )


def test_a_method_that_holds_nothing(build):
    material = build(holds="nothing")
    assert figures.tokens_kept(material).absent.startswith("N/A")
    assert figures.state_growth(material).absent.startswith("N/A")
    assert figures.state_kinds(material).absent.startswith("N/A")
    assert next(t for t in header.tiles(material) if t.name == "peak state").value == "N/A"


def test_what_holds_something_is_drawn(full):
    drawn = [*memory_figures(full), *time_figures(full)]
    assert all(figure.picture and not figure.absent for figure in drawn)
    assert all(figure.alt for figure in drawn)


def test_one_session_has_no_history(build):
    material = build(trajectories=1)
    first = tuple(r for r in material.sessions if r["position"] == 0)
    material.__dict__["sessions"] = first
    assert "nothing was carried over" in figures.state_growth(material).absent


def test_many_clips_become_a_picture_of_dots(build):
    assert "<svg" in figures.clip_times(build(trajectories=2)).picture
    assert "data:image/png" in figures.clip_times(build(trajectories=12, seed=1)).picture


def test_the_same_run_gives_the_same_page(full, full_page):
    again = render.of(replace(full)).html
    folder = re.compile(r"<code>[^<]*</code>")  # places are told by the environment of the moment
    assert folder.sub("", again) == folder.sub("", full_page)


def test_an_earlier_wider_selection_stays_in_the_report(full):
    narrow = replace(full, asks=dict(list(full.asks.items())[:20]))
    assert len(narrow.responses) == len(full.responses)
    assert any("112 answers of an earlier, wider selection" in text for text in said(narrow))
    assert score_table.scores(narrow).rows == score_table.scores(full).rows


def test_without_its_data_a_report_says_so(full):
    material = replace(full, asks={}, trajectories={}, unread="data_root 'x' is no folder")
    page = render.of(material).html
    assert "data_root &#39;x&#39; is no folder" in page
    assert "No scores: the source could not be read." in page
    assert "The question is not at hand" in page


@pytest.mark.parametrize(
    ("facts", "params", "wanted"),
    [
        ({"model_note": "weights are random"}, {}, "Weights are random."),
        ({"model": "none"}, {}, "No model serves this method"),
        ({"source_note": "a rendered household"}, {}, "A rendered household."),
        ({"quarantined": ["a: b: c = d: e"] * 9}, {}, "9 records of the source left out"),
        ({}, {"limit": 2}, "Only a part of the source was chosen (limit: 2)"),
        ({}, {"workers": 4}, "while 4 trajectories shared the machine"),
        ({"replies_at_once": 16}, {}, "Up to 16 replies were asked for at a time"),
    ],
)
def test_what_numbers_depend_on_is_said(build, full, facts, params, wanted):
    assert not any(wanted in text for text in said(full))
    assert any(wanted in text for text in said(build(facts=facts, **params)))


def test_unreadable_sessions_are_said(build):
    material = build(change=lambda r: r.model_copy(update={"missing_sessions": ("S001",)}))
    broken = dict(material.sessions[0], error="no video in file", position=0)
    material.__dict__["sessions"] = (broken, *material.sessions[1:])
    texts = said(material)
    assert any("1 session could not be read" in text for text in texts)
    assert any("answered from a memory that lacks sessions" in text for text in texts)


def test_replies_that_are_all_alike_are_said(build):
    same = build(change=lambda r: r.model_copy(update={"raw_text": "!" * 16}))
    assert any("are one and the same text" in text for text in said(same))
    assert not any("are one and the same text" in text for text in said(build(seed=1)))


def test_processes_that_overlap_mark_the_timings(build):
    material = build()
    assert not any("processes worked at once" in text for text in said(material))
    other = Run(material.run.folder, {}, started=material.run.started - 5)
    other.append("sessions", material.sessions[0])
    other.close()
    assert any("up to 2 processes worked at once" in text for text in said(material))


@pytest.mark.parametrize("revision", ["bbb", "bbb+"])
def test_code_that_no_revision_holds_is_said(build, revision):
    material = build()
    material.manifest["processes"] = [dict(material.manifest["processes"][0], revision=revision)]
    assert any("marked +" in text for text in said(material)) == (revision == "bbb+")


def test_a_server_whose_replies_may_be_cut_is_named(build):
    material = build()
    assert not any("finish: assumed" in text for text in said(material))
    material.run.note(
        model_identity={"id": "m", "finish": "assumed"},
        judges={"j": {"args": {"finish": "assumed"}}},
    )
    texts = [text for text in said(replace(material)) if "finish: assumed" in text]
    assert [text.split(" does")[0] for text in texts] == [
        "The server of the model",
        "The server of judge j",
    ]
