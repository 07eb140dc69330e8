"""StreamForest's memory: newest frames whole, recent ones thinner, older ones as merged events.

Arrays of a frame are tokens `[n, d]`; see `tome` for `hidden` and `heads`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bench_lib.measure import count
from bench_lib.memories.parts import tome
from bench_lib.state.walk import part

BATCH = 64
"""Frames thinned at once: bounds memory."""


@dataclass(frozen=True)
class Plan:
    """How a forest grows; see `streamforest.Streamforest` for the names and their origin."""

    newest_frames: int
    short_frames: int
    whole_tokens: int
    short_tokens: int
    event_window: int
    frame_tokens: int
    quota: int
    weights: tuple[float, float, float]
    heads: int
    hidden: int


@dataclass(frozen=True)
class Look:
    """A frame: its number in the stream, its session, its tokens `[n, d]`."""

    number: int
    session: int
    tokens: Tensor = part("features")


@dataclass(frozen=True)
class Event:
    """Merged frames.

    Attributes:
        tokens: `[frames * frame_tokens, d]`.
        frames: How many frames' worth of tokens it holds.
        time: Mean number of its frames, each once.
        merges: Events that went into it.
        sessions: Sessions of its first and its last frame.
    """

    tokens: Tensor = part("features")
    frames: int = 0
    time: float = 0.0
    merges: int = 1
    sessions: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Forest:
    """Everything in time order.

    Attributes:
        events: Long memory.
        alike: Likeness of each event and the next.
        short: Recent frames, thinned.
        newest: The newest frames as they came.
        steps: Cosine of each frame of `short` and `newest` with the next.
        passed: Frames that are in events.
    """

    events: tuple[Event, ...] = ()
    alike: tuple[float, ...] = ()
    short: tuple[Look, ...] = ()
    newest: tuple[Look, ...] = ()
    steps: tuple[float, ...] = ()
    passed: int = 0


def added(forest: Forest, look: Look, plan: Plan) -> Forest:
    """The forest with one more frame, before anything is thinned or merged."""
    if not forest.newest:
        return replace(forest, newest=(look,))
    a, b = (x.tokens[:, : plan.hidden].flatten().float() for x in (forest.newest[-1], look))
    step = float(F.cosine_similarity(a, b, dim=0))
    return replace(forest, newest=(*forest.newest, look), steps=(*forest.steps, step))


def settled(forest: Forest, plan: Plan) -> Forest:
    """The forest after its three updates: frames thinned, events cut, events merged."""
    return _within_quota(_cut(_thinned(forest, plan), plan), plan)


def tokens(forest: Forest, plan: Plan) -> list[Tensor]:
    """All tokens `[n, d]` in the order in which they are read: events, short, newest."""
    newest = [
        tome.merged(look.tokens[None], plan.whole_tokens, plan.heads, plan.hidden)[0]
        for look in forest.newest
    ]
    return [*(e.tokens for e in forest.events), *(look.tokens for look in forest.short), *newest]


def _thinned(forest: Forest, plan: Plan) -> Forest:
    """Frames that are no longer among the newest keep `short_tokens`."""
    old = forest.newest[: -plan.newest_frames]
    thin: list[Look] = []
    for start in range(0, len(old), BATCH):
        run = old[start : start + BATCH]
        whole = torch.stack([look.tokens for look in run])
        whole = tome.merged(whole, plan.whole_tokens, plan.heads, plan.hidden)
        few = tome.merged(whole, plan.short_tokens, plan.heads, plan.hidden)
        count("tokens_merged", len(run) * (run[0].tokens.shape[0] - few.shape[1]))
        thin += [replace(x, tokens=few[i].clone()) for i, x in enumerate(run)]
    return replace(forest, newest=forest.newest[len(old) :], short=(*forest.short, *thin))


def _cut(forest: Forest, plan: Plan) -> Forest:
    """Events are cut from a full short memory at the sharpest of its first steps."""
    while len(forest.short) >= plan.short_frames + plan.event_window:
        length = int(np.argmin(forest.steps[: plan.event_window])) + 1
        frames = forest.short[:length]
        whole = torch.cat([look.tokens for look in frames])
        few = tome.merged(whole[None], length * plan.frame_tokens, plan.heads, plan.hidden)[
            0
        ].clone()
        count("tokens_merged", len(whole) - len(few))
        event = Event(
            few,
            length,
            forest.passed + (length - 1) / 2,
            sessions=(frames[0].session, frames[-1].session),
        )
        alike = forest.alike
        if forest.events:
            alike = (*alike, _likeness(forest.events[-1], event, plan))
        forest = replace(
            forest,
            events=(*forest.events, event),
            alike=alike,
            short=forest.short[length:],
            steps=forest.steps[length:],
            passed=forest.passed + length,
        )
    return forest


def _within_quota(forest: Forest, plan: Plan) -> Forest:
    """Neighbouring events are merged, the cheapest pair first, until the quota holds."""
    while len(forest.events) > 1 and sum(len(e.tokens) for e in forest.events) > plan.quota:
        now = forest.passed - 1 + len(forest.short) + len(forest.newest)
        at = int(np.argmin(penalties(forest.events, forest.alike, now, plan.weights)))
        events, alike = list(forest.events), list(forest.alike)
        events[at : at + 2] = [_joined(events[at], events[at + 1], plan)]
        del alike[at]
        for pair in (at - 1, at):
            if 0 <= pair < len(events) - 1:
                alike[pair] = _likeness(events[pair], events[pair + 1], plan)
        count("events_merged")
        forest = replace(forest, events=tuple(events), alike=tuple(alike))
    return forest


def penalties(
    events: Sequence[Event],
    alike: Sequence[float],
    now: int,
    weights: tuple[float, float, float],
) -> list[float]:
    """What merging each event with the next would cost: unlike, recent and often merged ones more.

    `now` is the number of the newest frame.
    """
    times = [(a.time + b.time) / 2 for a, b in pairwise(events)]
    merges = [(a.merges + b.merges) / 2 for a, b in pairwise(events)]
    unlike, recent, merged = weights
    return [
        unlike * (1 - alike[i]) + recent * (times[i] / now) + merged * (n / max(merges) + 1e-6)
        for i, n in enumerate(merges)
    ]


def _joined(a: Event, b: Event, plan: Plan) -> Event:
    frames = -(-(a.frames + b.frames) // 2)
    whole = torch.cat((a.tokens, b.tokens))
    few = tome.merged(whole[None], frames * plan.frame_tokens, plan.heads, plan.hidden)[0].clone()
    count("tokens_merged", len(whole) - len(few))
    return Event(
        few,
        frames,
        (a.time * a.frames + b.time * b.frames) / (a.frames + b.frames),
        a.merges + b.merges,
        (a.sessions[0], b.sessions[1]),
    )


def _likeness(a: Event, b: Event, plan: Plan) -> float:
    gone = len(a.tokens) + len(b.tokens) - -(-(a.frames + b.frames) // 2) * plan.frame_tokens
    return tome.likeness(a.tokens, b.tokens, gone, plan.heads, plan.hidden)
