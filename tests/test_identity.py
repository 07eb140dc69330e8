"""A run knows its data by content: the same elsewhere is the same run, another never mixes in."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import movie

from bench_lib.errors import BenchError
from bench_lib.evaluate import reading
from bench_lib.evaluate.job import Evaluation
from bench_lib.params.evaluate import EvalParams
from bench_lib.runs.folder import Run
from bench_lib.runs.identity import FORMAT, contents, differs, same
from bench_lib.schema import (
    Candidate,
    Caption,
    Moment,
    Option,
    Probe,
    Registration,
    Response,
    Session,
    Span,
    Trajectory,
    Verdict,
)
from bench_lib.score.judge import stored

OPTIONS = (Option(id="A", text="the cup"), Option(id="B", text="the plate"))
QUESTION = Candidate(
    id="q1", task="ER", question="What broke?", options=OPTIONS, answer="A",
    evidence=(Moment(session="day1", start_s=0, end_s=1),),
    probes=(Probe(id="q", session="day1", t_s=2),),
)  # fmt: skip


def write(root: Path, name: str = "T", seed: int = 1, questions: Any = (QUESTION,)) -> Path:
    """A folder source with one trajectory of one session."""
    movie(root / name / "day1.mp4", 3, seed=seed)
    lines = [q.model_dump_json() for q in questions]
    (root / name / "candidates.jsonl").write_text("\n".join(lines))
    return root


def evaluate(root: Path, **given: Any) -> Evaluation:
    params = {"method": "hashing", "source": "folder", "data_root": str(root), **given}
    job = Evaluation.open(EvalParams(**params))
    job.execute(progress=False)
    return job


def test_another_data_set_in_the_same_place_is_another_run(outputs: Path, tmp_path: Path) -> None:
    root, other = tmp_path / "rootA", tmp_path / "rootB"
    question = QUESTION.model_copy(update={"question": "Who came?"})
    first = evaluate(write(root, "breakfast", 1))
    second = Evaluation.open(
        EvalParams(
            method="hashing", source="folder", data_root=str(write(other, "garden", 2, [question]))
        )
    )
    assert sum(len(e.asks) for e in second.pending()) == 1, "another one's answer was taken"
    second.execute(progress=False)
    (mine,), (theirs,) = first.responses(), second.responses()
    assert (mine.trajectory, theirs.trajectory) == ("breakfast", "garden")
    assert mine.raw_text != theirs.raw_text
    assert [r.key for r in reading.reread(second.run.folder).responses] == [theirs.key]


def test_a_moved_or_copied_root_is_the_same_run(outputs: Path, tmp_path: Path) -> None:
    first = evaluate(write(tmp_path / "here"))
    shutil.copytree(tmp_path / "here", tmp_path / "copy", copy_function=shutil.copy)
    again = evaluate(tmp_path / "copy")
    assert again.run.folder == first.run.folder
    assert len(again.run.read("responses")) == 1, "the answer was asked for again"


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 2},
        {"questions": [QUESTION.model_copy(update={"question": "What fell?"})]},
        {"questions": [QUESTION.model_copy(update={"answer": "B"})]},
        {"questions": [QUESTION.model_copy(update={"options": OPTIONS[::-1]})]},
        {"questions": [QUESTION.model_copy(update={"probes": (
            QUESTION.probes[0].model_copy(update={"t_s": 1.0}),)})]},
    ],
)  # fmt: skip
def test_what_has_changed_in_its_place_is_asked_anew(
    outputs: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    first = evaluate(write(tmp_path / "root"))
    second = evaluate(write(tmp_path / "root", **change))
    assert second.run.folder != first.run.folder
    assert len(second.run.read("responses")) == 1
    found = reading.reread(first.run.folder)
    assert "was asked about other data" in found.unread, (
        "its answers would stand beside other questions"
    )
    assert "trajectory 'T'" in found.unread
    back = evaluate(write(tmp_path / "root"))
    assert back.run.folder == first.run.folder


def test_what_is_added_to_the_data_goes_into_the_same_run(outputs: Path, tmp_path: Path) -> None:
    more = QUESTION.model_copy(update={"id": "q2", "question": "What fell?"})
    first = evaluate(write(tmp_path / "root"))
    second = evaluate(write(tmp_path / "root", questions=[QUESTION, more]))
    third = evaluate(write(tmp_path / "root", name="U", seed=3))
    assert first.run.folder == second.run.folder == third.run.folder
    keys = [(r["trajectory"], r["candidate"]) for r in third.run.read("responses")]
    assert keys == [("T", "q1"), ("T", "q2"), ("U", "q1")], "asked twice, or not at all"


def test_ids_that_stand_in_two_folders_never_mix(outputs: Path, tmp_path: Path) -> None:
    root = write(write(tmp_path / "root", "T", 1), "U", 2)
    job = evaluate(root)
    assert not job.data.problems
    one, two = job.responses()
    assert (one.trajectory, two.trajectory) == ("T", "U")
    assert one.raw_text != two.raw_text
    rows = reading.gather(job).scored.rows
    assert list(rows["trajectory"]) == ["T", "U"]
    assert list(rows["passed"]) == [float(bool(r.passed)) for r in (one, two)]


def test_a_session_more_is_other_data(outputs: Path, tmp_path: Path) -> None:
    first = evaluate(write(tmp_path / "root"))
    movie(tmp_path / "root" / "T" / "day0.mp4", 3, seed=9)
    assert evaluate(tmp_path / "root").run.folder != first.run.folder


def test_saved_memories_of_other_data_are_refused(outputs: Path, tmp_path: Path) -> None:
    kept = evaluate(write(tmp_path / "one"), states="all")
    with pytest.raises(BenchError, match=r"asked about other data: .*'T': session day1: videos"):
        evaluate(write(tmp_path / "two", seed=2), states_from=kept.run.folder.name)
    with pytest.raises(BenchError, match="states_from: latest"):
        evaluate(tmp_path / "one", states_from="latest", seed=7)


def test_a_run_of_an_older_form_is_read_and_never_gone_on_with(
    outputs: Path, tmp_path: Path
) -> None:
    first = evaluate(write(tmp_path / "root"))
    path = first.run.folder / "manifest.json"
    manifest = json.loads(path.read_text())
    assert manifest.pop("format") == FORMAT
    path.write_text(json.dumps(manifest))
    (first.run.folder / "data.json").unlink()
    old = first.run.folder.with_name("03_eval-hashing-old")
    first.run.folder.rename(old)
    second = evaluate(tmp_path / "root")
    assert second.run.folder != old
    assert len(second.run.read("responses")) == 1
    from bench_lib.report.caveats import caveats

    assert any("before runs knew their data" in c.text for c in caveats(reading.reread(old)))
    assert not any("before runs" in c.text for c in caveats(reading.reread(second.run.folder)))


def test_old_verdicts_belong_to_the_reply_they_were_on(outputs: Path) -> None:
    run = Run.open("03_eval", "x", EvalParams(method="null").as_dict())
    for trajectory, candidate in (("T", "one"), ("T", "both"), ("U", "both")):
        run.append(
            "responses",
            Response(
                trajectory=trajectory, session="S", candidate=candidate, probe="q", task="MPA",
                cutoff_s=1, closed=True, status="ok",
            ),
        )  # fmt: skip
    for candidate in ("one", "both", "none"):
        given = Verdict(trajectory="", candidate=candidate, probe="q", judge="j", score=4)
        run.append("verdicts", given.model_dump(exclude={"trajectory"}))
    assert [v.key for v in stored(run)] == [("T", "one", "q")]


def test_a_parameter_of_later_separates_runs_only_where_it_is_used() -> None:
    now = EvalParams(method="null").as_dict()
    before = {key: value for key, value in now.items() if key != "state_form"}
    assert same(before, now)
    assert same(now, before)
    assert not same(before, {**now, "state_form": "int8"})
    assert not same(before, {**now, "seed": 1})


SESSION = Session(
    id="S", index=0, spans=(Span(file="/a/b.mp4", start_s=0, end_s=9),), duration_s=9.0,
    wall_start_s=5.0, captions=(Caption(start_s=1, end_s=2, text="hm"),),
)  # fmt: skip
FULL = QUESTION.model_copy(
    update={
        "ideal": (Moment(session="S", start_s=1, end_s=2),),
        "registration": Registration(session="S", t_s=0.5, text="Say so."),
        "references": {"domain": "kitchen"},
    }
)
HOME = Trajectory(id="T", source="x", sessions=(SESSION,), candidates=(FULL,), between=())
CHANGES: dict[str, dict[str, Any]] = {
    "session S": {"index": 3, "duration_s": 8.0, "wall_start_s": None, "captions": (),
                  "spans": (Span(file="/a/b.mp4", start_s=1, end_s=9),)},
    "candidate q1": {"task": "EST", "question": "?", "options": (), "answer": None, "evidence": (),
                     "ideal": (), "registration": None, "probes": (), "references": {}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("part", "field"), [(part, field) for part, own in CHANGES.items() for field in own]
)
def test_every_field_counts_and_is_named(part: str, field: str) -> None:
    update = {field: CHANGES[part][field]}
    if part == "session S":
        other = HOME.model_copy(update={"sessions": (SESSION.model_copy(update=update),)})
    else:
        other = HOME.model_copy(update={"candidates": (FULL.model_copy(update=update),)})
    found = differs(contents([HOME]), contents([other]))
    assert found == f"trajectory 'T': {part}: {field}"
    assert differs(contents([other]), contents([HOME])) == found


def test_where_questions_share_a_dialogue_a_further_one_is_other_data() -> None:
    turn = Candidate(id="t1", task="RTP", question="?", probes=QUESTION.probes)
    one = HOME.model_copy(update={"candidates": (turn,)})
    two = HOME.model_copy(update={"candidates": (turn, turn.model_copy(update={"id": "t2"}))})
    assert differs(contents([one]), contents([two])) == "trajectory 'T': as a whole: candidates"


@given(st.text(max_size=20), st.text(max_size=20))
def test_no_two_texts_are_one(first: str, second: str) -> None:
    def known(text: str) -> Any:
        asked = FULL.model_copy(update={"question": text})
        return contents([HOME.model_copy(update={"candidates": (asked,)})])

    assert bool(differs(known(first), known(second))) == (first != second)
