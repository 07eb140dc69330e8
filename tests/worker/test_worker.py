"""Methods in processes of their own: what they are sent, how they fail, that they end."""

from __future__ import annotations

import gc
import os
import re
import sys
import time
from pathlib import Path

import pytest
from scripted import SIZE, ask, clip

from bench_lib import methods
from bench_lib.errors import BenchError
from bench_lib.exchange import Generation, Note, Query, Refused
from bench_lib.measure import counting
from bench_lib.video.stream import Clip, SessionInfo
from bench_lib.worker import reference
from bench_lib.worker.process import WorkerError

REFERENCE = Path(reference.__file__)
FAULTY = f"""
import sys, time
sys.path.insert(0, {str(REFERENCE.parent)!r})
import reference
class Faulty(reference.Worker):
    def respond(self, request):
        how = request["query"]["text"]
        print("asked", how, file=sys.stderr, flush=True)
        if how == "crash":
            sys.exit(3)
        if how == "hang":
            time.sleep(60)
        if how == "garbage":
            sys.__stdout__.write("Loading weights... 100%\\n")
            sys.__stdout__.flush()
        if how == "refuse":
            raise reference.Refused("not for me")
        if how == "error":
            raise ValueError("no such tensor")
        return super().respond(request)
reference.main(Faulty())
"""


def begun(**args):
    method = methods.load("worker", **args)
    method.reset("T", 42)
    method.begin_session(SessionInfo("S1", 0, None, SIZE))
    return method


def faulty(tmp_path: Path, **args):
    path = tmp_path / "faulty.py"
    path.write_text(FAULTY)
    method = begun(command=[sys.executable, str(path)], **args)
    method.observe(clip(0))
    return method


def gone(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("media", ["inline", "file"])
@pytest.mark.parametrize("image", ["jpeg", "png"])
def test_frames_captions_and_sound_reach_it_in_every_form(media: str, image: str) -> None:
    """Each of them changes the answer; the same stream gives the same one."""

    def answer(*clips: Clip) -> str:
        method = begun(media=media, image=image)
        for each in clips:
            method.observe(each)
        return ask(method)

    plain = answer(clip(0))
    found = {answer(clip(0, said="a bell")), answer(clip(0, sound=True)), answer(clip(1)), plain}
    assert len(found) == 4
    assert answer(clip(0)) == plain
    assert plain.startswith("2 frames")


def test_what_it_is_comes_from_itself() -> None:
    method = methods.load("worker")
    assert (method.input_class, method.watches, method.forks) == ("incremental", True, True)
    assert "means nothing" in method.caveat or "mean nothing" in method.caveat
    can = {"proactive": False, "forks": False, "input_class": "thinned", "causal": False}
    other = methods.load("worker", settings={"can": can})
    traits = other.watches, other.forks, other.input_class, other.causal
    assert traits == (False, False, "thinned", False)
    with pytest.raises(Refused, match="cannot speak"):
        begun(settings={"can": can}).watch(Note(0, 1.0, "Tell me"), "w")
    with pytest.raises(Refused, match="answers no questions"):
        ask(begun(settings={"can": {"reactive": False}}))


@pytest.mark.parametrize(
    ("can", "said"),
    [({"proactve": True}, "did you mean 'proactive'"), ({"causal": "yes"}, "can.causal is 'yes'")],
)
def test_a_wrong_introduction_is_named(can: dict, said: str) -> None:
    with pytest.raises(BenchError, match=said):
        methods.load("worker", settings={"can": can}).watches  # noqa: B018 - the property asks


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ({"alerts": {"key": "w"}}, "alerts must be a list"),
        ({"alerts": [{"key": "w"}]}, "alert must be {key, text, observed_s, delivered_s}"),
        ({"counters": {"frames": 1.5}}, "counter 'frames' must be a whole number"),
    ],
)
def test_a_reply_that_is_wrong_is_named(tmp_path: Path, reply: dict, said: str) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(
        FAULTY.replace(
            "reference.main",
            f"""
Faulty.observe = lambda self, request: {reply!r}
reference.main""",
        )
    )
    method = begun(command=[sys.executable, str(path)])
    with pytest.raises(BenchError, match=re.escape(said)):
        method.observe(clip(0))


def test_a_branch_is_its_own_and_the_trunk_goes_on() -> None:
    method, other = begun(), begun()
    for each in (method, other):
        each.observe(clip(0))
    branch = method.branch()
    branch.observe(clip(2, 1))
    assert ask(branch) != ask(method)
    assert ask(method) == ask(other)


def test_a_watch_speaks_when_it_is_due_and_not_after_it_is_over() -> None:
    method = begun()
    method.observe(clip(0, said="a bell rings"))
    assert method.watch(Note(0, 1.0, "Tell me when you hear a bell."), "w") == "I am listening."
    method.observe(clip(2, said="it rains"))
    assert method.alerts(3.0) == ()
    method.observe(clip(4, said="the bell again"))
    [alert] = method.alerts(5.0)
    assert (alert.key, alert.text, alert.observed_s) == ("w", "the bell again", 5.0)
    assert method.alerts(4.9) == ()
    method.unwatch("w")
    method.observe(clip(6, said="a bell for the last time"))
    assert len(method.alerts(7.0)) == 1


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("crash", r"ended \(exit code 3\) at respond; its last words:\n(?s:.*)asked crash"),
        ("hang", r"no reply to respond within 3 s; its last words:\n(?s:.*)asked hang"),
        ("garbage", r"no reply to respond: 'Loading weights... 100%'"),
        ("error", "failed at respond: ValueError: no such tensor"),
    ],
)
def test_a_failure_is_that_of_its_question_alone(tmp_path: Path, how: str, said: str) -> None:
    method = faulty(tmp_path, timeout_s=3.0)
    before = ask(method)
    with pytest.raises(WorkerError, match=said):
        ask(method, how)
    assert method.trunk.started == 1
    assert ask(method) == before
    assert method.trunk.started == (1 if how == "error" else 2)


def test_a_branch_of_a_process_that_ended_is_lost_and_says_so(tmp_path: Path) -> None:
    method = faulty(tmp_path)
    branch = method.branch()
    with pytest.raises(WorkerError, match="exit code 3"):
        ask(method, "crash")
    with pytest.raises(WorkerError, match="ended while this question was open"):
        branch.respond(Query("What now?", 0, 9.0), Generation())


def test_a_refusal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="not for me"):
        ask(faulty(tmp_path), "refuse")


def test_what_cannot_be_started_says_so() -> None:
    with pytest.raises(WorkerError, match="cannot be started"):
        begun(command=["/nowhere/python", "x.py"])
    with pytest.raises(WorkerError, match=r"exit code 2(?s:.*)can't open file"):
        begun(command=[sys.executable, "/nowhere/x.py"]).observe(clip(0))


def test_its_process_ends_with_the_trunk_and_what_it_started_with_it(tmp_path: Path) -> None:
    method = faulty(tmp_path)
    pid, folder = method.trunk.pid, method.trunk.folder
    branch = method.branch()
    del method
    gc.collect()
    assert branch.respond(Query("What now?", 0, 9.0), Generation()).text
    del branch
    gc.collect()
    assert gone(pid)
    assert not folder.exists()


def test_branches_that_nobody_holds_are_dropped() -> None:
    method = begun()
    for _ in range(3):
        ask(method)
    gc.collect()
    assert len(method.trunk.dropped) == 1  # the others went with the questions after them


@pytest.mark.parametrize("saves", [True, False])
def test_a_saved_memory_goes_on_whoever_saves_it(tmp_path: Path, saves: bool) -> None:
    args = {"settings": {"can": {"saves": saves}}}
    method = begun(**args)
    method.observe(clip(0, said="a bell"))
    method.end_session(0)
    method.save(tmp_path / "state")
    again = methods.load("worker", **args)
    again.load(tmp_path / "state")
    for each in (method, again):
        each.begin_session(SessionInfo("S2", 1, None, SIZE))
        each.observe(clip(0, 1))
    assert ask(again) == ask(method)
    assert (tmp_path / "state" / "worker" / "memory.json").exists() == saves


def test_its_work_is_counted() -> None:
    method = begun()
    with counting() as counts:
        method.observe(clip(0))
        ask(method)
    work = {"frames_observed": 2, "frames_sent": 2, "frames_encoded": 2, "model_calls": 1}
    assert counts == work
