"""Checks of what a method keeps, what it works, and how it bears odd streams."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench_lib.evaluate.checks import trial as trials
from bench_lib.evaluate.checks.demand import Broken, check, expect, held, same
from bench_lib.evaluate.checks.trial import Trial, Viewing
from bench_lib.measure import counting
from bench_lib.memories.method import Method
from bench_lib.state.walk import KINDS, nbytes

LONG = 10
"""How many times longer the stream is on which a bounded memory must not have grown."""
SLACK = 1.25
"""What a bounded memory may weigh on it, relative to the short stream."""


# Saved -------------------------------------------------------------------------------------------


@check()
def a_saved_memory_answers_the_same(make: Trial) -> None:
    """Saved between sessions and loaded into a new object, it weighs and answers the same."""
    view = Viewing.of(make, 9, 4)
    with tempfile.TemporaryDirectory() as folder:
        trials.keep(make, view, Path(folder))
        restored = trials.loaded(Path(folder))
        expect(held(restored) == held(view), f"{held(view)} saved, {held(restored)} loaded")
        expect(
            same(trials.goes_on(restored), trials.goes_on(view)),
            "the loaded memory answers otherwise",
        )


@check()
def a_new_process_answers_the_same(make: Trial) -> None:
    """Saved, and loaded by a process of its own, it gives the same text and logits."""
    with tempfile.TemporaryDirectory() as folder:
        [problem] = in_new_process([(make, Path(folder))])
    expect(not problem, problem)


def in_new_process(kept: Sequence[tuple[Trial, Path]]) -> list[str]:
    """What is wrong with the memory of each trial in one new process; empty where nothing is.

    Each folder is empty and takes the saved memory.
    """
    expected = []
    for make, folder in kept:
        view = Viewing.of(make, 9, 4)
        trials.keep(make, view, folder)
        before = held(view)
        expected.append((before, trials.fingerprint_of(trials.goes_on(view))))
    found = trials.elsewhere([folder for _, folder in kept])
    problems = []
    for (before, reply), there in zip(expected, found, strict=True):
        problem = there.get("error", "")
        if not problem and there["bytes"] != before:
            problem = f"{before} here, {there['bytes']} in the new process"
        elif not problem and there["reply"] != reply:
            problem = "the new process answers otherwise"
        problems.append(problem)
    return problems


@check()
def sizes_are_given_by_kind(make: Trial) -> None:
    """`state_bytes` names known kinds and whole numbers, and kept tokens are no more than seen."""
    view = Viewing.of(make, 9)
    view.session(6)
    for kind, size in view.method.state_bytes().items():
        expect(kind in KINDS, f"unknown kind {kind!r}; known: {', '.join(KINDS)}")
        expect(isinstance(size, int) and size >= 0, f"{kind} is {size!r}")
    kept, seen = view.method.tokens()
    expect(0 <= kept <= seen, f"{kept} tokens kept of {seen} seen")


@check()
def no_tensor_hides_a_larger_one(make: Trial) -> None:
    """No tensor of the state is a view that keeps a larger one alive, at any moment."""
    view = Viewing.of(make)
    for frames in (7, 12):
        view.session(frames)
        _weighed(view.method)
        asked = view.branch()
        asked.show(frames, frames + 3)
        asked.ask()
        _weighed(asked.method)
        view.end()
        _weighed(view.method)
    with tempfile.TemporaryDirectory() as folder:
        trials.keep(make, view, Path(folder))
        _weighed(trials.loaded(Path(folder)).method)


def _weighed(method: Method) -> None:
    """Weigh the state itself: a method may count otherwise in its own `state_bytes`."""
    try:
        nbytes(method.state)
    except AssertionError as error:
        raise Broken(str(error)) from None


@check("bounded methods", lambda m: m.bounded)
def it_stays_bounded(make: Trial) -> None:
    """On a stream ten times longer its largest size is (within a quarter) the same."""
    peaks = []
    for times in (1, LONG):
        view, sizes = Viewing.of(make), []
        for _ in range(2):
            view.begin()
            for start in range(0, 12 * times, 4):
                view.show(start, start + 4)
                sizes.append(sum(held(view).values()))
            view.end()
        peaks.append(max(sizes))
    short, long = peaks
    expect(
        long <= short * SLACK + 256,
        f"{short:,} bytes on a short stream, {long:,} on one {LONG} times longer",
    )


@check()
def work_is_that_of_its_input_class(make: Trial) -> None:
    """Frames are worked on as the declared input class says.

    Incremental: the work of a session and of a question does not grow with what came before.
    Window: observing works on no frame, a question's work does not grow. Thinned: observing works
    on each frame once at most, a question on no more than `max_frames`.
    """
    view = Viewing.of(make)
    kind, limit = view.method.input_class, getattr(view.method, "max_frames", None)
    sessions, questions = [], []
    for _ in range(4):
        with counting() as watched:
            view.session(12)
        with counting() as asked:
            view.ask()
        with counting() as ended:
            view.end()
        worked, most = _frames(watched), 12 if kind == "thinned" else 0
        if kind != "incremental":
            expect(worked <= most, f"{kind}: observing 12 frames worked on {worked} frames")
        sessions.append(_frames(watched) + _frames(ended))
        questions.append(_frames(asked))
    if kind == "thinned" and limit:
        most = max(questions)
        expect(most <= limit, f"a question worked on {most} frames of at most {limit}")
    else:
        expect(questions[3] <= questions[1], f"questions worked on ever more frames: {questions}")
    expect(sessions[3] <= sessions[1], f"sessions worked on ever more frames: {sessions}")
    if kind == "incremental" and view.method.sees:
        expect(sessions[0] > 0, "an incremental method must work while it observes")


def _frames(counts: Mapping[str, int]) -> int:
    """Frames worked on: encoded by a local model, or sent to a message model."""
    return max(counts.get("frames_encoded", 0), counts.get("frames_sent", 0))


# Odd streams --------------------------------------------------------------------------------------


@check()
def one_frame_is_enough(make: Trial) -> None:
    """A session of a single frame can be asked about, ended and followed."""
    view = Viewing.of(make)
    view.session(1)
    _answers(view)
    view.end()
    view.session(1)
    _answers(view)


@check()
def an_empty_session_does_no_harm(make: Trial) -> None:
    """A session without a frame can be asked about, ended, saved and followed."""
    view = Viewing.of(make, 0)
    view.begin()
    _answers(view)
    view.end()
    with tempfile.TemporaryDirectory() as folder:
        trials.keep(make, view, Path(folder))
        view = trials.loaded(Path(folder))
    view.session(5)
    _answers(view)


@check()
def a_long_session_does_no_harm(make: Trial) -> None:
    """A session longer than every window of the method can be asked about and followed."""
    view = Viewing.of(make)
    view.session(60)
    _answers(view)
    view.end()
    view.session(3)
    _answers(view)


def _answers(view: Viewing) -> None:
    reply = view.ask()
    expect(isinstance(reply.text, str), f"the reply's text is {reply.text!r}")
    expect(
        reply.ready_at <= reply.first_token_at <= reply.done_at,
        "a reply is ready, then has a first token, then is done",
    )
