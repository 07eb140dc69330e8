"""StreamArena's folder: both shapes give the same questions, and every defect is told."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from arena_folder import NAME, PAPER_ROW, ROW, export, films, load, rows
from house_worlds import told
from hypothesis import given
from hypothesis import strategies as st
from synthetic import movie

from bench_lib import sources
from bench_lib.benches.arena.scores import arena_instances, arena_scores
from bench_lib.dollhouse.ideal import grading
from bench_lib.dollhouse.world import export_stream_arena, strip
from bench_lib.dollhouse.world.lore import lore
from bench_lib.errors import BenchError
from bench_lib.schema import Candidate, Moment, Probe, Reference, Registration, Trajectory
from bench_lib.score import aggregate
from bench_lib.score.cases import META
from bench_lib.score.strata import strata
from bench_lib.sources.stream_arena import items
from bench_lib.sources.stream_arena import rows as row_shapes
from bench_lib.tasks import STREAM_ARENA
from bench_lib.texts import records
from bench_lib.video.session import inspect, open_session

SECONDS = 6.0


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return movie(tmp_path_factory.mktemp("v") / "v.mp4", SECONDS)


def in_time(trajectory: Trajectory) -> list[Candidate]:
    """Candidates in time order, less what no field of StreamArena says: what a glance shows."""
    plain = [
        c.model_copy(
            update={"probes": tuple(p.model_copy(update={"glance": {}}) for p in c.probes)}
        )
        for c in trajectory.candidates
    ]
    return sorted(plain, key=lambda c: c.probes[0].t_s)


def bare(candidate: Candidate) -> Candidate:
    """Without what the released fields have no place for."""
    seen = tuple(m.model_copy(update={"text": ""}) for m in candidate.evidence)
    kept = {k: v for k, v in candidate.references.items() if k != "pattern"}
    return candidate.model_copy(update={"evidence": seen, "references": kept})


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("shape", ["paper", "released"])
def test_export_and_load_give_the_same_candidates(tmp_path: Path, shape: str, packed: bool) -> None:
    data = load(export(tmp_path, shape, packed=packed))
    assert not data.problems
    for (_, made), found in zip(films(), data.trajectories, strict=True):
        expected = in_time(made)
        if shape == "released":
            expected = [bare(c) for c in expected]
        assert in_time(found) == expected
        assert [c.probes[0].t_s for c in found.candidates] == [
            c.probes[0].t_s for c in in_time(found)
        ]
        (ours,), (theirs,) = found.sessions, made.sessions
        assert ours.captions == theirs.captions
        assert ours.duration_s == pytest.approx(theirs.duration_s)
        assert (ours.id, found.title) == (theirs.id, made.title)


times = st.integers(0, 400).map(lambda k: k / 4)
words = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1).filter(
    lambda text: bool(text.strip())
)


@st.composite
def candidates(draw: st.DrawFn) -> Candidate:
    ask_s, answer = draw(times), draw(words)
    task = draw(st.sampled_from(["RTP", "HR", "Tool", "Pro"]))
    due: tuple[Moment, ...] = ()
    said, seen = None, ()
    if task == "Pro":
        start_s = ask_s + draw(times) + 0.25
        due = (Moment(session="S001", start_s=start_s, end_s=start_s + draw(times)),)
        said = Registration(session="S001", t_s=ask_s, text=draw(words))
    else:
        ends = draw(st.lists(st.tuples(times, times), min_size=1, max_size=4))
        stretches = sorted((min(a, b, ask_s), min(max(a, b), ask_s)) for a, b in ends)
        texts = [draw(st.text()) for _ in stretches]
        seen = tuple(
            Moment(session="S001", start_s=a, end_s=b, text=text)
            for (a, b), text in sorted(zip(stretches, texts, strict=True))
        )
    kept = {"answer": answer, "domain": "household", "language": "en"}
    if task == "HR":
        kept["pattern"] = draw(st.sampled_from(["single_point", "multi_count"]))
    return Candidate(
        id=f"v-{task}-00",
        task=task,
        question=said.text if said else draw(words),
        evidence=seen,
        ideal=due,
        registration=said,
        probes=(
            Probe(
                id="q",
                session="S001",
                t_s=ask_s,
                reference=Reference(response=answer, reason=answer if due else ""),
            ),
        ),
        references=kept,
    )


@given(candidates(), st.sampled_from(["paper", "released"]))
def test_any_candidate_survives_both_shapes(made: Candidate, shape: str) -> None:
    line = json.dumps(export_stream_arena._row(made, "v", shape, 0))  # type: ignore[arg-type]
    row = row_shapes.read(row_shapes.parse(records.Entry("line 1", line, json.loads(line))), 0)
    found = items.candidate(row, {"domain": "household"}, "en")
    assert found == (made if shape == "paper" else bare(made))


def test_the_ideal_observer_gives_the_same_answers(tmp_path: Path) -> None:
    data = load(export(tmp_path))
    (world, _), found = films()[0], data.trajectories[0]
    found = sources.prepare(found)
    film = world.films[0]
    facts = "\n".join(d["text"] for d in lore(world.house.singles).documents())
    session = found.sessions[0]
    with open_session(session, 1.0, ((0.0, session.duration_s),)) as stream:
        read = [strip.decode(sample.frame.pixels()) for sample in stream]
    seen = [picture for picture in read if picture]
    assert len(seen) == film.duration_s
    right = Counter[str]()
    for candidate in found.candidates:
        if candidate.task == "Pro":
            continue
        t_s = candidate.probes[0].t_s
        heard = [c.text for c in session.captions if c.end_s <= t_s]
        extra = [facts] if candidate.task == "Tool" else []
        asked = (*heard, *extra, candidate.question)
        reply = told(asked, seen[: int(t_s) + 1], "free", 512)
        pictures = [film.picture(t) for t in range(int(t_s) + 1)]
        assert reply == told(asked, pictures, "free", 512)
        assert grading.agrees(reply, candidate.references["answer"]), candidate.id
        right[candidate.task] += 1
    assert set(right) == {"RTP", "HR", "Tool"}


KINDS = {
    "evidence after the question",
    "trigger not after the question",
    "due time beyond the video",
    "question beyond the video",
    "evidence beyond the video",
    "horizon contradicts the times",
    "question occurs twice",
    "video missing",
}


@pytest.mark.parametrize("shape", ["paper", "released"])
def test_each_known_defect_is_left_out_named_and_counted(tmp_path: Path, shape: str) -> None:
    good = load(export(tmp_path / "good", shape))
    data = load(export(tmp_path / "bad", shape, faults=True))
    assert [t.candidates for t in data.trajectories] == [t.candidates for t in good.trajectories]
    assert len(data.problems) == len(KINDS) + 2
    whole = sum(len(t.candidates) for t in good.trajectories)
    assert f"{whole} of {whole + 10} questions" in data.note
    assert all(f"1 {kind}" in data.note for kind in KINDS)
    assert "2 unparsable row" in data.note
    for problem in data.problems:
        assert problem.file.endswith("question.en.jsonl")
        assert problem.record
        assert problem.field
        assert len(problem.reason) > 20
    (late,) = [p for p in data.problems if p.value == "31.0"]
    assert late.field == ("evidence" if shape == "paper" else "evidence_ts_sec")
    assert "11 s after the question at 20 s" in late.reason
    ignored = load(tmp_path / "bad", horizon="ignore")
    assert "horizon" not in ignored.note


def test_a_cumulative_count_spans_all_that_has_been(tmp_path: Path, video: Path) -> None:
    row = {**ROW, "evidence_ts_sec": [0, 3], "horizon_sec": 0}
    (trajectory,) = load(rows(tmp_path, row, video=video)).trajectories
    (seen,) = trajectory.candidates[0].evidence
    assert (seen.start_s, seen.end_s) == (0.0, 3.0)
    two = {**ROW, "evidence_ts_sec": [0, 2]}
    (trajectory,) = load(rows(tmp_path, two, video=video)).trajectories
    assert [m.start_s for m in trajectory.candidates[0].evidence] == [0.0, 2.0]


@pytest.mark.parametrize("horizon", [3 - 1, 3 - 2, 3 - 1.5])
def test_both_readings_of_an_hr_horizon_are_right(
    tmp_path: Path, video: Path, horizon: float
) -> None:
    assert not load(rows(tmp_path, {**ROW, "horizon_sec": horizon}, video=video)).problems
    far = rows(tmp_path, {**ROW, "horizon_sec": 9}, {**ROW, "qid": 2, "ask_sec": 4}, video=video)
    (problem,) = load(far).problems
    assert (problem.field, problem.value) == ("horizon_sec", "9.0")


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({**ROW, "query_time": 3}, "fields"),
        ({**PAPER_ROW, "ask_sec": 3}, "fields"),
        ({"video_id": "v", "question": "?", "answer": "!"}, "fields"),
        ({**ROW, "video_id": "../../etc/passwd"}, "video_id"),
        ({**ROW, "video_id": 7}, "video_id"),
        ({**ROW, "qid": None}, "qid"),
        ({**ROW, "qid": "a/b"}, "qid"),
        ({**ROW, "qtype": "Hr2"}, "qtype"),
        ({**ROW, "question": "  "}, "question"),
        ({**ROW, "answer": None}, "answer"),
        ({**ROW, "ask_sec": "3"}, "ask_sec"),
        ({**ROW, "ask_sec": True}, "ask_sec"),
        ({**ROW, "ask_sec": -1}, "ask_sec"),
        ({**ROW, "evidence_ts_sec": [[2, 1]]}, "evidence_ts_sec[0]"),
        ({**ROW, "evidence_ts_sec": [1, [1, 2, 3]]}, "evidence_ts_sec[1]"),
        ({**ROW, "qtype": "Pro"}, "ref_sec"),
        ({**PAPER_ROW, "evidence": [[1, 2]]}, "evidence"),
        ({**PAPER_ROW, "evidence": [{"t_start": 1}]}, "evidence[0].t_end"),
        ({**PAPER_ROW, "capability": "Pro", "evidence": []}, "evidence"),
        ("[1, 2]", "JSON"),
        ('{"video_id": "v"', "JSON"),
        ('{"video_id": "v", "qtype": "HR", "ask_sec": NaN, "qid": 4}', "ask_sec"),
    ],
)  # fmt: skip
def test_a_bad_row_costs_itself(tmp_path: Path, video: Path, bad: object, field: str) -> None:
    data = load(rows(tmp_path, {**ROW, "qid": 9}, bad, video=video))
    (problem,) = data.problems
    assert (problem.field, problem.record) == (field, "line 2")
    assert [c.id for c in data.trajectories[0].candidates] == ["v-HR-09"]


def test_rows_of_both_shapes_may_lie_in_one_file(tmp_path: Path, video: Path) -> None:
    other = {**PAPER_ROW, "query_time": 2.5, "qid": 5}
    data = load(rows(tmp_path, ROW, other, video=video))
    assert not data.problems
    assert [c.id for c in data.trajectories[0].candidates] == ["v-HR-05", "v-HR-01"]


def test_what_answers_a_question_changes_nothing_a_method_is_given(
    tmp_path: Path, video: Path
) -> None:
    watch = {**ROW, "qid": 2, "qtype": "Pro", "ref_sec": 4.5, "horizon_sec": 1.5}
    other = {**watch, "ref_sec": 5.5, "horizon_sec": 2.5, "evidence_ts_sec": [5.5], "answer": "no"}
    earlier = {**watch, "ask_sec": 2.0, "horizon_sec": 2.5}

    def given(row: dict) -> tuple:
        (trajectory,) = load(rows(tmp_path, row, video=video)).trajectories
        (one,) = trajectory.candidates
        told = one.id, one.question, one.registration, one.probes[0].t_s, one.probes[0].closed
        return (*told, trajectory.model_copy(update={"candidates": ()}))

    assert given(watch) == given(other)
    assert given(watch) != given(earlier)


def test_the_language_is_chosen_and_the_other_named(tmp_path: Path, video: Path) -> None:
    export(tmp_path)
    chinese = load(tmp_path, language="zh").trajectories[0].candidates[0]
    english = load(tmp_path).trajectories[0].candidates[0]
    assert chinese.question == export_stream_arena.CHINESE + english.question
    assert (chinese.references["language"], chinese.references["domain"]) == ("zh", "家庭")
    assert (english.references["language"], english.references["domain"]) == ("en", "household")
    (tmp_path / "question.en.jsonl").unlink()
    with pytest.raises(BenchError, match="language=zh, which is there"):
        load(tmp_path)


@pytest.mark.parametrize("shape", ["paper", "released"])
def test_the_subdomain_is_read_and_splits_scores(tmp_path: Path, shape: str) -> None:
    data = load(export(tmp_path, shape))
    for trajectory in data.trajectories:
        assert {c.references["subdomain"] for c in trajectory.candidates} == {"chores"}
        assert set(strata([trajectory], STREAM_ARENA)["subdomain"]) == {"chores"}
    asked = sum(len(t.candidates) for t in data.trajectories)
    told = [(one.value, one.how) for one in data.taken if one.what == "subdomain"]
    assert told == [("chores", f"videos: 2, questions: {asked}")]
    asks = arena_instances(data.trajectories, [], [], bench=STREAM_ARENA)
    split = aggregate.split(asks, "subdomain", arena_scores)
    assert set(split["stratum"]) == {"chores"}
    sorted_by = {key for t in data.trajectories for c in t.candidates for key in c.references}
    assert sorted_by - {"answer"} <= set(META), "the judge is shown none of these"


def test_a_row_of_its_own_goes_before_its_video_s_subdomain(tmp_path: Path, video: Path) -> None:
    root = rows(
        tmp_path, {**ROW, "l2_subdomain": "cups"}, {**ROW, "qid": 2, "ask_sec": 4}, video=video
    )
    (root / "video_meta.en.jsonl").write_text('{"video_id": "v", "l2_subdomain": "bowls"}')
    (trajectory,) = load(root).trajectories
    assert [c.references["subdomain"] for c in trajectory.candidates] == ["cups", "bowls"]


def test_which_captions_were_read_is_told(tmp_path: Path, video: Path) -> None:
    root = rows(tmp_path, ROW, video=video)

    def told() -> list[tuple[str, str]]:
        found = load(root)
        return [(t.value, t.how) for t in found.taken if t.what == "v: captions"]

    assert told() == [("none", "no track is there")]
    cue = "1\n00:00:01,000 --> 00:00:02,000\n钥匙在桌子上\n"
    (root / "videos" / "v.zh-CN.srt").write_bytes(cue.encode("gbk"))
    assert told() == [("v.zh-CN.srt, 1 cue", "gb18030 (GBK), guessed")]
    (root / "videos" / "v.zh-CN.vtt").write_bytes(bytes(range(256)) * 9)
    (root / "captions").mkdir()
    (root / "captions" / "v.zh-CN.vtt").write_bytes(b"\0\0a" * 9)
    how = "gb18030 (GBK), guessed; without a cue: v.zh-CN.vtt"
    assert told() == [("v.zh-CN.srt, 1 cue", how)]
    (problem,) = load(root).problems
    assert problem.file.endswith("captions/v.zh-CN.vtt")


def test_what_cannot_be_loaded_says_what_to_do(tmp_path: Path) -> None:
    root = rows(tmp_path, ROW)
    with pytest.raises(BenchError, match=r"non-commercial.*licence=cc-by-nc-4.0"):
        sources.load("stream_arena", str(root))
    with pytest.raises(BenchError, match=r"v\.mp4 or v\.tar is not there"):
        load(root)
    with pytest.raises(BenchError, match="holds no question"):
        load(tmp_path / "nowhere")
    with pytest.raises(BenchError, match="known: en, zh"):
        load(root, language="fr")
    with pytest.raises(BenchError, match="did you mean 'language'"):
        sources.load(f"{NAME}&langauge=zh", str(root))
    with pytest.raises(BenchError, match="gives a knob twice"):
        sources.load(f"{NAME}&licence=x", str(root))
    with pytest.raises(BenchError, match="KNOB=VALUE"):
        sources.load("stream_arena?licence", str(root))
    with pytest.raises(BenchError, match="known: encoding"):
        sources.load("folder?licence=x", str(root))
    with pytest.raises(BenchError, match="has no variants"):
        sources.load("stream_arena-small", str(root))


def test_lengths_are_read_without_a_decoder(tmp_path: Path, video: Path) -> None:
    for file in (video, Path(__file__).parents[1] / "media" / "friday_speech.mp4"):
        (trajectory,) = load(rows(tmp_path, ROW, video=file)).trajectories
        assert trajectory.sessions[0].duration_s == pytest.approx(inspect(file).duration_s, abs=0.1)
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(video.read_bytes()[:500])
    with pytest.raises(BenchError, match="cut short"):
        load(rows(tmp_path, ROW, video=broken))
