"""Checks of methods that can be told to speak up."""

from __future__ import annotations

from bench_lib.evaluate.checks.demand import check, expect
from bench_lib.evaluate.checks.trial import Trial, Viewing
from bench_lib.exchange import Note
from bench_lib.memories.method import Method


def _watches(method: Method) -> bool:
    return method.watches


def _told(make: Trial) -> Viewing:
    """A method in a session of six frames that was told of two watches after them."""
    view = Viewing.of(make)
    view.session(6)
    for key in ("one", "two"):
        said = view.method.watch(Note(view.index, view.t_s, f"Tell me when {key} comes."), key)
        expect(isinstance(said, str), f"the acknowledgement is {said!r}, not a text")
    return view


@check("methods that watch", _watches)
def alerts_are_causal(make: Trial) -> None:
    """An alert names its watch, is delivered after it was observed, and comes when it is due."""
    view = _told(make)
    told_s = view.t_s
    view.show(6, 40)
    found = view.method.alerts(view.t_s)
    for alert in found:
        expect(alert.key in ("one", "two"), f"an alert names the watch {alert.key!r}")
        expect(bool(alert.text.strip()), "an alert says nothing")
        expect(
            told_s <= alert.observed_s <= alert.delivered_s <= view.t_s,
            f"told at {told_s}, observed at {alert.observed_s}, delivered at {alert.delivered_s}",
        )
    order = [alert.delivered_s for alert in found]
    expect(order == sorted(order), f"alerts are not in order of delivery: {order}")
    half = (told_s + view.t_s) / 2
    due = tuple(alert for alert in found if alert.delivered_s <= half)
    expect(view.method.alerts(half) == due, "what is delivered later is given away early")


@check("methods that watch", _watches)
def a_watch_that_is_over_is_silent(make: Trial) -> None:
    """After `unwatch` nothing is said for a watch; the other one goes on as it would have."""
    both, one = _told(make), _told(make)
    one.method.unwatch("two")
    for view in (both, one):
        view.show(6, 40)
    said, alone = (view.method.alerts(view.t_s) for view in (both, one))
    expect(not [a for a in alone if a.key == "two"], "it speaks for a watch that is over")
    expect(
        [a for a in said if a.key == "one"] == list(alone),
        "what is said for one watch depends on another",
    )


@check("methods that watch", _watches)
def what_is_to_come_is_not_told(make: Trial) -> None:
    """What is said by an instant is the same whatever comes after it."""
    plain, changed = _told(make), _told(make)
    plain.show(6, 40)
    changed.show(6, 40, changed_from=24)
    until_s = 23 / plain.method.fps
    found = [view.method.alerts(until_s) for view in (plain, changed)]
    expect(found[0] == found[1], "a later frame changed an alert")
