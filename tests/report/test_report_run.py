"""Reports of real runs: written by the evaluation, written again from its folder."""

from __future__ import annotations

import base64
import io
import json
import re
import shutil

import numpy as np
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from bench_lib import __main__ as command_line
from bench_lib.errors import BenchError
from bench_lib.evaluate import page as evaluation_page
from bench_lib.evaluate.job import Evaluation
from bench_lib.params.evaluate import EvalParams
from bench_lib.report import cards, frames, timeline
from bench_lib.report.frames import GRID_FPS, Shot
from bench_lib.runs.find import find_run


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder of videos with candidates of every timing shape."""
    root = tmp_path_factory.mktemp("videos")
    made = synthetic.household(root / "made", sessions=3, seconds=8.0)
    own = root / "home" / "week"
    own.mkdir(parents=True)
    for session in made.sessions:
        shutil.move(session.spans[0].file, own / f"{session.id}.mp4")
    lines = [c.model_dump_json() for c in made.candidates if c.id not in ("late", "told")]
    (own / "candidates.jsonl").write_text("\n".join(lines) + "\n")
    return root / "home"


@pytest.fixture
def job(home, outputs):
    return Evaluation.open(EvalParams(method="null", source="folder", data_root=str(home)))


def pictures_of(page):
    return [
        Image.open(io.BytesIO(base64.b64decode(code)))
        for code in re.findall(r"data:image/jpeg;base64,([^\"]+)", page)
    ]


def test_a_report_before_and_after_a_run(job, outputs):
    before = evaluation_page.write(job)
    assert before == outputs / f"{job.run.folder.name}.html"
    assert "0 asks of 4 answered, not complete" in before.read_text()
    assert "No ask has a reply to show yet" in before.read_text()
    job.execute(progress=False)
    assert evaluation_page.write(job) == before
    page = before.read_text()
    assert "4 asks of 4 answered, complete" in page
    assert len(re.findall('<article class="card"', page)) == 3
    assert len(pictures_of(page)) == page.count("data:image/jpeg") >= 6
    assert list(outputs.glob(".*")) == []


def test_a_report_written_again_from_the_folder_is_the_same(job, outputs, capsys):
    job.execute(progress=False)
    first = evaluation_page.write(job).read_text()
    for name in ("latest", "03_eval"):
        (outputs / f"{job.run.folder.name}.html").unlink()
        assert command_line.main(["report", name]) == 0
        assert capsys.readouterr().out.strip().endswith(f"{job.run.folder.name}.html")
        assert (outputs / f"{job.run.folder.name}.html").read_text() == first


def test_data_that_is_gone_costs_questions_and_scores_not_the_report(job, outputs, capsys):
    job.execute(progress=False)
    manifest = json.loads((job.run.folder / "manifest.json").read_text())
    manifest["processes"][-1]["params"]["data_root"] = "/nowhere/at/all"
    (job.run.folder / "manifest.json").write_text(json.dumps(manifest))
    assert command_line.main(["report", "latest"]) == 0
    page = (outputs / f"{job.run.folder.name}.html").read_text()
    assert "The source could not be read again" in page
    assert "no folder" in page


def test_unknown_and_ambiguous_runs_are_one_line(job, outputs, capsys):
    job.execute(progress=False)
    (outputs / "runs" / "03_eval-other").mkdir()
    (outputs / "runs" / "03_eval-other" / "manifest.json").write_text("{}")
    for name, wanted in (("03_evil", "did you mean"), ("03_eval-", "begins 2 runs")):
        assert command_line.main(["report", name]) == 1
        told = capsys.readouterr().err
        assert wanted in told
        assert told.count("\n") == 1


def test_no_run_at_all(outputs):
    with pytest.raises(BenchError, match="run notebooks/03_eval"):
        find_run("latest")


def test_every_shard_reports_the_whole_run(home, outputs):
    shutil.copytree(home / "week", home / "week2")
    listed = home / "week2" / "candidates.jsonl"
    listed.write_text(re.sub(r'^{"id":"', '{"id":"second-', listed.read_text(), flags=re.M))
    try:
        given = {"method": "null", "source": "folder", "data_root": str(home)}
        one = Evaluation.open(EvalParams(**given, shard="1/2"))
        one.execute(progress=False)
        assert "4 asks of 8 answered, not complete" in evaluation_page.write(one).read_text()
        two = Evaluation.open(EvalParams(**given, shard="2/2"))
        two.execute(progress=False)
        assert evaluation_page.write(two) == evaluation_page.write(one)
        assert "8 asks of 8 answered, complete" in evaluation_page.write(one).read_text()
    finally:
        shutil.rmtree(home / "week2")


def test_a_free_question_has_an_answer_and_no_score(home, outputs):
    job = Evaluation.open(
        EvalParams(method="null", source="folder", data_root=str(home), question="What is there?")
    )
    job.execute(progress=False)
    page = evaluation_page.write(job).read_text()
    assert "No scores: what was asked has no key." in page
    assert "A free question" in page
    assert "What is there?" in page


def test_what_notebooks_show(job):
    job.execute(progress=False)
    for _ in range(2):  # a submodule of the same name would replace a function at its first use
        for show in (
            evaluation_page.scores,
            evaluation_page.outcomes,
            evaluation_page.remembering,
            evaluation_page.replies,
            evaluation_page.answering,
        ):
            fragment = show(job)
            assert fragment._repr_html_().count('<div class="bench fragment">') >= 1
            assert "<script" not in fragment._repr_html_()
    own = job.trajectories[0]
    assert 'role="img"' in timeline.figure(own)._repr_html_()
    assert len(pictures_of(frames.strip(own.sessions[0], count=4)._repr_html_())) == 4
    shown = cards.candidates(own, tasks=["ER", "ERA", "TPG"])._repr_html_()
    assert shown.count('<article class="card"') == 2  # this trajectory has no TPG
    assert "SILENT" in shown


def test_a_picture_is_the_newest_frame_at_its_instant(home):
    """Each frame of the video has a pattern of its own: the one shown must be the right one."""
    video = synthetic.movie(home.parent / "pattern.mp4", 6.0, seed=5)
    session = synthetic.session(video, 0, 6.0)
    instants = [0.0, 1.25, 3.9, 5.75]
    taken = frames.take([Shot("", session, t_s) for t_s in instants])
    for t_s, picture in zip(instants, taken, strict=True):
        pixels = np.asarray(pictures_of(f'"{picture.source}"')[0].convert("L"), dtype=float)
        grid = np.floor(t_s * GRID_FPS) / GRID_FPS
        scores = [agreement(pixels, k) for k in range(60)]
        assert int(np.argmax(scores)) == int(grid * synthetic.RATE + 1e-6), t_s


def agreement(pixels, k):
    """Correlation of a picture with the blocks of frame k."""
    blocks = np.random.default_rng([5, k]).integers(0, 2, (6, 8, 1))[..., 0]
    shown = np.asarray(Image.fromarray(pixels).resize((8, 6), Image.Resampling.BOX))
    return np.corrcoef(blocks.ravel(), shown.ravel())[0, 1]


def test_a_video_that_cannot_be_read_gives_the_reason(tmp_path):
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"\0" * 4000)
    session = synthetic.session(broken, 0, 6.0)
    taken = frames.take([Shot("evidence", session, 1.0), Shot("", session, 2.0)])
    assert [p.source for p in taken] == ["", ""]
    assert all("broken.mp4" in p.why for p in taken)


@given(t_s=st.floats(0, 10_000), closed=st.booleans())
def test_the_last_visible_instant_keeps_the_cutoff(t_s, closed):
    found = frames.last_visible(t_s, closed)
    assert found * GRID_FPS == int(found * GRID_FPS)
    assert found <= t_s + 1e-6
    if not closed and t_s > 1e-6:
        assert found < t_s or found == 0.0
    assert t_s - found <= 1 / GRID_FPS + 1e-6
