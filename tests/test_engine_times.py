"""All that a method does is timed, by kind: on a clock that only its work moves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from engine_runs import SETTING, asks_of, walk
from hypothesis import given
from hypothesis import strategies as st
from synthetic import question

from bench_lib import measure, prompts
from bench_lib.engine import answer
from bench_lib.engine import walk as walking
from bench_lib.engine.answer import Setting
from bench_lib.engine.conditions import _merged, episodes
from bench_lib.engine.dialogue import Dialogue
from bench_lib.engine.kept import States
from bench_lib.exchange import Alert, Generation, Note, Query, Reply
from bench_lib.measure import MEMORY, passed, timing
from bench_lib.memories.method import Method
from bench_lib.messages.chat import Chat, ChatReply, Contract
from bench_lib.messages.turn import ask
from bench_lib.schema import (
    Candidate,
    Caption,
    Moment,
    Probe,
    Registration,
    Session,
    Span,
    Trajectory,
)
from bench_lib.tasks import STREAM_ARENA
from bench_lib.video.session import Sample
from bench_lib.video.stream import ArrayFrame, Clip, SessionInfo

START, FRAME, END, NOTE, BRANCH, READY, FIRST, REST = 0.5, 0.25, 3.0, 0.0625, 0.125, 1.0, 2.0, 4.0
DECODED = 0.015625
"""Seconds of each piece of work; sums of halves are exact."""
SECONDS = 8.0


class Clock:
    """Stands for the module `time`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The engine's clock, and video that needs no file."""
    made = Clock()
    monkeypatch.setattr(measure, "time", made)
    monkeypatch.setattr(answer, "time", made)
    monkeypatch.setattr(walking, "open_session", Film)
    monkeypatch.setattr(walking, "inspect", lambda file: ArrayFrame(0.0, np.zeros((2, 2, 3))))
    monkeypatch.setattr(walking, "session_bytes", lambda session: 7)
    monkeypatch.setattr(Labour, "frame_size", lambda self, native: (2, 2))
    monkeypatch.setattr(ArrayFrame, "size", (2, 2), raising=False)
    Labour.clock = made
    return made


class Film:
    """One picture a second, for each of which decoding takes a while."""

    served = "film"

    def __init__(self, session: Session, fps: float, stretches: Any, *_: Any, **__: Any) -> None:
        self.stretches, self.fps = stretches, fps
        self.decoded_frames, self.decode_s = 0, 0.0

    def __enter__(self) -> Film:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __iter__(self) -> Iterator[Sample]:
        for start, end in self.stretches:
            for k in range(int(np.ceil(start * self.fps)), int(np.ceil(end * self.fps - 1e-9))):
                self.decoded_frames += 1
                self.decode_s += DECODED
                yield Sample(k / self.fps, ArrayFrame(k / self.fps, np.zeros((2, 2, 3), np.uint8)))


@dataclass(frozen=True)
class Done:
    log: tuple[str, ...] = ()


@dataclass(kw_only=True)
class Labour(Method):
    """Each kind of work takes its time; the state is a log of all that was done to it."""

    name: ClassVar[str] = "labour"
    notes_touch_state: ClassVar[bool] = True
    clock: ClassVar[Clock]
    clip_frames: int = 4
    asked: list[tuple[str, Generation, tuple[str, ...]]] = field(default_factory=list, init=False)

    def _do(self, what: str, seconds: float) -> None:
        self.clock.now += seconds
        self.state = Done((*self.state.log, what))

    def reset(self, trajectory_id: str, seed: int) -> None:
        self.state = Done()

    def begin_session(self, info: SessionInfo) -> None:
        self._do(f"begin {info.id}", START)

    def observe(self, clip: Clip) -> None:
        times = ",".join(f"{f.t_s:g}" for f in clip.frames)
        self._do(f"see {times}", FRAME * len(clip.frames))

    def end_session(self, recorded_bytes: int) -> None:
        self._do(f"end {recorded_bytes}", END)

    def branch(self) -> Labour:
        self.clock.now += BRANCH
        return super().branch()

    def note(self, note: Note) -> None:
        self._do(f"hear {note.t_s:g}", NOTE)

    def respond(self, query: Query, generation: Generation) -> Reply:
        self.asked.append((query.text, generation, self.state.log))
        now = self.clock.now
        self.clock.now = now + READY + FIRST + REST
        reply = '{"decision": "SILENT", "reason": "no"}' if query.contract != "choice" else "A"
        return Reply(reply, now + READY, now + READY + FIRST, self.clock.now)


def session(index: int, captions: tuple[Caption, ...] = ()) -> Session:
    return Session(
        id=f"S{index + 1}", index=index, duration_s=SECONDS, wall_start_s=3600.0 * index,
        spans=(Span(file="film", start_s=0.0, end_s=SECONDS),), captions=captions,
    )  # fmt: skip


def told(t_s: float, *probes: tuple[str, float]) -> Candidate:
    """Registered in S1 at `t_s`."""
    return Candidate(
        id="told", task="PRM",
        registration=Registration(session="S1", t_s=t_s, text="When it rains."),
        probes=tuple(
            Probe(id=f"p{i}", session=name, t_s=at, closed=False, polarity="negative",
                  interval=(at - 1, at))
            for i, (name, at) in enumerate(probes)
        ),
    )  # fmt: skip


def trajectory(*candidates: Candidate) -> Trajectory:
    return Trajectory(
        id="T", source="toy", sessions=tuple(session(i) for i in range(3)), candidates=candidates
    )


def test_every_boundary_by_number(tmp_path: Path) -> None:
    """One question at 5.5 s of the third session: two pictures lie after the last whole clip."""
    found, _ = walk(trajectory(question("late", "S3", 5.5)), tmp_path, Labour())
    tail = BRANCH + 2 * FRAME
    assert found["T", "late", "q"].timings == {
        "prefix_s": 2 * SECONDS + 5.5,
        "decode_s": 22 * DECODED,
        "observe_s": 20 * FRAME,
        "session_start_s": 3 * START,
        "session_end_s": 2 * END,
        "notes_s": 0.0,
        "tail_s": tail,
        "preparation_s": tail + READY,
        "generation_s": FIRST + REST,
        "ttft_query_s": FIRST,
        "ttft_prep_s": tail + READY + FIRST,
        "ttft_e2e_s": tail + READY + FIRST + 2 * DECODED,
        "total_s": tail + READY + FIRST + REST,
    }


@pytest.mark.parametrize(("worked_on", "counted"), [(0, 2), (1, 2), (5, 5)])
def test_end_to_end_decodes_the_frames_worked_on_and_at_least_the_tail(
    tmp_path: Path, worked_on: int, counted: int
) -> None:
    class Looking(Labour):
        def respond(self, query: Query, generation: Generation) -> Reply:
            measure.count("frames_encoded", worked_on)
            return super().respond(query, generation)

    found, _ = walk(trajectory(question("x", "S1", 5.5)), tmp_path, Looking())
    timings = found["T", "x", "q"].timings
    assert timings["ttft_e2e_s"] - timings["ttft_prep_s"] == counted * DECODED


def test_each_session_records_its_own_work(tmp_path: Path) -> None:
    _, sessions = walk(trajectory(question("late", "S3", 8.0)), tmp_path, Labour())
    none = dict.fromkeys(MEMORY, 0.0)
    whole = {**none, "observe": 8 * FRAME, "session_start": START, "session_end": END}
    last = {**whole, "session_end": 0.0}
    # The question sees the last picture's instant, so its clip is whole.
    assert [s["work_s"] for s in sessions] == [whole, whole, last]
    assert [s["told_work_s"] for s in sessions] == [none] * 3
    assert [s["clip_s"] for s in sessions] == [[4 * FRAME] * 2] * 3


def test_a_told_branch_has_the_work_of_the_trunk_up_to_it_and_its_own(tmp_path: Path) -> None:
    """It began after the clip that ends at 3 s, ends both sessions, and is timed apart."""
    method = Labour()
    data = trajectory(told(2.5, ("S3", 4.0)), question("other", "S3", 4.0))
    found, sessions = walk(data, tmp_path, method)
    own = found["T", "told", "p0"].timings
    assert own["notes_s"] == BRANCH + NOTE
    assert own["session_start_s"] == 3 * START
    assert own["session_end_s"] == 2 * END
    assert own["observe_s"] == 20 * FRAME
    assert found["T", "other", "q"].timings["notes_s"] == 0
    assert sessions[0]["told_work_s"] == {
        "observe": 4 * FRAME, "session_start": 0.0, "session_end": END, "notes": BRANCH + NOTE,
    }  # fmt: skip
    assert sessions[1]["told_work_s"]["session_start"] == START
    assert sessions[0]["work_s"]["notes"] == 0
    logs = {query: log for query, _, log in method.asked}
    (heard,) = [log for log in logs.values() if any("hear" in line for line in log)]
    assert heard.count("end 7") == 2, "a session that ends, ends on the branch as well"
    assert heard[:4] == ("begin S1", "see 0,1,2,3", "hear 2.5", "see 4,5,6,7")


@pytest.mark.parametrize(
    ("t_s", "place"), [(2.9, 2), (3.0, 2), (3.1, 3), (7.0, 3), (7.5, 3), (0.0, 1)]
)
def test_a_note_is_heard_at_the_end_of_the_clip_that_reaches_its_instant(
    tmp_path: Path, t_s: float, place: int
) -> None:
    method = Labour()
    walk(trajectory(told(t_s, ("S2", 4.0))), tmp_path, method)
    ((_, _, log),) = method.asked
    assert log.index(f"hear {t_s:g}") == place


@pytest.mark.parametrize(("cutoff_s", "heard"), [(4.9, False), (5.0, True), (5.1, True)])
def test_a_note_since_the_last_clip_is_heard_from_its_instant_on(
    tmp_path: Path, cutoff_s: float, heard: bool
) -> None:
    method = Labour()
    candidate = Candidate(
        id="wish", task="RCR", registration=Registration(session="S1", t_s=5.0, text="When?"),
        probes=(Probe(id="p", session="S1", t_s=cutoff_s, polarity="negative"),),
    )  # fmt: skip
    walk(trajectory(candidate), tmp_path, method)
    ((_, _, log),) = method.asked
    assert ("hear 5" in log) == heard


def test_a_log_of_notes_weighs_what_was_said_in_earlier_sessions(tmp_path: Path) -> None:
    data = trajectory(told(2.5, ("S3", 4.0)))
    n = len(b"When it rains.")
    _, sessions = walk(data, tmp_path, Labour(), delivery="log")
    assert [s["note_bytes"] for s in sessions] == [0, n, n]
    _, streamed = walk(data, tmp_path, Labour())
    assert [s["note_bytes"] for s in streamed] == [0, 0, 0], "what the memory heard is its state"


def test_the_seed_reaches_the_method(tmp_path: Path) -> None:
    method = Labour()
    walk(trajectory(question("x", "S1", 4.0)), tmp_path, method, seed=7)
    assert [generation.seed for _, generation, _ in method.asked] == [7]
    walk(trajectory(question("x", "S1", 4.0)), tmp_path, method, seed=8)
    assert method.asked[-1][1].seed == 8
    assert method.asked[-1][1].max_new_tokens == SETTING.max_new_tokens["choice"]


@given(
    st.lists(
        st.tuples(st.sampled_from(["S1", "S2", "S3"]), st.integers(1, 16)), min_size=1, max_size=6
    ),
    st.integers(1, 9),
)
def test_the_kinds_add_up_to_all_work(
    tmp_path_factory: Any, cutoffs: Any, clip_frames: int
) -> None:
    """Of a memory up to an ask, and of an ask after it, whatever is asked."""
    asks = [question(f"q{i}", s, t / 2) for i, (s, t) in enumerate(cutoffs)]
    found, sessions = walk(
        trajectory(*asks), tmp_path_factory.mktemp("w"), Labour(clip_frames=clip_frames)
    )
    for response in found.values():
        t = response.timings
        memory = sum(t[f"{kind}_s"] for kind in MEMORY)
        frames = min(SECONDS, np.floor(response.cutoff_s) + 1)
        place = int(response.session[1]) - 1
        seen = FRAME * (place * SECONDS + frames)
        ends = place * END + (place + 1) * START
        assert memory + t["tail_s"] == seen + ends + BRANCH, "each picture is worked on once"
        assert t["total_s"] == t["preparation_s"] + t["generation_s"]
        assert t["ttft_prep_s"] == t["preparation_s"] + t["ttft_query_s"]
    last = max(found.values(), key=lambda r: (r.session, r.cutoff_s))
    for kind in ("session_start", "session_end", "notes"):
        assert sum(s["work_s"][kind] for s in sessions) == last.timings[f"{kind}_s"]
    assert sum(map(sum, (s["clip_s"] for s in sessions))) == sum(
        s["work_s"]["observe"] for s in sessions
    )


def test_a_resumed_walk_knows_what_its_memory_took(tmp_path: Path, clock: Clock) -> None:
    data = trajectory(question("first", "S1", 4.0), question("late", "S3", 5.5))
    whole, _ = walk(data, tmp_path / "a", Labour(), delivery="log")
    late = [a for a in asks_of(data) if a.candidate.id == "late"]
    walk(data, tmp_path / "b", Labour(), delivery="log", keep="last")
    resumed, sessions = walk(data, tmp_path / "b", Labour(), asks=late, delivery="log", keep="last")
    assert [s["session"] for s in sessions] == ["S3"]
    assert resumed["T", "late", "q"].timings == whole["T", "late", "q"].timings


def test_a_memory_kept_before_all_work_was_timed_is_made_again(tmp_path: Path) -> None:
    data = trajectory(question("late", "S3", 5.5))
    walk(data, tmp_path, Labour(), delivery="log", keep="last")
    (trunk,) = (tmp_path / "states").glob("*/*/trunk.json")
    text = trunk.read_text()
    assert '"spent_s"' in text
    trunk.write_text(text.replace('"spent_s"', '"observe_s"'))
    found, sessions = walk(data, tmp_path, Labour(), delivery="log", keep="last")
    assert [s["session"] for s in sessions] == ["S1", "S2", "S3"]
    assert found["T", "late", "q"].timings["session_end_s"] == 2 * END


@dataclass(kw_only=True)
class Talking(Labour):
    """Keeps the dialogue, speaks at once when a watch has lasted 2 s, and all that takes time."""

    watches: ClassVar[bool] = True
    notes_touch_state: ClassVar[bool] = False
    since: dict[str, float] = field(default_factory=dict, init=False)
    newest_s: float = field(default=0.0, init=False)

    def observe(self, clip: Clip) -> None:
        super().observe(clip)
        self.newest_s = clip.frames[-1].t_s if clip.frames else self.newest_s

    def watch(self, note: Note, key: str) -> str:
        self._do("watch", 8.0)
        self.since[key] = note.t_s
        return "Yes."

    def unwatch(self, key: str) -> None:
        self._do("unwatch", 16.0)
        del self.since[key]

    def alerts(self, t_s: float) -> tuple[Alert, ...]:
        self._do("alerts", 32.0)
        return tuple(
            Alert(k, "now", self.newest_s, t_s) for k, s in self.since.items() if t_s >= s + 2
        )

    def commit(self, query: Query, reply: Reply) -> None:
        self._do("commit", 64.0)


def test_what_a_dialogue_tells_and_hears_is_timed(tmp_path: Path) -> None:
    """A turn at 1.5 s, a watch at 3.5 s that speaks with the clip after it, a turn at 8 s."""
    turns = [
        Candidate(id=f"RTP-{t:g}", task="RTP", question="?",
                  probes=(Probe(id="P", session="S1", t_s=t),))
        for t in (1.5, 8.0)
    ]  # fmt: skip
    watch = Candidate(
        id="Pro-1", task="Pro", question="?", probes=(Probe(id="P", session="S1", t_s=3.5),),
        ideal=(Moment(session="S1", start_s=7.0, end_s=8.0),),
        registration=Registration(session="S1", t_s=3.5, text="Tell me."),
    )  # fmt: skip
    video = Trajectory(id="V", source="toy", sessions=(session(0),), candidates=(*turns, watch))
    records: list[tuple[str, Any]] = []
    (episode,) = episodes(STREAM_ARENA, video, asks_of(video))
    setting = Setting(STREAM_ARENA, prompts.load("arena"))
    Dialogue(
        Talking(), episode, setting, States(tmp_path, "none"), lambda k, r: records.append((k, r))
    ).run()
    found = {r.candidate: r for kind, r in records if kind == "responses"}
    assert {r.status for r in found.values()} == {"ok"}, [r.error for r in found.values()]
    (record,) = [r for kind, r in records if kind == "sessions"]
    log_s = {"watch": 8.0, "unwatch": 16.0, "commit": 64.0}
    assert found["RTP-1.5"].timings["notes_s"] == 0
    assert found["RTP-8"].timings["notes_s"] == sum(log_s.values())
    assert record["work_s"]["notes"] == sum(log_s.values()) + log_s["commit"]
    assert record["work_s"]["observe"] == 8 * FRAME + 32.0


# Seconds of kept replies


class Kept(Chat):
    """A model whose replies were kept: they come at once, and once took ten seconds."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.id, self.device, self.caveat = "kept", "", ""

    def complete(self, messages: Any, contract: Any, generation: Any) -> ChatReply:
        now = self.clock.now
        return ChatReply(
            "a text", ready_at=now, first_token_at=now + 4, done_at=now + 10, cached=True
        )


def test_a_kept_reply_costs_a_memory_what_it_once_took(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench_lib.messages import turn

    monkeypatch.setattr(turn, "time", clock)

    class Writing(Labour):
        def end_session(self, recorded_bytes: int) -> None:
            ask(Kept(clock), [], Contract("text"), Generation())

    found, _ = walk(trajectory(question("late", "S3", 5.5)), tmp_path, Writing())
    assert found["T", "late", "q"].timings["session_end_s"] == 20.0


def test_blocks_nest_and_seconds_of_other_threads_are_left_out(clock: Clock) -> None:
    from contextvars import copy_context
    from threading import Thread

    outer: dict[str, float] = {}
    inner: dict[str, float] = {"a": 1.0}
    with timing("x", outer):
        with timing("a", inner, outer):
            clock.now += 2
            passed(3)
            other = Thread(target=copy_context().run, args=(passed, 100.0))
            other.start()
            other.join()
        clock.now += 1
    passed(50)
    assert outer == {"a": 5.0, "x": 6.0}
    assert inner == {"a": 6.0}


def test_what_fails_is_timed_too(clock: Clock) -> None:
    spent: dict[str, float] = {}

    def failing() -> None:
        with timing("x", spent):
            clock.now += 2
            raise RuntimeError

    with pytest.raises(RuntimeError):
        failing()
    assert spent == {"x": 2.0}


@pytest.mark.parametrize(
    ("stretches", "limit", "merged"),
    [
        ([(0, 10), (2, 4)], 20, ((0, 10),)),
        ([(2, 4), (0, 3)], 20, ((0, 4),)),
        ([(0, 1), (1, 2)], 20, ((0, 2),)),
        ([(5, 9), (0, 1)], 7, ((0, 1), (5, 7))),
        ([(8, 9)], 7, ()),
    ],
)
def test_evidence_that_overlaps_is_fed_once(stretches: Any, limit: float, merged: Any) -> None:
    assert _merged(stretches, limit) == merged
