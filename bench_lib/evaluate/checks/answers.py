"""Checks of how a method is made and what it answers."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import get_args

from bench_lib import methods
from bench_lib.errors import BenchError
from bench_lib.evaluate.checks.demand import Broken, check, expect, held, same
from bench_lib.evaluate.checks.trial import Trial, Viewing
from bench_lib.exchange import InputClass, Reply
from bench_lib.measure import counting

# Making one ---------------------------------------------------------------------------------------


@check()
def every_field_has_a_default(make: Trial) -> None:
    """Each hyper-parameter has a default, so that `-p method NAME` is enough."""
    bare = [
        f.name
        for f in fields(methods.find(make.name))
        if f.init and f.default is MISSING and f.default_factory is MISSING
    ]
    expect(not bare, f"no default: {', '.join(bare)}")


@check()
def making_one_does_no_work(make: Trial) -> None:
    """The constructor stores its arguments: no model, no state, no work."""
    with counting() as counts:
        method = methods.load(make.name, **make.args)
    expect(method.state is None, "there is a state before reset")
    expect(method.served is None, "there is a model before attach")
    expect(not any(counts.values()), f"the constructor counted work: {dict(counts)}")


@check()
def it_says_what_it_is(make: Trial) -> None:
    """Input class, kind of model and the flags are declared with values that are known."""
    method = make()
    expect(method.input_class in get_args(InputClass), f"input_class {method.input_class!r}")
    expect(method.model in ("none", "backbone", "chat"), f"model {method.model!r}")
    for flag in ("persistent", "bounded", "notes_touch_state", "needs_weights", "forks", "sees"):
        expect(isinstance(getattr(method, flag), bool), f"{flag} must be True or False")
    expect(method.fps > 0, f"fps {method.fps} must be above 0")
    expect(method.clip_frames >= 1, f"clip_frames {method.clip_frames} must be 1 or more")
    expect(bool(type(method).__doc__), "the class has no docstring")


@check()
def a_wrong_parameter_is_refused(make: Trial) -> None:
    """An unknown argument is an error that names the nearest right one."""
    right = methods.parameters(methods.find(make.name))[0]
    try:
        methods.load(make.name, **{f"{right}x": 1})
    except BenchError as error:
        expect(repr(right) in str(error), f"the error does not name {right!r}: {error}")
    else:
        raise Broken(f"{right}x was taken")


# Answers ------------------------------------------------------------------------------------------


@check()
def the_same_stream_gives_the_same_answer(make: Trial) -> None:
    """Two objects that see the same stream give the same text and logits."""
    one, two = (Viewing.of(make, 9, 4) for _ in range(2))
    for view in (one, two):
        view.session(6)
    expect(same(one.ask(), two.ask()), "two answers to one stream differ")
    expect(held(one) == held(two), f"two sizes after one stream: {held(one)}, {held(two)}")


@check()
def reset_forgets(make: Trial) -> None:
    """After `reset` nothing is left of what was seen before."""
    used, fresh = Viewing.of(make, 9, 4), Viewing.of(make)
    used.session(5, seed=7)
    used.method.reset("T001", 42)
    used.index = -1
    for view in (used, fresh):
        view.session(6)
    expect(same(used.ask(), fresh.ask()), "what was seen before the reset changes an answer")
    expect(held(used) == held(fresh), f"sizes differ: {held(used)}, fresh {held(fresh)}")


@check()
def asking_twice_gives_the_same(make: Trial) -> None:
    """A question changes nothing: asked again, it gets the same answer."""
    view = Viewing.of(make, 9)
    view.session(6)
    expect(same(view.ask(), view.ask()), "the second answer differs")


@check()
def the_order_of_probes_does_not_matter(make: Trial) -> None:
    """Independent questions get the same answers in either order."""
    texts = ("Where is the red cup?", "What is on the table?", "Who was here?")
    one, two = (Viewing.of(make, 9) for _ in range(2))
    for view in (one, two):
        view.session(6)
    forth = [one.ask(text) for text in texts]
    back = [two.ask(text) for text in reversed(texts)][::-1]
    expect(all(map(same, forth, back)), "an answer depends on what was asked before it")


@check("methods that fork", lambda m: m.forks)
def a_branch_leaves_no_trace(make: Trial) -> None:
    """What branches observe and answer leaves the trunk as if they had never been."""
    plain, branched = (Viewing.of(make, 9) for _ in range(2))
    for view in (plain, branched):
        view.session(8)
    before = held(branched)
    others = [branched.branch() for _ in range(3)]
    for seed, other in enumerate(others, 50):
        other.show(8, 13, seed=seed)
        other.ask()
    others[0].end()
    expect(held(branched) == before, f"its size went from {before} to {held(branched)}")
    for view in (plain, branched):
        view.show(8, 12)
    expect(same(plain.ask(), branched.ask()), "a branch changed an answer of the trunk")


@check("methods that fork", lambda m: m.forks)
def later_frames_change_nothing(make: Trial) -> None:
    """A branch answers as of its own place, whatever the trunk sees meanwhile."""
    replies = []
    for changed in (None, 8):
        view = Viewing.of(make, 9)
        view.session(8, changed_from=changed)
        place = view.branch()
        view.show(8, 24, changed_from=changed)
        view.end()
        view.session(5, seed=90 if changed else 91)
        replies.append(place.ask())
    expect(same(*replies), "a later frame changed an answer")


@check("methods that look at the video", lambda m: m.sees)
def the_newest_frame_is_seen(make: Trial) -> None:
    """The control: where the newest frame differs, so does the answer."""
    replies = []
    for changed in (None, 5):
        view = Viewing.of(make, 9)
        view.session(6, changed_from=changed)
        replies.append(view.ask())
    expect(not same(*replies), "the answer does not depend on the newest frame")


@check("persistent methods that look at the video", lambda m: m.sees and m.persistent)
def the_last_session_is_remembered(make: Trial) -> None:
    """The control: where the session before differs, so does the answer."""
    expect(not same(*_after_two_pasts(make)), "the answer does not depend on the last session")


@check("methods that keep nothing over sessions", lambda m: not m.persistent)
def the_last_session_is_forgotten(make: Trial) -> None:
    """What calls itself not persistent answers the same whatever the session before was."""
    expect(same(*_after_two_pasts(make)), "the answer depends on the session before")


def _after_two_pasts(make: Trial) -> list[Reply]:
    replies = []
    for seed in (0, 70):
        view = Viewing.of(make)
        view.session(9, seed=seed)
        view.end()
        view.session(3)
        replies.append(view.ask())
    return replies
