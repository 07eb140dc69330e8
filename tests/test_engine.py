"""The laws of the engine, each with a control that must break it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from engine_runs import SETTING, answers, asks_of, walk
from synthetic import household, movie

from bench_lib import methods
from bench_lib.engine.conditions import episodes
from bench_lib.schema import Candidate, Probe, Span, Trajectory
from bench_lib.tasks import APM_BENCH
from bench_lib.video.stream import Clip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Trajectory:
    return household(tmp_path_factory.mktemp("home"))


def with_video(trajectory: Trajectory, index: int, path: Path) -> Trajectory:
    """The same trajectory whose session `index` plays another file."""
    old = trajectory.sessions[index]
    span = Span(file=str(path), start_s=0.0, end_s=old.duration_s)
    new = old.model_copy(update={"spans": (span,)})
    sessions = tuple(new if s is old else s for s in trajectory.sessions)
    return trajectory.model_copy(update={"sessions": sessions})


def test_replay_gives_the_answers_of_the_stream(home: Trajectory, tmp_path: Path) -> None:
    stream, _ = walk(home, tmp_path)
    replay, _ = walk(home, tmp_path, replay=True)
    assert answers(stream) == answers(replay)
    assert len(set(answers(stream).values())) > 5, "the replies tell nothing apart"


def test_an_answer_does_not_depend_on_the_other_probes(home: Trajectory, tmp_path: Path) -> None:
    together, _ = walk(home, tmp_path)
    for ask in asks_of(home):
        alone, _ = walk(home, tmp_path, asks=[ask])
        mine, usual = alone[ask.key], together[ask.key]
        assert mine.raw_text == usual.raw_text, ask.key
        assert mine.counters == usual.counters, "other probes moved work between trunk and branch"
    backwards, _ = walk(home, tmp_path, asks=asks_of(home)[::-1])
    assert answers(backwards) == answers(together)


def test_a_trunk_flushed_at_probes_would_be_seen(home: Trajectory, tmp_path: Path) -> None:
    """The control of the clip law: other clip boundaries change the replies."""
    usual, _ = walk(home, tmp_path)
    other, _ = walk(home, tmp_path, methods.load("hashing", clip_frames=3))
    assert answers(usual) != answers(other)


@pytest.mark.parametrize("cutoff_s", [3.0, 3.05, 4.0, 7.0, 8.5])
@pytest.mark.parametrize("closed", [True, False])
def test_the_future_never_reaches_a_method(
    home: Trajectory, tmp_path: Path, cutoff_s: float, closed: bool
) -> None:
    candidate = Candidate(
        id="x",
        task="FREE",
        question="?",
        probes=(Probe(id="q", session="S002", t_s=cutoff_s, closed=closed),),
    )
    alone = home.model_copy(update={"candidates": (candidate,)})
    # Open cutoffs may show anything before them, closed ones also their own instant; the method
    # samples one frame a second, so the first changed instant is the next whole second.
    first_hidden_s = cutoff_s if not closed else cutoff_s + 0.1
    future = with_video(alone, 1, movie(tmp_path / "f.mp4", 10, 1, first_hidden_s))
    future = with_video(future, 2, movie(tmp_path / "g.mp4", 10, 77))
    past = with_video(alone, 1, movie(tmp_path / "p.mp4", 10, 1, int(cutoff_s - 0.5)))
    usual = answers(walk(alone, tmp_path)[0])
    assert answers(walk(future, tmp_path)[0]) == usual
    assert answers(walk(past, tmp_path)[0]) != usual
    earlier = with_video(alone, 0, movie(tmp_path / "e.mp4", 10, 0, 9.0))
    assert answers(walk(earlier, tmp_path)[0]) != usual


def test_a_caption_arrives_when_its_last_word_is_said(home: Trajectory, tmp_path: Path) -> None:
    def heard(t_s: float) -> bool:
        probe = Probe(id="q", session="S001", t_s=t_s)
        candidate = Candidate(id="x", task="FREE", question="?", probes=(probe,))
        loud = home.model_copy(update={"candidates": (candidate,)})
        mute = loud.sessions[0].model_copy(update={"captions": ()})
        mute_home = loud.model_copy(update={"sessions": (mute, *loud.sessions[1:])})
        return answers(walk(loud, tmp_path)[0]) != answers(walk(mute_home, tmp_path)[0])

    assert not heard(2.3)
    assert heard(2.4)
    assert heard(9.9)


def test_nothing_but_the_stream_reaches_a_method(home: Trajectory, tmp_path: Path) -> None:
    seen: list[object] = []

    class Spy(methods.find("hashing")):  # type: ignore[misc]
        def reset(self, *given):
            seen.extend(given)
            super().reset(*given)

        def begin_session(self, info):
            seen.append(info)
            super().begin_session(info)

        def observe(self, clip):
            seen.append(clip)
            super().observe(clip)

        def note(self, note):
            seen.append(note)
            super().note(note)

        def end_session(self, *given):
            seen.extend(given)
            super().end_session(*given)

        def respond(self, query, generation):
            seen.append(query)
            return super().respond(query, generation)

    walk(home, tmp_path, Spy())
    texts = [repr(item) for item in seen]
    files = [span.file for session in home.sessions for span in session.spans]
    for forbidden in (*files, "positive", "negative", "Moment(", "duration", "Probe(", "answer='"):
        assert not [t for t in texts if forbidden in t], forbidden
    assert any("Note(" in text for text in texts), "the spy saw no note"


def test_each_frame_is_sampled_and_decoded_once_however_many_probes(
    home: Trajectory, tmp_path: Path
) -> None:
    probes = tuple(Probe(id=f"q{k}", session="S003", t_s=0.5 + 0.3 * k) for k in range(30))
    many = Candidate(id="x", task="FREE", question="?", probes=probes)
    last = Candidate(id="y", task="FREE", question="?", probes=probes[-1:])
    clip = 4
    for candidates, asks in (((many,), 30), ((last,), 1)):
        crowd = home.model_copy(update={"candidates": candidates})
        found, sessions = walk(crowd, tmp_path, methods.load("hashing", clip_frames=clip))
        assert len(found) == asks
        assert sum(s["counters"]["frames_sampled"] for s in sessions) == 30
        assert sum(s["counters"]["source_frames_decoded"] for s in sessions) <= 300
        trunk = sum(s["counters"]["frames_encoded"] for s in sessions)
        assert trunk <= 30, "the trunk saw a frame twice"
        tails = [r.counters.get("frames_encoded", 0) for r in found.values()]
        assert max(tails) < clip, "a branch saw more than the tail of its clip"


def test_replay_costs_a_prefix_for_each_probe(home: Trajectory, tmp_path: Path) -> None:
    """The control of the counters: they do tell observing once from observing per probe."""
    _, stream = walk(home, tmp_path)
    _, replay = walk(home, tmp_path, replay=True)

    def sampled(sessions: list[dict]) -> int:
        return sum(s["counters"]["frames_sampled"] for s in sessions)

    assert sampled(replay) > 3 * sampled(stream)


def test_a_branch_leaves_no_trace(home: Trajectory, tmp_path: Path) -> None:
    """The trunk's state after a session is the same with and without probes in it."""
    with_probes, without = methods.load("hashing"), methods.load("hashing")
    walk(home, tmp_path, with_probes)
    last = [ask for ask in asks_of(home) if ask.candidate.id == "late"]
    walk(home, tmp_path, without, asks=last)
    assert with_probes.state == without.state


def test_oracle_feeds_the_evidence_and_nothing_else(home: Trajectory, tmp_path: Path) -> None:
    ask = next(a for a in asks_of(home) if a.candidate.id == "between")
    (episode,) = episodes(APM_BENCH, home, [ask], "oracle")
    assert [(f.session.id, f.stretches) for f in episode.feeds] == [
        ("S001", ((2.0, 4.0),)),
        ("S003", ()),
    ]
    usual = answers(walk(home, tmp_path, asks=[ask], condition="oracle")[0])
    outside = with_video(home, 0, movie(tmp_path / "o.mp4", 10, 0, 4.0))
    inside = with_video(home, 0, movie(tmp_path / "i.mp4", 10, 0, 3.0))
    assert answers(walk(outside, tmp_path, asks=[ask], condition="oracle")[0]) == usual
    assert answers(walk(inside, tmp_path, asks=[ask], condition="oracle")[0]) != usual


def test_recent_sessions_forget_what_came_before(home: Trajectory, tmp_path: Path) -> None:
    asks = [a for a in asks_of(home) if a.probe.session == "S003"]
    other_first = with_video(home, 0, movie(tmp_path / "a.mp4", 10, 50))
    other_second = with_video(home, 1, movie(tmp_path / "b.mp4", 10, 60))

    def ask(trajectory: Trajectory, recent: int) -> dict:
        found, _ = walk(trajectory, tmp_path, asks=asks, condition="recent_sessions", recent=recent)
        return answers(found)

    assert ask(home, 1) == ask(other_first, 1) != ask(other_second, 1)
    assert ask(home, 2) != ask(other_first, 2)
    assert ask(home, 0) == ask(other_second, 0)


def test_raw_lifelong_adds_the_footage_between(home: Trajectory, tmp_path: Path) -> None:
    footage = home.sessions[0].model_copy(update={"id": "gap1", "index": 1})
    full = home.model_copy(update={"between": (footage,)})
    (episode,) = episodes(APM_BENCH, full, asks_of(full), "raw_lifelong")
    assert [f.session.id for f in episode.feeds] == ["S001", "gap1", "S002", "S003"]
    assert answers(walk(full, tmp_path)[0]) == answers(walk(home, tmp_path)[0])
    lifelong, _ = walk(full, tmp_path, condition="raw_lifelong")
    usual = answers(walk(home, tmp_path)[0])
    changed = {key for key, text in answers(lifelong).items() if text != usual[key]}
    assert changed == {a.key for a in asks_of(home) if a.probe.session != "S001"}


def test_a_note_reaches_its_own_candidate_only(home: Trajectory, tmp_path: Path) -> None:
    usual, _ = walk(home, tmp_path, delivery="stream")
    mute = [c for c in home.candidates if c.id not in ("told", "held")]
    without, _ = walk(home.model_copy(update={"candidates": tuple(mute)}), tmp_path)
    for key, text in answers(without).items():
        assert answers(usual)[key] == text, key
    logged, _ = walk(home, tmp_path, delivery="log")
    assert answers(logged)[home.id, "told", "p1"] != answers(usual)[home.id, "told", "p1"]
    replay, _ = walk(home, tmp_path, replay=True, delivery="stream")
    assert answers(replay) == answers(usual)


def test_what_keeps_nothing_loses_its_notes(home: Trajectory, tmp_path: Path) -> None:
    heard: list[str] = []

    class Forgetful(methods.find("hashing")):  # type: ignore[misc]
        persistent = False
        notes_touch_state = False

        def respond(self, query, generation):
            heard.extend(note.text for note in query.notes)
            return super().respond(query, generation)

    walk(home, tmp_path, Forgetful())
    assert not [text for text in heard if "rains" in text]
    assert [text for text in heard if "What comes?" in text]


def test_a_broken_session_costs_its_own_probes(home: Trajectory, tmp_path: Path) -> None:
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(b"not a video")
    broken = with_video(home, 1, bad)
    found, sessions = walk(broken, tmp_path)
    assert found[home.id, "early", "q"].status != "error"
    assert {found[home.id, "held", p].status for p in ("n1", "p1")} == {"error"}
    assert "bad.mp4" in found[home.id, "held", "p1"].error
    assert found[home.id, "late", "q"].status != "error"
    assert found[home.id, "late", "q"].missing_sessions == ("S002",)
    assert [bool(s["error"]) for s in sessions] == [False, True, False]


def test_a_failing_method_is_a_record_and_not_the_end(home: Trajectory, tmp_path: Path) -> None:
    records = []

    class Failing(methods.find("hashing")):  # type: ignore[misc]
        def observe(self, clip: Clip) -> None:
            if self.state.frames >= 12:
                raise RuntimeError("out of memory")
            super().observe(clip)

    from bench_lib.engine.kept import States
    from bench_lib.engine.walk import Walk

    (episode,) = episodes(APM_BENCH, home, asks_of(home))
    Walk(
        Failing(), episode, SETTING, States(tmp_path, "none"), lambda k, r: records.append((k, r))
    ).run()
    responses = {r.candidate: r for kind, r in records if kind == "responses"}
    assert len([r for kind, r in records if kind == "responses"]) == len(asks_of(home))
    assert responses["early"].status == "ok"
    assert responses["late"].status == "error"
    assert "out of memory" in responses["late"].error


@pytest.mark.parametrize("keep", ["last", "all"])
def test_a_resumed_walk_equals_an_uninterrupted_one(
    home: Trajectory, tmp_path: Path, keep: str
) -> None:
    log = {"delivery": "log"}
    usual, _ = walk(home, tmp_path / "a", **log)
    early = [a for a in asks_of(home) if a.probe.session != "S003"]
    late = [a for a in asks_of(home) if a.probe.session == "S003"]
    # Asking for a late probe keeps the states of the sessions before it.
    walk(home, tmp_path / "b", asks=[*early, late[0]], keep=keep, **log)
    resumed, sessions = walk(home, tmp_path / "b", asks=late[1:], keep=keep, **log)
    assert [s["session"] for s in sessions] == ["S003"], "more than a session was observed again"
    for key, text in answers(resumed).items():
        assert text == answers(usual)[key]
        fields = ("prefix_s", "missing_sessions")
        assert resumed[key].timings["prefix_s"] == usual[key].timings["prefix_s"], fields


def test_states_too_large_are_not_kept(home: Trajectory, tmp_path: Path) -> None:
    from bench_lib.engine.kept import States
    from bench_lib.engine.walk import Walk

    (episode,) = episodes(APM_BENCH, home, asks_of(home))
    log = dataclasses.replace(SETTING, delivery="log")
    states = States(tmp_path, "last", limit_bytes=10)
    Walk(methods.load("hashing"), episode, log, states, lambda k, r: None).run()
    assert not list(tmp_path.rglob("state.json"))


def test_another_memory_and_none_are_controls(home: Trajectory, tmp_path: Path) -> None:
    from bench_lib.engine.conditions import foreign
    from bench_lib.engine.kept import States
    from bench_lib.engine.walk import Walk

    other = household(tmp_path / "other", seed=3)
    late = [a for a in asks_of(home) if a.probe.session == "S003"]
    (episode,) = foreign(home, other, late)
    assert [f.session.id for f in episode.feeds] == ["T3:S001", "T3:S002", "S003"]
    records: list = []
    Walk(
        methods.load("hashing"), episode, SETTING, States(tmp_path, "none"),
        lambda kind, record: records.append(record),
    ).run()  # fmt: skip
    borrowed = {r.key: r.raw_text for r in records if hasattr(r, "raw_text")}
    usual = answers(walk(home, tmp_path, asks=late)[0])
    empty = answers(walk(home, tmp_path, asks=late, condition="recent_sessions", recent=0)[0])
    for key in usual:
        assert len({usual[key], borrowed[key], empty[key]}) == 3
