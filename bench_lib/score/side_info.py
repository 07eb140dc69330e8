"""What is known at a probe without its video: times, texts, what was said, a glance.

Only what a method may know by then counts: nothing of later probes, captions or sessions. Columns
are `group:name`; `decisions` has one row per adaptive probe, `choices` one per option of each
multiple-choice probe and of ERA's.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bench_lib.schema import Candidate, Probe, Trajectory
from bench_lib.tasks import Bench

KEYS = ["trajectory", "task", "candidate", "probe", "option", "right"]
GROUPS = ("time", "glance", "said", "text", "word", "option")
"""Groups of columns: when, what stands out in the newest frame, captions, texts, options."""
NEVER_S = 1e7
"""Stands for "not yet", later than any distance in time."""
DAY_S = 86_400
_WORDS = 100
"""How many words of a task's texts have a column, the commonest first."""
_COMMON = 0.25
"""A word of more captions than this share says nothing about any of them."""


def decisions(trajectories: Iterable[Trajectory], bench: Bench) -> pd.DataFrame:
    """Rows of adaptive probes with a polarity; `right` is whether it is time to speak."""
    rows = []
    for trajectory in trajectories:
        past = _Past(trajectory)
        for candidate, probe in _probes(trajectory):
            if probe.polarity is None:
                continue
            words = _told(candidate)
            rows.append(
                {
                    **_key(trajectory, candidate, probe, "", probe.polarity == "positive"),
                    **past.times(candidate, probe, held=bench.task(candidate.task).adaptive),
                    **past.said(probe, words),
                    **{f"glance:{k}={v}": 1.0 for k, v in probe.glance.items()},
                    "text:length": float(sum(words.values())),
                    "words": set(words),
                }
            )
    return _table(rows)


def choices(trajectories: Iterable[Trajectory], bench: Bench) -> pd.DataFrame:
    """Rows of options; `right` is whether the option is the key."""
    rows = []
    for trajectory in trajectories:
        past = _Past(trajectory)
        for candidate, probe in _probes(trajectory):
            if candidate.answer is None or "choice" not in bench.task(candidate.task).reply:
                continue
            times = past.times(candidate, probe, held=False)
            for option, known in zip(
                candidate.options, _compared(candidate, probe, past), strict=True
            ):
                right = option.id == candidate.answer
                rows.append(
                    {**_key(trajectory, candidate, probe, option.id, right), **times, **known}
                )
    return _table(rows)


def _probes(trajectory: Trajectory) -> Iterator[tuple[Candidate, Probe]]:
    for candidate in trajectory.candidates:
        for probe in candidate.probes:
            yield candidate, probe


def _key(t: Trajectory, c: Candidate, p: Probe, option: str, right: bool) -> dict[str, object]:
    return dict(zip(KEYS, (t.id, c.task, c.id, p.id, option, right), strict=True))


def _told(candidate: Candidate) -> Counter[str]:
    """The words that a candidate has put to the method before its probe."""
    said = candidate.registration.text if candidate.registration else ""
    return Counter(
        tokens(" ".join((said, candidate.question, *(o.text for o in candidate.options))))
    )


def tokens(text: str) -> list[str]:
    """Words in lower case."""
    return re.findall(r"\w+", text.lower())


class _Past:
    """The times and captions of one trajectory."""

    def __init__(self, trajectory: Trajectory) -> None:
        order = sorted(trajectory.sessions, key=lambda session: session.index)
        self.place = {session.id: at for at, session in enumerate(order)}
        self.start: dict[str, float] = {}
        elapsed = 0.0
        for session in order:
            wall = session.wall_start_s
            self.start[session.id] = elapsed if wall is None else wall
            elapsed = self.start[session.id] + session.duration_s
        spoken = [(self.place[s.id], c.end_s, s.id, c.text) for s in order for c in s.captions]
        spoken.sort(key=lambda one: one[:2])
        self.ends = [one[:2] for one in spoken]
        self.at = [self.start[name] + end_s for _, end_s, name, _ in spoken]
        found = [set(tokens(text)) for *_, text in spoken]
        often = Counter(word for words in found for word in words)
        most = max(2.0, _COMMON * len(found))
        self.heard = [{w for w in words if often[w] <= most} for words in found]

    def times(self, candidate: Candidate, probe: Probe, held: bool) -> dict[str, float]:
        """When the probe is, and how long after what it waits for was asked."""
        now = self.start[probe.session] + probe.t_s
        said = candidate.registration
        here = (self.place[probe.session], probe.t_s)
        earlier = [p for p in candidate.probes if (self.place[p.session], p.t_s) < here]
        asked = (said.session, said.t_s) if said else (probe.session, 0.0)
        length = probe.interval[1] - probe.interval[0] if probe.interval else 0.0
        found = {
            "time:second": probe.t_s,
            "time:session": float(self.place[probe.session]),
            "time:of day": now % DAY_S,
            "time:interval": length,
        }
        if held:
            found["time:since asked"] = now - self.start[asked[0]] - asked[1]
            found["time:sessions since asked"] = float(here[0] - self.place[asked[0]])
            found["time:earlier probes"] = float(len(earlier))
        return found

    def said(self, probe: Probe, words: Iterable[str]) -> dict[str, float]:
        """What was said last, and when something with one of these words was."""
        until = bisect_right(self.ends, (self.place[probe.session], probe.t_s))
        now, own = self.start[probe.session] + probe.t_s, set(words)
        mentions = [
            at for at, heard in zip(self.at[:until], self.heard, strict=False) if heard & own
        ]
        first = bisect_right(self.ends, (self.place[probe.session], -1.0))
        return {
            "said:captions": float(until - first),
            "said:last": now - self.at[until - 1] if until else NEVER_S,
            "said:in the last": float(len(self.heard[until - 1] & own)) if until else 0.0,
            "said:mentioned": now - mentions[-1] if mentions else NEVER_S,
            "said:mentions": float(len(mentions)),
        }


def _compared(candidate: Candidate, probe: Probe, past: _Past) -> Iterator[dict[str, Any]]:
    """What is known of each option, alone and beside the others."""
    listed = [tokens(option.text) for option in candidate.options]
    asked = tokens(candidate.question)
    common = set.intersection(*map(set, listed))
    form, seen = " ".join(asked[:4]), set(tokens(" ".join(probe.glance.values())))
    numbers = [float(word) if word.isdigit() else -1.0 for word in (words[-1] for words in listed)]
    lengths = [float(len(option.text)) for option in candidate.options]
    said = [past.said(probe, set(words) - common) for words in listed]
    ago, often = ([one[f"said:{k}"] for one in said] for k in ("mentioned", "mentions"))
    for i, words in enumerate(listed):
        others = [set(other) for j, other in enumerate(listed) if j != i]
        alike = [len(set(words) & other) / len(set(words) | other) for other in others]
        yield {
            "option:place": float(i),
            "option:length": lengths[i],
            "option:length rank": _rank(lengths, i),
            "option:words asked": float(len(set(words) & set(asked))),
            "option:likeness": float(np.mean(alike)),
            "option:nearest": max(alike),
            "option:number": numbers[i],
            "option:number rank": _rank(numbers, i),
            "glance:words": float(len((set(words) - common) & seen)),
            **said[i],
            "said:mentioned rank": _rank(ago, i),
            "said:mentions rank": _rank(often, i),
            "words": {*words, f"last {words[-1]}", *(f"{form}: {word}" for word in words)},
        }


def _rank(values: Sequence[float], at: int) -> float:
    """How many of the others are smaller, ties count half."""
    return sum((v < values[at]) + 0.5 * (v == values[at]) for v in values) - 0.5


def _table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """One table; the commonest words of each task have a column, what is absent is 0."""
    if not rows:
        return pd.DataFrame(columns=KEYS)
    listed: list[set[str]] = [row.pop("words") for row in rows]
    table = pd.DataFrame(rows)
    often = Counter(
        (row["task"], w) for row, words in zip(rows, listed, strict=True) for w in words
    )
    kept: dict[str, list[str]] = {}
    for (task, word), _ in often.most_common():
        if len(kept.setdefault(task, [])) < _WORDS:
            kept[task].append(word)
    found = {
        f"word:{word}": np.array([float(word in words) for words in listed])
        for word in sorted({word for words in kept.values() for word in words})
    }
    return pd.concat([table.fillna(0.0), pd.DataFrame(found)], axis=1)
