"""StreamArena's engine: one dialogue over a stream, and instructions to speak up."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from engine_runs import SETTING, asks_of
from synthetic import movie, session

from bench_lib import prompts
from bench_lib.benches.arena.scores import arena_instances
from bench_lib.engine.answer import Setting
from bench_lib.engine.conditions import episodes
from bench_lib.engine.dialogue import NOT_SUPPORTED, Dialogue
from bench_lib.engine.kept import States
from bench_lib.exchange import Alert, Generation, Note, Query, Reply
from bench_lib.memories.method import Method
from bench_lib.schema import CENSORED, Candidate, Moment, Probe, Registration, Response, Trajectory
from bench_lib.tasks import STREAM_ARENA
from bench_lib.video.stream import Clip, SessionInfo

ARENA = replace(SETTING, bench=STREAM_ARENA, prompts=prompts.load("arena"))


@dataclass(frozen=True)
class Heard:
    seen: tuple[str, ...] = ()
    newest_s: float = -1.0
    watches: tuple[tuple[str, float], ...] = ()
    said: tuple[Alert, ...] = ()


@dataclass(kw_only=True)
class Plain(Method):
    """Its reply is a digest of all that it was shown and told."""

    name: ClassVar[str] = "plain"
    clip_frames: int = 4
    log: list[str] = field(default_factory=list, init=False)

    def reset(self, trajectory_id: str, seed: int) -> None:
        self.state = Heard()

    def begin_session(self, info: SessionInfo) -> None:
        self.log.append("session")

    def observe(self, clip: Clip) -> None:
        seen = tuple(hashlib.sha256(f.pixels().tobytes()).hexdigest()[:8] for f in clip.frames)
        newest_s = clip.frames[-1].t_s if clip.frames else self.state.newest_s
        self.state = replace(self.state, seen=self.state.seen + seen, newest_s=newest_s)

    def respond(self, query: Query, generation: Generation) -> Reply:
        told = [note.text for note in query.notes]
        self.log.append(f"asked {query.text} at {query.cutoff_s:g}: {told}")
        digest = hashlib.sha256("|".join((*self.state.seen, query.text, *told)).encode())
        return Reply(digest.hexdigest()[:12], 0.0, 0.0, 0.0)


@dataclass(kw_only=True)
class Watching(Plain):
    """Speaks `after_s` seconds after each instruction, and keeps the dialogue in its memory."""

    name: ClassVar[str] = "watching"
    watches: ClassVar[bool] = True
    after_s: float = 3.0

    def watch(self, note: Note, key: str) -> str:
        self.log.append(f"watch {key} at {note.t_s:g}, seen {len(self.state.seen)}")
        self.state = replace(self.state, watches=(*self.state.watches, (key, note.t_s)))
        return "I will tell you."

    def unwatch(self, key: str) -> None:
        self.log.append(f"over {key}")
        left = tuple(w for w in self.state.watches if w[0] != key)
        self.state = replace(self.state, watches=left)

    def observe(self, clip: Clip) -> None:
        super().observe(clip)
        for frame in clip.frames:
            for key, since_s in self.state.watches:
                if frame.t_s >= since_s + self.after_s:
                    alert = Alert(key, f"now {key}", frame.t_s, frame.t_s + 0.5)
                    self.state = replace(self.state, said=(*self.state.said, alert))

    def alerts(self, t_s: float) -> tuple[Alert, ...]:
        return tuple(alert for alert in self.state.said if alert.delivered_s <= t_s)

    def commit(self, query: Query, reply: Reply) -> None:
        self.state = replace(self.state, seen=(*self.state.seen, query.text, reply.text))


def ask(number: int, t_s: float, task: str = "HR", due_s: float | None = None) -> Candidate:
    return Candidate(
        id=f"{task}-{number}",
        task=task,
        question=f"question {number}",
        ideal=(Moment(session="S001", start_s=due_s, end_s=due_s + 1),) if due_s else (),
        registration=Registration(session="S001", t_s=t_s, text=f"tell me {number}")
        if due_s
        else None,
        probes=(Probe(id="P1", session="S001", t_s=t_s),),
    )


ITEMS = (ask(1, 3.0, "RTP"), ask(2, 5.5, "Pro", 8.5), ask(3, 7.0), ask(4, 11.0, "Tool"))


def video(folder: Path, items: Iterable[Candidate] = ITEMS, seconds: float = 20, **how: Any) -> Any:
    path = movie(folder / "film.mp4", seconds, **how)
    return Trajectory(
        id="film", source="folder", sessions=(session(path, 0, seconds),), candidates=tuple(items)
    )


def walk(
    trajectory: Trajectory,
    method: Method,
    answered: Mapping[tuple[str, str], Response] | None = None,
    setting: Setting = ARENA,
) -> tuple[dict[str, Response], list[dict[str, Any]]]:
    [episode] = episodes(STREAM_ARENA, trajectory, asks_of(trajectory))
    records: list[tuple[str, Any]] = []
    Dialogue(
        method,
        episode,
        setting,
        States(Path("nowhere"), "none"),
        lambda kind, record: records.append((kind, record)),
        answered=answered or {},
    ).run()
    found = {r.candidate: r for kind, r in records if kind == "responses"}
    assert len(found) == sum(kind == "responses" for kind, _ in records)
    return found, [r for kind, r in records if kind == "sessions"]


def test_earlier_turns_are_part_of_the_next_question(tmp_path: Path) -> None:
    method = Plain()
    found, _ = walk(video(tmp_path), method)
    asked = [line for line in method.log if line.startswith("asked")]
    assert [line[:24] for line in asked] == [
        "asked question 1 at 3: [",
        "asked question 3 at 7: [",
        "asked question 4 at 11: ",
    ]
    assert "question" not in asked[0][16:]
    assert found["RTP-1"].raw_text in asked[1]
    assert found["RTP-1"].raw_text in asked[2]
    assert found["HR-3"].raw_text in asked[2]
    # An instruction that it cannot follow is no part of the dialogue.
    assert not any("tell me" in line for line in asked)
    assert (found["Pro-2"].status, found["Pro-2"].error) == ("refused", NOT_SUPPORTED)


def test_a_method_that_commits_keeps_the_dialogue_itself(tmp_path: Path) -> None:
    method = Watching()
    found, _ = walk(video(tmp_path), method)
    assert all(line.endswith(": []") for line in method.log if line.startswith("asked"))
    assert found["RTP-1"].raw_text in method.state.seen
    without = walk(video(tmp_path / "b", ITEMS[1:]), Watching())[0]
    assert without["HR-3"].raw_text != found["HR-3"].raw_text


def test_a_watch_is_told_at_its_instant_and_its_first_alert_counts(tmp_path: Path) -> None:
    method = Watching(after_s=3.0)
    found, _ = walk(video(tmp_path), method)
    # Six frames (0 to 5 s) and one committed turn of two texts.
    assert "watch Pro-2 at 5.5, seen 8" in method.log
    alert = found["Pro-2"]
    assert (alert.status, alert.text) == ("ok", "now Pro-2")
    assert (alert.timings["alert_s"], alert.timings["delivered_s"]) == (9.0, 9.5)
    assert method.log.count("over Pro-2") == 1
    rows = arena_instances([video(tmp_path / "b")], [alert], [], bench=STREAM_ARENA).rows
    assert rows.set_index("candidate").loc["Pro-2", "timing"] == "on time"


def test_what_is_said_at_once_is_the_acknowledgement(tmp_path: Path) -> None:
    items = (ask(2, 5.0, "Pro", 8.0),)

    class Hasty(Watching):
        def watch(self, note: Note, key: str) -> str:
            at_once = Alert(key, "yes", note.t_s, note.t_s)
            self.state = replace(self.state, said=(at_once,))
            return super().watch(note, key)

    found, _ = walk(video(tmp_path, items), Hasty(after_s=2.5))
    assert found["Pro-2"].timings["alert_s"] == 8.0


@pytest.mark.parametrize(("seconds", "status"), [(40.0, "ok"), (12.0, "ok"), (10.0, "error")])
def test_silence_is_an_answer_once_the_case_is_over(
    tmp_path: Path, seconds: float, status: str
) -> None:
    """Waiting ends 30 s after the due time, or with a video that lasts beyond the window."""
    items = (ask(2, 2.0, "Pro", 9.0),)
    method = Watching(after_s=1e9)
    found, sessions = walk(video(tmp_path, items, seconds), method)
    assert found["Pro-2"].status == status
    assert "alert_s" not in found["Pro-2"].timings
    assert found["Pro-2"].error == ("" if status == "ok" else CENSORED)
    assert method.log.count("over Pro-2") == 1
    assert sessions[0]["counters"]["frames_sampled"] == min(seconds, 40)


def test_nothing_is_decoded_when_nobody_waits_any_more(tmp_path: Path) -> None:
    items = (ask(2, 2.0, "Pro", 4.0),)
    _, sessions = walk(video(tmp_path, items, 60), Watching())
    assert sessions[0]["counters"]["frames_sampled"] <= 12


def test_neither_the_future_nor_the_key_reaches_a_method(tmp_path: Path) -> None:
    def told(trajectory: Trajectory) -> tuple[list[str], dict[str, str]]:
        method = Watching(after_s=1.0)
        found, _ = walk(trajectory, method)
        return method.log, {key: r.raw_text for key, r in found.items()}

    base = told(video(tmp_path / "a"))
    moved = tuple(
        c.model_copy(update={"ideal": (Moment(session="S001", start_s=9.5, end_s=10),)})
        if c.ideal
        else c
        for c in ITEMS
    )
    assert told(video(tmp_path / "b", moved)) == base
    changed = told(video(tmp_path / "c", changed_from_s=7.5))
    assert [changed[1][k] == base[1][k] for k in ("RTP-1", "HR-3", "Tool-4")] == [True, True, False]
    past = told(video(tmp_path / "d", changed_from_s=0.5))
    assert past[1]["RTP-1"] != base[1]["RTP-1"]


@pytest.mark.parametrize("make", [Plain, Watching])
@pytest.mark.parametrize("done", range(5))
def test_a_resumed_dialogue_goes_on_as_if_never_stopped(
    tmp_path: Path, make: Callable[[], Method], done: int
) -> None:
    trajectory = video(tmp_path)
    whole, _ = walk(trajectory, make())
    order = sorted(whole.values(), key=lambda r: r.timings.get("alert_s", r.cutoff_s))
    kept = {r.key: r for r in order[:done]}
    rest, _ = walk(trajectory, make(), kept)
    assert set(rest) == {r.candidate for r in order[done:]}
    assert {k: r.raw_text for k, r in rest.items()} == {k: whole[k].raw_text for k in rest}
    assert {k: r.timings.get("alert_s") for k, r in rest.items()} == {
        k: whole[k].timings.get("alert_s") for k in rest
    }


def test_a_method_that_cannot_fork_answers_on_the_trunk(tmp_path: Path) -> None:
    class Single(Plain):
        forks: ClassVar[bool] = False

    assert {k: r.raw_text for k, r in walk(video(tmp_path / "a"), Single())[0].items()} == {
        k: r.raw_text for k, r in walk(video(tmp_path / "b"), Plain())[0].items()
    }


def test_a_failing_turn_costs_itself_only(tmp_path: Path) -> None:
    class Moody(Watching):
        def respond(self, query: Query, generation: Generation) -> Reply:
            if "question 3" in query.text:
                raise RuntimeError("not now")
            return super().respond(query, generation)

        def watch(self, note: Note, key: str) -> str:
            raise RuntimeError("nor then")

    method = Moody()
    found, _ = walk(video(tmp_path), method)
    assert {k: r.status for k, r in found.items()} == {
        "RTP-1": "ok", "Pro-2": "error", "HR-3": "error", "Tool-4": "ok",
    }  # fmt: skip
    assert "nor then" in found["Pro-2"].error
    assert "question 3" not in method.state.seen


def test_a_damaged_video_costs_its_own_questions(tmp_path: Path) -> None:
    trajectory = video(tmp_path)
    path = Path(trajectory.sessions[0].spans[0].file)
    path.write_bytes(path.read_bytes()[:200])
    found, _ = walk(trajectory, Watching())
    assert {r.status for r in found.values()} == {"error"}
    assert len(found) == len(ITEMS)
